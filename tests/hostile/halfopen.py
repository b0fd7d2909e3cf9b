"""Connections that begin and never become sessions, held by a process of its own.

`python -m tests.hostile.halfopen tcp/127.0.0.1:7447 silent --count 130` keeps that many open until it is ended: what
the broker closes is opened again at once.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import select
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import elea
from elea.model.qos import Role
from elea.protocol.zenoh1.opening import Initiator
from elea.protocol.zenoh1.terms import Offer
from tests.robust.hostile import PATIENCE

__all__ = ["KINDS", "besieged", "openings", "p99"]


def _init() -> bytes:
    machine = Initiator(Offer(random.randbytes(16), Role.CLIENT), time.monotonic())
    machine.start()
    batch = machine.to_send(0.0)[0]
    return len(batch).to_bytes(2, "little") + batch


KINDS: dict[str, Callable[[], bytes]] = {
    "silent": lambda: b"",
    "one byte": lambda: b"\x16",
    "half an INIT": lambda: _init()[:10],
    "a whole INIT": _init,
}
"""What is said before the silence."""


class _Siege:
    """Connections of one attacker."""

    def __init__(self, locator: str, kind: str, count: int, source: str) -> None:
        protocol, _, address = locator.partition("/")
        host, _, port = address.rpartition(":")
        self._where = (host, int(port))
        self._tls = _trusting() if protocol == "tls" and kind == "a whole INIT" else None
        self._say = KINDS[kind]
        self._source = source
        self._links: dict[int, socket.socket] = {}
        self._poll = select.poll()
        self.count = count
        self.opened = 0

    def run(self) -> None:
        """Until somebody ends the process."""
        while True:
            self._open()
            if self.opened == self.count:
                print("full", flush=True)
            is_full = len(self._links) >= self.count
            for descriptor, _ in self._poll.poll(100 if is_full else 0):
                self._look(descriptor)

    def _open(self) -> None:
        if len(self._links) >= self.count:
            return
        self.opened += 1
        try:
            link = socket.create_connection(self._where, PATIENCE, (self._source, 0))
            if self._tls is not None:
                link = self._tls.wrap_socket(link)
            link.sendall(self._say())
            link.setblocking(False)
        except OSError:
            time.sleep(0.001)  # closed before it began: the next one
            return
        self._links[link.fileno()] = link
        self._poll.register(link, select.POLLIN)

    def _look(self, descriptor: int) -> None:
        link = self._links[descriptor]
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
            try:
                if link.recv(65_536):
                    return
            except (BlockingIOError, ssl.SSLWantReadError):
                raise
            except OSError:
                pass
            self._poll.unregister(descriptor)
            del self._links[descriptor]
            link.close()


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.contextmanager
def besieged(locator: str, kind: str, *, count: int = 130, source: str = "127.0.0.1") -> Iterator[None]:
    """An attacker of this kind is at work."""
    command = [sys.executable, "-m", "tests.hostile.halfopen", locator, kind, "--count", str(count), "--source", source]
    attacker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == "full\n"
        yield
        assert attacker.poll() is None, "the attack went on"
    finally:
        attacker.kill()
        attacker.communicate()


def openings(config: elea.Config, times: int) -> list[float]:
    """Seconds that honest clients take to come in, one after the other; infinite if they are refused."""
    took: list[float] = []
    for _ in range(times):
        since = time.monotonic()
        try:
            with elea.open(config) as session:
                took.append(time.monotonic() - since)
                session.put("served/honest", b"in")
        except elea.ZError:
            took.append(float("inf"))
    return took


def p99(took: list[float]) -> float:
    """What all but one of a hundred stay below."""
    return sorted(took)[int(0.99 * (len(took) - 1))]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.halfopen", description=__doc__)
    parser.add_argument("locator")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=130)
    parser.add_argument("--source", default="127.0.0.1")
    options = parser.parse_args(arguments)
    _Siege(options.locator, options.kind, options.count, options.source).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
