"""The notation as a tree: one class per construct, in the order of `docs/notation.md`.

The papers' own constructs come first; those added for Zenoh 1.x are marked. A tree says what was written;
`check` says whether it makes sense.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "Arm",
    "Bounded",
    "Byte",
    "Case",
    "Chain",
    "Count",
    "Definitions",
    "Enum",
    "Extension",
    "Fixed",
    "Flag",
    "Header",
    "Label",
    "Member",
    "Nat",
    "Octet",
    "Option",
    "Position",
    "Range",
    "Record",
    "Ref",
    "Run",
    "Sequence",
    "Sized",
    "Stem",
    "Text",
    "Type",
    "Unit",
]


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Type:
    """Any construct that stands for a type."""

    at: Position = field(compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Ref(Type):
    """The name of another definition."""

    name: str


@dataclass(frozen=True, slots=True)
class Nat(Type):
    """A natural of up to 64 bits, in at most ten octets, never padded."""


@dataclass(frozen=True, slots=True)
class Byte(Type):
    """One octet."""


@dataclass(frozen=True, slots=True)
class Enum(Type):
    """Named numbers."""

    symbols: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Header(Type):
    """One octet: the low `bits` bits are a number or an enum, the others hold flags."""

    bits: int
    base: Type


@dataclass(frozen=True, slots=True)
class Flag(Type):
    """Bits `low` to `high` of the nearest preceding header; one bit is a boolean. [1.x: several bits, enum]"""

    low: int
    high: int
    enum: Ref | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A named part of a record; `octet` and chains have no name."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Record(Type):
    """Members one after the other."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A symbol, or the numbers `low` to `high`."""

    symbol: str | None
    low: int
    high: int
    at: Position = field(compare=False)


@dataclass(frozen=True, slots=True)
class Arm:
    """What a case is when its discriminator has one of the labels."""

    labels: tuple[Label, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Case(Type):
    """One of several types, chosen by an earlier member of the same record; nothing if no arm fits."""

    discriminator: str
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True)
class Option(Type):
    """A type that is there when a flag is set; `condition` is a flag, or the name of an earlier flag member."""

    condition: Type
    base: Type


@dataclass(frozen=True, slots=True)
class Range(Type):
    """A number or a length between bounds."""

    base: Type
    low: int
    high: int | None


# -- added for Zenoh 1.x ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bounded(Type):
    """[1.x] `z8` … `z64`: a natural below 2^bits in at most nine octets, padding accepted; may be an enum."""

    bits: int
    enum: Ref | None = None


@dataclass(frozen=True, slots=True)
class Fixed(Type):
    """[1.x] `u16`: two octets, little endian."""


@dataclass(frozen=True, slots=True)
class Octet(Type):
    """[1.x] `octet`: a header without a number, all of whose bits are flags."""


@dataclass(frozen=True, slots=True)
class Stem(Type):
    """[1.x] `stem n zN`: a header as a natural; the low `bits` bits are flags, the rest is the number."""

    bits: int
    base: Bounded


@dataclass(frozen=True, slots=True)
class Count:
    """How many elements a sequence has.

    A number written in front (`type`), a constant (`constant`), header bits (`flag`), the length of an earlier
    sequence (`member`), each plus `plus`; none of them: as many as fit in the enclosing region.
    """

    type: Type | None = None
    constant: int | None = None
    flag: Flag | None = None
    member: str | None = None
    plus: int = 0


@dataclass(frozen=True, slots=True)
class Sequence(Type):
    """Elements of one type; `[T]` counts with a nat, `[c: T]` as `Count` says."""

    count: Count
    element: Type


@dataclass(frozen=True, slots=True)
class Text(Type):
    """[1.x] `utf8 [c: byte]`: octets that must be UTF-8."""

    base: Type


@dataclass(frozen=True, slots=True)
class Sized(Type):
    """[1.x] `sized T`: a length, then a region of that length which T must fill."""

    base: Type


@dataclass(frozen=True, slots=True)
class Run(Type):
    """[1.x] `run M`: messages back to back, for as long as the next octet is the header of one."""

    base: Ref


@dataclass(frozen=True, slots=True)
class Unit(Type):
    """[1.x] an extension without a body."""


@dataclass(frozen=True, slots=True)
class Extension:
    """[1.x] a known element of a chain."""

    name: str
    id: int
    mandatory: bool
    type: Type
    at: Position = field(compare=False)

    @property
    def header(self) -> int:
        """The octet that announces it, without the bit for "another follows"."""
        form = 0 if isinstance(self.type, Unit) else 2 if isinstance(self.type, Sized) else 1
        return form << 5 | self.mandatory << 4 | self.id


@dataclass(frozen=True, slots=True)
class Chain(Type):
    """[1.x] `chain f { … }`: extensions, there when flag member `f` is set (always, without a name)."""

    flag: str | None
    extensions: tuple[Extension, ...]


@dataclass(frozen=True, slots=True)
class Definitions:
    """A definition file: the name of its dialect and its types in order."""

    dialect: str
    types: Mapping[str, Type]

    def resolve(self, type: Type) -> Type:
        """The type behind a reference."""
        while isinstance(type, Ref):
            type = self.types[type.name]
        return type
