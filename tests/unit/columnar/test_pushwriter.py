"""Batches to messages: what is written is what the codec reads, and kernel and twin write the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from elea.columnar import pushwriter
from elea.columnar.pushwriter import Outgoing
from elea.wire.zenoh1.codec import read_network_message
from elea.wire.zenoh1.messages import Del, Encoding, Push, Put, Timestamp, WireExpr

COUNT = 500


@pytest.fixture(params=["kernel", "twin"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "kernel":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(pushwriter, "writer", lambda: None)
    return request.param


def table(count: int = COUNT) -> pa.Table:
    rows = range(count)
    return pa.table(
        {
            "key": [f"t/{n % 7}" for n in rows],
            "payload": pa.array([b"%d" % n * (n % 60) for n in rows], pa.binary()),
            "kind": pa.array([int(n % 11 == 3) for n in rows], pa.uint8()),
            "encoding": pa.array([(n % 3) << n % 32 & 0x7FFF_FFFF for n in rows], pa.uint32()),
            "schema": pa.array([b"s" * (n % 256) if n % 4 == 0 else None for n in rows], pa.binary()),
            "attachment": pa.array([b"a" * (n % 300) if n % 6 == 0 else None for n in rows], pa.binary()),
            "ntp64": pa.array([(n << 55) + n & (1 << 64) - 1 if n % 2 else None for n in rows], pa.uint64()),
            "stamp_id": pa.array([b"\1" * (1 + n % 16) if n % 2 else None for n in rows], pa.binary()),
        }
    )


def batch_of(source: pa.Table, start: int = 0) -> pa.RecordBatch:
    (batch,) = source.to_batches()
    return batch.slice(start)


def heads(outgoing: Outgoing) -> list[bytes]:
    return [bytes([0x7D, 0, len(key)]) + key.encode() for key in outgoing.keys]


def wanted(row: dict[str, Any]) -> Push:
    stamp = None if row["ntp64"] is None else Timestamp(row["ntp64"], row["stamp_id"])
    expr = WireExpr(0, True, row["key"])
    if row["kind"]:
        return Push(expr, Del(stamp, None, row["attachment"]))
    encoding = Encoding(row["encoding"], row["schema"]) if row["encoding"] or row["schema"] is not None else None
    return Push(expr, Put(row["payload"], stamp, encoding, attachment=row["attachment"]))


def read(octets: bytes) -> list[Any]:
    at = 0
    found: list[Any] = []
    while at < len(octets):
        message, at = read_network_message(octets, at)
        found.append(message)
    return found


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("start", [0, 13])
def test_messages_say_what_the_rows_say(start: int) -> None:
    outgoing = Outgoing(batch_of(table(), start))

    pieces = list(outgoing.pieces(heads(outgoing), None, 2_000))

    assert all(isinstance(piece, tuple) and len(piece[0]) <= 2_000 for piece in pieces)
    found = [message for piece in pieces if isinstance(piece, tuple) for message in read(piece[0])]
    assert found == [wanted(row) for row in table().to_pylist()[start:]]
    assert sum(piece[1] for piece in pieces if isinstance(piece, tuple)) == COUNT - start


@pytest.mark.usefixtures("way")
def test_some_rows_only_and_those_that_do_not_fit_alone_are_named() -> None:
    batch = pa.record_batch(
        [pa.array(["a", "b", "a", "b"]), pa.array([b"1", b"2", b"3" * 500, b"4"], pa.binary())], ["key", "payload"]
    )
    outgoing = Outgoing(batch)

    pieces = list(outgoing.pieces(heads(outgoing), [0, 2, 3], 200))

    sent = [read(piece[0]) if isinstance(piece, tuple) else piece for piece in pieces]
    assert [one for one in sent if isinstance(one, int)] == [1]
    payloads = [push.body.payload for one in sent if isinstance(one, list) for push in one]
    assert payloads == [b"1", b"4"]
    assert outgoing.sample(2) == (0, None, b"3" * 500)


@pytest.mark.usefixtures("way")
def test_rows_without_a_timestamp_are_given_one_each() -> None:
    outgoing = Outgoing(batch_of(table(20)))

    outgoing.stamp(outgoing.unstamped, (1 << 63) + 5, b"\x07\x08")

    assert outgoing.unstamped == 0
    (piece,) = outgoing.pieces(heads(outgoing), None, 60_000)
    assert isinstance(piece, tuple)
    stamps = [push.body.timestamp for push in read(piece[0])]
    given = [Timestamp((1 << 63) + 5 + n, b"\x07\x08") for n in range(10)]
    own = [wanted(row).body.timestamp for row in table(20).to_pylist() if row["ntp64"] is not None]
    assert stamps == [each for pair in zip(given, own, strict=True) for each in pair]


def test_kernel_and_twin_write_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    outgoing = Outgoing(batch_of(table()))

    written = b"".join(piece[0] for piece in outgoing.pieces(heads(outgoing), None, 3_000) if isinstance(piece, tuple))
    monkeypatch.setattr(pushwriter, "writer", lambda: None)
    twin = b"".join(piece[0] for piece in outgoing.pieces(heads(outgoing), None, 3_000) if isinstance(piece, tuple))

    assert written == twin


@pytest.mark.parametrize(
    ("column", "value", "type_"),
    [("kind", 2, pa.uint8()), ("schema", b"s" * 256, pa.binary()), ("stamp_id", b"", pa.binary())],
)
def test_what_no_message_can_carry_is_refused(column: str, value: object, type_: pa.DataType) -> None:
    names = ["key", "payload", column] + (["ntp64"] if column == "stamp_id" else [])
    arrays = [pa.array(["a"]), pa.array([b""], pa.binary()), pa.array([value], type_), pa.array([1], pa.uint64())]

    with pytest.raises(ValueError, match=column):
        Outgoing(pa.record_batch(arrays[: len(names)], names))
