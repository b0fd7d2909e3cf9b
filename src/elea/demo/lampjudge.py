"""The accounts of the lamp, one key of six nodes: every put of each is seen by all of them.

A put is known by its node and number; one of Spark's by the reading it is about. What is acknowledged is in the log of
the broker, which every other account is compared with.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from elea.demo.drivejudge import DriveCheck
from elea.demo.ledger import Ledger
from elea.demo.world import Origin

__all__ = ["PROBE", "SPARK", "LampEvidence", "Put", "judge_lamp", "put_of"]

PROBE = "probe"
"""Puts before the accounts begin: they show that everybody is there."""

SPARK = "Spark"

Put = tuple[str, str]
"""Who, and what: a number, or the origin of a reading without its time."""


@dataclass(frozen=True, slots=True)
class LampEvidence:
    """Everything that was found of the lamp; payloads as text, in their order."""

    ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    seen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    log: Sequence[str] = ()
    rows: Sequence[str] = ()
    """Of the table that Spark writes."""

    late: str | None = None
    """What a node got first that came when everything had been put."""

    own: frozenset[str] = frozenset()
    """Nodes that see their own puts."""

    is_broker_killed: bool = False


def put_of(payload: str) -> Put:
    """Which put it is.

    >>> put_of("2017 udp 7 1700000000000000"), put_of('{"robot": "r", "origin": "fleet 3 1700000000000000"}')
    (('2017 udp', '7'), ('Spark', 'fleet 3'))
    """
    if payload.startswith("{"):
        origin = Origin.parse(json.loads(payload)["origin"])
        return SPARK, f"{origin.by} {origin.number}"
    by, number, _ = payload.rsplit(" ", 2)
    return by, number


def judge_lamp(evidence: LampEvidence, hot: Iterable[tuple[str, int]]) -> list[DriveCheck]:
    """The checks; `hot` are the readings that Spark has to put."""
    by_spark = {(SPARK, f"{by} {number}") for by, number in hot}
    log = _counted(evidence.log)
    promised = {(by, str(number)) for by, one in evidence.ledgers.items() for number in one.acknowledged} | by_spark

    def is_possible(put: Put) -> bool:
        ledger = evidence.ledgers.get(put[0])
        return put in by_spark if ledger is None else int(put[1]) < ledger.tried

    def check(what: str, expected: set[Put], found: Counter[Put], wrong: int = 0) -> DriveCheck:
        return DriveCheck(
            what=f"lamp, {what}",
            expected=len(expected),
            found=found.total(),
            lost=sum(1 for one in expected if one not in found),
            duplicated=found.total() - len(found),
            wrong=wrong + sum(1 for one in found if not is_possible(one)),
        )

    stored = set(log)
    checks = [check("log of the broker", promised, log), check("Spark rows", stored, _counted(evidence.rows))]
    for node, payloads in evidence.seen.items():
        found = _counted(payloads)
        expected = {put for put in stored | promised if node in evidence.own or put[0] != node}
        if evidence.is_broker_killed:
            expected &= set(found)  # what comes while its broker is dead, a subscriber does not get
        checks.append(check(node, expected, found, _disorder(payloads)))
    late = int(evidence.late is not None and evidence.late == next(iter(evidence.log[::-1]), None))
    if evidence.ledgers:
        checks.append(DriveCheck("lamp, who comes late", 1, late, 1 - late, 0, 0))
    return checks


def _counted(payloads: Iterable[str]) -> Counter[Put]:
    return Counter(put for put in map(put_of, payloads) if put[0] != PROBE)


def _disorder(payloads: Iterable[str]) -> int:
    """Puts of one node that came after later ones; Spark's tasks have no order."""
    last: dict[str, int] = {}
    wrong = 0
    for by, number in map(put_of, payloads):
        if by not in (SPARK, PROBE):
            wrong += int(number) < last.get(by, -1)
            last[by] = max(int(number), last.get(by, -1))
    return wrong
