"""The accounts of the vehicle: its messages in the broker's log against those in the table, and the phone's calls.

A message is known by its identifier. Nobody promises to keep what uProtocol puts; so what a broker that was killed has
not kept is told, and everything else has to be right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from elea.demo.ledger import Ledger
from elea.demo.world import Origin

__all__ = ["DriveCheck", "DriveEvidence", "Message", "judge_drive"]


class Message(NamedTuple):
    """A uProtocol message of the vehicle or the phone."""

    id: str
    type: str
    reqid: str | None
    origin: str | None
    speed: float | None
    allowed: float | None
    """None, as the others, in an answer that says that a call has failed."""

    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DriveEvidence:
    """Everything that was found of them."""

    vehicle: Ledger
    phone: Ledger
    """Its `acknowledged` are calls that were answered."""

    log: Sequence[Message]
    table: Sequence[Message]
    is_broker_killed: bool = False


class DriveCheck(NamedTuple):
    """One comparison, as `elea.demo.judge.Check` has it."""

    what: str
    expected: int
    found: int
    lost: int
    duplicated: int
    wrong: int


def judge_drive(evidence: DriveEvidence) -> tuple[list[DriveCheck], dict[str, int]]:
    """The checks; and how many messages of each were not kept that nobody had promised to keep."""
    published = [one for one in evidence.log if one.type == "PUBLISH"]
    in_table = [one for one in evidence.table if one.type == "PUBLISH"]
    never = sum(1 for one in published if _number(one) >= evidence.vehicle.tried)
    messages = _check("vehicle, messages", published, in_table, never)
    calls, forgotten = _calls(evidence)
    not_stored = {"vehicle": evidence.vehicle.tried - len(set(published)), "phone": forgotten}
    return [messages, calls], {by: count for by, count in not_stored.items() if count > 0}


def _check(what: str, log: Sequence[Message], table: Sequence[Message], wrong: int) -> DriveCheck:
    expected, found = set(log), Counter(table)
    return DriveCheck(
        what=what,
        expected=len(expected),
        found=len(table),
        lost=sum(1 for one in expected if one not in found),
        duplicated=len(table) - len({one.id for one in table}),
        wrong=wrong + sum(1 for one in found if one not in expected),
    )


def _calls(evidence: DriveEvidence) -> tuple[DriveCheck, int]:
    """Every answered call has its request and its response in the table; and what a killed broker has forgotten."""
    log, table = ([one for one in some if one.type != "PUBLISH"] for some in (evidence.log, evidence.table))
    rows = _check("vehicle, calls", log, table, 0)
    requests = {one.id: one for one in table if one.type == "REQUEST"}
    answers = [one for one in table if one.type == "RESPONSE"]
    paired = [one for one in answers if _fits(requests.get(one.reqid or ""), one)]
    found = {_number(one) for one in paired if one.origin is not None}
    missing = len(evidence.phone.acknowledged - found)
    forgotten = missing if evidence.is_broker_killed else 0
    unpaired = 0 if evidence.is_broker_killed else len(answers) - len(paired)
    return (
        DriveCheck(
            rows.what,
            expected=len(evidence.phone.acknowledged) - forgotten,
            found=len(found & evidence.phone.acknowledged),
            lost=rows.lost + missing - forgotten,
            duplicated=rows.duplicated,
            wrong=rows.wrong + unpaired,
        ),
        forgotten,
    )


def _fits(request: Message | None, response: Message) -> bool:
    return (
        request is not None
        and response.origin in (None, request.origin)
        and response.allowed in (None, request.allowed)
    )


def _number(message: Message) -> int:
    return Origin.parse(message.origin or "").number
