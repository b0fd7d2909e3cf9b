"""A predicate as a Python function of a row: True, False, or None for unknown.

Rows may be anything: an `Access` says how an operand is got out of one. Values are compared as they come
(`meeting.compare`); a schema adds what values do not say, which labels an enumeration has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from elea.model.predicate import functions
from elea.model.predicate.constants import Constant, Given
from elea.model.predicate.functions import double
from elea.model.predicate.meeting import EQUALITY, MIRRORED, OPERATORS, compare, meet
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
)
from elea.model.predicate.types import METADATA, Enumeration, Label, ListOf, Record, Type

__all__ = ["UNKNOWN", "Access", "RowAccess", "compile_row", "compile_test", "path_getter", "type_at"]

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)
Getter = Callable[[R], object]
Test = Callable[[R], "bool | None"]


class _Unknown:
    """The value of every field of a content that nobody can read: neither null nor not."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()


class Access(Protocol[R_contra]):
    """How operands are got out of a row; `default` is for a field whose first name the content does not have."""

    def __call__(
        self, operand: Field | Metadata | Property, default: object = None, /
    ) -> Callable[[R_contra], object]: ...


class RowAccess:
    """Rows that are mappings: fields, and what else a sample says under its name."""

    def __init__(self, properties: Mapping[str | int, object] | None = None) -> None:
        self._properties = properties or {}

    def __call__(
        self, operand: Field | Metadata | Property, default: object = None, /
    ) -> Callable[[Mapping[str, object]], object]:
        if isinstance(operand, Property):
            value = self._properties.get(operand.name)
            return lambda row: value
        return path_getter(operand.path if isinstance(operand, Field) else (operand.name,), default)


def path_getter(path: tuple[str | int, ...], default: object = None) -> Callable[[Mapping[str, object]], object]:
    """What gets a field out of mappings and lists within each other; None where there is none."""
    first, rest = str(path[0]), path[1:]
    if not rest:
        return lambda row: row.get(first, default)

    def get(row: Mapping[str, object]) -> object:
        value = row.get(first, default)
        for step in rest:
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list | tuple) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    return get


def type_at(schema: Type | None, path: tuple[str | int, ...]) -> Type | None:
    """The type of a field; None if there is no such field."""
    for step in path:
        if isinstance(schema, Record) and isinstance(step, str):
            schema = schema.field(step)
        elif isinstance(schema, ListOf) and isinstance(step, int):
            schema = schema.element
        else:
            return None
    return schema


def compile_row(
    predicate: Predicate | str,
    *,
    schema: Record | None = None,
    names: Mapping[str, str] | None = None,
    properties: Mapping[str | int, object] | None = None,
) -> Callable[[Mapping[str, object]], bool | None]:
    """A function of rows that are mappings.

    >>> test = compile_row("a > 1 AND NOT b = 'x'")
    >>> test({"a": 2, "b": "y"}), test({"a": 2}), test({"a": 0})
    (True, None, False)

    Args:
        schema: which fields are enumerations.
        names: values for names that a row does not have as fields, as the early dialects give them.
        properties: of the resource, for `property.`.
    """
    return compile_test(Predicate.of(predicate), RowAccess(properties), schema=schema, names=names)


def compile_test(
    predicate: Predicate,
    access: Access[R],
    *,
    schema: Record | None = None,
    names: Mapping[str, str] | None = None,
    condition: Condition | None = None,
) -> Test[R]:
    """A function of rows of any kind; of a part of the predicate only, if a `condition` of it is given.

    Raises:
        InvalidPredicate: it compares what cannot be compared, of what is known beforehand.
    """
    return _Compiler(predicate, access, schema, names or {}).condition(condition or predicate.condition)


