"""Our protobuf codec beside the protobuf library: the same bytes, the same values, the same refusals."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError as ForeignError
from hypothesis import given
from hypothesis import strategies as st

from elea.model.errors import DecodeError, EncodeError
from elea.uprotocol import UUID, UAttributes, UMessage, UStatus, UUri
from elea.uprotocol.attachment import read_checked, write_checked
from elea.uprotocol.core import usubscription, utwin
from elea.uprotocol.payload import unwrap_any, wrap_any
from elea.uprotocol.status import UCode
from elea.uprotocol.uuri import read_uuri
from elea.uprotocol.validation import problem_of
from tests.unit.uprotocol.descriptors import message_class

NUMBER = st.integers(0, 0xFFFF_FFFF)
UUIDS = st.builds(UUID, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
URIS = st.builds(UUri, st.text(max_size=20), NUMBER, NUMBER, NUMBER)
ATTRIBUTES = st.builds(
    UAttributes,
    st.none() | UUIDS,
    st.integers(0, 9),
    st.none() | URIS,
    st.none() | URIS,
    st.integers(0, 9),
    st.none() | NUMBER,
    st.none() | NUMBER,
    st.none() | st.integers(0, 20),
    st.none() | UUIDS,
    st.none() | st.text(max_size=20),
    st.none() | st.text(max_size=20),
    st.integers(0, 9),
)
FOREIGN = message_class("uprotocol.v1.UAttributes")


def foreign_attributes(attributes: UAttributes) -> Any:
    """The same as a message of the library."""
    message = FOREIGN()
    for name, value in attributes._asdict().items():
        if isinstance(value, UUID | UUri):
            field = getattr(message, name)
            field.SetInParent()
            for part, number in value._asdict().items():
                setattr(field, part, number)
        elif value is not None:
            setattr(message, name, value)
    return message


def seen(message: Any) -> dict[str, object]:
    """What the library read, in our words."""
    made: dict[str, object] = {}
    for name in UAttributes._fields:
        value = getattr(message, name)
        if name in ("id", "reqid"):
            made[name] = UUID(value.msb, value.lsb) if message.HasField(name) else None
        elif name in ("source", "sink"):
            parts = [getattr(value, part) for part in UUri._fields]
            made[name] = UUri(*parts) if message.HasField(name) else None
        elif name in ("ttl", "permission_level", "commstatus", "token", "traceparent"):
            made[name] = value if message.HasField(name) else None
        else:
            made[name] = value & 0xFFFF_FFFF
    return made


def ours(data: bytes) -> UAttributes | None:
    try:
        return UAttributes.from_bytes(data)
    except DecodeError:
        return None


def theirs(data: bytes) -> dict[str, object] | None:
    try:
        return seen(FOREIGN.FromString(data))
    except ForeignError:
        return None


@given(ATTRIBUTES)
def test_attributes_have_the_bytes_of_the_library(attributes: UAttributes) -> None:
    data = attributes.to_bytes()

    assert data == foreign_attributes(attributes).SerializeToString(deterministic=True)
    assert UAttributes.from_bytes(data) == attributes


@given(ATTRIBUTES, st.data())
def test_damaged_attributes_are_read_or_refused_as_by_the_library(attributes: UAttributes, data: st.DataObject) -> None:
    octets = bytearray(attributes.to_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(octets)))
        octets[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=4))
    damaged = bytes(octets)

    mine, other = ours(damaged), theirs(damaged)

    assert (mine is None) == (other is None), damaged.hex()
    if mine is not None and other is not None:
        # The library has signed numbers for symbols that are not defined.
        assert {**mine._asdict(), "commstatus": None} == {**other, "commstatus": None}, damaged.hex()


@pytest.mark.parametrize(
    "octets",
    [
        "0a0109",  # inner message cut
        "0a02090b",
        "00",  # field 0
        "0b0c",  # a group that ends
        "0b",  # and one that does not
        "0b1c",  # and one that ends as another
        "0c",
        "0e",  # wire type 6
        "10ffffffffffffffffff7f",
        "10ffffffffffffffffffff01",  # eleven octets
        "1a030a01ff",  # not UTF-8
        "1a0022001a020a00",  # twice
        "1a050a0168100122001a021805",  # merged
        "3001300230",
        "0a1209" + "00" * 8 + "11" + "00" * 7 + "80",
        "ffffffff0f00",
        "ffffffff1f00",
        "d20101" * 3,
        "55" + "00" * 4,
        "55" + "00" * 3,
    ],
)
def test_odd_bytes_are_read_or_refused_as_by_the_library(octets: str) -> None:
    data = bytes.fromhex(octets)
    mine, other = ours(data), theirs(data)

    assert (None if mine is None else mine._asdict()) == other


def test_groups_are_skipped_to_a_bounded_depth() -> None:
    deep = 5000

    with pytest.raises(DecodeError, match="deeper than 100"):
        UAttributes.from_bytes(b"\x6b" * deep + b"\x6c" * deep)
    assert UAttributes.from_bytes(b"\x6b" * 50 + b"\x6c" * 50) == UAttributes()


@given(ATTRIBUTES, UUIDS, UUIDS)
def test_the_quick_way_of_attachments_is_the_plain_one(attributes: UAttributes, first: UUID, second: UUID) -> None:
    for id in (first, second):  # what was read or written before is remembered
        changed = attributes._replace(id=id, reqid=None if attributes.reqid is None else second)
        plain = b"\x01" + changed.to_bytes()
        for _ in range(2):
            assert write_checked(changed) == (plain, problem_of(changed, sending=True))
            assert read_checked(plain) == (changed, problem_of(changed))


@given(ATTRIBUTES, st.data())
def test_the_quick_way_reads_damaged_attachments_as_the_plain_one(attributes: UAttributes, data: st.DataObject) -> None:
    octets = bytearray(attributes._replace(id=UUID(1 << 16 | 0x7000, 1 << 63), type=3).to_bytes())
    at = data.draw(st.integers(0, len(octets)))
    octets[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=24))
    damaged = bytes(octets)
    expected = ours(damaged)

    for _ in range(2):
        if expected is None or not damaged:
            with pytest.raises(DecodeError):
                read_checked(b"\x01" + damaged)
        else:
            assert read_checked(b"\x01" + damaged) == (expected, problem_of(expected))


def test_an_address_of_other_wire_types_is_empty() -> None:
    assert read_uuri(bytes.fromhex("0801120161")) == UUri()


def test_messages_and_states_have_the_bytes_of_the_library() -> None:
    status = UStatus(UCode.NOT_FOUND, "no such light", (wrap_any("a.B", b"\x08\x01"),))
    message = UMessage(UAttributes(type=1), b"")

    assert message_class("uprotocol.v1.UStatus").FromString(status.to_bytes()).details[0].type_url.endswith("a.B")
    assert UStatus.from_bytes(status.to_bytes()) == status
    assert message_class("uprotocol.v1.UMessage").FromString(message.to_bytes()).HasField("payload")
    assert UMessage.from_bytes(message.to_bytes()) == message
    assert UMessage.from_bytes(b"") == UMessage()
    assert unwrap_any(wrap_any("a.B", b"x")) == ("a.B", b"x")


def test_core_messages_have_the_bytes_of_the_library() -> None:
    topic = UUri.parse("//vcu/10AB/3/8001")
    attributes = usubscription.SubscribeAttributes(
        expire=usubscription.Timestamp(seconds=5, nanos=7), sample_period_ms=0
    )
    messages = [
        usubscription.SubscriptionRequest(topic=topic, attributes=attributes),
        usubscription.SubscriptionResponse(status=usubscription.SubscriptionStatus(state=2, message="so"), topic=topic),
        usubscription.Subscription(topic=topic, subscriber=usubscription.SubscriberInfo(uri=topic)),
        utwin.GetLastMessagesRequest(topics=utwin.UUriBatch(uris=(topic, UUri()))),
        utwin.GetLastMessagesResponse(
            responses=(
                utwin.MessageResponse(topic=topic, status=UStatus(UCode.NOT_FOUND)),
                utwin.MessageResponse(topic=topic, status=UStatus(), message=UMessage(UAttributes(type=1), b"x")),
            )
        ),
    ]

    for message in messages:
        data = message.to_bytes()
        foreign = message_class(message.DESCRIPTOR.full_name).FromString(data)
        assert foreign.SerializeToString(deterministic=True) == data
        assert type(message).from_bytes(data) == message


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_a_number_that_does_not_fit_is_refused(value: int) -> None:
    with pytest.raises(EncodeError, match="ttl"):
        UAttributes(ttl=value).to_bytes()
