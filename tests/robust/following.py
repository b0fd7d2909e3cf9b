"""Followers against a broker that is killed, over links that are cut, while several write: no gap, no repetition.

    python -m tests.robust.following --samples 1000000 --kills 20 --cuts 40

Writers are processes of their own and store acknowledged batches, with plain puts between. One follower has a function
and stays; one takes from a channel, by a cursor, and leaves and comes again. At the end both must have exactly the
samples of the log, in the order of positions, and the log every acknowledged sample once, in the order of its writer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import elea
from elea.api.historysubscriber import FollowingSubscriber
from tests.interop.inbox import free_port
from tests.robust.children import PATIENCE, Child, broker, config, eventually
from tests.robust.cutting import Cuttable

__all__ = ["Outcome", "run"]

KEYS = "f/**"
BATCH = 500
STALLED = 120.0
"""Seconds without any progress after which something has gone wrong for good."""


class Outcome(NamedTuple):
    """What a run has come to."""

    stored: int
    acknowledged: int
    kills: int
    cuts: int
    sittings: int
    interruptions: int
    seconds: float


class Broker:
    """A broker with a store, that can be killed and comes back at the same place."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.port = free_port()
        self.locator = f"tcp/127.0.0.1:{self.port}"
        self.kills = 0
        self._start()

    def _start(self) -> None:
        self._running = broker("--store", self._directory, "--persist", KEYS, listen=self.locator)
        self._child, _ = self._running.__enter__()

    def kill(self, by: signal.Signals = signal.SIGKILL) -> None:
        """Without a word, or as `by` says, and start again."""
        self.kills += 1
        self._child.signal(by)
        self._running.__exit__(None, None, None)
        self._start()

    def close(self) -> None:
        self._running.__exit__(None, None, None)


def write(locator: str, writer: int, samples: int) -> None:
    """A writer: acknowledged batches, each sample with its number, and plain puts that may be lost with the broker."""
    with elea.open(config("client", "connect", locator)) as session:
        print(json.dumps(0), flush=True)
        for start in range(0, samples, BATCH):
            rows = [(f"f/{writer}/{n % 10}", f"{writer}:{n}") for n in range(start, min(start + BATCH, samples))]
            session.put_batch(rows, f"f/{writer}/*", timeout=PATIENCE * 5)
            session.put(f"f/{writer}/plain", f"plain {writer}:{start}")
            print(json.dumps(start + len(rows)), flush=True)


class Stayer:
    """A follower with a function."""

    def __init__(self, session: elea.Session) -> None:
        self.got: list[tuple[int, bytes]] = []
        found = session.declare_subscriber(KEYS, self._note, since=0)
        assert isinstance(found, FollowingSubscriber)
        self.subscriber = found

    def _note(self, sample: Any) -> None:
        self.got.append((sample.position, sample.payload.to_bytes()))


class Sleeper:
    """A follower that takes some samples, leaves, and comes again under the name of its cursor."""

    def __init__(self, session: elea.Session, chance: random.Random) -> None:
        self.got: list[tuple[int, bytes]] = []
        self.sittings = 0
        self.over = False
        self._session = session
        self._chance = chance
        self.thread = threading.Thread(target=self._sit_again, daemon=True)
        self.thread.start()

    def _sit_again(self) -> None:
        while not self.over:
            self.sittings += 1
            since = 0 if self.sittings == 1 else None
            with self._retrying(since) as subscriber:
                count, waited = self._chance.randrange(1, 20_000), 0
                while count and waited < 200:
                    sample = subscriber.try_recv()
                    if sample is None:
                        waited += 1
                        time.sleep(0.005)
                        continue
                    count -= 1
                    self.got.append((sample.position, sample.payload.to_bytes()))
                    # Each sitting commits by itself: a cursor that could not be moved in the end would repeat samples.
                self._commit(subscriber)

    @contextlib.contextmanager
    def _retrying(self, since: int | None) -> Iterator[Any]:
        """A subscriber; to declare one the broker must be there."""
        end = time.monotonic() + STALLED
        while True:
            try:
                made = self._session.declare_subscriber(KEYS, since=since, cursor="sleeper", auto_commit=False)
                break
            except (elea.ZError, TimeoutError):
                assert time.monotonic() < end, "the broker does not come back"
        with made:
            yield made

    @staticmethod
    def _commit(subscriber: Any) -> None:
        end = time.monotonic() + STALLED
        while True:
            try:
                return subscriber.commit()  # type: ignore[no-any-return]
            except (elea.ZError, TimeoutError):
                assert time.monotonic() < end, "the broker does not come back"


