"""The accounts: ledgers against the broker's log, the log against the tables, and the alerts against both.

Pure: what was read goes in, a verdict comes out. A sample is known by its origin, publisher and number.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from elea.demo.drivejudge import DriveEvidence, judge_drive
from elea.demo.lampjudge import LampEvidence, judge_lamp
from elea.demo.ledger import Ledger
from elea.demo.world import BATTERY_MOST, HOT, Origin

__all__ = ["WINDOW_SECONDS", "Check", "Evidence", "Identity", "Latency", "Verdict", "Window", "judge", "latency_of"]

WINDOW_SECONDS: Final = 5
WATERMARK_SECONDS: Final = 2
"""Both as demo.toml has them."""

Identity = tuple[str, int]


class Stored(NamedTuple):
    """A row of bronze: all that was put."""

    key: str
    payload: bytes
    origin: str
    micros: int
    """The sample's timestamp, in microseconds since 1970."""


class Window(NamedTuple):
    """A row of gold."""

    begins: int
    """Seconds since 1970."""

    floor: str
    samples: int
    luminosity: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that was found."""

    ledgers: Sequence[Ledger]
    log: Sequence[str]
    """Origins, as the broker's log has them."""

    bronze: Sequence[Stored]
    silver_lights: Sequence[str]
    silver_robots: Sequence[str]
    quarantine: Sequence[str]
    gold: Sequence[Window]
    alerts: Sequence[str]
    """Origins of the alerts in the log of the broker."""

    received: Sequence[str]
    """Origins of the alerts that a subscriber has got."""

    drive: DriveEvidence
    lamp: LampEvidence


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison."""

    what: str
    expected: int
    found: int
    lost: int
    duplicated: int
    wrong: int = 0
    """Values that are not what they should be, or that should not be there at all."""

    @property
    def is_good(self) -> bool:
        """Whether nothing is to be complained about."""
        return self.lost == self.duplicated == self.wrong == 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out."""

    tried: int
    acknowledged: int
    not_stored: Mapping[str, int]
    """Samples nobody has promised to keep, put while the broker was away: by publisher."""

    checks: Sequence[Check]

    @property
    def lost(self) -> int:
        """Anywhere."""
        return sum(one.lost for one in self.checks)

    @property
    def duplicated(self) -> int:
        """Anywhere."""
        return sum(one.duplicated for one in self.checks)

    @property
    def is_good(self) -> bool:
        """Whether every account agrees."""
        return all(one.is_good for one in self.checks)


def judge(evidence: Evidence) -> Verdict:
    """Compare everything with everything."""
    log = _identities(evidence.log)
    tried = {one.by: one.tried for one in evidence.ledgers}
    promised = {(one.by, number) for one in evidence.ledgers for number in one.acknowledged}
    bronze = _identities(row.origin for row in evidence.bronze)
    values = {_identity(row.origin): json.loads(row.payload) for row in evidence.bronze}
    broken = {one for one, value in values.items() if value.get("battery", 0) > BATTERY_MOST}
    lights = {one for one in bronze if one[0] == "house"}
    hot = {one for one, value in values.items() if value.get("temperature", 0) > HOT}
    never = sum(count for (by, number), count in log.items() if number >= tried.get(by, 0))
    stored = Counter(by for by, _ in log)
    checks = [
        _check("log of the broker", promised, log, may_have_more=True, wrong=never),
        _check("bronze", set(log) | promised, bronze),
        _check("silver, lights", lights, _identities(evidence.silver_lights)),
        _check("silver, robots", set(bronze) - lights - broken, _identities(evidence.silver_robots)),
        _check("quarantine", broken, _identities(evidence.quarantine)),
        _check_gold(evidence.bronze, evidence.gold),
        _check("alerts in the log", hot, _identities(evidence.alerts)),
        _check("alerts received", hot, _identities(evidence.received)),
    ]
    not_stored = {by: count - stored[by] for by, count in tried.items() if count > stored[by]}
    drive, not_kept = judge_drive(evidence.drive)
    checks += [Check(**one._asdict()) for one in (*drive, *judge_lamp(evidence.lamp, hot))]
    lit = evidence.lamp.ledgers.values()
    put = sum(tried.values()) + evidence.drive.vehicle.tried + sum(one.tried for one in lit)
    acknowledged = len(promised) + sum(len(one.acknowledged) for one in lit)
    return Verdict(put, acknowledged, not_stored | not_kept, checks)


def _identity(origin: str) -> Identity:
    return Origin.parse(origin)[:2]


def _identities(origins: Iterable[str]) -> Counter[Identity]:
    return Counter(_identity(origin) for origin in origins)


def _check(
    what: str, expected: set[Identity], found: Counter[Identity], *, may_have_more: bool = False, wrong: int = 0
) -> Check:
    return Check(
        what=what,
        expected=len(expected),
        found=found.total(),
        lost=sum(1 for one in expected if one not in found),
        duplicated=found.total() - len(found),
        wrong=wrong + (0 if may_have_more else sum(1 for one in found if one not in expected)),
    )


def _check_gold(bronze: Sequence[Stored], gold: Sequence[Window]) -> Check:
    """Windows of the table against the same, computed here; those that the watermark has not closed are not due yet."""
    sums: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
    newest = 0
    for row in bronze:
        if row.key.startswith("myhouse/"):
            begins = row.micros // 1_000_000 // WINDOW_SECONDS * WINDOW_SECONDS
            sums[begins, row.key.split("/")[2]].append(json.loads(row.payload)["luminosity"])
            newest = max(newest, row.micros)
    closed = {one for one in sums if (one[0] + WINDOW_SECONDS + WATERMARK_SECONDS) * 1_000_000 <= newest}
    found = Counter((one.begins, one.floor) for one in gold)

    def is_right(one: Window) -> bool:
        values = sums.get((one.begins, one.floor), [])
        return len(values) == one.samples and math.isclose(math.fsum(values) / len(values), one.luminosity)

    return Check(
        what="gold, windows",
        expected=len(closed),
        found=found.total(),
        lost=sum(1 for one in closed if one not in found),
        duplicated=found.total() - len(found),
        wrong=sum(1 for one in gold if not is_right(one)),
    )


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from the put of a sample, in the middle and for the slowest of a hundred."""

    p50: float
    p99: float
    most: float


def latency_of(seconds: Iterable[float]) -> Latency | None:
    """None if there is nothing to tell.

    >>> latency_of([1.0, 2.0, 3.0])
    Latency(p50=2.0, p99=3.0, most=3.0)
    """
    ordered = sorted(seconds)
    if not ordered:
        return None
    last = len(ordered) - 1
    return Latency(ordered[last // 2], ordered[math.ceil(last * 0.99)], ordered[last])


def form_of(verdict: Verdict) -> dict[str, Any]:
    """For programs."""
    return {
        "tried": verdict.tried,
        "acknowledged": verdict.acknowledged,
        "not_stored": dict(verdict.not_stored),
        "lost": verdict.lost,
        "duplicated": verdict.duplicated,
        "is_good": verdict.is_good,
        "checks": [
            {
                "what": one.what,
                "expected": one.expected,
                "found": one.found,
                "lost": one.lost,
                "duplicated": one.duplicated,
                "wrong": one.wrong,
            }
            for one in verdict.checks
        ],
    }
