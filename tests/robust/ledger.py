"""A ledger against a broker that is killed: nothing acknowledged is lost, nothing is there twice, nothing appears.

    python -m tests.robust.ledger --kills 50 --points all
    python -m tests.robust.ledger --cuts 25                  (as root)

Four writers are processes of their own, each with a ledger that says what it tried and what was acknowledged: single
puts, puts of a publisher, batches and deletions, of 10 octets to 1 MiB. The broker is killed at random instants, also
while it starts, and kills itself at named points (`tests.robust.faulty`): within writes, before and after syncs,
renames, changes of the catalogue, publishing, acknowledging. Its segments are small and its upkeep is quick, so that
compaction, checkpoints and retention go on all the time. At the end everything is read and judged.

`--cuts` cuts the power instead: the store lies on a file system of its own, which the kernel shuts down under the
broker, so that what was not synced is gone at the next mount. With `--relaxed`, which does not promise to survive that,
it shows that losses are seen.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import elea
from tests.robust.children import PATIENCE, Child, config, eventually
from tests.robust.disks import Disk, ext4_disk
from tests.robust.faulty import POINTS, RECOVERING
from tests.robust.ledgerbroker import Killed
from tests.robust.ledgerjudge import Verdict, judge
from tests.robust.ledgerwriter import KEPT, RETRY, Ledger

__all__ = ["Outcome", "run", "run_cuts"]

WRITERS = 4
UNREACHED = 60.0
"""Seconds after which a point is not reached any more."""

OFTEN = ("written", "synced", "segment-before", "segment-half", "commit", "outcomes", "publish", "acknowledge")
"""Points that every put passes: these are let pass a few times."""


class Outcome(NamedTuple):
    """What a run has come to."""

    seed: int
    kills: int
    points: dict[str, int]
    """How often the broker died at each point; `random` and `starting` are the instants that nobody named."""

    unreached: tuple[str, ...]
    tried: int
    acknowledged: int
    unknown: int
    verdict: Verdict
    seconds: float


class Run:
    """See the module."""

    def __init__(
        self, root: Path, seed: int, stack: contextlib.ExitStack, *, disk: Disk | None = None, sync: str = "durable"
    ) -> None:
        self.seed = seed
        self.begun = time.monotonic()
        self.chance = random.Random(seed)
        self.points: Counter[str] = Counter()
        self.unreached: list[str] = []
        self._disk = disk
        self._relaxed = sync == "relaxed"
        self.broker = Killed((root if disk is None else disk.path) / "store", sync=sync)
        stack.callback(self.broker.end)
        self.broker.serve()
        self.ledgers = [root / f"ledger-{writer}" for writer in range(WRITERS)]
        self.writers = [self._writer(writer, seed + writer, stack) for writer in range(WRITERS)]
        for writer in self.writers:
            assert writer.answer() == "open"
        self.session = stack.enter_context(
            elea.open(config("client", "connect", self.broker.locator, connect__retry=RETRY))
        )
        self.seen: list[tuple[str, int, bytes]] = []
        stack.enter_context(self.session.declare_subscriber("**", self._see))

    def _writer(self, writer: int, seed: int, stack: contextlib.ExitStack) -> Child:
        words = [self.broker.locator, str(writer), str(self.ledgers[writer]), str(seed)]
        child = Child(["tests.robust.ledgerwriter", *words])
        stack.callback(child.end)
        return child

    def _see(self, sample: Any) -> None:
        deleted = sample.kind == elea.SampleKind.DELETE
        self.seen.append((str(sample.key_expr), int(deleted), b"" if deleted else sample.payload.to_bytes()[:40]))

    def progress(self) -> None:
        """Every writer has had something acknowledged."""
        before = [_acked(path) for path in self.ledgers]

        def got_on() -> bool:
            assert all(writer.is_running for writer in self.writers), "a writer has ended"
            return all(_acked(path) > past for path, past in zip(self.ledgers, before, strict=True))

        eventually(got_on, "every writer gets on", PATIENCE * 3)

    def kill_at_random(self) -> None:
        """At any moment: while it starts, or while it works."""
        child = self.broker.start()
        starting = self.chance.random() < 0.25
        if not starting:
            assert child.answer()["event"] == "listening"
            if self.chance.random() < 0.5:
                self.progress()
        time.sleep(self.chance.random() * (1.0 if starting else 0.3))
        child.signal(signal.SIGKILL)
        assert child.process.wait() == -signal.SIGKILL
        self.points["starting" if starting else "random"] += 1

    def kill_at(self, point: str) -> None:
        """Where the broker kills itself."""
        count = self.chance.randrange(1, 30 if point.startswith(OFTEN) else 3)
        if self._die_recovering(point) if point in RECOVERING else self._die(point, count):
            self.points[point] += 1
        else:
            self.unreached.append(point)

    def _die(self, point: str, count: int) -> bool:
        child = self.broker.start(point, count)
        end = time.monotonic() + UNREACHED
        while child.is_running and time.monotonic() < end:
            time.sleep(0.005)
        return self._has_died(child)

    def _die_recovering(self, point: str) -> bool:
        """Behind a write that was cut off. That may have been the first one of a segment, which ends differently."""
        for _ in range(10):
            self._die("segment-half-written", self.chance.randrange(1, 10))
            child = self.broker.start(point)
            if not child.lines.get(timeout=PATIENCE):  # it has ended before it could say where it listens
                child.process.wait()
                return self._has_died(child)
        return False

    def _has_died(self, child: Child) -> bool:
        if child.is_running:
            return False
        status = child.process.wait()
        assert status == -signal.SIGKILL, f"the broker ended with {status}"
        return True

    def cut_power(self) -> None:
        """Under a broker that works; like everything else it does nothing from that moment on.

        It is stopped first: a sync that is under way while the file system is shut down may be told to have succeeded,
        which no broker could tell from a good one, and which no power cut would leave anybody to tell.
        """
        assert self._disk is not None
        child = self.broker.serve()
        self.progress()
        time.sleep(self.chance.random() * 0.2)
        child.signal(signal.SIGSTOP)
        eventually(lambda: _is_stopped(child.process.pid), "every thread of the broker stands still")
        self._disk.cut_power()
        self.broker.end()
        self._disk.unmount()
        self._disk.mount()
        self.points["power cut"] += 1

    def finish(self) -> Verdict:
        """Let it serve once more, stop the writers, read and judge."""
        self.broker.serve()
        self.progress()
        for writer in self.writers:
            writer.tell("stop")
        for writer in self.writers:
            writer.answer(PATIENCE * 6)
        eventually(lambda: _serves(self.session), "the broker answers the judge")
        seen = [] if self._relaxed else list(self.seen)
        return judge(self.session, self.read_ledgers(), seen, PATIENCE * 3, skip_damaged=self._relaxed)

    def outcome(self) -> Outcome:
        """Finish, and say what it has come to."""
        verdict = self.finish()
        ledgers = self.read_ledgers().values()
        return Outcome(
            self.seed, sum(self.points.values()), dict(self.points), tuple(self.unreached),
            sum(len(one.tried) for one in ledgers), sum(len(one.acked) for one in ledgers),
            sum(len(one.unknown) for one in ledgers), verdict, time.monotonic() - self.begun,
        )  # fmt: skip

    def read_ledgers(self) -> dict[int, Ledger]:
        return {writer: Ledger(path) for writer, path in enumerate(self.ledgers)}


def run(kills: int, points: list[str] | None = None, *, seed: int | None = None, watch: bool = False) -> Outcome:
    """Kill the broker so many times: half of them at random instants, the others at the points in turn.

    Raises:
        AssertionError: writers get on no more, or the broker ended in another way than by being killed.
    """
    with _running(seed) as running:
        order = list(POINTS if points is None else points)
        running.chance.shuffle(order)
        for number in range(kills):
            if number % 2 and order:
                running.kill_at(order[number // 2 % len(order)])
            else:
                running.kill_at_random()
            _tell(watch, running, number)
        return running.outcome()


def run_cuts(cuts: int, *, sync: str = "durable", seed: int | None = None, watch: bool = False) -> Outcome:
    """Cut the power so many times; needs root."""
    with _running(seed, on_disk=True, sync=sync) as running:
        for number in range(cuts):
            running.cut_power()
            _tell(watch, running, number)
        return running.outcome()


@contextlib.contextmanager
def _running(seed: int | None, *, on_disk: bool = False, sync: str = "durable") -> Iterator[Run]:
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        disk = stack.enter_context(ext4_disk(root, 4 << 30)) if on_disk else None
        yield Run(root, seed, stack, disk=disk, sync=sync)


def _tell(watch: bool, running: Run, number: int) -> None:
    if watch and number % 10 == 9:
        print(f"{number + 1}, {time.monotonic() - running.begun:.0f} s", file=sys.stderr, flush=True)


def _acked(path: Path) -> int:
    return path.read_bytes().count(b"acked") if path.exists() else 0


def _is_stopped(process: int) -> bool:
    states = [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{process}/task").glob("*/stat")]
    return set(states) == {"T"}


def _serves(session: elea.Session) -> bool:
    try:
        return session.cursor(f"{KEPT}/**", "judge") is None or True
    except (elea.ZError, TimeoutError):
        return False


def main() -> int:
    """For the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--points", default="all", help="'all' (twice as many kills as there are points), or names")
    parser.add_argument("--cuts", type=int, help="cut the power so many times, and kill nothing")
    parser.add_argument("--relaxed", action="store_true", help="with --cuts: a store that does not sync")
    parser.add_argument("--seed", type=int)
    args = parser.parse_args()
    points = list(POINTS) if args.points == "all" else args.points.split(",")
    kills = max(args.kills, 2 * len(points)) if args.points == "all" else args.kills
    if args.cuts is not None:
        sync = "relaxed" if args.relaxed else "durable"
        outcome = run_cuts(args.cuts, sync=sync, seed=args.seed, watch=True)
    else:
        outcome = run(kills, points, seed=args.seed, watch=True)
    for name, count in sorted(outcome.points.items()):
        print(f"{count:5}  {name}")
    verdict = outcome.verdict
    print(f"seed {outcome.seed}: {outcome.kills} kills or cuts in {outcome.seconds:.0f} s")
    print(f"tried {outcome.tried}, acknowledged {outcome.acknowledged}, unknown {outcome.unknown}")
    print(f"stored {verdict.stored}: {verdict.lost} lost, {verdict.phantom} phantom, {verdict.dup} double", end="")
    print(f", {verdict.inversions} out of order; {verdict.late} stored after their writer gave up")
    for text in (*verdict.examples, *(f"not reached: {name}" for name in outcome.unreached)):
        print(text)
    return 0 if verdict.is_clean and not outcome.unreached else 1


if __name__ == "__main__":
    sys.exit(main())