def run(samples: int, *, writers: int = 3, kills: int = 3, cuts: int = 3, seed: int | None = None) -> Outcome:
    """See the module.

    Raises:
        AssertionError: a gap, a repetition, or no progress any more.
    """
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}", file=sys.stderr)
    chance = random.Random(seed)
    each = samples // writers
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        served = Broker(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(lambda: served.close())
        link = Cuttable(served.port)
        stack.callback(link.close)
        session = stack.enter_context(elea.open(config("client", "connect", link.locator)))
        stayer = Stayer(session)
        sleeper = Sleeper(session, random.Random(seed + 1))
        children = []
        for writer in range(writers):
            child = Child(["tests.robust.following", "--write", served.locator, str(writer), str(each)])
            stack.callback(child.end)
            children.append(child)
        for child in children:
            assert child.answer() == 0
        _trouble(served, link, children, each, chance, kills, cuts)
        stored = _settled(session, stayer)
        sleeper.over = True
        sleeper.thread.join(STALLED)
        eventually(lambda: sleeper.sittings and not sleeper.thread.is_alive(), "the sleeper leaves")
        rest = _rest(session, sleeper, len(stored))
        _judge(stored, stayer.got, "the follower that stayed")
        _judge(stored, rest, "the follower that came and went")
        _judge_writers(stored, writers, each)
        assert stayer.subscriber.error is None
        return Outcome(
            len(stored),
            each * writers,
            served.kills,
            link.cuts,
            sleeper.sittings,
            stayer.subscriber.interruptions,
            time.monotonic() - begun,
        )


def _trouble(
    served: Broker, link: Cuttable, children: list[Child], each: int, chance: random.Random, kills: int, cuts: int
) -> None:
    """Kill and cut at random points of the writers' progress, so that every run has the same share of both."""
    total = each * len(children)
    events = sorted((chance.uniform(0.02, 0.98) * total, what) for what in ["kill"] * kills + ["cut"] * cuts)
    done = [0] * len(children)
    moved = time.monotonic()
    while sum(done) < total:
        for index, child in enumerate(children):
            while done[index] < each and not child.lines.empty():
                done[index] = child.answer()
                moved = time.monotonic()
        while events and events[0][0] <= sum(done):
            (served.kill if events.pop(0)[1] == "kill" else link.cut)()
        assert time.monotonic() - moved < STALLED, f"the writers stand at {done} of {each} each"
        time.sleep(0.005)
    for _, what in events:
        (served.kill if what == "kill" else link.cut)()


def _settled(session: elea.Session, stayer: Stayer) -> list[tuple[int, bytes]]:
    """Everything in the log, when the follower has come to its end."""
    stored: list[tuple[int, bytes]] = []
    for batch in session.read(KEYS, timeout=STALLED):
        stored += zip(batch.column("position").to_pylist(), batch.column("payload").to_pylist(), strict=True)
    moved, count = time.monotonic(), -1
    while len(stayer.got) < len(stored):
        if len(stayer.got) != count:
            moved, count = time.monotonic(), len(stayer.got)
        why = f"the follower stands at {count} of {len(stored)}: {stayer.subscriber.error}"
        assert stayer.subscriber.error is None, why
        assert time.monotonic() - moved < STALLED, why
        time.sleep(0.01)
    return stored


def _rest(session: elea.Session, sleeper: Sleeper, count: int) -> list[tuple[int, bytes]]:
    """What the sleeper has, and what it gets when it comes once more and stays to the end."""
    with session.declare_subscriber(KEYS, cursor="sleeper") as subscriber:
        while len(sleeper.got) < count:
            sample = subscriber.recv()
            sleeper.got.append((sample.position, sample.payload.to_bytes()))
    return sleeper.got


def _judge(stored: list[tuple[int, bytes]], got: list[tuple[int, bytes]], who: str) -> None:
    if got == stored:
        return
    at = next((n for n, (a, b) in enumerate(zip(stored, got, strict=False)) if a != b), min(len(stored), len(got)))
    raise AssertionError(
        f"{who} has {len(got)} samples of {len(stored)}; from {at} on {got[at : at + 3]}, not {stored[at : at + 3]}"
    )


def _judge_writers(stored: list[tuple[int, bytes]], writers: int, each: int) -> None:
    assert [position for position, _ in stored] == list(range(len(stored)))
    numbers: dict[int, list[int]] = {writer: [] for writer in range(writers)}
    for _, payload in stored:
        if not payload.startswith(b"plain"):
            name, _, number = payload.partition(b":")
            numbers[int(name)].append(int(number))
    for writer, found in numbers.items():
        assert found == list(range(each)), f"writer {writer}: {len(found)} samples stored of {each} acknowledged"


def main() -> int:
    """For the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--write", nargs=3, metavar=("LOCATOR", "WRITER", "SAMPLES"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write is not None:
        write(args.write[0], int(args.write[1]), int(args.write[2]))
        return 0
    outcome = run(args.samples, writers=args.writers, kills=args.kills, cuts=args.cuts, seed=args.seed)
    print(json.dumps(outcome._asdict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
