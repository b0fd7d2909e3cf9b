"""A predicate over columns of known types, with nothing left to decide: what the compilers for Arrow and Spark take.

`BETWEEN` and `IN` are comparisons here, every comparison says as what it compares, constants have become what they
meet. What cannot be compared is unknown, as for values that come as they come, or an error if `strict`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from elea.model.predicate import functions
from elea.model.predicate.closure import misfit, type_at
from elea.model.predicate.constants import Constant, Given
from elea.model.predicate.meeting import MIRRORED, compare, domain_of, meet
from elea.model.predicate.patterns import TextPattern
from elea.model.predicate.predicate import Predicate
from elea.model.predicate.syntax import (
    And,
    Between,
    Call,
    Comparison,
    Condition,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Match,
    Metadata,
    Not,
    Operand,
    Or,
    Parameter,
    Point,
    Property,
    canonical,
)
from elea.model.predicate.types import METADATA, Enumeration, Record, Scalar, Type
from elea.model.values import value_class

__all__ = [
    "Absent",
    "All",
    "Any",
    "Applied",
    "Argument",
    "Column",
    "Compared",
    "Fixed",
    "Leaf",
    "Matching",
    "Opposite",
    "Term",
    "Verdict",
    "check",
    "lower",
]

Leaf = Field | Metadata | Property


@value_class
class Column:
    """Values out of a column, or out of a part of one."""

    leaf: Leaf
    type: Type


@value_class
class Fixed:
    """The same value in every row; a time is in microseconds."""

    value: bool | int | float | str
    type: Scalar


@value_class
class Applied:
    """A function of columns; an argument that cannot be had is None, a point is a tuple, a parameter its text."""

    function: str
    arguments: tuple[Argument, ...]
    type: Scalar


Argument = Column | Fixed | Given | tuple[float, ...] | None
Value = Column | Fixed | Applied


@value_class
class Compared:
    """Two values compared as numbers, texts, booleans or times."""

    sign: str
    left: Value
    right: Value
    domain: Scalar


@value_class
class Matching:
    """A text against a pattern."""

    value: Value
    pattern: TextPattern


@value_class
class Absent:
    """Null; `value` is None if there is no such column. Of content that nobody can read it is unknown."""

    value: Column | Applied | None
    is_content: bool


@value_class
class Verdict:
    """The same in every row; None is unknown."""

    value: bool | None


@value_class
class Opposite:
    """NOT."""

    term: Term


@value_class
class All:
    """AND."""

    terms: tuple[Term, ...]


@value_class
class Any:
    """OR."""

    terms: tuple[Term, ...]


Term = Compared | Matching | Absent | Applied | Verdict | Opposite | All | Any


def lower(
    predicate: Predicate,
    type_of: Callable[[Leaf], Type | None],
    *,
    names: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Term:
    """What a predicate means for columns.

    Args:
        type_of: the type of a column; None if there is none.
        names: values for names that are no columns, as the early dialects give them.
        strict: refuse what would always be unknown.

    Raises:
        InvalidPredicate: it compares what cannot be compared, or names what is not there, and where.
    """
    return _Lowering(predicate, type_of, names or {}, strict).term(predicate.condition)


def check(predicate: Predicate, schema: Record) -> None:
    """Hold a predicate against the declared type of a content.

    Raises:
        InvalidPredicate: it names a field that is not there, or compares what cannot be compared.
    """
    lower(predicate, lambda leaf: _declared(leaf, schema), strict=True)


def _declared(leaf: Leaf, schema: Record) -> Type | None:
    if isinstance(leaf, Metadata):
        return METADATA[leaf.name]
    return type_at(schema, leaf.path) if isinstance(leaf, Field) else Scalar.STRING


class _Lowering:
    def __init__(
        self, predicate: Predicate, type_of: Callable[[Leaf], Type | None], names: Mapping[str, str], strict: bool
    ) -> None:
        self._predicate = predicate
        self._type_of = type_of
        self._names = names
        self._strict = strict

    # -- conditions

    def term(self, node: Condition) -> Term:
        match node:
            case And(terms):
                return All(tuple(self.term(each) for each in terms))
            case Or(terms):
                return Any(tuple(self.term(each) for each in terms))
            case Not(each):
                return Opposite(self.term(each))
            case Comparison(sign, left, right):
                return self._comparison(sign, left, right)
            case Between(value, low, high):
                return All((self._comparison(">=", value, low), self._comparison("<=", value, high)))
            case In(value, choices):
                found = tuple(self._comparison("=", value, choice) for choice in choices)
                return found[0] if len(found) == 1 else Any(found)
            case Like() | Match():
                return self._matching(node)
            case IsNull(value):
                return self._absent(value)
            case _:
                applied = self._value(node)
                assert isinstance(applied, Applied)
                if applied.type is not Scalar.BOOLEAN:
                    return self._unknown(node, f"{node.name} gives a {applied.type.value}, which is no condition")
                return applied

    def _comparison(self, sign: str, left: Operand, right: Operand) -> Term:
        if isinstance(left, Literal | Parameter):
            sign, left, right = MIRRORED[sign], right, left
        first = self._value(left)
        second = self._predicate.constant(right) if isinstance(right, Literal | Parameter) else self._value(right)
        if first is None or second is None:
            return Verdict(None)
        if isinstance(first, Constant):
            if isinstance(second, Constant):
                return Verdict(compare(sign, first, second))
            sign, left, right, first, second = MIRRORED[sign], right, left, second, first
        if isinstance(second, Constant):
            return self._against(sign, first, second, left, right)
        domain = domain_of(sign, first.type, second.type)
        if domain is None:
            return self._unknown(left, f"{canonical(left)} and {canonical(right)} cannot be compared with {sign}")
        return Compared(sign, first, second, domain)

    def _against(self, sign: str, value: Value, constant: Constant, left: Operand, right: Operand) -> Term:
        met = meet(value.type, constant)
        if met is None:
            name = left.name if isinstance(left, Metadata) else canonical(left)
            return self._unknown(right, misfit(name, value.type, left), always=isinstance(left, Metadata))
        fixed = Fixed(met, _scalar_of(met, value.type))
        domain = domain_of(sign, value.type, fixed.type)
        if domain is None:
            return self._unknown(right, f"{canonical(left)} has no order")
        return Compared(sign, value, fixed, domain)

    def _matching(self, node: Like | Match) -> Term:
        value, pattern = self._value(node.value), self._predicate.pattern(node)
        if isinstance(value, Constant):
            text = value.text or ""
            return Verdict(pattern.matcher().fullmatch(text) is not None)
        if value is None:
            return Verdict(None)
        if value.type is not Scalar.STRING:
            return self._unknown(node, f"{canonical(node.value)} is no text")
        return Matching(value, pattern)

    def _absent(self, node: Operand) -> Term:
        value = self._value(node)
        if isinstance(value, Constant | Fixed):
            return Verdict(False)
        return Absent(value, isinstance(node, Field))

    # -- values

    def _value(self, node: Operand) -> Value | Constant | None:
        match node:
            case Field() | Metadata() | Property():
                its = self._type_of(node)
                if its is not None:
                    return Column(node, its)
                if isinstance(node, Field) and len(node.path) == 1 and node.path[0] in self._names:
                    return Constant.parameter(self._names[str(node.path[0])])
                self._unknown(node, f"there is no field {canonical(node)}")
                return None
            case Call(name, arguments):
                function = functions.find(name)
                assert function is not None  # Predicate has looked
                return Applied(name, tuple(self._argument(each) for each in arguments), function.returns)
            case _:
                assert isinstance(node, Literal | Parameter)  # a point is an argument, and seen to before
                return self._predicate.constant(node)

    def _argument(self, node: Operand) -> Argument:
        if isinstance(node, Point):
            return node.numbers
        value = self._value(node)
        if isinstance(value, Constant):
            if value.text is not None:
                return Fixed(value.text, Scalar.STRING) if isinstance(node, Literal) else Given(value.text)
            return None if value.number is None else Fixed(value.number, Scalar.FLOAT)
        return value if isinstance(value, Column) else None

    def _unknown(self, node: Operand | Condition, problem: str, *, always: bool = False) -> Verdict:
        if self._strict or always:
            self._predicate.fail(node, problem)
        return Verdict(None)


def _scalar_of(met: bool | int | float | str, beside: Type) -> Scalar:
    if beside is Scalar.TIME:
        return Scalar.TIME
    if isinstance(met, bool):
        return Scalar.BOOLEAN
    if isinstance(met, str):
        return Scalar.STRING
    assert not isinstance(beside, Enumeration) or isinstance(met, int | float)
    return Scalar.INTEGER if isinstance(met, int) else Scalar.FLOAT