class _Compiler(Generic[R]):
    def __init__(
        self, predicate: Predicate, access: Access[R], schema: Record | None, names: Mapping[str, str]
    ) -> None:
        self._predicate = predicate
        self._access = access
        self._schema = schema
        self._names = names

    # -- conditions

    def condition(self, node: Condition) -> Test[R]:
        match node:
            case And(terms):
                return _all([self.condition(term) for term in terms])
            case Or(terms):
                return _any([self.condition(term) for term in terms])
            case Not(term):
                return _not(self.condition(term))
            case Comparison(sign, left, right):
                return self._comparison(sign, left, right)
            case Between(value, low, high):
                return _all([self._comparison(">=", value, low), self._comparison("<=", value, high)])
            case In(value, choices):
                return _any([self._comparison("=", value, choice) for choice in choices])
            case Like() | Match():
                return self._matching(node)
            case IsNull(value):
                return _is_null(self._getter(value))
            case _:
                return _verdict(self._getter(node))

    def _comparison(self, sign: str, left: Operand, right: Operand) -> Test[R]:
        if isinstance(left, Literal | Parameter):
            sign, left, right = MIRRORED[sign], right, left
        its = self._static_type(left)
        get = self._getter(left)
        if isinstance(right, Literal | Parameter):
            constant = self._predicate.constant(right)
            if its is not None:
                constant = self._met(right, its, constant, left)
            if isinstance(its, Enumeration):
                get = _ordinal(get, its)
            return _against(sign, get, constant)
        if isinstance(its, Enumeration):
            get = _ordinal(get, its)
        other = self._getter(right)
        others = self._static_type(right)
        if isinstance(others, Enumeration):
            other = _ordinal(other, others)
        return lambda row: compare(sign, get(row), other(row))

    def _met(self, node: Literal | Parameter, its: Type, constant: Constant, left: Operand) -> Constant:
        """A constant that meets a type known beforehand."""
        found = meet(its, constant)
        if found is None and isinstance(left, Metadata):
            self._predicate.fail(node, misfit(left.name, its, left))
        if isinstance(its, Enumeration):
            # What is no label is unknown here; where types are declared it was refused before.
            number = found if isinstance(found, int | float) else None
            return Constant(number=number)
        return constant

    def _matching(self, node: Like | Match) -> Test[R]:
        its = self._static_type(node.value)
        if isinstance(its, Enumeration):
            return lambda row: None
        get, match = self._getter(node.value), self._predicate.pattern(node).matcher().fullmatch

        def test(row: R) -> bool | None:
            value = get(row)
            if type(value) is str:
                return match(value) is not None
            if type(value) is Constant and value.text is not None:
                return match(value.text) is not None
            return None

        return test

    # -- operands

    def _getter(self, node: Operand) -> Getter[R]:
        """What gets an operand; constants are told apart before, and points are arguments only."""
        match node:
            case Field(path):
                named = self._names.get(str(path[0])) if len(path) == 1 else None
                return self._access(node, None if named is None else Constant.parameter(named))
            case Metadata() | Property():
                return self._access(node)
            case _:
                assert isinstance(node, Call)
                function = functions.find(node.name)
                assert function is not None  # Predicate has looked
                return _applied(function.evaluate, [self._argument(argument) for argument in node.arguments])

    def _argument(self, node: Operand) -> Getter[R]:
        if isinstance(node, Literal):
            value = node.value
            return lambda row: value
        if isinstance(node, Parameter):
            given = self._predicate.parameters[node.number]
            plain = Given(given) if isinstance(given, str) else given
            return lambda row: plain
        if isinstance(node, Point):
            numbers = node.numbers
            return lambda row: numbers
        get = self._getter(node)

        def argument(row: R) -> object:
            value = get(row)
            if type(value) is Constant:
                return Given(value.text)
            return None if value is UNKNOWN else value

        return argument

    def _static_type(self, node: Operand) -> Type | None:
        if isinstance(node, Metadata):
            return METADATA[node.name]
        return type_at(self._schema, node.path) if isinstance(node, Field) else None


def misfit(name: str, its: Type, operand: Operand) -> str:
    """What is wrong with a constant that does not meet a type."""
    wanted = {
        "STRING": "a text",
        "TIME": "an instant in UTC, such as '2026-01-31T12:00:00Z'",
        "BOOLEAN": "TRUE or FALSE",
    }
    if isinstance(its, Enumeration):
        what = f"one of {', '.join(repr(label) for label, _ in its.labels)}"
    else:
        what = wanted.get(getattr(its, "name", ""), "a number")
    hint = f'; the field of the payload is "{name}"' if isinstance(operand, Metadata) else ""
    return f"{name} is compared with {what}{hint}"


# -- tests -------------------------------------------------------------------------------------------------------------


def _against(sign: str, get: Getter[R], constant: Constant) -> Test[R]:
    """A value against a constant: what nearly all predicates are made of, so the common types come first."""
    operator, is_equality = OPERATORS[sign], sign in EQUALITY
    number, text, boolean = constant.number, constant.text, constant.boolean
    is_whole = type(number) is int
    as_double = 0.0 if number is None else double(number) if isinstance(number, int) else number

    def test(row: R) -> bool | None:
        value = get(row)
        kind = type(value)
        if kind is float:
            return None if number is None else operator(value, as_double)
        if kind is int:
            if number is None:
                return None
            return operator(value, number) if is_whole else operator(double(value), as_double)  # type: ignore[arg-type]
        if kind is str:
            return None if text is None else operator(value, text)
        if kind is bool:
            return operator(value, boolean) if is_equality and boolean is not None else None
        return None if value is None else compare(sign, value, constant)

    return test


def _ordinal(get: Getter[R], its: Enumeration) -> Getter[R]:
    numbers = dict(its.labels)

    def ordinal(row: R) -> object:
        value = get(row)
        if type(value) is str:
            return numbers.get(value)
        return int(value) if type(value) is int or isinstance(value, Label) else None

    return ordinal


def _applied(evaluate: Callable[..., object], arguments: list[Getter[R]]) -> Getter[R]:
    return lambda row: evaluate(*[argument(row) for argument in arguments])


def _verdict(get: Getter[R]) -> Test[R]:
    def test(row: R) -> bool | None:
        value = get(row)
        return value if type(value) is bool else None

    return test


def _is_null(get: Getter[R]) -> Test[R]:
    def test(row: R) -> bool | None:
        value = get(row)
        return None if value is UNKNOWN else value is None

    return test


def _not(term: Test[R]) -> Test[R]:
    def test(row: R) -> bool | None:
        verdict = term(row)
        return None if verdict is None else not verdict

    return test


def _all(terms: list[Test[R]]) -> Test[R]:
    def test(row: R) -> bool | None:
        verdict: bool | None = True
        for term in terms:
            found = term(row)
            if found is False:
                return False
            if found is None:
                verdict = None
        return verdict

    return test


def _any(terms: list[Test[R]]) -> Test[R]:
    def test(row: R) -> bool | None:
        verdict: bool | None = False
        for term in terms:
            found = term(row)
            if found is True:
                return True
            if found is None:
                verdict = None
        return verdict

    return test
