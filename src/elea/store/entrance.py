"""The one entrance for Arrow from outside: requests, answers of stores, files to import, payloads.

Arrow believes what a stream says of itself: a wrong offset is read wherever it leads, a few compressed octets become
gigabytes, a schema brings types nobody expects. So streams of samples are not given to Arrow's own reader. Their
metadata are read here (`arrowframes`), counts and sizes are bounded, columns have to be those of a `Form`; arrays are
made over the octets that came, without a copy, and validated in full before anybody sees them. Payloads may have
columns of any kind, so Arrow reads them, after their metadata have been judged here, and they too are validated.
`tests/unit/store/test_entrance.py` sees to it that there is no other way in.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import ArrowRefused
from elea.model.limits import (
    ARROW_BATCHES,
    ARROW_DEPTH,
    ARROW_FIELDS,
    ENCODING_SCHEMA_BYTES,
    KEY_EXPR_BYTES,
    MAX_MESSAGE,
    NODE_ID_BYTES,
)
from elea.store import arrowframes as frames
from elea.store.arrowframes import BadArrow
from elea.store.columns import SCHEMA

__all__ = [
    "ANSWER",
    "CUT_OFF",
    "FILE",
    "Form",
    "read_block",
    "read_file",
    "read_row",
    "read_rows",
    "read_stream",
    "schema_size",
]

_log: Final = logging.getLogger("elea.store")

_TYPES: Final[dict[tuple[object, ...], pa.DataType]] = {
    **{(2, bits, signed): pa.type_for_alias(f"{'' if signed else 'u'}int{bits}")
       for bits in (8, 16, 32, 64) for signed in (False, True)},
    (4,): pa.binary(), (5,): pa.string(), (6,): pa.bool_(), (19,): pa.large_binary(), (20,): pa.large_string(),
    (10, 3, "UTC"): pa.timestamp("ns", "UTC"),
}  # fmt: skip
"""By what `Schema.fbs` calls them. Types that no sample has are not among them: nothing nested, no dictionaries."""

_BUFFERS: Final = {pa.binary(): 3, pa.string(): 3, pa.large_binary(): 3, pa.large_string(): 3}
_EMPTY: Final = pa.py_buffer(b"")
_STEP: Final = 16 << 20
_SCHEMAS: Final = 64
_STAMP: Final = ("ntp64", "stamp_id")

CUT_OFF: Final = "it ends in the middle of a message"
"""The problem of a file whose writer was stopped."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """What a stream of samples has to be."""

    what: str
    """What it is called when it is refused."""

    columns: Mapping[str, pa.DataType]
    """The columns there may be, with the types they are given out in. Numbers and texts of another width are cast."""

    required: frozenset[str]
    whole: frozenset[str]
    """Columns without nulls."""

    rows: int | None = None
    """Samples of all batches. Without it the octets that came are the bound: each has a key, and that an offset."""

    batches: int = ARROW_BATCHES
    is_kept: bool = True
    """Whether it goes into a log. Then its values have to be such that the wire can carry them: a sample that cannot be
    sent on is an error for everybody who reads it."""


_LENGTHS: Final[Mapping[str, tuple[int, int]]] = {
    "key": (1, KEY_EXPR_BYTES),
    "stamp_id": (1, NODE_ID_BYTES),
    "source_id": (1, NODE_ID_BYTES),
    "schema": (0, ENCODING_SCHEMA_BYTES),
}
"""The least and most octets of the values of a column."""

_NOT_NULL: Final = frozenset(one.name for one in SCHEMA if not one.nullable)
_COLUMNS: Final = {one.name: one.type for one in SCHEMA}

ANSWER: Final = Form("the answer of a store", _COLUMNS, frozenset(_COLUMNS), _NOT_NULL, is_kept=False)
"""A range of a log."""

FILE: Final = Form("the Arrow IPC stream", _COLUMNS, _NOT_NULL - {"position"}, _NOT_NULL)
"""An export of a log, or one of its segments, to be imported."""


def read_stream(data: bytes, form: Form) -> list[pa.RecordBatch]:
    """The batches of a stream that is whole in memory; they lie in its octets.

    Raises:
        ArrowRefused: it is not what it has to be; nothing of it was used.
    """
    try:
        whole = pa.py_buffer(data)
        reader = _Reader(form)
        at = 0
        while size := frames.head_of(data[at : at + frames.PREFIX]):
            start = at + frames.PREFIX
            message = frames.Message(bytes(data[start : start + size]))
            start += size
            if message.body > len(data) - start:
                raise BadArrow(f"a body should have {message.body} octets, and there are {max(len(data) - start, 0)}")
            reader.take(message, whole.slice(start, message.body))
            at = start + message.body
        if at + len(frames.END) != len(data):
            raise BadArrow(f"there are {len(data) - at - len(frames.END)} octets behind its end")
        return reader.finish()
    except BadArrow as bad:
        raise ArrowRefused(form.what, str(bad)) from bad


def read_file(source: BinaryIO, form: Form = FILE) -> Iterator[pa.RecordBatch]:
    """The batches of a stream in a file, one at a time. It may lack its end, as segments do.

    Raises:
        ArrowRefused: it is not what it has to be, from here on; the batches before were.
    """
    reader = _Reader(form)
    try:
        while head := _read(source, frames.PREFIX, or_end=True):
            size = frames.head_of(head)
            if not size:
                break
            message = frames.Message(_read(source, size))
            if message.body > MAX_MESSAGE:
                raise BadArrow(f"a body has {message.body} octets, the limit is {MAX_MESSAGE}")
            reader.take(message, pa.py_buffer(_read(source, message.body)))
            yield from reader.ready()
        reader.finish()
    except BadArrow as bad:
        raise ArrowRefused(form.what, str(bad)) from bad


def read_block(buffer: pa.Buffer, *, is_ours: bool = False) -> pa.RecordBatch:
    """The batch of one message, of a block that another process wrote, in the columns of the log.

    If it `is_ours`, and nobody but this user can have written it, it is believed: validating doubles the time it takes.

    Raises:
        ArrowRefused: it is not what it has to be.
        ArrowException: the same of ours.
    """
    if is_ours:
        return pa.ipc.read_record_batch(pa.ipc.read_message(buffer), SCHEMA)
    form = ANSWER
    try:
        data = memoryview(buffer)
        size = frames.head_of(data[: frames.PREFIX])
        start = frames.PREFIX + size
        message = frames.Message(bytes(data[frames.PREFIX : start]))
        if message.kind != frames.BATCH or message.body != len(data) - start:
            raise BadArrow("it is not one batch")
        reader = _Reader(form, _LOG)
        reader.take(message, buffer.slice(start))
        (batch,) = reader.finish()
        return batch
    except BadArrow as bad:
        raise ArrowRefused(form.what, str(bad)) from bad


def _read(source: BinaryIO, size: int, *, or_end: bool = False) -> bytes:
    """So many octets, a few at a time: a promise of gigabytes makes no room for them."""
    parts: list[bytes] = []
    left = size
    while left and (part := source.read(min(left, _STEP))):
        parts.append(part)
        left -= len(part)
    if left and not (or_end and left == size):
        raise BadArrow(CUT_OFF)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class _Reader:
    """Takes the messages of a stream one by one."""

    __slots__ = ("_batches", "_columns", "_count", "_form", "_rows")

    def __init__(self, form: Form, columns: tuple[_Column, ...] | None = None) -> None:
        self._form = form
        self._columns = columns
        self._batches: list[pa.RecordBatch] = []
        self._count = 0
        self._rows = 0

    def take(self, message: frames.Message, body: pa.Buffer) -> None:
        if message.kind == frames.SCHEMA and self._columns is None:
            self._columns = _columns_of(message.data, self._form)
        elif message.kind == frames.BATCH and self._columns is not None:
            self._count += 1
            if self._count > self._form.batches:
                raise BadArrow(f"it has more than {self._form.batches} batches")
            self._batches.append(self._batch(message, body, self._columns))
        else:
            raise BadArrow("a schema and then batches are expected, and something else is there")

    def ready(self) -> list[pa.RecordBatch]:
        """What has been taken since it was asked for last."""
        found, self._batches = self._batches, []
        return found

    def finish(self) -> list[pa.RecordBatch]:
        if self._columns is None:
            raise BadArrow("it has no schema")
        return self.ready()

    def _batch(self, message: frames.Message, body: pa.Buffer, columns: tuple[_Column, ...]) -> pa.RecordBatch:
        form, wide = self._form, len(columns)
        buffers = sum(column.buffers for column in columns)
        found = message.batch(wide, buffers)
        if found.is_compressed:
            raise BadArrow("it is compressed; send it without compression")
        if len(found.nodes) != 2 * wide or len(found.buffers) != 2 * buffers or found.is_variadic:
            raise BadArrow("a batch does not have the columns of its schema")
        rows = found.rows
        if not 0 <= rows <= 8 * body.size or any(one != rows for one in found.nodes[::2]):
            raise BadArrow("the columns of a batch do not have its rows")
        self._rows += rows
        if form.rows is not None and self._rows > form.rows:
            raise BadArrow(f"it has {self._rows} samples, the limit is {form.rows}")
        _check_places(found.buffers, body.size)
        arrays = {}
        at = 0
        for column in columns:
            places = found.buffers[at : at + 2 * column.buffers]
            arrays[column.name] = _array(column, rows, places, body, form)
            at += 2 * column.buffers
        if form.columns is _COLUMNS and wide == len(_COLUMNS):
            return pa.RecordBatch.from_arrays([arrays[one] for one in _COLUMNS], schema=SCHEMA)
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


class _Column(NamedTuple):
    """A column as it comes."""

    name: str
    type: pa.DataType
    buffers: int
    cast: pa.DataType | None
    """The type it is given out in, if that is another."""

    is_whole: bool


def _column(name: str, type_: pa.DataType, form: Form) -> _Column:
    wanted = form.columns[name]
    return _Column(name, type_, _BUFFERS.get(type_, 2), None if type_ == wanted else wanted, name in form.whole)


@lru_cache(maxsize=_SCHEMAS)
def _columns_of(metadata: bytes, form: Form) -> tuple[_Column, ...]:
    """The columns of a schema. All streams of one sender have the same one, and looking at it takes 50 µs."""
    message = frames.Message(metadata)
    if message.body:
        raise BadArrow("its schema has a body")
    found: dict[str, _Column] = {}
    for one in message.fields(len(form.columns)):
        if one.name not in form.columns:
            raise BadArrow(f"no sample has a column {one.name[:40]!r}")
        if one.name in found:
            raise BadArrow(f"it has two columns {one.name!r}")
        type_ = None if one.is_dictionary else _TYPES.get(one.type)
        wanted = form.columns[one.name]
        if type_ is None or _family(type_) != _family(wanted):
            raise BadArrow(f"column {one.name!r} is not of type {wanted}")
        found[one.name] = _column(one.name, type_, form)
    missing = [name for name in form.columns if name in form.required and name not in found]
    if missing:
        raise BadArrow(f"it has no column {missing[0]!r}")
    if (_STAMP[0] in found) != (_STAMP[1] in found):
        raise BadArrow(f"it has only one of the columns {_STAMP[0]!r} and {_STAMP[1]!r}")
    return tuple(found.values())


def _family(type_: pa.DataType) -> object:
    """Types that can stand for each other as far as the values fit."""
    if pa.types.is_integer(type_):
        return "number"
    if type_ in (pa.string(), pa.large_string()):
        return "text"
    return "octets" if type_ in (pa.binary(), pa.large_binary()) else type_


def _check_places(places: tuple[int, ...], body: int) -> None:
    """Buffers are one behind the other in the body: none lies in another, which would multiply octets."""
    at = 0
    for start, size in zip(places[::2], places[1::2], strict=True):
        if size and (size < 0 or start < at or start > body - size):
            raise BadArrow(f"a buffer of {size} octets at {start} is not in its place in a body of {body}")
        if size:
            at = start + size


def _array(column: _Column, rows: int, places: tuple[int, ...], body: pa.Buffer, form: Form) -> Any:
    name = column.name
    if not rows:
        return pa.array([], form.columns[name])
    values = [body.slice(places[at], places[at + 1]) if places[at + 1] else _EMPTY for at in range(2, len(places), 2)]
    valid = body.slice(places[0], places[1]) if places[1] else None
    try:
        array = pa.Array.from_buffers(column.type, rows, [valid, *values], 0 if valid is None else -1)
        array.validate(full=True)
        if column.cast is not None:
            array = array.cast(column.cast)
    except (pa.ArrowException, ValueError, OverflowError, MemoryError) as error:
        # What Arrow says may quote what it found. It is for us, not for whoever sent it.
        _log.info("arrow refused: what=%s column=%s problem=%s", form.what, name, error)
        raise BadArrow(f"the octets of column {name!r} are not what they claim") from error
    if valid is not None and column.is_whole and array.null_count:
        raise BadArrow(f"column {name!r} has nulls and must have none")
    if form.is_kept:
        _check_values(name, array)
    return array


def _check_values(name: str, array: Any) -> None:
    if name == "kind" and (pc.max(array).as_py() or 0) > 1:
        raise BadArrow("a kind is 0 (put) or 1 (delete)")
    if name in _LENGTHS:
        least, most = _LENGTHS[name]
        bounds = pc.min_max(pc.binary_length(array)).as_py()
        if bounds["min"] is not None and not least <= bounds["min"] <= bounds["max"] <= most:
            raise BadArrow(f"values of column {name!r} have {least} to {most} octets")


_LOG: Final = tuple(_column(name, type_, ANSWER) for name, type_ in _COLUMNS.items())


# -- payloads ---------------------------------------------------------------------------------------------------------

_WHAT: Final = "an Arrow payload"
_ROW_BUFFERS: Final = {
    1: 0, 2: 2, 3: 2, 4: 3, 5: 3, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2,
    12: 2, 13: 1, 15: 2, 16: 1, 17: 2, 18: 2, 19: 3, 20: 3, 21: 2,
}  # fmt: skip
"""Types of `Schema.fbs` that a payload may have, and their buffers. Not among them: unions, runs, views, intervals."""

_KNOWN: Final = 1_024


class _Shape(NamedTuple):
    """What the batches of a schema consist of."""

    nodes: int
    buffers: int
    dictionaries: int


def schema_size(data: bytes) -> int:
    """Octets of the schema that a payload begins with, to its body; 0 if it begins with none."""
    try:
        size = frames.head_of(data[: frames.PREFIX])
    except BadArrow:
        return 0
    return frames.PREFIX + size if size and frames.PREFIX + size <= len(data) else 0


def read_rows(head: bytes, bodies: Sequence[pa.Buffer]) -> pa.Table:
    """The rows of many payloads at once: their common schema, and of each what stands between it and the end.

    Raises:
        ArrowRefused: one of them is not one batch of one row.
    """
    try:
        shape = _shape(head)
        if shape.dictionaries:
            raise BadArrow("it has dictionaries, which are read one by one")
        for body in bodies:
            data = memoryview(body)
            start = frames.PREFIX + frames.head_of(data[: frames.PREFIX])
            _check_row(head, bytes(data[frames.PREFIX : start]), len(data) - start)
        return _validated(b"".join([head, *bodies, frames.END]), len(bodies))
    except BadArrow as bad:
        raise ArrowRefused(_WHAT, str(bad)) from bad


def read_row(data: bytes) -> pa.Table:
    """The row of one payload.

    Raises:
        ArrowRefused: it is not a schema, its dictionaries, one batch of one row, and the end.
    """
    try:
        size = frames.head_of(data[: frames.PREFIX])
        at = frames.PREFIX + size
        head = data[:at]
        if not size:
            raise BadArrow("it has no schema")
        left = _shape(head).dictionaries
        rows = 0
        while size := frames.head_of(data[at : at + frames.PREFIX]):
            start = at + frames.PREFIX + size
            metadata = data[at + frames.PREFIX : start]
            message = frames.Message(metadata)
            at = start + message.body
            if at > len(data):
                raise BadArrow(CUT_OFF)
            if message.kind == frames.DICTIONARY and left and not rows:
                _check_sizes(message.batch(1, 3), message.body)
                left -= 1
            elif message.kind == frames.BATCH and not rows:
                _check_row(head, metadata, message.body)
                rows = 1
            else:
                raise BadArrow("it is not one row")
        if not rows or at + len(frames.END) != len(data):
            raise BadArrow("it is not one row")
        return _validated(data, 1)
    except BadArrow as bad:
        raise ArrowRefused(_WHAT, str(bad)) from bad


def _validated(data: bytes, rows: int) -> pa.Table:
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
            batches = list(stream)
        for batch in batches:
            batch.validate(full=True)
        if len(batches) != rows or any(batch.num_rows != 1 for batch in batches):
            raise BadArrow("it is not one row")
        return pa.Table.from_batches(batches)
    except (pa.ArrowException, OSError, EOFError, ValueError, OverflowError, MemoryError) as error:
        raise BadArrow("its octets are not what they claim") from error


@lru_cache(maxsize=_SCHEMAS)
def _shape(head: bytes) -> _Shape:
    message = frames.Message(head[frames.PREFIX :])
    if message.kind != frames.SCHEMA or message.body:
        raise BadArrow("it does not begin with a schema")
    return _shape_of(message.fields(ARROW_FIELDS, ARROW_DEPTH))


def _shape_of(fields: Sequence[frames.Field]) -> _Shape:
    nodes = buffers = dictionaries = 0
    for one in fields:
        number = one.type[0]
        if not isinstance(number, int) or number not in _ROW_BUFFERS:
            raise BadArrow(f"column {one.name[:40]!r} is of a type that payloads do not have")
        if one.is_dictionary:
            if one.children:
                raise BadArrow(f"column {one.name[:40]!r} has a dictionary of columns")
            within = _Shape(1, 2, 1)
        else:
            inner = _shape_of(one.children)
            within = _Shape(1 + inner.nodes, _ROW_BUFFERS[number] + inner.buffers, inner.dictionaries)
        nodes += within.nodes
        buffers += within.buffers
        dictionaries += within.dictionaries
    return _Shape(nodes, buffers, dictionaries)


@lru_cache(maxsize=_KNOWN)
def _check_row(head: bytes, metadata: bytes, body: int) -> None:
    """Raises BadArrow. Payloads of one sender mostly differ in their bodies only: looking at each takes 10 µs."""
    shape = _shape(head)
    message = frames.Message(metadata)
    if message.kind != frames.BATCH or message.body != body:
        raise BadArrow("it is not one row")
    batch = message.batch(shape.nodes, shape.buffers)
    if batch.rows != 1:
        raise BadArrow(f"it has {batch.rows} rows, a sample is one")
    if len(batch.nodes) != 2 * shape.nodes or len(batch.buffers) != 2 * shape.buffers:
        raise BadArrow("its batch does not have the columns of its schema")
    _check_sizes(batch, body)


def _check_sizes(batch: frames.Batch, body: int) -> None:
    if batch.is_compressed:
        raise BadArrow("it is compressed; send it without compression")
    if batch.is_variadic:
        raise BadArrow("it has views")
    # Values take a bit at least. Those that take none (nulls, lists of a fixed size of them) could be any number.
    if any(not 0 <= length <= 8 * body + 1 for length in (batch.rows, *batch.nodes[::2])):
        raise BadArrow("a column has more values than its octets can have")
    _check_places(batch.buffers, body)
