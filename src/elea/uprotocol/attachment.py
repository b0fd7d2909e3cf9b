"""Attachments: the version byte and the attributes behind it, as they travel with a put.

All messages of one topic, and all calls of one method by one client, differ in their identifiers only. So what stands
around these is read, written and judged once, and looked up afterwards. `read_attributes` and `write_attributes` are
the plain way, which tests compare it with.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, NamedTuple

from elea.model.errors import DecodeError, Malformed, Truncated
from elea.model.limits import UATTRIBUTES_BYTES, UATTRIBUTES_REMEMBERED, UATTRIBUTES_REMEMBERED_BYTES
from elea.uprotocol.attributes import UAttributes, read_attributes, write_attributes
from elea.uprotocol.uuid7 import UUID
from elea.uprotocol.validation import id_problem, problem_of, problem_without_ids

__all__ = [
    "VERSION",
    "Known",
    "Written",
    "read_attachment",
    "read_checked",
    "read_known",
    "write_attachment",
    "write_checked",
    "written",
]

VERSION: Final = 1
DIALECT: Final = "uprotocol"

_HEAD: Final = bytes((VERSION,))
_ID: Final = Struct("<3sQcQ")
_ID_HEAD: Final = b"\x0a\x12\x09"
_REQID_HEAD: Final = b"\x4a\x12\x09"
_LSB: Final = b"\x11"
_START: Final = 1 + _ID.size
_RESPONSE: Final = b"\x10\x03"
_SOME_ID: Final = UUID(0x7000, 1 << 63)
_TUPLE: Final = tuple.__new__


class Known:
    """What stands around the identifiers of a message."""

    __slots__ = ("after", "before", "keys", "problem")

    def __init__(self, attributes: UAttributes) -> None:
        self.before: tuple[Any, ...] = tuple(attributes[1:8])
        """The fields from type to commstatus."""
        self.after: tuple[Any, ...] = tuple(attributes[9:])
        """Those from token to payload_format."""
        self.problem = problem_without_ids(attributes)
        self.keys: set[str] = set()
        """Some of the keys that such messages may come by (`elea.uprotocol.received`)."""


class Written(NamedTuple):
    """The same as bytes."""

    before: bytes
    after: bytes
    problem: str
    """For which such a message may not be sent."""

    def attachment(self, id: UUID, reqid: UUID | None) -> bytes:
        """The attachment of a message with valid identifiers."""
        first = _ID.pack(_ID_HEAD, id[0], _LSB, id[1])
        if reqid is None:
            return _HEAD + first + self.before
        return b"".join((_HEAD, first, self.before, _ID.pack(_REQID_HEAD, reqid[0], _LSB, reqid[1]), self.after))


_read: Final[dict[bytes | tuple[bytes, bytes], Known]] = {}
_written: Final[dict[tuple[Any, ...], Written]] = {}


def read_attachment(data: bytes) -> UAttributes:
    """The attributes, whether or not they are valid.

    Raises:
        DecodeError: another version, or no protobuf.
    """
    return read_known(data)[0]


def read_checked(data: bytes) -> tuple[UAttributes, str]:
    """The attributes, and everything that is wrong with them (empty if nothing is).

    Raises:
        DecodeError: another version, or no protobuf.
    """
    return read_known(data)[:2]


def read_known(data: bytes) -> tuple[UAttributes, str, Known | None]:
    """The same, and what is known of all that differ in their identifiers only.

    Raises:
        DecodeError: another version, or no protobuf.
    """
    if len(data) >= _START and data[0] == VERSION:
        head, msb, middle, lsb = _ID.unpack_from(data, 1)
        if head == _ID_HEAD and middle == _LSB:
            rest = data[_START:]
            id = UUID(msb, lsb)
            known = _read.get(rest)
            if known is not None:
                made = _TUPLE(UAttributes, (id, *known.before, None, *known.after))
                if msb & 0xF000 == 0x7000 and lsb >> 62 == 2:
                    return made, known.problem, known
                return made, _joined(id_problem("id", id), known.problem), None
            if rest.startswith(_RESPONSE):
                found = _read_response(id, rest)
                if found is not None:
                    return found
    return _read_plainly(data)


def _read_plainly(data: bytes) -> tuple[UAttributes, str, Known | None]:
    if len(data) < 2:
        raise Truncated(DIALECT, len(data), 2 - len(data), 0)
    if data[0] != VERSION:
        raise Malformed(DIALECT, 0, f"version {data[0]} of the attributes is not {VERSION}")
    if len(data) > UATTRIBUTES_BYTES:
        raise Malformed(DIALECT, 0, f"attributes of {len(data)} octets are above the limit of {UATTRIBUTES_BYTES}")
    try:
        attributes = read_attributes(data[1:])
    except DecodeError as error:
        raise error.moved(1) from None
    rest = data[_START:]
    if attributes.reqid is None and data[1:4] == _ID_HEAD and _is_short(rest) and _starts_anew(rest):
        _remember(rest, attributes)
    return attributes, problem_of(attributes), None


def _is_short(*pieces: bytes) -> bool:
    return sum(map(len, pieces)) <= UATTRIBUTES_REMEMBERED_BYTES


def _starts_anew(rest: bytes) -> bool:
    """Whether what follows an identifier stands for itself: it is no further part of the identifier."""
    try:
        return read_attributes(rest).id is None
    except DecodeError:
        return False


def _read_response(id: UUID, rest: bytes) -> tuple[UAttributes, str, Known | None] | None:
    """The same for a response, which has a second identifier in its middle; None if it has not."""
    at = rest.find(_REQID_HEAD)
    if at < 0 or len(rest) < at + _ID.size or rest[at + 11] != 0x11:
        return None
    end = at + _ID.size
    pieces = rest[:at], rest[end:]
    known = _read.get(pieces)
    if known is None:
        known = _learn_response(pieces)
        if known is None:
            return None
    _, msb, _, lsb = _ID.unpack_from(rest, at)
    reqid = UUID(msb, lsb)
    made = _TUPLE(UAttributes, (id, *known.before, reqid, *known.after))
    if id.is_valid and reqid.is_valid:
        return made, known.problem, known
    return made, _joined(id_problem("id", id), known.problem, id_problem("reqid", reqid)), None


def _learn_response(pieces: tuple[bytes, bytes]) -> Known | None:
    """What stands around the identifiers. Both pieces must be whole fields of their own, or it is read plainly."""
    if not _is_short(*pieces):
        return None
    try:
        first, second = (read_attributes(piece) for piece in pieces)
        around = read_attributes(b"".join(pieces))
    except DecodeError:
        return None
    if any(part.id is not None or part.reqid is not None for part in (first, second)):
        return None
    return _remember(pieces, around._replace(reqid=_SOME_ID))


def _remember(key: bytes | tuple[bytes, bytes], attributes: UAttributes) -> Known:
    if len(_read) >= UATTRIBUTES_REMEMBERED:
        _read.clear()
    _read[key] = known = Known(attributes)
    return known


def write_attachment(attributes: UAttributes) -> bytes:
    """The attachment of valid attributes.

    Raises:
        EncodeError: a number does not fit its field.
    """
    return write_checked(attributes)[0]


def write_checked(attributes: UAttributes) -> tuple[bytes, str]:
    """The attachment, and everything for which the message may not be sent (empty if there is nothing).

    Raises:
        EncodeError: a number does not fit its field.
    """
    id, reqid = attributes.id, attributes.reqid
    known = written(attributes)
    if id is None or not id.msb or not id.lsb:
        return _HEAD + write_attributes(attributes), problem_of(attributes, sending=True)
    problem = known.problem
    if reqid is None:
        if not id.is_valid:
            problem = _joined(id_problem("id", id), problem)
        return known.attachment(id, None), problem
    if not id.is_valid or not reqid.is_valid:
        problem = _joined(id_problem("id", id), problem, id_problem("reqid", reqid))
    if not reqid.msb or not reqid.lsb:
        return _HEAD + write_attributes(attributes), problem
    return known.attachment(id, reqid), problem


def written(attributes: UAttributes) -> Written:
    """What all messages have in common that differ in their identifiers only; `reqid` says whether they have one.

    Raises:
        EncodeError: a number does not fit its field.
    """
    key = (attributes[1:8], attributes[9:], attributes.reqid is None)
    known = _written.get(key)
    return _learn_written(attributes, key) if known is None else known


def _learn_written(attributes: UAttributes, key: tuple[Any, ...]) -> Written:
    if len(_written) >= UATTRIBUTES_REMEMBERED:
        _written.clear()
    problem = problem_without_ids(attributes, sending=True)
    plain = attributes._replace(id=None, reqid=None)
    if attributes.reqid is None:
        before, after = write_attributes(plain), b""
    else:
        cut = plain._replace(token=None, traceparent=None, payload_format=0)
        before = write_attributes(cut)
        after = write_attributes(plain)[len(before) :]
    _written[key] = known = Written(before, after, problem)
    return known


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
