"""The attachments of uProtocol messages, a column at a time: what stands in each, without an object a row.

Messages of one topic, or of one method and client, differ in their identifiers only. So identifiers are read from
where they stand in the bytes, all at once, and others are put in their place; of what is left there are few different
ones, and each of those is read once. What does not have its identifiers where everybody writes them is read by itself.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import DecodeError
from elea.uprotocol import UAttributes, new_uuid
from elea.uprotocol.attachment import read_checked

__all__ = ["AttributeColumns", "Distinct", "read_attachments", "uuid_texts"]

# An attachment as everybody writes it: version, head of the identifier, its halves, the type …
_ID_HEAD: Final = np.frombuffer(bytes.fromhex("010a1209"), np.uint8)
_ID_AT: Final = len(_ID_HEAD)
_REQID_HEAD: Final = bytes.fromhex("4a1209")
_LSB: Final = 0x11
_HALF: Final = 8
_SECOND: Final = _HALF + 1
"""From the first half of an identifier to the second."""

_ID_BYTES: Final = _SECOND + _HALF
_TYPE_AT: Final = _ID_AT + _ID_BYTES
_RESPONSE: Final = np.frombuffer(bytes.fromhex("1003"), np.uint8)

# Nobody can know these, so whoever reads one of them has read the place it was put in.
_OUR_ID: Final = new_uuid()
_OUR_REQID: Final = new_uuid()

_DASHES: Final = (8, 13, 18, 23)
_DIGITS: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_PLACES: Final = np.array([at for at in range(36) if at not in _DASHES])


class Distinct(NamedTuple):
    """What some attachments say but for their identifiers, and what is wrong with it."""

    attributes: UAttributes | None
    problem: str


class AttributeColumns(NamedTuple):
    """What a column of attachments says."""

    distinct: list[Distinct]
    places: Any
    """For each row, which of `distinct` it is."""

    ids: Any
    """Rows of two numbers of 64 bits; 0 where there is none."""

    reqids: Any


def read_attachments(attachments: pa.Array) -> AttributeColumns:
    """Everything that attachments say; a null is an attachment that is not there."""
    reading = _Reading(attachments)
    reading.take_ids()
    reading.take_reqids()
    codes = pc.dictionary_encode(reading.column())
    left = codes.dictionary.to_pylist()
    distinct = [_read(data) for data in left]
    # The last stands for rows that are read by themselves.
    doubtful = np.array([*(not _is_ours(*pair) for pair in zip(left, distinct, strict=True)), True])
    places = pc.fill_null(codes.indices, len(distinct)).to_numpy().astype(np.int64)
    ids, reqids = reading.ids, reading.reqids
    known: dict[bytes | None, int] = {}
    for row in np.flatnonzero(doubtful[places]).tolist():
        data = attachments[row].as_py()
        if data not in known:
            known[data] = len(distinct)
            distinct.append(_read(data))
        places[row] = known[data]
        attributes = distinct[known[data]].attributes
        ids[row] = (attributes and attributes.id) or (0, 0)
        reqids[row] = (attributes and attributes.reqid) or (0, 0)
    return AttributeColumns(distinct, places, ids, reqids)


def _read(data: bytes | None) -> Distinct:
    if data is None:
        return Distinct(None, "no attributes")
    try:
        return Distinct(*read_checked(data))
    except DecodeError as error:
        return Distinct(None, str(error))


def _is_ours(data: bytes, read: Distinct) -> bool:
    """Whether the identifiers that were put in are those that are read; else they stood for something else."""
    put = _OUR_REQID if _OUR_REQID.msb.to_bytes(_HALF, "little") in data else None
    found = read.attributes
    return found is not None and found.id == _OUR_ID and found.reqid == put


class _Reading:
    """The bytes of a column, in which identifiers are replaced as they are taken."""

    def __init__(self, attachments: pa.Array) -> None:
        rows = len(attachments)
        _, offsets, data = attachments.buffers() if rows else (None, bytes(4), None)
        self._offsets = np.frombuffer(offsets, np.int32)[attachments.offset : attachments.offset + rows + 1]
        self._starts = self._offsets[:-1].astype(np.int64)
        self._sizes = np.diff(self._offsets)
        self._data = np.frombuffer(data or b"", np.uint8).copy()
        self._given = attachments
        self.ids = np.zeros((rows, 2), np.uint64)
        self.reqids = np.zeros((rows, 2), np.uint64)
        self._by_itself = np.ones(rows, bool)

    def column(self) -> pa.Array:
        """The column as it is now; null where a row has to be read by itself."""
        offsets = pa.py_buffer(np.ascontiguousarray(self._offsets))
        parts = [_bitmap(~self._by_itself), offsets, pa.py_buffer(self._data)]
        return pa.Array.from_buffers(pa.binary(), len(self._starts), parts)

    def take_ids(self) -> None:
        """Read the identifiers of messages that have them in their usual place."""
        rows = np.flatnonzero(self._sizes >= _TYPE_AT)
        at = self._starts[rows]
        usual = (self._data[at[:, None] + np.arange(_ID_AT)] == _ID_HEAD).all(axis=1)
        usual &= self._data[at + _ID_AT + _HALF] == _LSB
        if self._given.null_count:
            usual &= self._given.is_valid().to_numpy(zero_copy_only=False)[rows]
        self._take(rows[usual], at[usual] + _ID_AT, self.ids, _OUR_ID)

    def take_reqids(self) -> None:
        """The same for the requests that responses answer."""
        rows = np.flatnonzero(~self._by_itself & (self._sizes >= _TYPE_AT + 2))
        at = self._starts[rows]
        answers = (self._data[at[:, None] + _TYPE_AT + np.arange(2)] == _RESPONSE).all(axis=1)
        rows, at = rows[answers], at[answers]
        if not len(rows):
            return
        found = pc.find_substring(self._given.take(pa.array(rows)), _REQID_HEAD.decode("latin-1"))
        place = at + found.to_numpy(zero_copy_only=False) + len(_REQID_HEAD)
        inside = (found.to_numpy(zero_copy_only=False) >= 0) & (place + _ID_BYTES <= at + self._sizes[rows])
        usual = inside.copy()
        usual[inside] = self._data[place[inside] + _HALF] == _LSB
        self._by_itself[rows] = True
        self._take(rows[usual], place[usual], self.reqids, _OUR_REQID)

    def _take(self, rows: Any, at: Any, into: Any, put: tuple[int, int]) -> None:
        """Read valid identifiers that begin at `at`, and put another in their place."""
        high, low = (at + half for half in (0, _SECOND))
        span = np.arange(_HALF)
        taken = np.empty((len(rows), 2), "<u8")
        for column, begin in enumerate((high, low)):
            taken[:, column] = self._data[begin[:, None] + span].view("<u8")[:, 0]
        valid = (taken[:, 0] & np.uint64(0xF000) == 0x7000) & (taken[:, 1] >> np.uint64(62) == 2)
        into[rows[valid]] = taken[valid]
        for begin, half in zip((high, low), put, strict=True):
            self._data[begin[valid][:, None] + span] = np.frombuffer(half.to_bytes(_HALF, "little"), np.uint8)
        self._by_itself[rows[valid]] = False


def _bitmap(valid: Any) -> Any:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def uuid_texts(ids: Any) -> pa.Array:
    """Identifiers as text; null where there is none."""
    rows = len(ids)
    data = ids.astype(">u8").view(np.uint8).reshape(rows, 16)
    text = np.full((rows, 36), ord("-"), np.uint8)
    digits = np.empty((rows, 32), np.uint8)
    digits[:, 0::2] = _DIGITS[data >> 4]
    digits[:, 1::2] = _DIGITS[data & 15]
    text[:, _PLACES] = digits
    offsets = np.arange(0, 36 * (rows + 1), 36, dtype=np.int32)
    valid = _bitmap((ids != 0).any(axis=1))
    return pa.Array.from_buffers(pa.string(), rows, [valid, pa.py_buffer(offsets), pa.py_buffer(text)])
