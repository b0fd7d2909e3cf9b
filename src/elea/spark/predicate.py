"""A predicate as a Spark `Column`: true, false or null, for every row the same as the closure says.

    frame.where(elea.spark.predicate.column("speed > 2 AND name LIKE 'a%'", frame.schema))

Spark's own rules differ in places: NaN is equal to itself there and above all numbers, LIKE has an escape and its
patterns may take exponential time, a place behind the end of an array is an error in ANSI mode.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the field's name for it
from pyspark.sql import types as T  # noqa: N812

from elea.model.predicate import Predicate
from elea.model.predicate import typed as t
from elea.model.predicate.closure import type_at
from elea.model.predicate.constants import Given
from elea.model.predicate.functions import number_of, point_of
from elea.model.predicate.meeting import OPERATORS
from elea.model.predicate.syntax import Field, Metadata
from elea.model.predicate.types import Enumeration, ListOf, Record, Scalar, Type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["FORMS", "column", "record_of"]

_CAST = {
    Scalar.FLOAT: "double",
    Scalar.STRING: "string",
    Scalar.BOOLEAN: "boolean",
    Scalar.INTEGER: "bigint",
    Scalar.TIME: "bigint",
}
_BEYOND = "decimal(20,0)"
"""What holds an integer constant that is above 2^63."""


def column(
    predicate: Predicate | str,
    schema: StructType,
    *,
    enumerations: Mapping[tuple[str, ...], Enumeration] | None = None,
    names: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Column:
    """The column of a predicate over those of a DataFrame.

    Args:
        enumerations: which columns have labels, or their numbers.
        names: values for names that are no columns.
        strict: refuse what would always be unknown.

    Raises:
        InvalidPredicate: it makes no sense for these columns; a function has no form for columns.
    """
    predicate = Predicate.of(predicate)
    record = record_of(schema, enumerations)

    def type_of(leaf: t.Leaf) -> Type | None:
        path = _path_of(leaf)
        return None if path is None else type_at(record, path)

    return _Compiler(predicate, schema).term(t.lower(predicate, type_of, names=names, strict=strict))


def record_of(schema: StructType, enumerations: Mapping[tuple[str, ...], Enumeration] | None = None) -> Record:
    """The types of columns, as far as predicates care."""
    return Record(tuple((each.name, _type_of(each.dataType, (each.name,), enumerations or {})) for each in schema))


def _type_of(its: DataType, path: tuple[str, ...], known: Mapping[tuple[str, ...], Enumeration]) -> Type:
    if path in known:
        return known[path]
    if isinstance(its, T.StructType):
        return Record(tuple((each.name, _type_of(each.dataType, (*path, each.name), known)) for each in its))
    if isinstance(its, T.ArrayType):
        return ListOf(_type_of(its.elementType, (*path, "[]"), known))
    if isinstance(its, T.BooleanType):
        return Scalar.BOOLEAN
    if isinstance(its, T.IntegralType):
        return Scalar.INTEGER
    if isinstance(its, T.FractionalType | T.DecimalType):
        return Scalar.FLOAT
    if isinstance(its, T.TimestampType | T.TimestampNTZType):
        return Scalar.TIME
    return Scalar.STRING if isinstance(its, T.StringType) else Scalar.BINARY


def _path_of(leaf: t.Leaf) -> tuple[str | int, ...] | None:
    if isinstance(leaf, Field):
        return leaf.path
    return (leaf.name,) if isinstance(leaf, Metadata) else None


class _Compiler:
    def __init__(self, predicate: Predicate, schema: StructType) -> None:
        self._predicate = predicate
        self._schema = schema

    def term(self, node: t.Term) -> Column:
        match node:
            case t.All(terms):
                return reduce(operator.and_, [self.term(each) for each in terms])
            case t.Any(terms):
                return reduce(operator.or_, [self.term(each) for each in terms])
            case t.Opposite(each):
                return ~self.term(each)
            case t.Verdict(value):
                return F.lit(value).cast("boolean")
            case t.Compared(sign, left, right, domain):
                return self._compared(sign, left, right, domain)
            case t.Matching(value, pattern):
                return self._value(value).rlike(pattern.java())
            case t.Absent(value):
                return self._is_null(value)
            case t.Applied():
                return self._applied(node)

    def _is_null(self, value: t.Column | t.Applied | None) -> Column:
        if value is None:
            return F.lit(True)
        # Of the column as it is: what is no label of an enumeration is no null.
        return (self._column(value)[0] if isinstance(value, t.Column) else self._applied(value)).isNull()

    def _compared(self, sign: str, left: t.Value, right: t.Value, domain: Scalar) -> Column:
        is_wide = any(isinstance(each, t.Fixed) and _is_beyond(each.value) for each in (left, right))
        to = _BEYOND if is_wide and domain is Scalar.INTEGER else _CAST[domain]
        first, second = self._as(left, domain, to), self._as(right, domain, to)
        found: Column = OPERATORS[sign](first, second)  # type: ignore[assignment]  # columns make columns
        if domain is not Scalar.FLOAT:
            return found
        is_known = first.isNotNull() & second.isNotNull()
        return F.when(is_known & (F.isnan(first) | F.isnan(second)), F.lit(sign == "<>")).otherwise(found)

    def _as(self, value: t.Value, domain: Scalar, to: str) -> Column:
        """A value in the type that it is compared in."""
        if isinstance(value, t.Fixed):
            if domain is Scalar.FLOAT:
                return F.lit(float(value.value))
            # As a text: Python's integers above 2^63 are no literals of Spark.
            return F.lit(str(value.value) if to == _BEYOND else value.value).cast(to)
        if domain is Scalar.TIME:
            return F.unix_micros(self._value(value).cast("timestamp"))
        return self._value(value).cast(to)

    # -- values

    def _value(self, value: t.Value) -> Column:
        if isinstance(value, t.Fixed):
            return F.lit(value.value)
        if isinstance(value, t.Applied):
            return self._applied(value)
        column, its = self._column(value)
        if isinstance(value.type, Enumeration) and isinstance(its, T.StringType):
            return _ordinals(column, value.type)
        return column

    def _column(self, value: t.Column) -> tuple[Column, DataType]:
        path = _path_of(value.leaf)
        assert path is not None  # there is no column of a property
        column = F.col(_quoted(str(path[0])))
        its = self._schema[str(path[0])].dataType
        for step in path[1:]:
            if isinstance(step, int):
                column = F.get(column, step)  # null behind the end
                assert isinstance(its, T.ArrayType)
                its = its.elementType
            else:
                column = column.getField(step)
                assert isinstance(its, T.StructType)
                its = its[step].dataType
        return column, its

    # -- functions

    def _applied(self, value: t.Applied) -> Column:
        form = FORMS.get(value.function)
        if form is None:
            self._predicate.fail(self._predicate.condition, f"{value.function} has no form for columns")
        return form(*[self._argument(argument) for argument in value.arguments])

    def _argument(self, argument: t.Argument) -> object:
        if not isinstance(argument, t.Column):
            return argument
        column = self._value(argument)
        if isinstance(argument.type, ListOf):
            return _List(column, argument.type.element)
        return column.cast("double") if argument.type in (Scalar.INTEGER, Scalar.FLOAT) else None


class _List:
    """A column of arrays."""

    def __init__(self, column: Column, element: Type) -> None:
        self.is_numeric = element in (Scalar.INTEGER, Scalar.FLOAT)
        self.length = F.size(column)
        self._column = column

    def at(self, place: int) -> Column:
        return F.get(self._column, place).cast("double")


def _is_beyond(value: object) -> bool:
    return isinstance(value, int) and value >= 1 << 63


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _ordinals(column: Column, its: Enumeration) -> Column:
    """Labels as their numbers; what is no label is null."""
    found = F.when(F.lit(False), F.lit(0).cast("bigint"))
    for label, number in its.labels:
        found = found.when(column == F.lit(label), F.lit(number).cast("bigint"))
    return found


def _squares(p: object, q: object) -> Column:
    """The squared distance of two points; null where they are none, or not of one dimension."""
    points = [tuple(point_of(each) or ()) if isinstance(each, Given | tuple) else each for each in (p, q)]
    found = F.when(F.lit(False), F.lit(0.0))
    for count in (1, 2, 3):
        guard, coordinates = F.lit(True), list[list[Column]]()
        for point in points:
            if isinstance(point, _List) and point.is_numeric:
                guard = guard & (point.length == count)
                coordinates.append([point.at(place) for place in range(count)])
            elif isinstance(point, tuple) and len(point) == count:
                coordinates.append([F.lit(float(number)) for number in point])
            else:
                break
        if len(coordinates) == 2:
            total = F.lit(0.0)
            for a, b in zip(*coordinates, strict=True):
                total = total + (a - b) * (a - b)
            found = found.when(guard, total)
    return found


def _number(value: object) -> Column:
    if isinstance(value, Column):
        return value
    number = number_of(value.value if isinstance(value, t.Fixed) else value)
    return F.lit(number).cast("double")


def _in_range(p: object, q: object, r: object) -> Column:
    squares, radius = _squares(p, q), _number(r)
    is_number = ~F.isnan(squares) & ~F.isnan(radius)
    is_near = is_number & (radius >= 0) & (squares <= radius * radius)
    return F.when(squares.isNotNull() & radius.isNotNull(), is_near)


FORMS: dict[str, Callable[..., Column]] = {
    "inRange": _in_range,
    "distance": lambda p, q: F.sqrt(_squares(p, q)),
}
"""Functions of columns, by name; arguments are `_List`, a column of doubles, `Fixed`, `Given`, a point, or None."""
