"""Two brokers that align their storages, while writers go on at both: killed in turn, and cut off from each other.

    python -m tests.robust.aligning --samples 100000 --kills 50 --partitions 20

Each writer is a process of its own and knows one broker only. It stores acknowledged batches on keys of its own, and
puts and deletes keys that both write. A broker is killed and stays away until the other's writer has got on; partitions
last until both have. At the end both logs must have exactly the same samples, every acknowledged one of them once, and
both brokers answer a get with exactly the newest of them, deleted keys left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import elea
from tests.interop.inbox import free_port
from tests.robust.children import PATIENCE, Child, broker, config, eventually
from tests.robust.cutting import Cuttable

__all__ = ["Outcome", "run"]

KEYS = "s/**"
BATCH = 100
SHARED = 20
INTERVAL = 0.3
RETRY = "connect/retry:{period_init_ms: 100, period_max_ms: 500, period_increase_factor: 2}"
STALLED = 120.0
"""Seconds without any progress after which something has gone wrong for good."""

COLUMNS = ["key", "ntp64", "stamp_id", "kind", "payload", "source_id", "source_eid", "source_sn", "once"]


class Outcome(NamedTuple):
    """What a run has come to."""

    stored: int
    acknowledged: int
    live: int
    """Keys that have a value."""

    kills: int
    partitions: int
    aligned: int
    """Samples brought since the brokers were started last."""

    failed_rounds: int
    catching_up: float
    """Seconds from the last write until both have the same."""

    seconds: float


class Severable(Cuttable):
    """A link that can also stay cut."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._whole = port

    def sever(self) -> None:
        """Cut it, and let nobody through."""
        self._port = free_port()
        self.cut()

    def mend(self) -> None:
        self._port = self._whole


