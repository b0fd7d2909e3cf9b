"""The predicate language as values: what the parser makes, what the compilers take, and its canonical text.

A condition is a tree of `And`, `Or` and `Not` over predicates; what predicates compare are *operands*. `NOT BETWEEN`
and its kin are a `Not` around the plain form. Spec: zenoh-2018.md section 6, dds.md section 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from elea.model.values import value_class

__all__ = [
    "KEYWORDS",
    "METADATA_NAMES",
    "And",
    "Between",
    "Call",
    "Comparison",
    "Condition",
    "Field",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Match",
    "Metadata",
    "Node",
    "Not",
    "Operand",
    "Or",
    "Parameter",
    "Point",
    "Property",
    "canonical",
    "walk",
]

KEYWORDS: Final = frozenset("AND OR NOT BETWEEN LIKE MATCH IN IS NULL TRUE FALSE".split())
"""Words that are no names, however they are written; a field of such a name is put in double quotes."""

METADATA_NAMES: Final = frozenset({"key", "kind", "timestamp", "encoding"})
"""What these names alone stand for is the sample's own; a field of the payload of that name is put in quotes."""

PREFIXES: Final = frozenset({"sample", "property"})
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


# -- operands ------------------------------------------------------------------------------------------------------


@value_class
class Field:
    """A field of the content: names, and numbers for places in arrays; `a.b[2]` is ("a", "b", 2)."""

    path: tuple[str | int, ...]


@value_class
class Metadata:
    """What the sample says besides its content: `key`, or `sample.priority`."""

    name: str


@value_class
class Property:
    """A property of the sample's resource, by its name or by its number."""

    name: str | int


@value_class
class Literal:
    """A constant that stands in the text."""

    value: bool | int | float | str

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and TRUE are three literals.
        return isinstance(other, Literal) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@value_class
class Parameter:
    """`%n`: a constant that is given beside the text."""

    number: int


@value_class
class Point:
    """`[x,y]`: one to three numbers, as an argument of functions."""

    numbers: tuple[float, ...]


@value_class
class Call:
    """A function of operands; a predicate if it stands alone."""

    name: str
    arguments: tuple[Operand, ...]


Operand = Field | Metadata | Property | Literal | Parameter | Point | Call


# -- conditions ----------------------------------------------------------------------------------------------------


@value_class
class Comparison:
    """`left operator right`; the operator is one of = <> < <= > >=."""

    operator: str
    left: Operand
    right: Operand


@value_class
class Between:
    """`low <= value <= high`."""

    value: Operand
    low: Operand
    high: Operand


@value_class
class Like:
    """`%` stands for any characters, `_` for one."""

    value: Operand
    pattern: Literal | Parameter


@value_class
class Match:
    """Globs with commas between; the vendors' extension of DDS."""

    value: Operand
    pattern: Literal | Parameter


@value_class
class In:
    """Equal to one of some constants."""

    value: Operand
    choices: tuple[Literal | Parameter, ...]


@value_class
class IsNull:
    """There is no such field, or it has no value."""

    value: Operand


@value_class
class Not:
    """Unknown stays unknown."""

    term: Condition


@value_class
class And:
    """All of them; two at least."""

    terms: tuple[Condition, ...]


@value_class
class Or:
    """One of them; of two at least."""

    terms: tuple[Condition, ...]


Condition = Comparison | Between | Like | Match | In | IsNull | Call | Not | And | Or
Node = Condition | Operand


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it. The parser bounds how deep that is."""
    yield node
    for below in _children(node):
        yield from walk(below)


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case And(terms) | Or(terms):
            return terms
        case Not(term):
            return (term,)
        case Comparison(_, left, right):
            return left, right
        case Between(value, low, high):
            return value, low, high
        case Like(value, pattern) | Match(value, pattern):
            return value, pattern
        case In(value, choices):
            return value, *choices
        case IsNull(value):
            return (value,)
        case Call(_, arguments):
            return arguments
    return ()


# -- text ----------------------------------------------------------------------------------------------------------


def canonical(node: Node) -> str:
    """The text of a node, without white space that is not needed."""
    match node:
        case Or(terms):
            return " OR ".join(map(canonical, terms))
        case And(terms):
            return " AND ".join(_grouped(term, isinstance(term, Or)) for term in terms)
        case Not(term):
            negated = _negated(term)
            if negated is not None:
                return negated
            return f"NOT({canonical(term)})" if isinstance(term, And | Or) else f"NOT {canonical(term)}"
        case Call(name, arguments):
            return f"{name}({','.join(map(canonical, arguments))})"
        case Comparison(operator, left, right):
            return f"{canonical(left)}{operator}{canonical(right)}"
        case Between() | Like() | Match() | In() | IsNull():
            return _worded(node, "")
        case Field(path):
            return _path_text(path)
        case Metadata(name):
            return name if name in METADATA_NAMES else f"sample.{name}"
        case Property(name):
            return f"property.{name if isinstance(name, int) else _name_text(name, quoted=False)}"
        case Literal(value):
            return _literal_text(value)
        case Parameter(number):
            return f"%{number}"
        case _:
            return f"[{','.join(map(repr, node.numbers))}]"


def _grouped(term: Condition, grouped: bool) -> str:
    return f"({canonical(term)})" if grouped else canonical(term)


def _negated(term: Condition) -> str | None:
    return _worded(term, "NOT ") if isinstance(term, Between | Like | Match | In | IsNull) else None


def _worded(node: Between | Like | Match | In | IsNull, negation: str) -> str:
    value = canonical(node.value)
    match node:
        case Between(_, low, high):
            return f"{value} {negation}BETWEEN {canonical(low)} AND {canonical(high)}"
        case Like(_, pattern):
            return f"{value} {negation}LIKE {canonical(pattern)}"
        case Match(_, pattern):
            return f"{value} {negation}MATCH {canonical(pattern)}"
        case In(_, choices):
            return f"{value} {negation}IN({','.join(map(canonical, choices))})"
        case _:
            return f"{value} IS {negation}NULL"


def _path_text(path: tuple[str | int, ...]) -> str:
    first = str(path[0])
    # A name that alone, or before a dot, would mean something else.
    is_taken = (first in METADATA_NAMES) or (first in PREFIXES and len(path) > 1 and isinstance(path[1], str))
    text = _name_text(first, quoted=is_taken)
    for part in path[1:]:
        text += f"[{part}]" if isinstance(part, int) else f".{_name_text(part, quoted=False)}"
    return text


def _name_text(name: str, *, quoted: bool) -> str:
    if quoted or name.upper() in KEYWORDS or _PLAIN_NAME.fullmatch(name) is None:
        return '"' + name.replace('"', '""') + '"'
    return name


def _literal_text(value: bool | int | float | str) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
