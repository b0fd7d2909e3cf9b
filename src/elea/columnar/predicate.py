"""A predicate as an expression of `pyarrow.compute`: true, false or null, for every row the same as the closure says.

    table.filter(expression("speed > 2 AND name LIKE 'a%'", table.schema))

Arrow's own rules differ here and there, so nothing is left to them: integers are cast to doubles where a float is
beside them, short lists give null, patterns are regular expressions of RE2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.predicate import Predicate
from elea.model.predicate import typed as t
from elea.model.predicate.closure import type_at
from elea.model.predicate.constants import Given
from elea.model.predicate.functions import number_of, point_of
from elea.model.predicate.syntax import Field, Metadata
from elea.model.predicate.types import Enumeration, ListOf, Record, Scalar, Type

__all__ = ["FORMS", "expression", "record_of"]

Expression = Any
"""`pc.Expression`, for which there are no stubs."""

_COMPARE: dict[str, Callable[[Expression, Expression], Expression]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_CAST = {
    Scalar.FLOAT: pa.float64(),
    Scalar.STRING: pa.string(),
    Scalar.BOOLEAN: pa.bool_(),
    Scalar.INTEGER: pa.int64(),
    Scalar.TIME: pa.int64(),
}
_WIDE = pa.decimal128(20, 0)
"""What holds every integer of 64 bits, with and without a sign."""


def expression(
    predicate: Predicate | str,
    schema: pa.Schema,
    *,
    enumerations: Mapping[tuple[str, ...], Enumeration] | None = None,
    names: Mapping[str, str] | None = None,
    strict: bool = False,
    readable: Expression | None = None,
) -> Expression:
    """The expression of a predicate over columns.

    Args:
        enumerations: which columns have labels, or their numbers.
        names: values for names that are no columns.
        strict: refuse what would always be unknown.
        readable: whether the fields of a row could be read; where not, they are neither null nor not.

    Raises:
        InvalidPredicate: it makes no sense for these columns; a function has no form for columns.
    """
    predicate = Predicate.of(predicate)
    record = record_of(schema, enumerations)

    def type_of(leaf: t.Leaf) -> Type | None:
        path = _path_of(leaf)
        return None if path is None else type_at(record, path)

    compiler = _Compiler(predicate, schema, readable)
    return compiler.term(t.lower(predicate, type_of, names=names, strict=strict))


def record_of(schema: pa.Schema, enumerations: Mapping[tuple[str, ...], Enumeration] | None = None) -> Record:
    """The types of columns, as far as predicates care."""
    known = enumerations or {}
    return Record(tuple((field.name, _known_type(field, (field.name,), known)) for field in schema))


def _known_type(field: pa.Field, path: tuple[str, ...], known: Mapping[tuple[str, ...], Enumeration]) -> Type:
    if path in known:
        return known[path]
    its = field.type
    if pa.types.is_struct(its):
        return Record(tuple((each.name, _known_type(each, (*path, each.name), known)) for each in its))
    if pa.types.is_list(its) or pa.types.is_large_list(its) or pa.types.is_fixed_size_list(its):
        return ListOf(_known_type(its.value_field, (*path, "[]"), known))
    if pa.types.is_dictionary(its):
        its = its.value_type
    if pa.types.is_boolean(its):
        return Scalar.BOOLEAN
    if pa.types.is_integer(its):
        return Scalar.INTEGER
    if pa.types.is_floating(its) or pa.types.is_decimal(its):
        return Scalar.FLOAT
    if pa.types.is_string(its) or pa.types.is_large_string(its) or pa.types.is_string_view(its):
        return Scalar.STRING
    return Scalar.TIME if pa.types.is_timestamp(its) else Scalar.BINARY


def _path_of(leaf: t.Leaf) -> tuple[str | int, ...] | None:
    if isinstance(leaf, Field):
        return leaf.path
    return (leaf.name,) if isinstance(leaf, Metadata) else None


class _Compiler:
    def __init__(self, predicate: Predicate, schema: pa.Schema, readable: Expression | None) -> None:
        self._predicate = predicate
        self._schema = schema
        self._readable = readable

    def term(self, node: t.Term) -> Expression:
        match node:
            case t.All(terms):
                return _balanced(pc.and_kleene, [self.term(each) for each in terms])
            case t.Any(terms):
                return _balanced(pc.or_kleene, [self.term(each) for each in terms])
            case t.Opposite(each):
                return pc.invert(self.term(each))
            case t.Verdict(value):
                return pc.scalar(pa.scalar(value, pa.bool_()))
            case t.Compared(sign, left, right, domain):
                return self._compared(sign, left, right, domain)
            case t.Matching(value, pattern):
                return pc.match_substring_regex(_cast(self._value(value), pa.string()), pattern.re2())
            case t.Absent(value, is_content):
                is_null = self._is_null(value)
                if not is_content or self._readable is None:
                    return is_null
                return pc.if_else(self._readable, is_null, pc.scalar(pa.scalar(None, pa.bool_())))
            case _:
                return self._applied(node)

    def _is_null(self, value: t.Column | t.Applied | None) -> Expression:
        if value is None:
            return pc.scalar(True)
        # Of the column as it is: what is no label of an enumeration is no null.
        return pc.is_null(self._column(value) if isinstance(value, t.Column) else self._applied(value))

    def _compared(self, sign: str, left: t.Value, right: t.Value, domain: Scalar) -> Expression:
        to = _CAST.get(domain)
        if domain is Scalar.INTEGER and (self._is_unsigned(left) or self._is_unsigned(right)):
            to = _WIDE
        return _COMPARE[sign](self._as(left, domain, to), self._as(right, domain, to))

    def _as(self, value: t.Value, domain: Scalar, to: pa.DataType) -> Expression:
        """A value in the type that it is compared in."""
        if isinstance(value, t.Fixed):
            return pc.scalar(pa.scalar(float(value.value) if domain is Scalar.FLOAT else value.value, to))
        column = self._value(value)
        if domain is Scalar.TIME:
            return self._micros(value, column)
        is_plain = isinstance(value, t.Column) and isinstance(value.type, Scalar) and self._arrow_type(value) == to
        return column if is_plain else _cast(column, to)

    def _is_unsigned(self, value: t.Value) -> bool:
        """Whether it may be above what has a sign."""
        if isinstance(value, t.Fixed):
            return isinstance(value.value, int) and value.value >= 1 << 63
        return isinstance(value, t.Column) and self._arrow_type(value) == pa.uint64()

    def _micros(self, value: t.Value, column: Expression) -> Expression:
        """Microseconds since 1970."""
        unit = self._arrow_type(value).unit if isinstance(value, t.Column) else "us"
        if unit == "ns":  # cut to the microsecond before it, as Spark does; division would cut towards 1970
            return _cast(_cast(pc.floor_temporal(column, unit="microsecond"), pa.timestamp("us")), pa.int64())
        return pc.multiply(_cast(column, pa.int64()), pc.scalar({"s": 1_000_000, "ms": 1_000, "us": 1}[unit]))

    # -- values

    def _value(self, value: t.Value) -> Expression:
        assert not isinstance(value, t.Fixed)  # `_as` has seen to it
        if isinstance(value, t.Applied):
            return self._applied(value)
        column = self._column(value)
        if isinstance(value.type, Enumeration) and not pa.types.is_integer(self._arrow_type(value)):
            return _ordinals(_cast(column, pa.string()), value.type)
        if pa.types.is_dictionary(self._arrow_type(value)):
            return _cast(column, self._arrow_type(value).value_type)
        return column

    def _column(self, value: t.Column) -> Expression:
        path = _path_of(value.leaf)
        assert path is not None  # there is no column of a property
        column = pc.field(str(path[0]))
        its = self._schema.field(str(path[0])).type
        for step in path[1:]:
            if isinstance(step, int):
                # A list that is too short gives nulls, not an error.
                column = pc.list_slice(column, step, step + 1, return_fixed_size_list=True)
                column = pc.list_element(column, 0)
                its = its.value_type
            else:
                column = pc.struct_field(column, step)
                its = its.field(step).type
        return column

    def _arrow_type(self, value: t.Column) -> pa.DataType:
        path = _path_of(value.leaf) or ()
        its = self._schema.field(str(path[0])).type
        for step in path[1:]:
            its = its.value_type if isinstance(step, int) else its.field(step).type
        return its

    # -- functions

    def _applied(self, value: t.Applied) -> Expression:
        form = FORMS.get(value.function)
        if form is None:
            self._predicate.fail(self._predicate.condition, f"{value.function} has no form for columns")
        return form(*[self._argument(argument) for argument in value.arguments])

    def _argument(self, argument: t.Argument) -> Expression:
        """A column as a `_List` or an expression, and everything else as it is."""
        if not isinstance(argument, t.Column):
            return argument
        column = self._value(argument)
        if isinstance(argument.type, ListOf):
            return _List(column, argument.type.element)
        return _Number(column) if argument.type in (Scalar.INTEGER, Scalar.FLOAT) else None


class _Number:
    """A column of numbers, as doubles."""

    def __init__(self, column: Expression) -> None:
        self.column = _cast(column, pa.float64())


class _List:
    """A column of lists."""

    def __init__(self, column: Expression, element: Type) -> None:
        self.is_numeric = element in (Scalar.INTEGER, Scalar.FLOAT)
        self.length = pc.list_value_length(column)
        self._column = column

    def at(self, place: int) -> Expression:
        part = pc.list_slice(self._column, place, place + 1, return_fixed_size_list=True)
        return _cast(pc.list_element(part, 0), pa.float64())


def _cast(column: Expression, to: pa.DataType) -> Expression:
    """Not `safe`: an integer that a double does not hold exactly becomes the nearest one, as everywhere."""
    return column.cast(to, safe=False)


def _ordinals(column: Expression, its: Enumeration) -> Expression:
    """Labels as their numbers; what is no label is null."""
    found: Expression = pc.scalar(pa.scalar(None, pa.int64()))
    for label, number in its.labels:
        found = pc.if_else(pc.coalesce(pc.equal(column, pc.scalar(label)), pc.scalar(False)), pc.scalar(number), found)
    return found


def _balanced(both: Callable[[Expression, Expression], Expression], terms: list[Expression]) -> Expression:
    """All terms joined, as flat as can be: Arrow recurses."""
    while len(terms) > 1:
        terms = [reduce(both, terms[at : at + 2]) for at in range(0, len(terms), 2)]
    return terms[0]


_UNKNOWN: Expression = pc.scalar(pa.scalar(None, pa.float64()))


def _squares(p: object, q: object) -> Expression:
    """The squared distance of two points; null where they are none, or not of one dimension."""
    points = [tuple(point_of(each) or ()) if isinstance(each, Given | tuple) else each for each in (p, q)]
    found = _UNKNOWN
    for count in (1, 2, 3):
        guard, coordinates = pc.scalar(True), []
        for point in points:
            if isinstance(point, _List) and point.is_numeric:
                guard = pc.and_kleene(guard, pc.coalesce(pc.equal(point.length, pc.scalar(count)), pc.scalar(False)))
                coordinates.append([point.at(place) for place in range(count)])
            elif isinstance(point, tuple) and len(point) == count:
                coordinates.append([pc.scalar(float(number)) for number in point])
            else:
                break
        if len(coordinates) == 2:
            total = pc.scalar(0.0)
            for a, b in zip(*coordinates, strict=True):
                difference = pc.subtract(a, b)
                total = pc.add(total, pc.multiply(difference, difference))
            found = pc.if_else(guard, total, found)
    return found


def _number(value: object) -> Expression:
    if isinstance(value, _Number):
        return value.column
    number = number_of(value.value if isinstance(value, t.Fixed) else value)
    return _UNKNOWN if number is None else pc.scalar(number)


def _in_range(p: object, q: object, r: object) -> Expression:
    squares, radius = _squares(p, q), _number(r)
    is_near = pc.and_kleene(
        pc.greater_equal(radius, pc.scalar(0.0)), pc.less_equal(squares, pc.multiply(radius, radius))
    )
    known = pc.and_kleene(pc.is_valid(squares), pc.is_valid(radius))
    return pc.if_else(known, is_near, pc.scalar(pa.scalar(None, pa.bool_())))


FORMS: dict[str, Callable[..., Expression]] = {
    "inRange": _in_range,
    "distance": lambda p, q: pc.sqrt(_squares(p, q)),
}
"""Functions of columns, by name; arguments are `_List`, `_Number`, `Fixed`, `Given`, points as tuples, or None."""
