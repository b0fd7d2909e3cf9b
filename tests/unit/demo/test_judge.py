"""The accounts of the demo see what they are there to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from elea.demo.drivejudge import DriveEvidence
from elea.demo.judge import Check, Evidence, judge, latency_of
from elea.demo.lampjudge import LampEvidence
from elea.demo.ledger import Ledger
from elea.demo.world import Origin
from tests.unit.demo.evidences import BEGIN, LIT, SAMPLES, evidence

TABLES = {
    "log": "log of the broker",
    "bronze": "bronze",
    "silver_lights": "silver, lights",
    "silver_robots": "silver, robots",
    "quarantine": "quarantine",
    "gold": "gold, windows",
    "alerts": "alerts in the log",
    "received": "alerts received",
}


def check(found: Evidence, what: str) -> Check:
    return next(one for one in judge(found).checks if one.what == what)


def test_run_in_which_all_went_well_is_good() -> None:
    verdict = judge(evidence())

    assert verdict.is_good
    assert (verdict.tried, verdict.acknowledged) == (4 * SAMPLES + 2 * LIT, 2 * SAMPLES + 2 * LIT)
    assert (verdict.lost, verdict.duplicated, dict(verdict.not_stored)) == (0, 0, {})
    assert all(one.expected for one in verdict.checks)


@pytest.mark.parametrize("where", TABLES)
def test_row_that_is_missing_is_lost(where: str) -> None:
    found = evidence()

    changed = replace(found, **{where: getattr(found, where)[1:]})

    assert check(changed, TABLES[where]).lost == 1
    assert not judge(changed).is_good


@pytest.mark.parametrize("where", TABLES)
def test_row_that_is_there_twice_is_a_duplicate(where: str) -> None:
    found = evidence()
    rows = list(getattr(found, where))

    changed = replace(found, **{where: [*rows, rows[0]]})  # type: ignore[arg-type]

    assert check(changed, TABLES[where]).duplicated == 1
    assert not judge(changed).is_good


def test_same_sample_stored_under_two_times_is_a_duplicate() -> None:
    found = evidence()
    again = found.bronze[0]._replace(origin=Origin("house", 0, BEGIN * 1_000_000 + 999).text())

    changed = replace(found, bronze=[*found.bronze, again])

    assert check(changed, "bronze").duplicated == 1


def test_window_with_another_average_is_wrong() -> None:
    found = evidence()
    first, *rest = found.gold

    assert check(
        replace(found, gold=[first._replace(luminosity=first.luminosity + 0.01), *rest]), "gold, windows"
    ).wrong
    assert check(replace(found, gold=[first._replace(samples=first.samples + 1), *rest]), "gold, windows").wrong


def test_window_of_nothing_is_wrong() -> None:
    found = evidence()
    strange = found.gold[0]._replace(floor="cellar")

    assert check(replace(found, gold=[*found.gold, strange]), "gold, windows").wrong == 1


def test_sample_that_nobody_put_is_wrong() -> None:
    found = evidence()
    strange = Origin("house", SAMPLES, 0).text()

    assert check(replace(found, log=[*found.log, strange]), "log of the broker").wrong == 1
    assert check(replace(found, silver_lights=[*found.silver_lights, strange]), "silver, lights").wrong == 1


def without(number: int) -> Callable[[str], bool]:
    return lambda origin: Origin.parse(origin)[:2] != ("eclipse", number)


def test_unacknowledged_sample_that_never_came_is_told_but_not_lost() -> None:
    found = evidence()
    here = without(1)

    changed = replace(
        found,
        log=list(filter(here, found.log)),
        bronze=[row for row in found.bronze if here(row.origin)],
        silver_robots=list(filter(here, found.silver_robots)),
    )

    verdict = judge(changed)
    assert verdict.is_good
    assert dict(verdict.not_stored) == {"eclipse": 1}


def test_unacknowledged_sample_of_the_log_must_be_in_the_tables() -> None:
    found = evidence()
    here = without(1)

    changed = replace(found, bronze=[row for row in found.bronze if here(row.origin)])

    assert check(changed, "bronze").lost == 1


def test_sample_whose_acknowledgement_was_on_its_way_may_be_there() -> None:
    found = evidence()
    ledgers = [replace(one, acknowledged=one.acknowledged - {SAMPLES - 1}) for one in found.ledgers]

    assert judge(replace(found, ledgers=ledgers)).is_good


def test_nothing_at_all_is_not_good() -> None:
    drive = DriveEvidence(Ledger("vehicle", 3), Ledger("phone", 2, frozenset({1})), (), ())
    empty = Evidence([Ledger("house", 3, frozenset({0, 1, 2}))], (), (), (), (), (), (), (), (), drive, LampEvidence())

    verdict = judge(empty)

    assert verdict.lost == 7
    assert verdict.not_stored == {"house": 3, "vehicle": 3}


def test_latency_is_told_by_its_middle_and_its_slowest() -> None:
    found = latency_of([float(number) for number in range(101)])

    assert found is not None
    assert (found.p50, found.p99, found.most) == (50.0, 99.0, 100.0)
    assert latency_of([]) is None