class Broker:
    """A broker with a store, aligned over a link with the other, that can be killed and comes back."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.port = free_port()
        self.locator = f"tcp/127.0.0.1:{self.port}"
        self.link = Severable(self.port)
        """How the other one reaches it."""
        self.kills = 0
        self.partner = ""

    def start(self) -> None:
        options = ["--store", self._directory, "--persist", KEYS]
        options += ["--align", self.partner, "--align-interval", str(INTERVAL), "--cfg", RETRY]
        self._running = broker(*options, listen=self.locator)
        self._child, _ = self._running.__enter__()

    def kill(self) -> None:
        """Without a word."""
        self.kills += 1
        self._child.signal(signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        self._running.__exit__(None, None, None)

    def session(self) -> elea.Session:
        return elea.open(config("client", "connect", self.locator))


def write(locator: str, writer: int) -> None:
    """A writer: told up to which number, it says how many samples, and others, have been acknowledged so far."""
    patience = PATIENCE * 5
    done = extra = 0
    with elea.open(config("client", "connect", locator)) as session:
        print(json.dumps([0, 0]), flush=True)
        for line in sys.stdin:
            (target,) = json.loads(line)
            while done < target:
                number = done // BATCH
                rows = [(f"s/{writer}/{n % 50}", f"{writer}:{n}") for n in range(done, min(done + BATCH, target))]
                session.put_batch(rows, f"s/{writer}/*", timeout=patience)
                session.put(f"s/shared/{number % SHARED}", f"shared {writer}:{number}", ack=True, timeout=patience)
                session.delete(f"s/shared/{(number + 7 * writer) % SHARED}", ack=True, timeout=patience)
                session.delete(f"s/{writer}/{number % 50}", ack=True, timeout=patience)
                done, extra = done + len(rows), extra + 3
                print(json.dumps([done, extra]), flush=True)


class Progress:
    """How far the writers are to go, and how far they have come."""

    def __init__(self, children: list[Child]) -> None:
        self._children = children
        self.done = [0] * len(children)
        self.extra = [0] * len(children)
        self.target = 0
        self._moved = time.monotonic()

    def go(self, target: int) -> None:
        """Let them write up to a number."""
        self.target = target
        for child in self._children:
            child.tell(target)

    def until(self, true: Callable[[], bool]) -> None:
        """Wait for something that the writers bring about."""
        self._moved = time.monotonic()
        self._look()
        while not true():
            time.sleep(0.005)
            self._look()

    def moved_on(self, *indexes: int) -> Callable[[], bool]:
        """Whether writers have acknowledged more than now, or have nothing to do."""
        before = list(self.done)
        return lambda: all(self.done[one] > before[one] or self.done[one] >= self.target for one in indexes)

    def is_done(self) -> bool:
        return all(done >= self.target for done in self.done)

    def _look(self) -> None:
        for index, child in enumerate(self._children):
            while self.done[index] < self.target and not child.lines.empty():
                self.done[index], self.extra[index] = child.answer()
                self._moved = time.monotonic()
        assert time.monotonic() - self._moved < STALLED, f"the writers stand at {self.done}, not {self.target}"


def run(samples: int, *, kills: int = 4, partitions: int = 2, seed: int | None = None) -> Outcome:
    """See the module.

    Raises:
        AssertionError: the two differ in the end, something is missing, twice or back, or nothing goes on.
    """
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}", file=sys.stderr)
    chance = random.Random(seed)
    each = samples // 2
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        brokers = [Broker(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        for one, other in zip(brokers, reversed(brokers), strict=True):
            stack.callback(one.link.close)
            one.partner = other.link.locator
        for one in brokers:
            one.start()
            stack.callback(one.stop)
        children = []
        for index, one in enumerate(brokers):
            child = Child(["tests.robust.aligning", "--write", one.locator, str(index)])
            stack.callback(child.end)
            children.append(child)
        progress = Progress(children)
        for child in children:
            assert child.answer() == [0, 0]
        _trouble(brokers, progress, each, chance, kills, partitions)
        ended = time.monotonic()
        sessions = [stack.enter_context(one.session()) for one in brokers]
        stored = _the_same(sessions)
        caught_up = time.monotonic() - ended
        _judge(stored, each, sum(progress.extra))
        newest = _newest(stored)
        for session in sessions:
            assert _got(session) == newest
        facts = [_facts(session) for session in sessions]
        return Outcome(
            len(stored),
            each * 2 + sum(progress.extra),
            len(newest),
            sum(one.kills for one in brokers),
            partitions,
            sum(one["aligned"] for one in facts),
            sum(one["failed"] for one in facts),
            caught_up,
            time.monotonic() - begun,
        )


def _trouble(
    brokers: list[Broker], progress: Progress, each: int, chance: random.Random, kills: int, partitions: int
) -> None:
    """Something happens in the midst of each stretch of the writers' way; in the last nothing does."""
    whats = [f"kill {n % 2}" for n in range(kills)] + ["partition"] * partitions
    chance.shuffle(whats)
    for number, what in enumerate([*whats, "nothing"]):
        progress.go(each * (number + 1) // (len(whats) + 1))
        point = progress.target - chance.random() * each / (len(whats) + 1)
        progress.until(lambda point=point: max(progress.done) >= point)  # type: ignore[misc]
        if what == "partition":
            _partition(brokers, progress)
        elif what != "nothing":
            victim = int(what.split()[1])
            brokers[victim].kill()
            progress.until(progress.moved_on(1 - victim))
            brokers[victim].start()
        progress.until(progress.is_done)
        if chance.random() < 0.5:  # else the next comes while they catch up, or before
            _wait_for_rounds(brokers)


def _partition(brokers: list[Broker], progress: Progress) -> None:
    for one in brokers:
        one.link.sever()
    progress.until(progress.moved_on(0, 1))
    for one in brokers:
        one.link.mend()


def _wait_for_rounds(brokers: list[Broker]) -> None:
    """Until each has come to the end of a round."""
    for one in brokers:
        with one.session() as session:
            before = _facts(session)["rounds"]
            eventually(partial(_is_beyond, session, before), "a round has come to its end", STALLED)


def _is_beyond(session: elea.Session, rounds: int) -> bool:
    return bool(_facts(session)["rounds"] > rounds)


def _the_same(sessions: list[elea.Session]) -> list[tuple[Any, ...]]:
    """What both logs hold, when it has become the same."""
    logs: list[list[tuple[Any, ...]]] = []

    def same() -> bool:
        logs[:] = [_stored(session) for session in sessions]
        return logs[0] == logs[1]

    try:
        eventually(same, "both have the same samples", STALLED)
    except AssertionError:
        missing = [sorted(set(one) - set(other))[:3] for one, other in (logs, reversed(logs))]
        facts = [_facts(session) for session in sessions]
        raise AssertionError(f"{[len(one) for one in logs]} samples; only here: {missing}; {facts}") from None
    return logs[0]


def _stored(session: elea.Session) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for batch in session.read(KEYS, timeout=STALLED):
        found += zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
    return sorted(found, key=lambda row: (row[1], row[2], row[0]))


def _newest(stored: list[tuple[Any, ...]]) -> dict[str, tuple[bytes, int]]:
    """The value of each key and its time: the plain definition."""
    found: dict[str, tuple[int, bytes, int]] = {}
    for key, ntp64, _, kind, payload, *_ in stored:
        found[key] = (kind, payload, ntp64)
    return {key: (payload, ntp64) for key, (kind, payload, ntp64) in found.items() if kind == 0}


def _got(session: elea.Session) -> dict[str, tuple[bytes, int]]:
    """The same as a get brings it."""
    found: dict[str, tuple[bytes, int]] = {}
    for reply in session.get(KEYS, timeout=PATIENCE):
        assert reply.ok is not None
        assert reply.ok.timestamp is not None
        found[str(reply.ok.key_expr)] = (reply.ok.payload.to_bytes(), reply.ok.timestamp.value.ntp64)
    return found


def _judge(stored: list[tuple[Any, ...]], each: int, extra: int) -> None:
    """Every acknowledged sample is there, once."""
    assert len(stored) == each * 2 + extra, f"{len(stored)} samples of {each * 2 + extra}"
    numbers = Counter(payload for _, _, _, kind, payload, *_ in stored if kind == 0 and not payload.startswith(b"sh"))
    expected = {f"{writer}:{n}".encode() for writer in range(2) for n in range(each)}
    assert set(numbers) == expected
    assert set(numbers.values()) == {1}
    sources = Counter(row[5:8] for row in stored)
    assert set(sources.values()) == {1}


def _facts(session: elea.Session) -> dict[str, Any]:
    """What a broker tells of the alignment of its storage."""
    for reply in session.get("@store/info/*/*", timeout=PATIENCE):
        assert reply.ok is not None
        form = json.loads(reply.ok.payload.to_string())
        if form["key_expr"] == KEYS:
            (found,) = form["alignment"]
            return dict(found)
    raise AssertionError("the broker tells nothing")


def main() -> int:
    """For the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--write", nargs=2, metavar=("LOCATOR", "WRITER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write is not None:
        write(args.write[0], int(args.write[1]))
        return 0
    outcome = run(args.samples, kills=args.kills, partitions=args.partitions, seed=args.seed)
    print(json.dumps(outcome._asdict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
