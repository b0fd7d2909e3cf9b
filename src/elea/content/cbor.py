"""CBOR (RFC 8949) as Python values: whatever can be a field of a payload, within bounds.

Own code, because a client needs nothing beyond the standard library. Maps have texts or numbers as keys here; tags 0
and 1 are times, 2 and 3 large integers, others are passed over for what they stand before.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import Final

from elea.model.limits import CONTENT_DEPTH

__all__ = ["decode_cbor"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FLOATS: Final = {25: struct.Struct(">e"), 26: struct.Struct(">f"), 27: struct.Struct(">d")}
_SIMPLE: Final = {20: False, 21: True, 22: None, 23: None}
_INDEFINITE: Final = 31
_BIGNUM_BYTES: Final = 64


class _Break:
    """What ends something of indefinite length."""


_BREAK: Final = _Break()


def decode_cbor(data: bytes) -> object:
    """The one value of a payload.

    Raises:
        ValueError: it is not CBOR, too deep, or there is more behind it.

    >>> decode_cbor(bytes.fromhex("a26161f93e006162820102"))
    {'a': 1.5, 'b': [1, 2]}
    """
    reader = _Reader(data)
    try:
        value = reader.value(0)
    except (IndexError, struct.error, OverflowError) as error:
        raise ValueError(f"cut off: {error}") from error
    if value is _BREAK or reader.at != len(data):
        raise ValueError("more than one value")
    return value


class _Reader:
    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def value(self, depth: int) -> object:
        if depth > CONTENT_DEPTH:
            raise ValueError(f"deeper than {CONTENT_DEPTH} (CONTENT_DEPTH)")
        head = self.data[self.at]
        self.at += 1
        major, low = head >> 5, head & 31
        if major == 7:
            return self._special(low)
        if low == _INDEFINITE:
            return self._indefinite(major, depth)
        number = self._number(low)
        if major == 0:
            return number
        if major == 1:
            return -1 - number
        if major == 2:
            return self._take(number)
        if major == 3:
            return self._take(number).decode()
        if major == 4:
            self._check_count(number)
            return [self._element(depth) for _ in range(number)]
        if major == 5:
            self._check_count(2 * number)
            return self._map(number, depth)
        return self._tagged(number, depth)

    def _number(self, low: int) -> int:
        if low < 24:
            return low
        if low > 27:
            raise ValueError(f"reserved length {low}")
        return int.from_bytes(self._take(1 << (low - 24)), "big")

    def _take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) != size:
            raise ValueError("cut off")
        self.at += size
        return found

    def _check_count(self, count: int) -> None:
        """Each element has a byte at least, so nothing is made that the payload does not pay for."""
        if count > len(self.data) - self.at:
            raise ValueError("cut off")

    def _element(self, depth: int) -> object:
        value = self.value(depth + 1)
        if value is _BREAK:
            raise ValueError("a break where a value is expected")
        return value

    def _map(self, count: int, depth: int) -> dict[object, object]:
        found: dict[object, object] = {}
        for _ in range(count):
            key = self._element(depth)
            found[_hashable(key)] = self._element(depth)
        return found

    def _indefinite(self, major: int, depth: int) -> object:
        if major not in (2, 3, 4, 5):
            raise ValueError(f"no indefinite length for major type {major}")
        values: list[object] = []
        while (value := self.value(depth + 1)) is not _BREAK:
            values.append(value)
        if major == 4:
            return values
        if major == 5:
            if len(values) % 2:
                raise ValueError("a map has a key without a value")
            return {_hashable(key): value for key, value in zip(values[::2], values[1::2], strict=True)}
        octets = [value for value in values if isinstance(value, bytes)]
        texts = [value for value in values if isinstance(value, str)]
        if len(octets if major == 2 else texts) != len(values):
            raise ValueError("a piece of another type")
        return b"".join(octets) if major == 2 else "".join(texts)

    def _special(self, low: int) -> object:
        if low in _SIMPLE:
            return _SIMPLE[low]
        if low in _FLOATS:
            form = _FLOATS[low]
            value: float = form.unpack(self._take(form.size))[0]
            return value
        if low == _INDEFINITE:
            return _BREAK
        raise ValueError(f"simple value {low}")

    def _tagged(self, tag: int, depth: int) -> object:
        value = self._element(depth)
        if tag == 0 and isinstance(value, str):
            return datetime.fromisoformat(value)
        if tag == 1 and type(value) in (int, float):
            return _EPOCH + timedelta(seconds=value)  # type: ignore[arg-type]
        if tag in (2, 3) and isinstance(value, bytes):
            if len(value) > _BIGNUM_BYTES:
                raise ValueError(f"an integer of {len(value)} bytes")
            number = int.from_bytes(value, "big")
            return number if tag == 2 else -1 - number
        return value


def _hashable(key: object) -> object:
    if not isinstance(key, str | int | bytes | float | bool | None):
        raise ValueError("a key of a map is no text or number")
    return key
