"""CDR payloads (XCDR1 and XCDR2, both byte orders) as Python values, by a declared type.

What stands in the encapsulation header chooses the reader, sample by sample. A struct whose text does not say how it
may change is what the header says, if it is the outermost; those within it then are the same, and else final.

| type | value |
|---|---|
| boolean, integers, floats | `bool`, `int`, `float` |
| char, string | `str` |
| enumeration | `Label`: a number that knows its name |
| octets or uint8, several | `bytes` |
| other sequences and arrays | `list` |
| struct | `dict` with all members; one that is not there is None |

Spec: dds.md sections 2 and 6; docs/readings.md.
"""

from __future__ import annotations

import struct
from typing import Final

from elea.content.cdrsource import Reader, compile_reader
from elea.content.schema.declared import Extensibility, Struct
from elea.model.limits import CONTENT_RECORDS

__all__ = ["ENCAPSULATIONS", "CdrReader", "Encapsulation"]

Encapsulation = tuple[int, bool, Extensibility | None]
"""The version of the encoding, whether it is little-endian, and what the outermost struct is (None: not mutable)."""

ENCAPSULATIONS: Final[dict[bytes, Encapsulation]] = {
    bytes([0, id | little]): (version, bool(little), how)
    for id, version, how in (
        (0x00, 1, None),
        (0x02, 1, Extensibility.MUTABLE),
        (0x06, 2, Extensibility.FINAL),
        (0x08, 2, Extensibility.APPENDABLE),
        (0x0A, 2, Extensibility.MUTABLE),
    )
    for little in (0, 1)
}

HEAD: Final = 4
PADDING: Final = 3
"""Bytes behind the last member: payloads are padded to a multiple of four, often without saying so."""

_BAD: Final = (IndexError, KeyError, struct.error, OverflowError, MemoryError)


class CdrReader:
    """Reads payloads of one type.

    >>> from elea.content.schema import parse_idl
    >>> reader = CdrReader(parse_idl("struct Light { long id; string name; };")["Light"])
    >>> reader.decode(bytes.fromhex("00010000070000000400000061707000"))
    {'id': 7, 'name': 'app'}
    """

    def __init__(self, its: Struct) -> None:
        self.type = its
        self._readers: dict[bytes, Reader] = {}

    def decode(self, payload: bytes) -> dict[str, object]:
        """The value of a payload.

        Raises:
            ValueError: it is none of this type.
        """
        read = self._readers.get(payload[:2]) or self._reader(payload)
        body = payload[HEAD:]
        try:
            value, at = read(body, 0, len(body), [CONTENT_RECORDS])
        except _BAD as error:
            raise ValueError(f"no {self.type.name}: {type(error).__name__} {error}") from error
        left = len(body) - at
        if left < 0 or (left > PADDING and self.type.extensibility is not Extensibility.APPENDABLE):
            raise ValueError(f"no {self.type.name}: {left} bytes are behind it")
        return value  # type: ignore[return-value]

    def _reader(self, payload: bytes) -> Reader:
        head = bytes(payload[:2])
        known = ENCAPSULATIONS.get(head)
        if known is None or len(payload) < HEAD:
            raise ValueError(f"no CDR: encapsulation {head.hex() or 'missing'}")
        problem = misfit(self.type, known)
        if problem is not None:
            raise ValueError(problem)
        version, little, _ = known
        made = compile_reader(self.type, version=version, little=little, extensibility=default_of(self.type, known))
        self._readers[head] = made
        return made


def misfit(its: Struct, encapsulation: Encapsulation) -> str | None:
    """Why a type does not stand in an encapsulation; None if it does."""
    version, _, told = encapsulation
    declared = its.extensibility
    if declared is None or told is declared:
        return None
    if version == 1 and told is None and declared is not Extensibility.MUTABLE:
        return None
    wanted = "final or appendable" if told is None else told.value
    return f"{its.name} is {declared.value}, and the encapsulation is for types that are {wanted}"


def default_of(its: Struct, encapsulation: Encapsulation) -> Extensibility:
    """What structs are whose text does not say it."""
    if its.extensibility is not None:
        return Extensibility.FINAL
    return encapsulation[2] or Extensibility.FINAL
