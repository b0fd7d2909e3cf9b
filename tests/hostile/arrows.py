"""Arrow streams that lie, made of honest ones: the octets of a request, one lie each."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

__all__ = ["END", "bomb", "honest", "lies", "shifted", "stream"]

END: Final = b"\xff\xff\xff\xff\0\0\0\0"
MIB: Final = 1 << 20


def stream(*batches: pa.RecordBatch, **options: Any) -> bytes:
    """Batches of one schema as a stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def honest(keys: tuple[str, ...] = ("f/a", "f/b"), size: int = 3) -> bytes:
    """What a client sends."""
    return stream(pa.record_batch({"key": list(keys), "payload": [b"x" * size] * len(keys)}))


def shifted(far: int) -> bytes:
    """A key that ends `far` octets behind its column: the request of some 456 octets."""
    key = "f/a-key-of-23-characters"[:23]
    good = stream(pa.record_batch({"key": [key], "payload": [b"x"]}))
    head = 8 + int.from_bytes(good[4:8], "little")
    body = head + 8 + int.from_bytes(good[head + 4 : head + 8], "little")
    return good[:body] + _replaced(good[body:], struct.pack("<ii", 0, 23), struct.pack("<ii", 0, far))


def bomb(codec: str, octets: int) -> bytes:
    """A few kilobytes that become `octets`: the same compressed batch again and again."""
    size = 32 * MIB
    one = stream(pa.record_batch({"key": ["f/a"], "payload": [bytes(size)]}), compression=codec)
    head = 8 + int.from_bytes(one[4:8], "little")
    message = one[head : -len(END)]
    return one[:head] + message * (octets // size) + END


def lies() -> Iterator[tuple[str, bytes]]:
    """Every other lie, by name."""
    good = honest()
    head = 8 + int.from_bytes(good[4:8], "little")
    schema, message = good[:head], good[head : -len(END)]
    meta = 8 + int.from_bytes(message[4:8], "little")
    yield "nothing", b""
    yield "no stream", b"what?"
    yield "no end", good[: -len(END)]
    yield "more behind the end", good + b"x"
    yield "cut off in a body", good[: head + meta + 8]
    yield "a head as large as nobody has", b"\xff\xff\xff\xff\xff\xff\xff\x7f" + good[8:]
    yield "a head of negative size", b"\xff\xff\xff\xff\x00\x00\x00\x80" + good[8:]
    yield "two schemas", schema + schema + message + END
    yield "no schema", message + END
    yield "a schema of nothing but zeros", good[:8] + bytes(head - 8) + message + END
    yield "a batch of nothing but zeros", schema + message[:8] + bytes(len(message) - 8) + END
    yield (
        "too many batches",
        schema
        + stream(pa.record_batch({"key": pa.array([], pa.string()), "payload": pa.array([], pa.binary())}))[
            head : -len(END)
        ]
        * 5_000
        + END,
    )
    yield from _typed()
    yield from _patched(schema, message)


def _typed() -> Iterator[tuple[str, bytes]]:
    """Columns that a sample does not have."""
    keys, payloads = pa.array(["f/a"]), pa.array([b"x"])

    def made(**columns: Any) -> bytes:
        return stream(pa.record_batch({"key": keys, "payload": payloads} | columns))

    yield "no key", stream(pa.record_batch({"payload": payloads}))
    yield "an unknown column", made(more=pa.array([1]))
    yield "a key twice", stream(pa.RecordBatch.from_arrays([keys, payloads, keys], ["key", "payload", "key"]))
    yield "a key that is null", made(key=pa.array([None], pa.string()))
    yield "a key that is a number", made(key=pa.array([1]))
    yield "a key in a dictionary", made(key=keys.dictionary_encode())
    yield "a payload that is a list", made(payload=pa.array([[b"x"]]))
    yield "a payload that is a struct", made(payload=pa.array([{"x": b"x"}]))
    yield (
        "a payload that is a union",
        made(payload=pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [payloads])),
    )
    yield "a payload that is a view", made(payload=payloads.cast(pa.binary_view()))
    yield "a payload of runs", made(payload=pa.RunEndEncodedArray.from_arrays([1], payloads))
    yield (
        "a payload of an extension",
        made(payload=pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "a", "b"), payloads)),
    )
    yield "a kind that there is not", made(kind=pa.array([9], pa.uint8()))
    yield "a kind below zero", made(kind=pa.array([-1], pa.int64()))
    yield "an id that no node has", made(ntp64=pa.array([1], pa.uint64()), stamp_id=pa.array([b"x" * 1000]))
    yield "a time without an id", made(ntp64=pa.array([1], pa.uint64()))
    yield (
        "octets that are no text",
        _replaced(stream(pa.record_batch({"key": ["f/abcd"], "payload": [b"x"]})), b"f/abcd", b"f/\xff\xfe\xfdd"),
    )


def _replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1
    return data.replace(old, new)


def _patched(schema: bytes, message: bytes) -> Iterator[tuple[str, bytes]]:
    """Numbers of the metadata that are none of theirs; what they are is told by their place behind the vectors."""
    meta = 8 + int.from_bytes(message[4:8], "little")

    def patched(find: Callable[[int], bool], value: int) -> Iterator[bytes]:
        for at in range(8, meta - 7, 4):
            if find(int.from_bytes(message[at : at + 8], "little", signed=True)):
                yield message[:at] + value.to_bytes(8, "little", signed=True) + message[at + 8 :]

    for value in (-1, 3, 1 << 20, 1 << 40, (1 << 63) - 1, -(1 << 63)):
        for number, one in enumerate(patched(lambda found: found == 2, value)):  # rows, in the batch and its columns
            yield f"{value} rows, place {number}", schema + one + END
        for number, one in enumerate(patched(lambda found: found in (6, 12, 16), value)):  # offsets, lengths, the body
            yield f"length {value}, place {number}", schema + one + END
