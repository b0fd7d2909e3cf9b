"""Timestamp stacks on the wire: what a node writes is what the generated codec writes, whatever the sample is."""

from __future__ import annotations

import itertools

import pytest

from elea.model.node_id import NodeId
from elea.model.qos import ConsolidationMode, QueryTarget
from elea.model.timestamp import Hlc
from elea.node.stamper import Stamper, stamped
from elea.node.zenoh1.controlcodec import ResourceTable, from_wire, to_wire
from elea.node.zenoh1.pushes import OutgoingKey, stack_message, stack_of
from elea.space.questions import ErrorBody, QueryBody, ReplyBody, Request, Response
from elea.wire.details import RawSample, unpack
from elea.wire.timestampstack import CUSTOM, SEND, CollectedStamps, StackedDetails
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import read_network_message, write_network_message
from elea.wire.zenoh1.samples import split_body

NOW = 1_700_000_000_000_000_000
STACK = CollectedStamps(7, ((SEND, bytes.fromhex("aabbccddeeff9988777601c1")), (2 | CUSTOM, b"\xde\xad")))
BODIES: dict[str, m.Put | m.Del] = {
    "plain": m.Put(b"payload"),
    "stamped": m.Put(b"payload", m.Timestamp(1 << 60, b"\xc1")),
    "full": m.Put(b"payload", None, m.Encoding(4, b"v1"), m.SourceInfo(b"\x07", 1, 2), attachment=b"more"),
    "deletion": m.Del(attachment=b"why"),
}


def sample(body: m.Put | m.Del, qos: int) -> RawSample:
    meta, payload = split_body(body)
    return 0, 0, b"", qos, StackedDetails(meta, STACK), payload


@pytest.mark.parametrize("qos", [5, 13, 17])
@pytest.mark.parametrize("number", [0, 300])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_push_with_a_stack_is_what_the_codec_writes(body: m.Put | m.Del, number: int, qos: int) -> None:
    expr = m.WireExpr(number, True, None if number else "a/b")
    expected = bytearray()
    write_network_message(expected, m.Push(expr, body, qos=None if qos == 5 else qos, ts_stack=stack_message(STACK)))
    outgoing = OutgoingKey("a/b", number)
    parts: list[bytes] = []

    outgoing.rewrite([sample(body, qos)], parts)

    assert b"".join(parts) == bytes(expected)


@pytest.mark.parametrize("qos", [5, 13])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_router_that_stamps_keeps_the_stack(body: m.Put | m.Del, qos: int) -> None:
    outgoing, stamper = OutgoingKey("a/b", 1), Stamper(Hlc(NodeId(b"\xe1")))
    parts: list[bytes] = []

    outgoing.stamp([sample(body, qos)], parts, stamper, NOW)

    message, _ = read_network_message(b"".join(parts), 0)
    assert isinstance(message, m.Push)
    assert message.ts_stack is not None
    assert stack_of(message.ts_stack) == STACK
    assert message.body.attachment == body.attachment
    assert (message.body.timestamp is None) == isinstance(body, m.Del)


def test_stamping_for_a_store_keeps_the_stack_and_details_do_not_show_it() -> None:
    ((_, _, _, _, meta, _),) = stamped([sample(BODIES["full"], 5)], Stamper(Hlc(NodeId(b"\xe1"))), NOW)

    assert isinstance(meta, StackedDetails)
    assert meta.stack == STACK
    assert unpack(meta).attachment == b"more"


@pytest.mark.parametrize("answer", [b"plain", ReplyBody(b"\x02", b""), ErrorBody(b"no")], ids=["put", "del", "error"])
def test_queries_and_answers_carry_their_stack_over_the_wire(answer: bytes | ReplyBody | ErrorBody) -> None:
    body = QueryBody("a=1", ConsolidationMode.LATEST)
    request = Request(3, "a/*", QueryTarget.ALL, body, 5000, 13, None, STACK)
    response = Response(3, "a/b", answer, 13, (b"\x01", 2), STACK)

    for message in (request, response):
        out = bytearray()
        write_network_message(out, to_wire(message))
        back, end = read_network_message(bytes(out), 0)
        assert end == len(out)
        assert from_wire(back, ResourceTable()) == message


def test_a_stack_does_not_grow_beyond_what_any_node_reads() -> None:
    stack = CollectedStamps(2)
    for _ in range(300):
        stack = stack.with_record(2, b"\x01")

    assert len(stack.records) == 255
    assert stack.with_record(2, b"") == stack


def test_records_that_were_read_are_written_again_as_they_were() -> None:
    """Points and formats that nobody knows yet included."""
    records = tuple((flags, bytes(size)) for flags, size in itertools.product((0, 1, 0x7F, 0xFF), (0, 1, 200)))
    message = stack_message(CollectedStamps(0xFF, records))

    assert stack_of(message) == CollectedStamps(0xFF, records)
