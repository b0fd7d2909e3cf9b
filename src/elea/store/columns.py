"""Records to Arrow columns and back: the one schema of logs, segments and range reads."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import StoreError
from elea.model.limits import STORE_BLOCK_BYTES, STORE_BLOCK_ROWS
from elea.store.record import Record, Stored

__all__ = [
    "SCHEMA",
    "Facts",
    "check_batch",
    "facts_of",
    "facts_of_fields",
    "fields_of",
    "from_fields",
    "joined_blocks",
    "number_rows",
    "pieces",
    "record_at",
    "records_of",
    "run_of",
]

SCHEMA: Final = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("ntp64", pa.uint64(), nullable=False),
        pa.field("stamp_id", pa.binary(), nullable=False),
        pa.field("arrival", pa.timestamp("ns", "UTC"), nullable=False),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("encoding", pa.uint32(), nullable=False),
        pa.field("schema", pa.binary()),
        pa.field("attachment", pa.binary()),
        pa.field("source_id", pa.binary()),
        pa.field("source_eid", pa.uint32()),
        pa.field("source_sn", pa.uint64()),
        pa.field("once", pa.bool_(), nullable=False),
        pa.field("qos", pa.uint8(), nullable=False),
    ]
)
"""`position`, then the fields of `Record` in their order."""

_TYPES: Final = [field.type for field in SCHEMA][1:]
_NULLABLE: Final = [field.nullable for field in SCHEMA][1:]
_NAMES: Final = [field.name for field in SCHEMA][1:]
_GETTERS: Final = [itemgetter(index) for index in range(len(_NAMES))]
_PAYLOAD: Final = 1
_BYTES_AT_ONCE: Final = 1 << 20
"""Bytes of rows that are made values at a time."""
_CHANGING: Final = {_NAMES.index(name) for name in ("key", "ntp64", "arrival", "attachment", "source_sn")}
"""Fields that seldom are the same in the next batch."""

_KEPT: Final[dict[tuple[int, Any, int], pa.Array]] = {}
_KEPT_ROWS: Final = 64
_KEPT_COLUMNS: Final = 4096
_ARRIVAL: Final = SCHEMA.get_field_index("arrival")


class _Missing(TypeError):
    """A field that must not be None is."""


class Facts(NamedTuple):
    """What a block says of its rows without being read."""

    first: int
    last: int
    rows: int
    min_ntp: int
    max_ntp: int
    min_arrival: int
    max_arrival: int


def fields_of(records: Sequence[Record]) -> list[tuple[Any, ...]]:
    """Records field by field. A `zip(*records)` of 10,000 takes four times as long."""
    return [tuple(map(get, records)) for get in _GETTERS]


def from_fields(fields: Sequence[tuple[Any, ...]], first: int) -> pa.RecordBatch:
    """The columns of samples at `first`, `first + 1`, … given field by field, in the order of `Record`.

    Raises:
        StoreError: a field has a value its column cannot hold.
    """
    columns = [_positions(first, len(fields[0]))]
    try:
        columns += map(_column, range(len(fields)), fields)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError) as error:
        # Arrow quotes values, and this text goes to whoever sent any of the samples.
        problem = str(error) if isinstance(error, _Missing) else "a field has a value that its column cannot hold"
        raise StoreError(f"a sample cannot be stored: {problem}") from error
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _column(index: int, values: tuple[Any, ...]) -> pa.Array:
    # Most fields are the same in all samples of a batch, or None in all: 0.5 instead of 1 µs a sample.
    if index != _PAYLOAD and values.count(values[0]) == len(values):
        return _same(index, values[0], len(values))
    column = pa.array(values, _TYPES[index])
    if column.null_count and not _NULLABLE[index]:
        raise _Missing(f"it has no {_NAMES[index]}")
    return column


def _same(index: int, value: Any, rows: int) -> pa.Array:
    """A column of one value. Those of small batches are kept: they take two thirds of the time of a single put."""
    known = _KEPT.get((index, value, rows))
    if known is not None:
        return known
    if value is None and not _NULLABLE[index]:
        raise _Missing(f"it has no {_NAMES[index]}")
    type_ = _TYPES[index]
    column = pa.nulls(rows, type_) if value is None else pa.repeat(pa.scalar(value, type_), rows)
    if rows <= _KEPT_ROWS and index not in _CHANGING:
        if len(_KEPT) >= _KEPT_COLUMNS:
            _KEPT.clear()
        _KEPT[index, value, rows] = column
    return column


def facts_of_fields(fields: Sequence[tuple[Any, ...]], first: int) -> Facts:
    """The facts of samples given field by field."""
    rows, times, arrivals = len(fields[0]), fields[2], fields[4]
    return Facts(first, first + rows - 1, rows, min(times), max(times), min(arrivals), max(arrivals))


def number_rows(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """The batch with positions from `first` in place of its own, if it has any."""
    columns = [batch.column(name) for name in _NAMES]
    return pa.RecordBatch.from_arrays([_positions(first, batch.num_rows), *columns], schema=SCHEMA)


def run_of(batch: pa.RecordBatch) -> tuple[bytes, int, int, int] | None:
    """Source, entity, first and last number of a batch whose rows are all to be stored once and count up; else None.

    Looking at the numbers one by one takes 5 µs a row, most of the time of a batch; this takes 0.05.
    """
    rows = batch.num_rows
    ids, entities, numbers = (batch.column(name) for name in ("source_id", "source_eid", "source_sn"))
    if not rows or ids.null_count or entities.null_count or numbers.null_count:
        return None
    if len(pc.unique(ids)) > 1 or len(pc.unique(entities)) > 1 or not pc.all(batch.column("once")).as_py():
        return None
    first: int = numbers[0].as_py()
    if first + rows > 1 << 63 or not numbers.cast(pa.int64(), safe=False).equals(_positions(first, rows)):
        return None
    return ids[0].as_py(), entities[0].as_py(), first, first + rows - 1


def check_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch from elsewhere in the columns of the store: order and exact types put right, the rest refused.

    Raises:
        StoreError: a column is missing, has nulls it must not have, or its octets are not what they claim.
    """
    try:
        batch.validate(full=True)
        columns = []
        for name, type_, nullable in zip(_NAMES, _TYPES, _NULLABLE, strict=True):
            if batch.schema.get_field_index(name) < 0:
                if not nullable:
                    raise StoreError(f"the batch has no column {name!r}; see `elea.store.SCHEMA`")
                columns.append(pa.nulls(batch.num_rows, type_))
                continue
            column = batch.column(name)
            if column.null_count and not nullable:
                raise StoreError(f"column {name!r} has {column.null_count} nulls and must have none")
            columns.append(column if column.type == type_ else column.cast(type_))
        return pa.RecordBatch.from_arrays([_positions(0, batch.num_rows), *columns], schema=SCHEMA)
    except pa.ArrowException as error:
        raise StoreError("the batch does not fit the columns of the store: a column is not what it claims") from error


