"""The metadata of Arrow IPC messages, read with suspicion: nothing of it is believed before it was looked at.

An encapsulated message is `FFFFFFFF`, the length of its metadata, the metadata, the body. The metadata is a flatbuffer
(Arrow's `Message.fbs` and `Schema.fbs`). Only what is needed to judge it is read here, by positions that are checked;
nothing is allocated by a count that was not. Numbers come out as they stand; `elea.store.entrance` judges them.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from elea.model.limits import ARROW_HEAD_BYTES, ARROW_NAME_BYTES

__all__ = ["BATCH", "DICTIONARY", "END", "PREFIX", "SCHEMA", "BadArrow", "Batch", "Field", "Message", "head_of"]

SCHEMA: Final = 1
DICTIONARY: Final = 2
BATCH: Final = 3
_KINDS: Final = {0: "nothing", SCHEMA: "a schema", DICTIONARY: "a dictionary", BATCH: "a batch", 4: "a tensor"}

PREFIX: Final = 8
"""Octets before the metadata."""

END: Final = b"\xff\xff\xff\xff\0\0\0\0"
"""What ends a stream."""

_CONTINUATION: Final = 0xFFFFFFFF
_VERSIONS: Final = (3, 4)
"""V4 and V5, which differ in unions only; what is older has other paddings."""

_EXTENSION: Final = b"ARROW:extension"

_HEAD: Final = struct.Struct("<II")
_U16: Final = struct.Struct("<H")
_I16: Final = struct.Struct("<h")
_U32: Final = struct.Struct("<I")
_I32: Final = struct.Struct("<i")
_I64: Final = struct.Struct("<q")


class BadArrow(Exception):
    """Metadata that is none; never leaves the entrance."""


class Field(NamedTuple):
    """One column of a schema."""

    name: str
    nullable: bool
    type: tuple[object, ...]
    """The number of the type in `Schema.fbs`, and what else of it matters."""

    is_dictionary: bool
    children: tuple[Field, ...]


class Batch(NamedTuple):
    """What a batch says of its columns."""

    rows: int
    nodes: tuple[int, ...]
    """Length and nulls of each column, one after the other."""

    buffers: tuple[int, ...]
    """Place in the body and size of each buffer, one after the other."""

    is_compressed: bool
    is_variadic: bool


def head_of(data: bytes | memoryview) -> int:
    """Octets of the metadata that the first eight octets of a message promise; 0 at the end of a stream.

    Raises:
        BadArrow: no message starts like this.
    """
    if len(data) < PREFIX:
        raise BadArrow("it ends in the middle of a message")
    mark, size = _HEAD.unpack_from(data)
    if mark != _CONTINUATION:
        raise BadArrow("no Arrow message is where one should begin")
    if size > ARROW_HEAD_BYTES:
        raise BadArrow(f"a message has {size} octets of metadata, the limit is {ARROW_HEAD_BYTES}")
    return int(size)


class Message:
    """The metadata of one message."""

    __slots__ = ("_at", "body", "data", "kind")

    def __init__(self, data: bytes) -> None:
        """
        Raises:
            BadArrow: it is none of a schema, a dictionary or a batch.
        """
        self.data = data
        try:
            root = _U32.unpack_from(data)[0]
            version = self._number(root, 0, _I16)
            kind = self._byte(root, 1)
            self.body = self._number(root, 3, _I64)
            self._at = self._table(root, 2)
        except struct.error:
            raise BadArrow("the metadata of a message are cut off") from None
        if version not in _VERSIONS:
            raise BadArrow(f"the metadata have version {version}, not {_VERSIONS[-1]}")
        if kind not in (SCHEMA, DICTIONARY, BATCH) or not self._at:
            raise BadArrow(f"a message has {_KINDS.get(kind, 'something unknown')} in it")
        if self.body < 0:
            raise BadArrow(f"a body has {self.body} octets")
        self.kind = kind

    # -- schemas ------------------------------------------------------------------------------------------------------

    def fields(self, most: int, depth: int = 1) -> tuple[Field, ...]:
        """The columns of a schema, at most so many, and so deep within each other.

        Raises:
            BadArrow: there are more, or what is said of them makes no sense.
        """
        try:
            if self._number(self._at, 0, _I16) != 0:
                raise BadArrow("its numbers are big-endian")
            if _EXTENSION in self.data:  # wherever it stands; looking at each note of each column could take long
                raise BadArrow("it has columns of an extension type")
            found, _ = self._fields(self._at, 1, most, depth)
        except struct.error:
            raise BadArrow("the schema is cut off") from None
        return found

    def _fields(self, table: int, index: int, most: int, depth: int) -> tuple[tuple[Field, ...], int]:
        at, count = self._vector(table, index)
        if count > most:
            raise BadArrow(f"it has more columns than the {most} that there may be")
        if count and not depth:
            raise BadArrow("it has columns within columns, more than there may be")
        most -= count
        found = []
        for each in range(at, at + 4 * count, 4):
            field = each + _U32.unpack_from(self.data, each)[0]
            children, most = self._fields(field, 5, most, depth - 1)
            name = self._text(field, 0)
            nullable, dictionary = self._byte(field, 1) != 0, self._table(field, 4) != 0
            found.append(Field(name, nullable, self._type(field), dictionary, children))
        return tuple(found), most

    def _type(self, field: int) -> tuple[object, ...]:
        number, at = self._byte(field, 2), self._table(field, 3)
        if not at:
            raise BadArrow("a column has no type")
        if number == 2:
            return number, self._number(at, 0, _I32), self._byte(at, 1) != 0
        if number == 10:
            return number, self._number(at, 0, _I16), self._text(at, 1)
        return (number,)

    # -- batches ------------------------------------------------------------------------------------------------------

    def batch(self, nodes: int, buffers: int) -> Batch:
        """What a batch, or the batch of a dictionary, says of its columns, at most so many of both.

        Raises:
            BadArrow: there are more, or it makes no sense.
        """
        try:
            at = self._at if self.kind == BATCH else self._table(self._at, 1)
            if not at:
                raise BadArrow("a dictionary has no values")
            columns, places = self._pairs(at, 1, nodes, "columns"), self._pairs(at, 2, buffers, "buffers")
            variadic = self._vector(at, 4)[1] > 0
            return Batch(self._number(at, 0, _I64), columns, places, self._table(at, 3) != 0, variadic)
        except struct.error:
            raise BadArrow("the metadata of a batch are cut off") from None

    def _pairs(self, table: int, index: int, most: int, what: str) -> tuple[int, ...]:
        at, count = self._vector(table, index)
        if count > most:
            raise BadArrow(f"a batch has {count} {what}, its schema has {most}")
        return struct.unpack_from(f"<{2 * count}q", self.data, at) if count else ()

    # -- flatbuffers: positions are added up from unsigned numbers, so none is before the start ------------------------

    def _place(self, table: int, index: int) -> int:
        """Where a field of a table stands; 0 if it has none."""
        data = self.data
        entries = table - _I32.unpack_from(data, table)[0]
        if entries < 0:
            raise BadArrow("a table of the metadata points before their start")
        if 4 + 2 * index >= _U16.unpack_from(data, entries)[0]:
            return 0
        offset = _U16.unpack_from(data, entries + 4 + 2 * index)[0]
        return table + offset if offset else 0

    def _number(self, table: int, index: int, form: struct.Struct) -> int:
        at = self._place(table, index)
        return int(form.unpack_from(self.data, at)[0]) if at else 0

    def _byte(self, table: int, index: int) -> int:
        at = self._place(table, index)
        if at >= len(self.data):
            raise BadArrow("a number of the metadata is behind their end")
        return self.data[at] if at else 0

    def _table(self, table: int, index: int) -> int:
        at = self._place(table, index)
        return at + int(_U32.unpack_from(self.data, at)[0]) if at else 0

    def _vector(self, table: int, index: int) -> tuple[int, int]:
        at = self._table(table, index)
        return (at + 4, int(_U32.unpack_from(self.data, at)[0])) if at else (0, 0)

    def _text(self, table: int, index: int) -> str:
        at, size = self._vector(table, index)
        if size > ARROW_NAME_BYTES:
            raise BadArrow(f"a name has {size} octets, the limit is {ARROW_NAME_BYTES}")
        try:
            return self.data[at : at + size].decode()
        except UnicodeDecodeError:
            raise BadArrow("a name is no text") from None
