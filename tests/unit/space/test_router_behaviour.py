"""The recorded answers of a real router, replayed against the space in its own terms.

What concerns resources and octets (scopes, extensions) belongs to the dialect's end of the session and is left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from elea.model.qos import QueryTarget, Role
from elea.space.face import (
    Control,
    Declare,
    Final,
    Interest,
    InterestDone,
    InterestMode,
    Kinds,
    Request,
    ResponseFinal,
    Undeclare,
)
from elea.space.questions import QueryBody
from elea.wire.zenoh1 import messages as wire
from elea.wire.zenoh1.codec import read_network_message
from tests.unit.space.fakes import QBL, SUB, TOK, Node

RECORDS = json.loads((Path(__file__).parents[2] / "vectors" / "zenoh1" / "router_behaviour.json").read_text())
ENTITIES = {"D_SUBSCRIBER": SUB, "D_QUERYABLE": QBL, "D_TOKEN": TOK, "U_SUBSCRIBER": SUB}


def stimulus(octets: str) -> Control | str | None:
    """A recorded message in the space's terms: a control message, the key of a push, or nothing."""
    message, _ = read_network_message(bytes.fromhex(octets), 0)
    match message:
        case wire.Interest(options=None):
            return InterestDone(message.id)
        case wire.Interest(options=wire.InterestOptions() as options):
            key = options.wire_expr.suffix if options.wire_expr is not None else None
            mode = InterestMode(int(message.mode))
            return Interest(message.id, mode, Kinds(options.kinds), key, options.aggregate)
        case wire.Request(wire_expr=wire.WireExpr(scope=0, suffix=str(key))):
            return Request(message.id, key, QueryTarget.BEST_MATCHING, QueryBody(), qos=5)
        case wire.Push(wire_expr=wire.WireExpr(scope=0, suffix=str(key))):
            return key
        case wire.Declare(body=wire.DeclareFinal(), interest_id=int(number)):
            return Final(number)
    return None


def answer(recorded: dict[str, Any]) -> Control:
    """A recorded answer in the space's terms."""
    if recorded["_"] == "RESPONSE_FINAL":
        return ResponseFinal(recorded["id"], 5)
    body, interest_id = recorded["body"], recorded.get("interest_id")
    if body["_"] == "D_FINAL":
        return Final(recorded["interest_id"])
    if body["_"].startswith("U_"):
        return Undeclare(ENTITIES[body["_"]], body["id"])
    complete = body.get("ext", {}).get("queryable_info", {}).get("complete", False)
    return Declare(ENTITIES[body["_"]], body["id"], body["wire_expr"]["suffix"], complete, interest_id=interest_id)


def renumbered(messages: list[Control], numbers: dict[int, int]) -> list[Control]:
    """The messages with entity ids in the order of first sight: which ones are chosen means nothing."""
    found: list[Control] = []
    for message in messages:
        match message:
            case Declare(id=number) if number:
                number = numbers.setdefault(number, len(numbers) + 1)
                message = Declare(
                    message.entity, number, message.key, message.complete, interest_id=message.interest_id
                )
            case Undeclare(id=number):
                message = Undeclare(message.entity, numbers[number])
        found.append(message)
    return found


def test_space_answers_as_the_recorded_router() -> None:
    node = Node(Role.ROUTER)
    raw, holder, third = node.client("raw"), node.client("holder"), node.client("third")
    holder.says(Declare(SUB, 1, "k/**"), Declare(QBL, 2, "kq/*", True), Declare(TOK, 3, "kt/1"))
    theirs: dict[int, int] = {}
    ours: dict[int, int] = {}
    compared = 0

    for record in RECORDS:
        octets = record["sent_network_message_hex"]
        if record["name"] == "push_mandatory_ext":
            continue
        if octets is None:
            third.says(Declare(SUB, 1, "zz/1") if record["name"] == "remote_sub" else Undeclare(SUB, 1))
            message: Control | str | None = ""
        else:
            message = stimulus(octets)
        if isinstance(message, str) and message:
            assert node.targets(raw, message) == ({"holder"} if record["delivered_to_subscriber"] else set())
        elif message:
            raw.says(message)
        elif message is None:
            continue
        expected = [answer(recorded) for frame in record["router_answers"] for recorded in frame["msgs"]]
        assert renumbered(raw.heard(), ours) == renumbered(expected, theirs), record["name"]
        compared += 1

    assert compared == 17
