"""ROS 2 message definitions (`.msg` texts) to declared types.

A text that needs other messages has them behind it, as recorders write it: a line of `=`, then `MSG: package/Name`.
Times, durations and headers are known without. Spec: dds.md section 2; the `ros2msg` schemas of MCAP.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, NoReturn

from elea.content.schema.declared import (
    BOOLEAN,
    PRIMITIVES,
    UINT8,
    Array,
    Declared,
    Extensibility,
    Member,
    Sequence,
    Struct,
    Text,
    check_array,
    check_size,
)
from elea.model.errors import InvalidSchema
from elea.model.limits import SCHEMA_BYTES, SCHEMA_DEPTH, SCHEMA_MEMBERS

__all__ = ["parse_rosmsg"]

MSG: Final = "message"

_SEPARATOR: Final = re.compile(r"={20,}")
_FIELD: Final = re.compile(
    r"(?P<type>[A-Za-z][A-Za-z0-9_]*(?:/[A-Za-z][A-Za-z0-9_]*){0,2})(?:<=(?P<bound>[0-9]{1,10}))?"
    r"(?P<array>\[(?:(?:<=)?[0-9]{1,10})?\])?[ \t]+(?P<name>[A-Za-z][A-Za-z0-9_]*)[ \t]*(?P<constant>=)?"
)
_WORDS: Final[Mapping[str, Declared]] = {
    **{name: its for name, its in PRIMITIVES.items() if name not in ("boolean", "char")},
    "bool": BOOLEAN,
    "byte": UINT8,
    "char": UINT8,  # in ROS a number
    "string": Text(),
}
_ALIASES: Final = {
    "time": "builtin_interfaces/msg/Time",
    "duration": "builtin_interfaces/msg/Duration",
    "Header": "std_msgs/msg/Header",
}
_KNOWN: Final = {
    "builtin_interfaces/msg/Time": "int32 sec\nuint32 nanosec",
    "builtin_interfaces/msg/Duration": "int32 sec\nuint32 nanosec",
    "std_msgs/msg/Header": "builtin_interfaces/Time stamp\nstring frame_id",
}


class _Field(NamedTuple):
    type: str
    bound: int | None
    array: str | None
    name: str
    line: int
    column: int


def parse_rosmsg(text: str, name: str) -> Mapping[str, Struct]:
    """The message `name`, and all that it needs, by their full names, such as `geometry_msgs/msg/Point`.

    Raises:
        InvalidSchema: it is no definition, or one that it needs is missing; with line and column.

    >>> [each.name for each in parse_rosmsg("float64 x\\nfloat64 y 1.0\\nint8 A=3", "demo/Pos")["demo/msg/Pos"].members]
    ['x', 'y']
    """
    if len(text) > SCHEMA_BYTES:
        _fail(f"{len(text)} characters are above the limit of {SCHEMA_BYTES} (SCHEMA_BYTES)", 1, 1)
    reading = _Reading(_messages(text, full_name(name)))
    reading.struct(full_name(name), (), None)
    return reading.made


def full_name(name: str) -> str:
    """`package/msg/Name` of `package/Name`."""
    parts = name.split("/")
    return f"{parts[0]}/msg/{parts[1]}" if len(parts) == 2 else name


def _messages(text: str, root: str) -> dict[str, list[_Field]]:
    """The fields of each message in a text."""
    found: dict[str, list[_Field]] = {root: []}
    fields = found[root]
    is_head = False
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.partition("#")[0].rstrip()
        if _SEPARATOR.fullmatch(plain):
            is_head = True
        elif is_head and plain:
            if not plain.startswith("MSG:"):
                _fail("expected MSG: package/Name behind a line of =", number, 1)
            own = full_name(plain[4:].strip())
            is_head = False
            if own in found:
                _fail(f"{own} is declared twice", number, 1)
            fields = found[own] = []
        elif plain.strip():
            field = _field(plain, number)
            if field is not None:
                if len(fields) >= SCHEMA_MEMBERS:
                    _fail(f"more than {SCHEMA_MEMBERS} fields (SCHEMA_MEMBERS)", number, 1)
                fields.append(field)
    for known, definition in _KNOWN.items():
        if known not in found:
            made = [_field(line, 0) for line in definition.split("\n")]
            found[known] = [field for field in made if field is not None]
    return found


def _field(line: str, number: int) -> _Field | None:
    """A field; None for a constant."""
    column = len(line) - len(line.lstrip()) + 1
    match = _FIELD.match(line.strip())
    if match is None:
        _fail(f"no field: {line.strip()[:60]!r}", number, column)
    if match["constant"]:
        return None
    rest = line.strip()[match.end() :]
    if rest and not line.strip()[match.end() - 1].isspace():
        _fail(f"unexpected {rest[:20]!r}", number, column + match.end())
    bound = None if match["bound"] is None else int(match["bound"])
    return _Field(match["type"], bound, match["array"], match["name"], number, column)


class _Reading:
    def __init__(self, messages: Mapping[str, list[_Field]]) -> None:
        self._messages = messages
        self._sizes: dict[int, tuple[int, int]] = {}
        self.made: dict[str, Struct] = {}

    def struct(self, name: str, inside: tuple[str, ...], by: _Field | None) -> Struct:
        if name in self.made:
            return self.made[name]
        line, column = (by.line, by.column) if by is not None else (1, 1)
        if name in inside:
            _fail(f"{name} contains itself", line, column)
        if len(inside) > SCHEMA_DEPTH:
            _fail(f"deeper than {SCHEMA_DEPTH} (SCHEMA_DEPTH)", line, column)
        fields = self._messages.get(name)
        if fields is None:
            _fail(f"{name} is not declared; put it behind the message: a line of =, then MSG: {name}", line, column)
        members: list[Member] = []
        taken: set[str] = set()
        for field in fields:
            if field.name in taken:
                _fail(f"{field.name} is there twice", field.line, field.column)
            taken.add(field.name)
            members.append(Member(field.name, self._type(field, name, (*inside, name)), len(members)))
        if not members:  # as ROS 2 itself writes a message without fields
            members.append(Member("structure_needs_at_least_one_member", UINT8, 0))
        made = Struct(name, tuple(members), Extensibility.FINAL)
        problem = check_size(made, self._sizes)
        if problem is not None:
            _fail(problem, line, column)
        self.made[name] = made
        return made

    def _type(self, field: _Field, of: str, inside: tuple[str, ...]) -> Declared:
        its = self._element(field, of, inside)
        if field.array is None:
            return its
        size = field.array[1:-1]
        if not size or size.startswith("<="):
            return Sequence(its, int(size[2:]) if size else None)
        problem = check_array((int(size),))
        if problem is not None:
            _fail(problem, field.line, field.column)
        return Array(its, (int(size),))

    def _element(self, field: _Field, of: str, inside: tuple[str, ...]) -> Declared:
        if field.type == "wstring":
            _fail("wide strings are not read: implementations write them differently", field.line, field.column)
        if field.bound is not None and field.type != "string":
            _fail("only strings have a length of their own", field.line, field.column)
        if field.type == "string":
            return Text(field.bound)
        word = _WORDS.get(field.type)
        if word is not None:
            return word
        name = full_name(field.type)
        if "/" not in name:
            own = f"{of.rpartition('/')[0]}/{name}"
            name = own if own in self._messages else _ALIASES.get(name, own)
        return self.struct(name, inside, field)


def _fail(problem: str, line: int, column: int) -> NoReturn:
    raise InvalidSchema(MSG, problem, line, column)
