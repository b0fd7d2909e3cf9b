"""What samples are known by, and a hash of it: the same in every log, whatever the order they came in.

A fingerprint of many samples is the exclusive-or of theirs. CRCs would not do: those of four samples of two keys at two
times cancel each other out.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["EMPTY", "IDENTITIES", "KNOWN_BY", "Bucket", "distinct", "fingerprint", "fingerprints", "folded", "joined"]

KNOWN_BY: Final = ["key", "ntp64", "stamp_id", "kind"]

IDENTITIES: Final = pa.schema(
    [
        ("key", pa.string()), ("ntp64", pa.uint64()), ("stamp_id", pa.binary()), ("kind", pa.uint8()),
        ("position", pa.int64()), ("size", pa.int64()), ("fingerprint", pa.uint64()),
    ]
)  # fmt: skip
"""What is listed of samples: what they are known by, and where and how large they are in the log that lists them."""

_SPACE: Final = pa.scalar(b" ", pa.binary())
_NOTHING: Final = pa.scalar(b"", pa.binary())


class Bucket(NamedTuple):
    """Some samples, in short."""

    fingerprint: int
    samples: int
    """How many different ones."""


EMPTY: Final = Bucket(0, 0)


def fingerprint(key: str, ntp64: int, stamp_id: bytes, kind: int) -> int:
    """The hash of one sample."""
    data = b"%d %d %d " % (ntp64, kind, len(stamp_id)) + stamp_id + key.encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def fingerprints(table: pa.Table) -> pa.Array:
    """The same for many rows: what is hashed is put together by Arrow, a third of the time."""
    pieces: list[pa.Array | pa.Scalar] = []
    for column in (table.column("ntp64"), table.column("kind"), pc.binary_length(table.column("stamp_id"))):
        pieces += [column.cast(pa.string()).cast(pa.binary()), _SPACE]
    pieces += [table.column("stamp_id"), table.column("key").cast(pa.binary())]
    whole = pc.binary_join_element_wise(*pieces, _NOTHING).to_pylist()
    found = array("Q", b"".join([blake2b(one, digest_size=8).digest() for one in whole]))
    if sys.byteorder == "big":
        found.byteswap()
    return pa.Array.from_buffers(pa.uint64(), len(whole), [None, pa.py_buffer(found)])


def distinct(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """The samples of batches with the columns of a log, each once, as `IDENTITIES`."""
    tables = [_named(batch) for batch in batches]
    if not tables:
        return IDENTITIES.empty_table()
    whole = pa.concat_tables(tables).group_by(KNOWN_BY, use_threads=False)
    found = whole.aggregate([("position", "min"), ("size", "max")])
    found = found.rename_columns([*KNOWN_BY, "position", "size"])
    return found.append_column("fingerprint", fingerprints(found)).cast(IDENTITIES)


def folded(table: pa.Table, level: int) -> dict[int, Bucket]:
    """The rows of a table of `IDENTITIES` as buckets of time, of length 2**level."""
    prints: dict[int, int] = {}
    counts: dict[int, int] = {}
    columns = (table.column(name).to_pylist() for name in ("ntp64", "fingerprint"))
    for time, one in zip(*columns, strict=True):
        bucket = time >> level
        prints[bucket] = prints.get(bucket, 0) ^ one
        counts[bucket] = counts.get(bucket, 0) + 1
    return {bucket: Bucket(one, counts[bucket]) for bucket, one in prints.items()}


def joined(pairs: Iterable[tuple[int, Bucket]]) -> dict[int, Bucket]:
    """Buckets that have the same number as one."""
    found: dict[int, Bucket] = {}
    for bucket, (made, samples) in pairs:
        if samples:
            before = found.get(bucket, EMPTY)
            found[bucket] = Bucket(before.fingerprint ^ made, before.samples + samples)
    return found


def _named(batch: pa.RecordBatch) -> pa.Table:
    sizes = pc.binary_length(batch.column("payload")).cast(pa.int64())
    columns = [batch.column(name) for name in (*KNOWN_BY, "position")]
    return pa.Table.from_arrays([*columns, sizes], names=[*KNOWN_BY, "position", "size"])