def facts_of(batch: pa.RecordBatch) -> Facts:
    """The facts of a batch with at least one row."""
    ntp = pc.min_max(batch.column("ntp64"))
    arrival = pc.min_max(batch.column("arrival").cast(pa.int64()))
    position = batch.column("position")
    return Facts(
        position[0].as_py(),
        position[batch.num_rows - 1].as_py(),
        batch.num_rows,
        ntp["min"].as_py(),
        ntp["max"].as_py(),
        arrival["min"].as_py(),
        arrival["max"].as_py(),
    )


def records_of(batch: pa.RecordBatch) -> Iterator[Stored]:
    """Every row as a value; those of some bytes at a time, for a slow reader keeps what was made for it."""
    rows = batch.num_rows
    step = max(1, rows * _BYTES_AT_ONCE // (batch.nbytes + 1))
    for start in range(0, rows, step):
        some = batch.slice(start, step)
        columns = [_values(some, index) for index in range(batch.num_columns)]
        for position, *fields in zip(*columns, strict=True):
            yield Stored(position, Record(*fields))


def record_at(batch: pa.RecordBatch, row: int) -> Stored:
    """One row as a value."""
    # The value of a timestamp is its nanoseconds; as a datetime it would have none.
    position, *fields = [
        column[row].value if index == _ARRIVAL else column[row].as_py() for index, column in enumerate(batch.columns)
    ]
    return Stored(position, Record(*fields))


def _values(batch: pa.RecordBatch, index: int) -> list[Any]:
    column = batch.column(index)
    if index == _ARRIVAL:  # as a timestamp it would come back as a datetime, which has no nanoseconds
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _positions(first: int, rows: int) -> pa.Array:
    # Without numpy this is the quickest way to consecutive numbers: 20 ns each.
    return pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(array("q", range(first, first + rows)))])


def joined_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Samples in blocks as large as they may be; no more than two of these are in memory."""
    some: list[pa.RecordBatch] = []
    rows = octets = 0
    for batch in batches:
        if some and (rows + batch.num_rows > STORE_BLOCK_ROWS or octets + batch.nbytes > STORE_BLOCK_BYTES):
            yield from pieces(pa.concat_batches(some))
            some, rows, octets = [], 0, 0
        some.append(batch)
        rows += batch.num_rows
        octets += batch.nbytes
    if some:
        yield from pieces(pa.concat_batches(some))


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch cut into blocks that are neither too long nor too large."""
    per_row = max(batch.nbytes // batch.num_rows, 1)
    rows = max(1, min(STORE_BLOCK_ROWS, STORE_BLOCK_BYTES // per_row))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
