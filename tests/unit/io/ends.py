"""Pairs of connected links over loopback, and waiting without sleeping a fixed time."""

from __future__ import annotations

import gc
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from elea.io.batchreader import BatchReader
from elea.io.dial import connect
from elea.io.link import Link
from elea.io.listener import Listener, listen
from elea.io.loop import OUT, Loop, Pollable
from elea.io.outbox import Frame, Outbox
from elea.io.tls_settings import TlsSettings
from elea.model.limits import MAX_BATCH

PATIENCE = 10.0
LONG = 0.5
"""Seconds a reader of these tests waits without looking: whoever wakes it has to do so."""


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
        self.links: list[Link] = []
        self.loop = Loop("accepting")
        self.listener: Listener = listen(locator, on_link=self.links.append, loop=self.loop, tls=tls)
        self.locator = self.listener.locators()[0]

    def first(self) -> Link:
        assert until(lambda: self.links)
        return self.links[0]

    def close(self) -> None:
        self.listener.close()
        for link in self.links:
            link.close()
        self.loop.close()


@contextmanager
def accepting(locator: str, tls: TlsSettings | None = None) -> Iterator[Accepting]:
    """A listener that is closed with all its links."""
    side = Accepting(locator, tls)
    try:
        yield side
    finally:
        side.close()


@contextmanager
def pair(locator: str, tls: TlsSettings | None = None) -> Iterator[tuple[Link, Link]]:
    """The connecting and the accepted end of one link."""
    with accepting(locator, tls) as side:
        near = connect(side.locator, tls=tls, timeout=PATIENCE)
        try:
            if not near.streamed:
                near.send(b"hello")  # a udp listener sees a source when it speaks
            far = side.first()
            if not near.streamed:
                assert receive_batch(far) == b"hello"
            yield near, far
        finally:
            near.close()


def receive(link: Link, view: memoryview) -> int:
    """Wait until something has arrived, and take it; 0 at the end of the link."""
    while (count := link.receive_ready(view)) < 0:
        await_arrival(link)
    return count


def receive_batch(link: Link) -> bytes | None:
    """The next datagram; None when the link is closed."""
    view = memoryview(bytearray(1 << 16))
    return view[:count].tobytes() if (count := receive(link, view)) else None


def read_batches(
    link: Link,
    on_batch: Callable[[bytes], object],
    prefix_size: Callable[[], int] = lambda: 2,
    *,
    limit: int = MAX_BATCH,
    buffer_size: int = 1 << 18,
) -> None:
    """Hand over every batch that arrives, until the link is closed here or the other side is done.

    `prefix_size` is asked before each batch.
    """
    reader = BatchReader(link, limit=limit)
    buffer = bytearray(buffer_size)
    view = memoryview(buffer)
    reader.prefix = prefix_size()
    while came := reader.receive(buffer, view):
        if came < 0:
            await_arrival(link)
            continue
        while (batch := reader.cut()) is not None:
            on_batch(bytes(batch))
            reader.prefix = prefix_size()
        reader.keep()


def await_arrival(link: Link) -> None:
    """Wait until there may be something to read, or the link is closed."""
    descriptor = link.fileno()
    if descriptor < 0:
        time.sleep(0.001)
        return
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    poller.poll(LONG * 1_000)


class Emptying(Pollable):
    """Tells an outbox when the kernel has room for its link again, as the connection of a session does."""

    def __init__(self, link: Link, loop: Loop) -> None:
        super().__init__()
        self.outbox: Outbox | None = None
        self._link = link
        self._loop = loop

    def on_blocked(self, blocked: bool) -> None:
        """The kernel takes no more, or does again."""
        if not blocked:
            self._loop.remove(self)
        elif (descriptor := self._link.fileno()) >= 0:
            self._loop.add(self, descriptor, OUT)

    def on_ready(self, mask: int) -> None:
        if self.outbox is not None:
            self.outbox.on_writable()


def outbox_for(link: Link, frame: Frame, loop: Loop, *, room: int, queue_bytes: int = 1 << 20) -> Outbox:
    """An outbox whose link is polled for room when the kernel takes no more."""
    emptying = Emptying(link, loop)
    outbox = emptying.outbox = Outbox(
        link, frame, loop, room=room, on_blocked=emptying.on_blocked, queue_bytes=queue_bytes
    )
    return outbox


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
