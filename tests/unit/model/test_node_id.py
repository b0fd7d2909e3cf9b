"""Node ids: forms, order, refusals."""

from __future__ import annotations

from random import Random

import pytest

from elea.model.node_id import NodeId


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ("01", "1"),
        ("f0", "f0"),
        ("3412", "1234"),
        ("01cfcec1", "c1cecf01"),
        ("0001", "100"),
        ("11" * 16, "11" * 16),
    ],
)
def test_wire_and_text_forms(wire: str, text: str) -> None:
    assert str(NodeId(bytes.fromhex(wire))) == text
    assert NodeId.parse(text).data == bytes.fromhex(wire)
    assert bytes(NodeId.parse(text)) == bytes.fromhex(wire)


def test_trailing_zeros_are_trimmed() -> None:
    assert NodeId(b"\x01\0\0") == NodeId(b"\x01")
    assert NodeId(b"\x01\0\0").data == b"\x01"
    assert NodeId(b"\x01").padded == b"\x01" + bytes(15)


@pytest.mark.parametrize("text", ["", "0", "00", "0a1", "A1", "xyz", " 1", "+1", "1_0", "1\n", "1" * 33, "١"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid node id"):
        NodeId.parse(text)


@pytest.mark.parametrize("data", [b"", b"\0", bytes(16), b"1" * 17, b"1" * 16 + b"\0"])
def test_other_octets_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="node id"):
        NodeId(data)


def test_order_is_that_of_octets_and_not_of_numbers() -> None:
    assert NodeId.parse("1234") < NodeId.parse("77")
    assert NodeId.parse("33") > NodeId.parse("3301")


def test_random_id_has_sixteen_octets() -> None:
    ids = {NodeId.random(Random(seed)) for seed in range(500)}

    assert len(ids) == 500
    assert {len(id.data) for id in ids} == {16}


def test_random_id_depends_on_its_source_only() -> None:
    assert NodeId.random(Random(7)) == NodeId.random(Random(7))


def test_number_and_representation() -> None:
    assert int(NodeId.parse("1234")) == 0x1234
    assert repr(NodeId.parse("1234")) == "NodeId('1234')"
