"""Columns of protobuf and Arrow payloads are what the decoders of single samples say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from elea.columnar.protobufcolumns import ProtobufColumns
from elea.content.arrowrow import decode_row
from elea.content.protobuf import message_decoder
from elea.model.predicate.types import Label
from elea.spark.payload import decoder, encoder
from tests.unit.spark.vehicles import DESCRIPTORS, NAME, Vehicle, descriptor

BROKEN = st.sampled_from([b"", b"\xff", b"\x08", b"\x0a\xff\xff", b"\x12\x02\xff\xff"])


def _messages() -> st.SearchStrategy[bytes]:
    """Random bytes that begin with what a message may hold: most are messages."""
    varints = st.integers(0, 2**64 - 1).map(_varint)
    fields = st.one_of(*[_field(field, varints) for field in descriptor().fields])
    return st.lists(fields, max_size=6).map(b"".join)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _field(field: Any, varints: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    wire = {1: 1, 2: 5, 6: 1, 7: 5, 9: 2, 11: 2, 12: 2, 15: 5, 16: 1}.get(field.type, 0)
    head = _varint(field.number << 3 | wire)
    if wire == 0:
        return varints.map(lambda data: head + data)
    if wire == 2:
        texts = st.text(max_size=4).map(str.encode) | st.binary(max_size=6) | st.just(b"\x08\x01")
        return texts.map(lambda data: head + _varint(len(data)) + data)
    size = 8 if wire == 1 else 4
    return st.binary(min_size=size, max_size=size).map(lambda data: head + data)


def _plain(value: Any) -> Any:
    """A value as the column has it: labels as text, and numbers where there is no label."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.name if isinstance(value, Label) else value


def _one(payload: bytes) -> Any:
    try:
        return _plain(message_decoder(DESCRIPTORS, NAME)(payload))
    except ValueError:
        return None


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, list):  # a map
        return _same(sorted(left.items()), [(key, value) for key, value in right])
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, int) and isinstance(right, str):  # of an enumeration, without a label
        return str(left) == right
    return bool(left == right) or (left != left and right != right)


@given(st.lists(_messages() | BROKEN, max_size=12))
def test_columns_of_protobuf_are_what_the_decoder_of_samples_says(payloads: list[bytes]) -> None:
    found = ProtobufColumns(descriptor()).decode(pa.array(payloads, pa.binary())).to_pylist()

    for payload, row in zip(payloads, found, strict=True):
        assert _same(_one(payload), row), (payload, _one(payload), row)


def test_a_message_with_everything_is_the_same_both_ways() -> None:
    payload = Vehicle(speed=3.5, name="a", gear=1).SerializeToString()

    (row,) = ProtobufColumns(descriptor()).decode(pa.array([payload], pa.binary())).to_pylist()
    assert _same(_one(payload), row)
    assert row is not None


ROW = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("c", pa.list_(pa.float64())),
        ("d", pa.struct([("x", pa.bool_())])),
        ("e", pa.timestamp("us", "UTC")),
        ("f", pa.binary()),
    ]
)
ROWS = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        "c": st.none() | st.lists(st.none() | st.floats(allow_nan=False), max_size=3),
        "d": st.none() | st.fixed_dictionaries({"x": st.none() | st.booleans()}),
        "e": st.none()
        | st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),
        "f": st.none() | st.binary(max_size=4),
    }
)


@given(
    st.lists(ROWS, min_size=1, max_size=4), st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=3)), max_size=2)
)
def test_columns_of_arrow_payloads_are_what_the_decoder_of_samples_says(
    rows: list[dict[str, Any]], broken: list[tuple[int, bytes]]
) -> None:
    payloads = encoder("arrow", ROW)(pa.RecordBatch.from_pylist(rows, schema=ROW)).to_pylist()
    for at, put in broken:
        payload = payloads[at % len(payloads)]
        place = at % len(payload)
        payloads[at % len(payloads)] = payload[:place] + put + payload[place + len(put) :]

    found, _ = decoder("arrow", ROW)(pa.array(payloads, pa.binary()))

    for payload, row in zip(payloads, found.to_pylist(), strict=True):
        try:
            alone: Any = decode_row(payload)
        except ValueError:
            alone = None
        if row is not None:  # a column wants its own names and types; a sample is what it says
            assert alone is not None
            assert {name: value for name, value in row.items() if name in alone} == {
                name: value for name, value in alone.items() if name in row
            }
    if not broken:
        assert found.to_pylist() == rows
