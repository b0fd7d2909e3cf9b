"""Node identifiers: 1 to 16 bytes, little-endian, the same value in every dialect.

This module owns their three forms: the trimmed bytes of the wire, the hexadecimal text, and the order that
breaks ties. It knows nothing of how a length is written. Spec: zenoh-1 §1.4, zenoh-2018 Z18-SES-04.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from elea.model.limits import NODE_ID_BYTES
from elea.model.values import value_class

__all__ = ["NodeId", "RandomSource"]

_TEXT: Final = r"[1-9a-f][0-9a-f]{0,31}"


class RandomSource(Protocol):
    """What is needed of a `random.Random`; the pure layers never make one themselves."""

    def randrange(self, start: int, stop: int, /) -> int: ...


@value_class(order=True)
class NodeId:
    """The identifier of a node, a non-zero number below 2^128.

    `data` is its wire form: little-endian without trailing zero bytes. Ids are ordered byte by byte on
    that form, which is *not* the order of the numbers: `1234` comes before `77`.

    >>> NodeId(bytes.fromhex("3412"))
    NodeId('1234')
    >>> NodeId.parse("1234") < NodeId.parse("77")
    True
    """

    # Spec: the order is that of the 16 bytes padded with zeros. Comparing the trimmed bytes gives the same
    # result, because what a longer one has beyond a shorter one never is all zeros.
    data: bytes

    def __post_init__(self) -> None:
        size = len(self.data)
        if size > NODE_ID_BYTES:
            raise ValueError(f"a node id has at most {NODE_ID_BYTES} bytes, not {size}")
        trimmed = bytes(self.data).rstrip(b"\0")
        if not trimmed:
            raise ValueError("a node id is not zero: give at least one byte that is not 0")
        object.__setattr__(self, "data", trimmed)

    @classmethod
    def parse(cls, text: str) -> NodeId:
        """The id written as lower-case hexadecimal without leading zeros, as configuration files have it.

        Raises:
            ValueError: the text has another form; eclipse-zenoh refuses the same ones.
        """
        if not re.fullmatch(_TEXT, text):
            raise ValueError(f"invalid node id {text!r}: write 1 to 32 lower-case hexadecimal digits, the first not 0")
        return cls(int(text, 16).to_bytes(NODE_ID_BYTES, "little"))

    @classmethod
    def random(cls, source: RandomSource) -> NodeId:
        """A new id of exactly 16 bytes."""
        # The top byte is never 0, so that ids of one deployment all have the same length in traces.
        top = 8 * NODE_ID_BYTES
        return cls(source.randrange(1 << (top - 8), 1 << top).to_bytes(NODE_ID_BYTES, "little"))

    @property
    def padded(self) -> bytes:
        """All 16 bytes, little-endian: the form that is hashed and compared."""
        return self.data.ljust(NODE_ID_BYTES, b"\0")

    def __int__(self) -> int:
        return int.from_bytes(self.data, "little")

    def __bytes__(self) -> bytes:
        return self.data

    def __str__(self) -> str:
        return f"{int(self):x}"

    def __repr__(self) -> str:
        return f"NodeId({str(self)!r})"
