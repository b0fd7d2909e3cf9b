"""From a checked tree to what a program needs to know: records with their fields, unions, enums, in order.

The plan is shared by everything made from a definition file: the generated codecs, the dissection, the JSON
form and the test strategies.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from elea.notation import syntax as s
from elea.notation.check import check, union_arms
from elea.notation.parser import parse

__all__ = ["FieldPlan", "Plan", "RecordPlan", "UnionPlan", "attribute", "load", "snake"]

UNKNOWN = "unknown"
"""The field in which a record with a chain keeps the extensions it does not know."""


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """A field of a message value."""

    name: str
    type: s.Type
    python: str
    default: str | None
    extension: s.Extension | None = None

    @property
    def attribute(self) -> str:
        """The name in Python."""
        return attribute(self.name)


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """A record: its tree, its fields, and whether flags of it sit in a header outside."""

    name: str
    record: s.Record
    fields: tuple[FieldPlan, ...]
    outer_flags: bool

    @property
    def ordered(self) -> tuple[FieldPlan, ...]:
        """Fields in constructor order: those without a default first."""
        return tuple(sorted(self.fields, key=lambda field: field.default is not None))


@dataclass(frozen=True, slots=True)
class UnionPlan:
    """Messages told apart by a header: record names by header number, and numbers reserved without a body."""

    name: str
    bits: int
    arms: dict[int, str]
    reserved: frozenset[int]


class Plan:
    """Everything known of one dialect's definitions."""

    def __init__(self, definitions: s.Definitions) -> None:
        self.definitions = definitions
        self.dialect = definitions.dialect
        self.enums: dict[str, s.Enum] = {}
        self.unions: dict[str, UnionPlan] = {}
        self.records: dict[str, RecordPlan] = {}
        self.kinds: dict[str, int] = {}  # header number of each record that is an arm
        self._anonymous: dict[int, str] = {}  # id of an inline record to its given name
        self._collect()

    def _collect(self) -> None:
        types = self.definitions.types
        for name, type in types.items():
            if isinstance(type, s.Enum):
                self.enums[name] = type
            union = union_arms(self.definitions, type)
            if union is not None and isinstance(type, s.Record):
                header, arms = union
                enum = self.definitions.resolve(header.base)
                assert isinstance(enum, s.Enum)
                reserved = frozenset(number for _, number in enum.symbols if number not in arms)
                self.unions[name] = UnionPlan(name, header.bits, arms, reserved)
                self.kinds.update((arm, number) for number, arm in arms.items())
        for name, type in types.items():
            if isinstance(type, s.Record) and name not in self.unions:
                self._name_inline(name, type)
        for name, type in types.items():
            if isinstance(type, s.Record) and name not in self.unions:
                self._add_record(name, type)

    # -- naming ---------------------------------------------------------------------------------------------------

    def _name_inline(self, owner: str, record: s.Record) -> None:
        for member in record.members:
            for inline in _inline_records(member.type):
                self._anonymous[id(inline)] = owner + member.name[0].upper() + member.name[1:]
                self._name_inline(self._anonymous[id(inline)], inline)

    def _add_record(self, name: str, record: s.Record) -> None:
        for member in record.members:
            for inline in _inline_records(member.type):
                self._add_record(self._anonymous[id(inline)], inline)
        outer = name in self.kinds or bool(self.outer_flags(record))
        self.records[name] = RecordPlan(name, record, tuple(self._fields(record)), outer)

    def name_of(self, type: s.Type) -> str | None:
        """The record or union a type is, None for any other type."""
        while isinstance(type, s.Ref):
            target = self.definitions.types[type.name]
            if isinstance(target, s.Record):
                return type.name
            type = target
        return self._anonymous.get(id(type))

    def enum_name(self, type: s.Type) -> str | None:
        """The name of the enum a type is, None for any other type."""
        while isinstance(type, s.Ref):
            if type.name in self.enums:
                return type.name
            type = self.definitions.types[type.name]
        if isinstance(type, s.Flag | s.Bounded) and type.enum is not None:
            return self.enum_name(type.enum)
        return None

    def resolve(self, type: s.Type) -> s.Type:
        """The type behind a reference."""
        return self.definitions.resolve(type)

    # -- fields ---------------------------------------------------------------------------------------------------

    def _fields(self, record: s.Record) -> list[FieldPlan]:
        hidden = self.presence_flags(record)
        fields: list[FieldPlan] = []
        for member in record.members:
            if isinstance(member.type, s.Chain):
                for extension in member.type.extensions:
                    unit = isinstance(extension.type, s.Unit)
                    python = "bool" if unit else f"{self.python(extension.type)} | None"
                    default = "False" if unit else "None"
                    fields.append(FieldPlan(extension.name, extension.type, python, default, extension))
                fields.append(FieldPlan(UNKNOWN, member.type, "tuple[Unknown, ...]", "()"))
            elif member.name and member.name not in hidden:
                fields.append(FieldPlan(member.name, member.type, self.python(member.type), self._default(member.type)))
        return fields

    @staticmethod
    def presence_flags(record: s.Record) -> set[str]:
        """Flag members that only say whether another member is there: no fields of their own."""
        names: set[str] = set()
        members = {member.name for member in record.members}
        for member in record.members:
            type = member.type
            if isinstance(type, s.Chain) and type.flag is not None:
                names.add(type.flag)
            if isinstance(type, s.Option) and isinstance(type.condition, s.Ref) and type.condition.name in members:
                names.add(type.condition.name)
        return names

    def _default(self, type: s.Type) -> str | None:
        resolved = self.resolve(type)
        if isinstance(resolved, s.Flag) and resolved.low == resolved.high:
            return "False"
        return "None" if self.python(type).endswith("| None") else None

    def python(self, type: s.Type) -> str:
        """The Python type of a value of `type`."""
        named = self.name_of(type) or self.enum_name(type)
        if named is not None:
            return named
        match self.resolve(type):
            case s.Flag(low=low, high=high) if low == high:
                return "bool"
            case s.Text():
                return "str"
            case s.Range(base=base) | s.Sized(base=base):
                return self.python(base)
            case s.Sequence(element=element):
                inner = self.python(element)
                is_byte = isinstance(self.resolve(element), s.Byte)
                return "bytes" if is_byte else f"tuple[{inner}, ...]"
            case s.Run(base=base):
                return f"tuple[{self.python(base)}, ...]"
            case s.Option(base=base):
                return f"{self.python(base)} | None"
            case s.Case() as case:
                return self._case_python(case)
            case _:
                return "int"

    def _case_python(self, case: s.Case) -> str:
        kinds = list(dict.fromkeys(self.python(arm.type) for arm in case.arms))
        both = {label.symbol for arm in case.arms for label in arm.labels} == {"true", "false"}
        return " | ".join(kinds if both else [*kinds, "None"])

    # -- flags ----------------------------------------------------------------------------------------------------

    def outer_flags(self, type: s.Type) -> list[s.Flag]:
        """The flags of a type that sit in a header in front of it."""
        flags, _ = self._outer(type)
        return flags

    def _outer(self, type: s.Type) -> tuple[list[s.Flag], bool]:
        """Flags before the first header of the type itself, and whether such a header is certain to be there."""
        match self.resolve(type):
            case s.Flag() as flag:
                return [flag], False
            case s.Header() | s.Octet() | s.Stem():
                return [], True
            case s.Record(members=members):
                found: list[s.Flag] = []
                names = {member.name for member in members}
                for member in members:
                    inner = member.type
                    if isinstance(inner, s.Option) and isinstance(inner.condition, s.Ref):
                        if inner.condition.name in names:
                            inner = inner.base
                    flags, closed = self._outer(inner)
                    found += flags
                    if closed:
                        return found, True
                return found, False
            case s.Option(condition=condition, base=base):
                return self._outer(condition)[0] + self._outer(base)[0], False
            case s.Case(arms=arms):
                return [flag for arm in arms for flag in self._outer(arm.type)[0]], False
            case s.Sequence(count=count):
                return ([count.flag] if count.flag is not None else []), False
            case s.Range(base=base) | s.Text(base=base):
                return self._outer(base)
            case _:
                return [], False


def _inline_records(type: s.Type) -> list[s.Record]:
    match type:
        case s.Record():
            return [type]
        case s.Option(base=base) | s.Range(base=base) | s.Sized(base=base):
            return _inline_records(base)
        case s.Sequence(element=element):
            return _inline_records(element)
        case s.Case(arms=arms):
            return [record for arm in arms for record in _inline_records(arm.type)]
        case _:
            return []


def snake(name: str) -> str:
    """`StreamData` to `stream_data`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def attribute(name: str) -> str:
    """A member's name as a Python attribute: `global` is a keyword there."""
    return name + "_" if keyword.iskeyword(name) else name


def load(text: str, *, dialect: str, extended: bool = True) -> Plan:
    """Parse, check and plan a definition file."""
    return Plan(check(parse(text, dialect=dialect, extended=extended)))
