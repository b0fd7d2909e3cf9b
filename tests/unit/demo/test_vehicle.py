"""The vehicle of the demo and its accounts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.demo import ledger
from elea.demo.drivejudge import DriveEvidence, Message, judge_drive
from elea.demo.drivemessage import NAME, Drive
from elea.demo.phone import Phone
from elea.demo.vehicle import FIRST_LIMIT, SET_LIMIT, VEHICLE, Driving
from elea.demo.world import Origin, Reading
from elea.uprotocol import RpcServer, UAttributes, UCode, UPayload, UStatusError, UTransportZenoh
from tests.interop.inbox import eventually
from tests.unit.demo.evidences import CALLS, SAMPLES, drive_evidence
from tests.unit.uprotocol.entities import alone

MESSAGES, CALLED = 0, 1


def test_a_limit_that_a_call_sets_is_kept() -> None:
    driving = Driving()
    reading = Reading("", '{"speed": 90.5}', "vehicle 1 2")

    before = Drive.FromString(driving.message(reading).data)
    answer = driving.set_limit(1, UAttributes(), UPayload.protobuf(Drive(origin="phone 3 4", allowed=50.0)))
    after = Drive.FromString(driving.message(reading).data)

    assert Drive.DESCRIPTOR.full_name == NAME
    assert (before.origin, before.speed, before.allowed) == ("vehicle 1 2", 90.5, FIRST_LIMIT)
    assert answer.unpack(Drive) == Drive(origin="phone 3 4", allowed=50.0)
    assert (after.speed, after.allowed) == (50.0, 50.0)


@pytest.mark.parametrize("payload", [None, UPayload.text("fast"), UPayload.protobuf(Drive(allowed=-1.0))])
def test_what_is_no_limit_is_refused(payload: UPayload | None) -> None:
    with pytest.raises(UStatusError) as caught:
        Driving().set_limit(1, UAttributes(), payload)

    assert caught.value.code is UCode.INVALID_ARGUMENT


@pytest.fixture
def session() -> Iterator[elea.Session]:
    with elea.open(alone()) as opened:
        yield opened


def test_the_phone_keeps_a_ledger_of_its_calls(
    session: elea.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elea.demo.phone.BETWEEN_SECONDS", 0.01)
    marks: list[float] = []
    phone = Phone(session, tmp_path / "phone.jsonl", 1, lambda: marks.append(time.monotonic()))
    phone.start()
    eventually(lambda: phone.failed["UNAVAILABLE"] > 0, "nobody is there to be called")
    with UTransportZenoh(session, VEHICLE) as transport, RpcServer(transport) as server:
        server.register_endpoint(None, SET_LIMIT.resource_id, Driving().set_limit)
        eventually(lambda: len(phone.seconds) >= 3, "three calls are answered")
        phone.stop()

    found = ledger.read(tmp_path / "phone.jsonl")
    assert len(found.acknowledged) == len(phone.seconds) == len(marks)
    assert found.tried == len(found.acknowledged) + phone.failed.total()


def test_what_went_well_is_good() -> None:
    checks, not_stored = judge_drive(drive_evidence())

    assert [(one.expected, one.found, one.lost, one.duplicated, one.wrong) for one in checks] == [
        (SAMPLES, SAMPLES, 0, 0, 0),
        (CALLS - 1, CALLS - 1, 0, 0, 0),
    ]
    assert not_stored == {}


def _changed(at: Callable[[Message], bool], **new: Any) -> DriveEvidence:
    found = drive_evidence()
    return replace(found, table=[one._replace(**new) if at(one) else one for one in found.table])


def _without(id: str, *, log: bool) -> DriveEvidence:
    found = drive_evidence()
    less = replace(found, table=[one for one in found.table if one.id != id])
    return replace(less, log=less.table) if log else less


@pytest.mark.parametrize(
    ("evidence", "check", "told"),
    [
        (_without("p3", log=False), MESSAGES, (1, 0, 0)),
        (_changed(lambda one: one.id == "p3", speed=1.0), MESSAGES, (1, 0, 1)),
        (_changed(lambda one: one.id == "p3", problem="no such message"), MESSAGES, (1, 0, 1)),
        (_changed(lambda one: one.id == "p3", id="p4"), MESSAGES, (1, 1, 1)),
        (_without("r2", log=False), CALLED, (2, 0, 0)),
        (_without("q2", log=True), CALLED, (1, 0, 1)),
        (_without("r2", log=True), CALLED, (1, 0, 0)),
        (_changed(lambda one: one.id == "r2", allowed=99.0), CALLED, (2, 0, 2)),
        (_changed(lambda one: one.id == "r2", reqid="q9"), CALLED, (2, 0, 2)),
    ],
    ids=["lost", "another value", "a problem", "twice", "answer not in the table", "request not kept",
         "answer not kept", "another answer", "answer to nothing"],
)  # fmt: skip
def test_what_is_wrong_is_seen(evidence: DriveEvidence, check: int, told: tuple[int, int, int]) -> None:
    checks, _ = judge_drive(evidence)

    found = checks[check]
    assert (found.lost, found.duplicated, found.wrong) == told
    assert (checks[1 - check].lost, checks[1 - check].wrong) == (0, 0)


def test_a_message_that_nobody_tried_is_wrong() -> None:
    found = drive_evidence()
    more = Message("x", "PUBLISH", None, Origin("vehicle", SAMPLES, 0).text(), 1.0, 2.0)

    (messages, _), _ = judge_drive(replace(found, log=[*found.log, more], table=[*found.table, more]))

    assert (messages.lost, messages.wrong) == (0, 1)


def test_what_a_killed_broker_has_not_kept_is_told_and_not_lost() -> None:
    found = replace(_without("q2", log=True), is_broker_killed=True)
    less = [one for one in found.log if one.id != "p0"]

    checks, not_stored = judge_drive(replace(found, log=less, table=less))

    assert [(one.lost, one.wrong) for one in checks] == [(0, 0), (0, 0)]
    assert (checks[CALLED].expected, not_stored) == (CALLS - 2, {"vehicle": 1, "phone": 1})
