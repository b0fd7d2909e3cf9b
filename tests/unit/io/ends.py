"""Pairs of connected links over loopback, and waiting without sleeping a fixed time."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from elea.io.dial import AnyLink, connect
from elea.io.listening import Listener, listen
from elea.io.tls_settings import TlsSettings

PATIENCE = 10.0


def until(condition: Callable[[], object], timeout: float = PATIENCE) -> bool:
    """Whether a condition came true in time."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


class Accepting:
    """A listener that keeps the links it was given."""

    def __init__(self, locator: str, tls: TlsSettings | None = None) -> None:
        self.links: list[AnyLink] = []
        self.listener: Listener = listen(locator, on_link=self.links.append, tls=tls)
        self.locator = self.listener.locators()[0]

    def first(self) -> AnyLink:
        assert until(lambda: self.links)
        return self.links[0]

    def close(self) -> None:
        self.listener.close()
        for link in self.links:
            link.close()


@contextmanager
def accepting(locator: str, tls: TlsSettings | None = None) -> Iterator[Accepting]:
    """A listener that is closed with all its links."""
    side = Accepting(locator, tls)
    try:
        yield side
    finally:
        side.close()


@contextmanager
def pair(locator: str, tls: TlsSettings | None = None) -> Iterator[tuple[AnyLink, AnyLink]]:
    """The connecting and the accepted end of one link."""
    with accepting(locator, tls) as side:
        near = connect(side.locator, tls=tls, timeout=PATIENCE)
        try:
            if not near.streamed:
                near.send(b"hello")  # a udp listener sees a source when it speaks
            far = side.first()
            if not near.streamed:
                assert far.receive_batch() == b"hello"  # type: ignore[union-attr]
            yield near, far
        finally:
            near.close()


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Run something aside."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def repeat(work: Callable[[], object]) -> None:
    """Do something a hundred times, or until it fails."""
    for _ in range(100):
        work()


def prefixed(batch: bytes, width: int = 2) -> bytes:
    """A batch as it travels on a stream."""
    return len(batch).to_bytes(width, "little") + batch


def open_files() -> int:
    """File descriptors of this process."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


EARLIER: set[threading.Thread] = set()
"""Threads that lived before the test began: nodes that other tests of this process keep open."""


def own_threads() -> list[str]:
    """Names of the threads Elea started in this test that still live."""
    return [t.name for t in threading.enumerate() if t.name.startswith("elea-") and t not in EARLIER]


class Authority:
    """A certificate authority made with the openssl command, in a directory."""

    def __init__(self, directory: Path, name: str = "root") -> None:
        self.directory = directory
        self.certificate = str(directory / f"{name}.pem")
        self._key = str(directory / f"{name}.key")
        self._call(
            f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name} "
            f"-keyout {self._key} -out {self.certificate}"
        )

    def issue(self, name: str, alternative: str = "DNS:localhost,IP:127.0.0.1", days: int = 2) -> tuple[str, str]:
        """Files of a new certificate and its key."""
        key, request, certificate, extension = (
            str(self.directory / f"{name}.{end}") for end in ("key", "csr", "pem", "ext")
        )
        Path(extension).write_text(f"subjectAltName={alternative}\n")
        self._call(
            f"req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={name} -keyout {key} -out {request}"
        )
        self._call(
            f"x509 -req -in {request} -CA {self.certificate} -CAkey {self._key} -CAcreateserial -days {days} "
            f"-extfile {extension} -out {certificate}"
        )
        return certificate, key

    @staticmethod
    def _call(words: str) -> None:
        subprocess.run(["openssl", *words.split()], check=True, capture_output=True)


def bare(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[bytes]], int, int]:
    """Everything that waits as one batch of nothing else."""
    parts = queue[: min(len(queue), most) & ~1]
    data = b"".join(parts)
    return [[prefixed(data)]], len(parts), len(data)
