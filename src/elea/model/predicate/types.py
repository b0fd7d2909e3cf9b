"""Types of fields, as far as predicates care: what may be compared with what.

Arrow, Spark and declared types of DDS are read into these; without a schema, values say what they are.
Spec: zenoh-2018.md section 6, dds.md section 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar, Final

from elea.model.values import value_class

__all__ = ["METADATA", "Enumeration", "Label", "ListOf", "Record", "Scalar", "Type", "record"]


class Scalar(Enum):
    """Types without parts."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    TIME = "time"
    """An instant, in microseconds."""
    BINARY = "binary"
    """Bytes, and whatever else cannot be compared: it can only be null or not."""


@value_class
class Enumeration:
    """Labels with their numbers, which say the order."""

    labels: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, *names: str) -> Enumeration:
        """Labels numbered from 0."""
        return cls(tuple((name, number) for number, name in enumerate(names)))

    def number(self, label: str) -> int | None:
        """The number of a label, if there is one."""
        return dict(self.labels).get(label)


class Label(int):
    """A number of an enumeration that a decoder has found: compared with labels as well as with numbers.

    >>> auto = Label.all_of(Enumeration.of("OFF", "ON", "AUTO"))[2]
    >>> auto.name, auto + 0
    ('AUTO', 2)
    """

    enumeration: ClassVar[Enumeration]
    name: str

    @classmethod
    def all_of(cls, enumeration: Enumeration) -> dict[int, Label]:
        """The values of an enumeration by their numbers; there is one of each, whatever is decoded."""
        own = type("Label", (cls,), {"enumeration": enumeration})
        found: dict[int, Label] = {}
        for name, number in enumeration.labels:
            found[number] = made = own(number)
            made.name = name
        return found


@value_class
class ListOf:
    """An array or a sequence."""

    element: Type


@value_class
class Record:
    """Named fields."""

    fields: tuple[tuple[str, Type], ...]

    def field(self, name: str) -> Type | None:
        """The type of a field, if there is one."""
        return next((its for known, its in self.fields if known == name), None)


Type = Scalar | Enumeration | ListOf | Record


def record(fields: Mapping[str, Type | Mapping[str, object] | Sequence[object]]) -> Record:
    """A record in short: a mapping is a record, a list of one type is an array.

    >>> record({"pos": {"x": Scalar.FLOAT}, "hist": [Scalar.INTEGER]}).field("hist")
    ListOf(element=<Scalar.INTEGER: 'integer'>)
    """
    return Record(tuple((name, _type(its)) for name, its in fields.items()))


def _type(short: object) -> Type:
    if isinstance(short, Mapping):
        return record(short)
    if isinstance(short, Sequence):
        return ListOf(_type(short[0]))
    if not isinstance(short, Type):
        raise TypeError(f"no type: {short!r}")
    return short


METADATA: Final[Mapping[str, Type]] = {
    "key": Scalar.STRING,
    "kind": Enumeration.of("PUT", "DELETE"),
    "timestamp": Scalar.TIME,
    "encoding": Scalar.STRING,
    "priority": Scalar.INTEGER,
    "express": Scalar.BOOLEAN,
    "size": Scalar.INTEGER,
}
"""What a sample says besides its content."""
