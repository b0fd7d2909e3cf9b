"""Control messages to the wire and back, and the resources of a link."""

from __future__ import annotations

import pytest

from elea.model.details import Details
from elea.model.encoding import Encoding
from elea.model.errors import InvalidKeyExpr
from elea.model.node_id import NodeId
from elea.model.qos import ConsolidationMode, QueryTarget, SampleKind
from elea.model.timestamp import Timestamp
from elea.node.zenoh1.controlcodec import ResourceTable, UnknownResource, from_wire, to_wire
from elea.space.face import (
    Control,
    Declare,
    Entity,
    Final,
    Interest,
    InterestDone,
    InterestMode,
    Kinds,
    Request,
    Response,
    ResponseFinal,
    Undeclare,
)
from elea.space.queries import TIMEOUT
from elea.space.questions import ErrorBody, QueryBody, ReplyBody
from elea.wire.details import pack
from elea.wire.primitives import Unknown
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import write_network_message

MONOTONIC = ConsolidationMode.MONOTONIC
SOURCE = (b"\x77", 6, 7)
MORE = (Unknown(0x4A, b"later"),)
STAMPED = pack(Details(timestamp=Timestamp(1 << 60, NodeId(b"\x01")), source=SOURCE, attachment=b"a"))
MESSAGES: list[Control] = [
    Declare(Entity.SUBSCRIBER, 3, "a/**"),
    Declare(Entity.SUBSCRIBER, 3, "a/**", interest_id=0),
    Declare(Entity.QUERYABLE, 3, "a/*", complete=True, distance=2),
    Declare(Entity.TOKEN, 3, "a/b", interest_id=7),
    Undeclare(Entity.SUBSCRIBER, 3),
    Undeclare(Entity.QUERYABLE, 3),
    Undeclare(Entity.TOKEN, 0, "al/1"),
    Final(9),
    Interest(1, InterestMode.CURRENT_FUTURE, Kinds.KEYEXPRS | Kinds.SUBSCRIBERS, "a/*"),
    Interest(1, InterestMode.CURRENT, Kinds.TOKENS),
    Interest(1, InterestMode.FUTURE, Kinds.QUERYABLES, "a", aggregate=True),
    InterestDone(4),
    Request(5, "a/b", QueryTarget.ALL, QueryBody(), 10_000),
    Request(5, "a/b", QueryTarget.BEST_MATCHING, QueryBody("x=1", ConsolidationMode.LATEST), None, 5, 3),
    Request(5, "a/b", QueryTarget.ALL, QueryBody("", MONOTONIC, b"v", Encoding("a;b"), b"att", SOURCE, MORE)),
    Request(5, "a/b", QueryTarget.ALL, QueryBody(payload=b"")),
    Response(5, "a/b", b"x", responder=(b"\xc1", 7)),
    Response(5, "a/b", ReplyBody(STAMPED, b"x")),
    Response(5, "a/b", ReplyBody(STAMPED, b"x", MONOTONIC, MORE)),
    Response(5, "a/b", ReplyBody(pack(Details(SampleKind.DELETE)), b"")),
    Response(5, "", TIMEOUT),
    Response(5, "", ErrorBody(b"no", source=SOURCE, extensions=MORE)),
    ResponseFinal(5),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_what_is_said_is_what_is_heard(message: Control) -> None:
    assert from_wire(to_wire(message), ResourceTable()) == message


def test_undeclarations_are_byte_for_byte_those_of_the_real_one() -> None:
    def octets(message: Control) -> str:
        out = bytearray()
        write_network_message(out, to_wire(message))
        return out.hex(" ")

    assert octets(Undeclare(Entity.SUBSCRIBER, 1)) == "9e 21 08 03 01"
    assert octets(Undeclare(Entity.QUERYABLE, 1)) == "9e 21 08 85 01 5f 02 00 00"
    assert octets(Undeclare(Entity.TOKEN, 0, "al/1")) == "9e 21 08 87 00 5f 06 03 00 61 6c 2f 31"


def test_numbers_are_resolved_in_the_space_of_who_declared_them() -> None:
    keys = ResourceTable()
    keys.declared(m.DeclareKeyExpr(1, 0, "theirs"))
    keys.ours[1] = "ours"

    assert keys.resolve(1, "/x", sender=True) == "theirs/x"
    assert keys.resolve(1, None, sender=False) == "ours"
    assert keys.resolve(0, "plain", sender=True) == "plain"
    with pytest.raises(UnknownResource):
        keys.resolve(2, None, sender=True)


def test_a_live_number_keeps_its_first_meaning() -> None:
    keys = ResourceTable()
    keys.declared(m.DeclareKeyExpr(1, 0, "first"))
    keys.declared(m.DeclareKeyExpr(1, 0, "second"))

    assert keys.resolve(1, None, sender=True) == "first"
    from_wire(m.Declare(m.UndeclareKeyExpr(1)), keys)
    keys.declared(m.DeclareKeyExpr(1, 0, "second"))
    assert keys.resolve(1, None, sender=True) == "second"


def test_the_inner_scope_of_a_declaration_is_the_receivers() -> None:
    keys = ResourceTable()
    keys.ours[4] = "a"

    keys.declared(m.DeclareKeyExpr(1, 4, "/b"))

    assert keys.resolve(1, None, sender=True) == "a/b"


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidKeyExpr):
        from_wire(m.Declare(m.DeclareSubscriber(1, m.WireExpr(0, True, "a//b"))), ResourceTable())


def test_what_is_no_business_of_the_space_says_nothing_to_it() -> None:
    assert from_wire(m.Oam(m.BodyForm.UnitForm, 9), ResourceTable()) is None


@pytest.mark.parametrize(
    ("resource", "key", "numbered"),
    [
        ("a/b", "a/b/c", False),
        ("a/b", "a/b/c/d", False),
        ("a", "a/b/c", False),
        ("a/b", "a/b", True),
        ("a/b", "a/bb/c", True),
        ("a/b", "a", True),
    ],
)
def test_no_number_for_keys_below_a_resource_of_the_other_side(resource: str, key: str, numbered: bool) -> None:
    keys = ResourceTable()
    assert keys.takes_number(key)

    from_wire(m.Declare(m.DeclareKeyExpr(1, 0, resource)), keys)
    assert keys.takes_number(key) is numbered

    from_wire(m.Declare(m.UndeclareKeyExpr(1)), keys)
    assert keys.takes_number(key)
