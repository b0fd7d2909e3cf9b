"""Arrow from outside: streams of samples, ranges, files and blocks at the entrance, and payloads of one row."""

from __future__ import annotations

import io
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

import pyarrow as pa

from elea.model.errors import ArrowRefused, StoreError
from elea.model.node_id import NodeId
from elea.model.timestamp import Hlc
from elea.node.storage.batchrequest import SAMPLES, check_keys, columns_of
from elea.node.storage.stampcheck import Stamping
from elea.spark.payload.registry import decoder
from elea.store import memory_log
from elea.store.columns import check_batch, records_of
from elea.store.entrance import ANSWER, read_block, read_file, read_stream
from elea.store.logreads import Keys
from tests.fuzz.laws import require
from tests.fuzz.target import Target
from tests.hostile.arrows import honest, stream
from tests.unit.store.samples import sample

__all__ = ["arrow_target", "payload_target"]

NODE: Final = bytes(range(1, 17))
ROOM: Final = 1 << 16
"""Octets that any input may take, beside a multiple of its own."""

TIMES: Final = 16
EVERYTHING: Final = Keys("**")
_POOLS: Final[deque[Any]] = deque(maxlen=1_000)
"""A pool has to outlive its arrays, and those the errors that hold them."""


@contextmanager
def bounded(data: bytes) -> Iterator[None]:
    """Whatever Arrow allocates meanwhile is in proportion to what came."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    _POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        yield
    finally:
        pa.set_memory_pool(before)
    most = TIMES * len(data) + ROOM
    require(pool.max_memory() <= most, "Arrow allocates in proportion to its input", pool.max_memory(), most)


# -- samples ----------------------------------------------------------------------------------------------------------


def _request(data: bytes) -> list[Any]:
    """A batch, and all that a broker makes of it before it is stored."""
    batches = read_stream(data, SAMPLES)
    node: Any = SimpleNamespace(loop=SimpleNamespace(wall_ns=lambda: 1 << 60), clock=Hlc(NodeId(NODE)), node_id=NODE)
    for batch in batches:
        check_keys(batch.column("key"), "**", EVERYTHING)
        list(records_of(check_batch(columns_of(node, batch, (NODE, 1, 0), 0, Stamping(node, "fuzz"))[0])))
    return batches


WAYS: Final[tuple[Callable[[bytes], Sequence[Any]], ...]] = (
    _request,
    lambda data: read_stream(data, ANSWER),
    lambda data: list(read_file(io.BytesIO(data))),
    lambda data: [read_block(pa.py_buffer(data))],
)


def arrow_target() -> Target:
    """Octet 0 says which way in; what comes through is valid, and no more than what came."""

    def decode(data: bytes) -> Sequence[Any]:
        with bounded(data):
            return WAYS[data[0] % len(WAYS)](data[1:]) if data else []

    def law(data: bytes, batches: Sequence[Any]) -> None:
        for batch in batches:
            batch.validate(full=True)
            batch.to_pylist()
        size = sum(batch.nbytes for batch in batches)
        require(size <= TIMES * len(data), "columns have no octets that did not come", size)

    return Target("arrow", decode, law, (ArrowRefused, StoreError), _seeds, _tokens, 16_384, repeats=False)


@cache
def _seeds() -> tuple[bytes, ...]:
    more = {"kind": pa.array([0, 1, 0], pa.uint8()), "encoding": pa.array([1, 2, 3], pa.uint32())}
    given = {"ntp64": pa.array([1, 2, 3], pa.uint64()), "stamp_id": [b"\1"] * 3, "schema": [None, b"x", b""]}
    rows = {"key": ["f/a", "f/b", "f/é"], "payload": [b"", b"x", b"yz"]}
    wide = {"key": pa.array(["f/a"], pa.large_string()), "payload": pa.array([b"x"], pa.large_binary())}
    batch = pa.record_batch(rows)
    requests = [honest(), honest(("f/a",)), stream(batch), stream(batch, batch), stream(pa.record_batch(rows | more))]
    requests += [stream(pa.record_batch(rows | more | given)), stream(batch, compression="zstd")]
    requests += [stream(pa.record_batch(wide | {"kind": pa.array([1], pa.int64())})), stream(batch.slice(0, 0))]
    with memory_log() as log:
        log.append([sample(number) for number in range(4)])
        ranges = [b"".join(log.read_ipc())]
        (block,) = log.read_arrow()
    blocks = [block.serialize().to_pybytes(), block.slice(1, 2).serialize().to_pybytes()]
    kinds = (requests, ranges, ranges, blocks)
    return tuple(bytes([way]) + data for way, datas in enumerate(kinds) for data in datas)


@cache
def _tokens() -> tuple[bytes, ...]:
    """Numbers as flatbuffers have them: offsets, lengths, kinds of messages and of types."""
    numbers = (-1, 0, 1, 2, 3, 4, 8, 16, 24, 64, 128, 255, 1_000, 1 << 16, (1 << 31) - 1, -(1 << 31), (1 << 32) - 1)
    wide = (*numbers, 1 << 40, (1 << 63) - 1, -(1 << 63))
    found = [struct.pack("<q", number) for number in wide]
    found += [struct.pack("<I", number & 0xFFFFFFFF) for number in numbers]
    found += [struct.pack("<h", number) for number in (0, 4, 6, 8, 10, 12, 16, 24, -1)]
    found += [bytes([number]) for number in range(27)]
    return (*found, b"\xff\xff\xff\xff\0\0\0\0", b"ARROW:extension:name", b"key", b"\xff\xfe")


# -- payloads ---------------------------------------------------------------------------------------------------------

ROW: Final = pa.struct(
    [
        ("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.int64())), ("d", pa.struct([("x", pa.binary())])),
        ("e", pa.map_(pa.string(), pa.float64())), ("f", pa.timestamp("us", "UTC")), ("g", pa.bool_()),
    ]
)  # fmt: skip


def payload_target() -> Target:
    """A payload between two good ones, which it must not spoil."""
    decode_all = decoder("arrow", ROW)

    def decode(data: bytes) -> list[Any]:
        with bounded(data * 3 + GOOD * 6):
            values, corrupt = decode_all(pa.array([GOOD, data, GOOD], pa.binary()))
            again, _ = decode_all(pa.array([data, data], pa.binary()))
        return [values, corrupt, again]

    def law(data: bytes, found: list[Any]) -> None:
        values, corrupt, again = found
        for array in found:
            array.validate(full=True)
        require(values.is_valid().to_pylist()[::2] == [True, True], "good payloads stay good", data)
        require(corrupt[1].is_valid is not values[1].is_valid, "a payload is read or corrupt", data)
        require(again.is_valid().to_pylist() == [values[1].is_valid] * 2, "neighbours do not matter", data)

    def seeds() -> tuple[bytes, ...]:
        dictionary = pa.record_batch({"b": pa.array(["y"]).dictionary_encode(), "a": pa.array([1], pa.int8())})
        fixed = pa.record_batch({"c": pa.array([[1, 2]], pa.list_(pa.int16(), 2)), "g": pa.nulls(1), "a": [1.0]})
        few = [stream(pa.record_batch({"a": [1]})), stream(dictionary), stream(fixed), stream(fixed, compression="lz4")]
        return (GOOD, EMPTY, *few)

    return Target("arrow-payload", decode, law, (), seeds, _tokens, 16_384, repeats=False)


def _row(values: dict[str, Any]) -> bytes:
    return stream(pa.RecordBatch.from_pylist([values], schema=pa.schema(list(ROW))))


GOOD: Final = _row({"a": 1, "b": "é", "c": [1, None], "d": {"x": b"y"}, "e": [("k", 1.5)], "f": 0, "g": True})
EMPTY: Final = _row({})
