"""Random puts, deletions and gets by an eclipse-zenoh client, beside a plain model of the log.

`python -m tests.interop.storagemodel --steps 10000 --seed 1` runs it against a broker process of its own.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from typing import Any, NamedTuple

from elea.model import keyexpr
from elea.model.timerange import TimeBound, TimeExpr, TimeRange
from elea.model.timestamp import ns_from_ntp64
from tests.interop.storing import StoringBroker, client

__all__ = ["Model", "Program"]

KEYS = [f"home/{room}/{thing}" for room in "abc" for thing in ("temp", "door", "light")] + ["home", "home/x/y/z"]
SELECTORS = [*KEYS, "home/**", "home/*/temp", "home/a/*", "**", "home/b/**", "home/nothing"]
WILD = ["home/*/door", "home/c/**"]
WINDOW = 300
"""Samples asked for at once, at most: a run of 10,000 questions must end."""

Answer = tuple[str, str | None, int]
"""Key, payload (None for a deletion), NTP64 time."""


class Entry(NamedTuple):
    key: str
    payload: str | None
    time: int


class Model:
    """A list of samples in the order of their arrival."""

    def __init__(self) -> None:
        self.log: list[Entry] = []
        self.wild: list[Entry] = []

    def take(self, entry: Entry) -> None:
        """A sample arrives."""
        if "*" in entry.key:
            keys = [key for key in dict.fromkeys(one.key for one in self.log) if key in self.latest()]
            self.wild.append(entry)
            self.log += [entry._replace(key=key) for key in keys if keyexpr.includes(entry.key, key)]
            return
        self.log.append(entry)
        newer = [one for one in self.wild if one.time > entry.time and keyexpr.includes(one.key, entry.key)]
        if newer:
            self.log.append(max(newer, key=lambda one: one.time)._replace(key=entry.key))

    def latest(self, until: int | None = None) -> dict[str, Entry]:
        """The newest by time, without deleted keys."""
        found: dict[str, Entry] = {}
        for entry in self.log:
            if (until is None or entry.time <= until) and (
                entry.key not in found or entry.time >= found[entry.key].time
            ):
                found[entry.key] = entry
        return {key: entry for key, entry in found.items() if entry.payload is not None}

    def history(self, start: int, end: int, selector: str) -> list[Entry]:
        return [one for one in self.log[start:end] if keyexpr.includes(selector, one.key)]


class Program:
    """One run."""

    def __init__(self, session: Any, lib: Any, seed: int) -> None:
        self.session = session
        self.lib = lib
        self.random = random.Random(seed)
        self.model = Model()
        self.checked = 0
        self._kept: list[Any] = []

    def step(self) -> None:
        """A few writes, then a question."""
        for _ in range(self.random.randrange(4)):
            self._write()
        getattr(self, f"_ask_{self.random.choice(('latest', 'time', 'history', 'as_of', 'positions'))}")()
        self.checked += 1

    def _write(self) -> None:
        stamp = self.session.new_timestamp()
        if self.random.random() < 0.1:
            self._kept.append(stamp)  # to be used later, when it is old
        elif self._kept and self.random.random() < 0.2:
            stamp = self._kept.pop(0)
        key = self.random.choice(WILD) if self.random.random() < 0.03 else self.random.choice(KEYS)
        options = {"timestamp": stamp, "congestion_control": self.lib.CongestionControl.BLOCK}
        payload = None
        if self.random.random() < 0.25:
            self.session.delete(key, **options)
        else:
            payload = f"v{len(self.model.log)}"
            self.session.put(key, payload, **options)
        self.model.take(Entry(key, payload, int(str(stamp).partition("/")[0])))

    # -- questions

    def _ask_latest(self) -> None:
        selector = self.random.choice(SELECTORS)
        found = self._get(selector, "")
        wanted = [one for one in self.model.latest().values() if keyexpr.includes(selector, one.key)]
        self._same(sorted(found), sorted(wanted), selector)

    def _ask_as_of(self) -> None:
        selector, until = self.random.choice(SELECTORS), self._time()
        found = self._get(selector, f"_as_of={_text(until)}")
        wanted = [one for one in self.model.latest(until).values() if keyexpr.includes(selector, one.key)]
        self._same(sorted(found), sorted(wanted), selector)

    def _ask_time(self) -> None:
        selector = self.random.choice(SELECTORS)
        start, end = sorted(one.time for one in self._two())
        inclusive = self.random.random() < 0.5, self.random.random() < 0.5
        wanted = [
            one
            for one in self.model.history(0, len(self.model.log), selector)
            if (one.time >= start if inclusive[0] else one.time > start)
            and (one.time <= end if inclusive[1] else one.time < end)
        ]
        # Copies of one wildcard update share their time; then the order is that of arrival.
        wanted.sort(key=lambda one: one.time)
        bounds = [
            TimeBound(TimeExpr(ns_from_ntp64(at)), included)
            for at, included in zip((start, end), inclusive, strict=True)
        ]
        self._cut(selector, f"_time={TimeRange(*bounds)}", wanted)

    def _ask_history(self) -> None:
        selector = self.random.choice(SELECTORS)
        self._cut(selector, "_history", self.model.history(0, len(self.model.log), selector))

    def _ask_positions(self) -> None:
        selector = self.random.choice(SELECTORS)
        start = self.random.randrange(len(self.model.log) + 1)
        stop = start + self.random.randrange(WINDOW)
        self._cut(selector, f"_from={start};_to={stop}", self.model.history(start, stop, selector))

    def _cut(self, selector: str, parameters: str, wanted: list[Entry]) -> None:
        if self.random.random() < 0.4:
            parameters += ";_order=newest"
            wanted = wanted[::-1]
        if len(wanted) > WINDOW or self.random.random() < 0.4:
            limit = self.random.randrange(1, 20)
            parameters += f";_limit={limit}"
            wanted = wanted[:limit]
        self._same(self._get(selector, parameters), wanted, f"{selector}?{parameters}")

    def _two(self) -> list[Entry]:
        """Two samples that are not far from each other."""
        if not self.model.log:
            return [Entry("", None, 1 << 62)] * 2
        at = self.random.randrange(len(self.model.log))
        return [self.model.log[at], self.random.choice(self.model.log[at : at + WINDOW])]

    def _time(self) -> int:
        return self._two()[0].time

    def _get(self, selector: str, parameters: str) -> list[Answer]:
        found: list[Answer] = []
        none = self.lib.ConsolidationMode.NONE
        for reply in self.session.get(f"{selector}?{parameters}", consolidation=none, timeout=60):
            assert reply.ok is not None, reply.err.payload.to_string()
            sample = reply.ok
            payload = sample.payload.to_string() if sample.kind == self.lib.SampleKind.PUT else None
            found.append((str(sample.key_expr), payload, int(str(sample.timestamp).partition("/")[0])))
        return found

    def _same(self, found: list[Answer], wanted: list[Entry], what: str) -> None:
        assert found == [tuple(one) for one in wanted], f"step {self.checked}, {what}"


def _text(ntp64: int) -> str:
    return str(TimeExpr(ns_from_ntp64(ntp64)))


def main() -> None:
    import zenoh

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--persist", action="store_true", help="on disk: slower, since each question ends a block")
    args = parser.parse_args()
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as directory,
        StoringBroker("--store", directory, "--persist" if args.persist else "--transient", "home/**") as broker,
        client(broker.locator) as session,
    ):
        program = Program(session, zenoh, args.seed)
        for _ in range(args.steps):
            program.step()
    print(
        f"{program.checked} questions, {len(program.model.log)} samples, "
        f"{time.monotonic() - start:.0f} s, seed {args.seed}: all answers as the model's"
    )


if __name__ == "__main__":
    main()
