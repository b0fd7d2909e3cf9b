"""`get("**")` over very many keys by a reader that is slow: what it costs the broker, and how soon it is forgotten.

    python -m tests.robust.everything --keys 1000000 --rate 1048576 --seconds 30

A broker has so many keys in a log on disk. A reader asks for all of them over a link that passes so many octets a
second, and is killed in the middle. Then one that is as fast as it can be asks, and must get every key once. The memory
of the broker is looked at all the time, the peak as the system keeps it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import elea
from elea.api.session import Session
from tests.robust.children import PATIENCE, Child, broker, config, eventually, facts

__all__ = ["Outcome", "run"]

PART = 50_000
NONE = elea.ConsolidationMode.NONE


class Outcome(NamedTuple):
    """What a run has come to; memory in kB."""

    keys: int
    before: int
    slow_peak: int
    """The most while the slow reader was served."""

    slow_replies: int
    after: int
    """When the slow reader had been forgotten."""

    freed_seconds: float
    """From the end of the slow reader until nothing was done for it any more."""

    fast_peak: int
    fast_replies: int
    fast_seconds: float


class Slow:
    """A port that passes on what the broker says at a bounded rate, and everything else at once."""

    def __init__(self, locator: str, rate: int) -> None:
        self._port = int(locator.rpartition(":")[2])
        self._rate = rate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.locator = f"tcp/127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            near, _ = self._listener.accept()
            far = socket.socket()
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)  # the rest waits at the broker
            far.connect(("127.0.0.1", self._port))
            self._open += [near, far]
            threading.Thread(target=self._pass_on, args=(near, far, None), daemon=True).start()
            self._pass_on(far, near, self._rate)

    def _pass_on(self, source: socket.socket, target: socket.socket, rate: int | None) -> None:
        step = 65_536 if rate is None else max(1_024, rate // 20)
        with contextlib.suppress(OSError):
            while data := source.recv(step):
                target.sendall(data)
                if rate is not None:
                    time.sleep(len(data) / rate)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def read(locator: str) -> None:
    """A reader: says how many replies it has now and then, and at the end that it has all."""
    with elea.open(config("client", "connect", locator)) as session:
        count, said = 0, time.monotonic()
        for reply in session.get("**", consolidation=NONE, timeout=3600):
            assert reply.ok is not None, reply.err
            count += 1
            if count == 1 or time.monotonic() - said > 0.1:
                said = time.monotonic()
                print(json.dumps(count), flush=True)
        print(json.dumps([count]), flush=True)


def run(keys: int, *, rate: int, seconds: float, octets: int = 100) -> Outcome:
    """See the module."""
    with tempfile.TemporaryDirectory() as directory, broker("--store", directory, "--persist", "e/**") as (child, at):
        id = child.process.pid
        with elea.open(config("client", "connect", at)) as session:
            fill(session, keys, octets)
            _await_checkpoint(Path(directory), keys)
            before = facts(id)["memory"]
            _forget_peak(id)
            slow_replies = slow(child, at, session, rate, seconds)
            killed = time.monotonic()
            eventually(lambda: queries(session) == 0, "the broker forgets the reader")
            freed = time.monotonic() - killed
            slow_peak, after = facts(id)["peak"], facts(id)["memory"]
            _forget_peak(id)
            begun = time.monotonic()
            with reader(at) as fast:
                while not isinstance(answer := fast.answer(timeout=10 * PATIENCE), list):
                    pass
            took = time.monotonic() - begun
            fast_peak = facts(id)["peak"]
    return Outcome(keys, before, slow_peak, slow_replies, after, freed, fast_peak, answer[0], took)


def fill(session: Session, keys: int, octets: int) -> None:
    """Give so many keys a value."""
    for start in range(0, keys, PART):
        rows = [(f"e/{number % 97}/{number}", bytes(octets)) for number in range(start, min(start + PART, keys))]
        session.put_batch(rows, "e/**", timeout=PATIENCE)


def slow(child: Child, locator: str, session: Session, rate: int, seconds: float) -> int:
    """Let a slow reader read for a while, and kill it; how many replies it had."""
    link = Slow(locator, rate)
    try:
        with reader(link.locator) as child_reader:
            assert child_reader.answer(timeout=10 * PATIENCE) == 1
            eventually(lambda: queries(session) == 1, "the query is answered")
            until = time.monotonic() + seconds
            count = 1
            while time.monotonic() < until:
                time.sleep(0.1)
                while not child_reader.lines.empty():
                    count = child_reader.answer()
                    assert not isinstance(count, list), f"{count} replies came already: make --rate lower"
                assert child.is_running
        return count
    finally:
        link.close()


def queries(session: Session) -> int:
    """Queries that the storages of the broker are answering."""
    (reply,) = session.get("@/*/router/metrics?compression=false", timeout=PATIENCE)
    assert reply.ok is not None
    (line,) = [line for line in reply.ok.payload.to_string().splitlines() if line.startswith("elea_store_queries ")]
    return int(line.split()[1])


@contextlib.contextmanager
def reader(locator: str) -> Iterator[Child]:
    """A reader in a process of its own; killed at the end."""
    child = Child(["tests.robust.everything", "--read", locator])
    try:
        yield child
    finally:
        child.end()


def _await_checkpoint(directory: Path, keys: int) -> None:
    """Writing the index of very many keys down takes memory, too, and is not what is measured here."""
    if keys < 100_000:
        return
    filled = time.time()
    name = next(directory.glob("e-*")) / "index"
    eventually(lambda: name.exists() and name.stat().st_mtime > filled, "the index is written down", 3 * PATIENCE)
    time.sleep(1)


def _forget_peak(process_id: int) -> None:
    Path(f"/proc/{process_id}/clear_refs").write_text("5")


def main() -> int:
    """For the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=1 << 20, help="octets a second of the slow reader")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long it reads")
    parser.add_argument("--octets", type=int, default=100, help="of a value")
    parser.add_argument("--read", metavar="LOCATOR", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read is not None:
        read(args.read)
        return 0
    found = run(args.keys, rate=args.rate, seconds=args.seconds, octets=args.octets)
    print(json.dumps(found._asdict()))
    slow_cost, fast_cost = found.slow_peak - found.before, found.fast_peak - found.after
    print(f"the slow reader cost {slow_cost / 1024:.1f} MB, and was forgotten in {found.freed_seconds:.2f} s")
    print(f"the fast reader cost {fast_cost / 1024:.1f} MB, {found.fast_seconds:.1f} s")
    return 0 if found.fast_replies == found.keys else 1


if __name__ == "__main__":
    sys.exit(main())
