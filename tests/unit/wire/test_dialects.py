"""The common interface of the dialects: units, errors of encoding, JSON that is wrong, lenient numbers."""

from __future__ import annotations

from typing import Any

import pytest

from elea.model.errors import EncodeError, LocalProtocolError, PaddedNatural
from elea.wire import DIALECTS, compiled, dialect_named, primitives
from elea.wire.zenoh1.messages import Frame, KeepAlive, Push, Put, WireExpr
from elea.wire.zenoh2018.messages import Scout

EARLY = ("zenoh2018", "xrce2017")


def test_dialects_are_found_by_name() -> None:
    assert [dialect_named(name).name for name in DIALECTS] == list(DIALECTS)
    with pytest.raises(KeyError, match="there are zenoh1, zenoh2018, xrce2017"):
        dialect_named("zenoh2")


def test_compiled_tells_what_the_codecs_are() -> None:
    assert compiled() is not str(primitives.__file__).endswith(".py")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_unknown_unit_is_refused_by_name(dialect: str) -> None:
    found = dialect_named(dialect)

    with pytest.raises(LocalProtocolError, match="has no unit 'parcel'"):
        found.decode("parcel", b"")
    with pytest.raises(LocalProtocolError, match="has no unit 'parcel'"):
        found.encode("parcel", 0)


@pytest.mark.parametrize(("dialect", "octets"), [("zenoh1", "ac02"), ("zenoh2018", "ac02"), ("xrce2017", "ac02")])
def test_number_is_a_unit(dialect: str, octets: str) -> None:
    found = dialect_named(dialect)

    assert found.decode("vle", bytes.fromhex(octets)) == 300
    assert found.encode("vle", 300).hex() == octets
    assert found.to_json("vle", 300) == {"value": 300}
    assert found.from_json("vle", {"value": 300}) == 300
    with pytest.raises(EncodeError):
        found.from_json("vle", {"value": "300"})
    with pytest.raises(EncodeError):
        found.encode("vle", -1)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("value", [None, 5, "text", (), Put("text"), Put(5), Scout("x")])  # type: ignore[arg-type]
def test_value_that_is_no_message_is_an_encode_error(dialect: str, value: object) -> None:
    with pytest.raises(EncodeError):
        dialect_named(dialect).encode("message", value)


@pytest.mark.parametrize("dialect", EARLY)
@pytest.mark.parametrize(
    ("form", "member"),
    [
        (None, "Message"),
        ({}, "kind"),
        ({"kind": "Nothing"}, "kind"),
        ({"kind": "Scout"}, "Scout.mask"),
        ({"kind": "Scout", "mask": "1"}, "Scout.mask"),
        ({"kind": "Scout", "mask": True}, "Scout.mask"),
        ({"kind": "Scout", "mask": 1, "more": 2}, "Scout.more"),
        ({"kind": "Scout", "mask": 1, "properties": {}}, "Scout.properties"),
        ({"kind": "Scout", "mask": 1, "properties": [{"id": 1, "value": "zz"}]}, "Property.value"),
        ({"kind": "KeepAlive", "pid": 5}, "KeepAlive.pid"),
        ({"kind": "WriteData", "sn": 1, "resource": "\ud800", "payload": ""}, "WriteData.resource"),
    ],
)
def test_wrong_json_names_the_member(dialect: str, form: Any, member: str) -> None:
    with pytest.raises(EncodeError) as error:
        dialect_named(dialect).from_json("message", form)

    assert error.value.what == member


@pytest.mark.parametrize("dialect", EARLY)
@pytest.mark.parametrize("form", [None, [], {}, {"messages": 5}, {"messages": [5]}, {"messages": [{"markers": []}]}])
def test_wrong_json_of_a_packet_is_an_encode_error(dialect: str, form: Any) -> None:
    with pytest.raises(EncodeError):
        dialect_named(dialect).from_json("packet", form)


@pytest.mark.parametrize(
    "form",
    [None, {}, {"_": "NOTHING"}, {"_": "KEEP_ALIVE", "ext": 5}, {"_": "KEEP_ALIVE", "x": 1}, {"_": "FRAME"}, {"_": 5}],
)
def test_wrong_json_of_a_batch_is_an_encode_error(form: Any) -> None:
    with pytest.raises(EncodeError):
        dialect_named("zenoh1").from_json("batch", form)


def test_long_payload_is_summarised_unless_the_whole_is_asked_for() -> None:
    zenoh1 = dialect_named("zenoh1")
    batch = (Frame(1, messages=(Push(WireExpr(1), Put(bytes(513))),)),)

    short: Any = zenoh1.to_json("batch", batch)
    full: Any = zenoh1.to_json("batch", batch, full=True)

    assert short["msgs"][0]["body"]["payload"]["len"] == 513
    assert full["msgs"][0]["body"]["payload"] == "00" * 513
    with pytest.raises(EncodeError, match="a summary is not a payload"):
        zenoh1.from_json("batch", short)
    assert zenoh1.from_json("batch", full) == batch


def test_batch_of_one_message_is_that_message_in_json() -> None:
    zenoh1 = dialect_named("zenoh1")

    assert zenoh1.to_json("batch", (KeepAlive(),)) == {"_": "KEEP_ALIVE"}
    assert zenoh1.to_json("batch", (KeepAlive(), KeepAlive())) == [{"_": "KEEP_ALIVE"}] * 2


@pytest.mark.parametrize("dialect", EARLY)
def test_lenient_decoding_takes_padded_numbers(dialect: str) -> None:
    found: Any = dialect_named(dialect)

    with pytest.raises(PaddedNatural):
        found.decode("message", b"\x01\x85\x00")

    assert found.encode("message", found.decode_lenient("message", b"\x01\x85\x00")) == b"\x01\x05"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_error_of_a_stream_has_its_place_in_the_stream(dialect: str) -> None:
    found = dialect_named(dialect)
    octets = b"\x01\x00\x04\x01\x00\x1c" if dialect == "zenoh1" else b"\x02\x01\x05\x01\x00"

    with pytest.raises(Exception, match=f"at octet {5 if dialect == 'zenoh1' else 4}"):
        found.decode("stream", octets)
    assert str(found.dissect("stream", octets)[-1].error).endswith(f"at octet {5 if dialect == 'zenoh1' else 4}")
