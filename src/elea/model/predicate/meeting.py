"""What meets what in a comparison: the rules of types, for values and for columns.

Equal kinds compare. An integer beside a float becomes one. An enumeration meets its labels and integers, a boolean
TRUE, FALSE, 1 and 0, a time an instant in text. Everything else is no comparison: unknown for values that come as
they come, an error where the type is known beforehand. Spec: zenoh-2018.md section 6, dds.md section 5.

# Spec: booleans are equal or not; the papers give them no order. Floats compare as IEEE 754 has it: NaN is equal to
# nothing and unequal to everything, and no unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from elea.model.predicate.constants import Constant
from elea.model.predicate.functions import double
from elea.model.predicate.types import Enumeration, Label, Scalar, Type

__all__ = ["MIRRORED", "OPERATORS", "compare", "domain_of", "meet", "microseconds"]

OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
EQUALITY: Final = frozenset({"=", "<>"})

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """Since 1970; a time without a zone is of UTC."""
    return ((time.replace(tzinfo=UTC) if time.tzinfo is None else time) - _EPOCH) // _MICROSECOND


def compare(sign: str, left: object, right: object) -> bool | None:
    """Compare two values of any type; a `Constant` becomes what it meets. None is unknown."""
    if type(left) is Constant:
        if type(right) is not Constant:
            return compare(MIRRORED[sign], right, left)
        left = left.text if left.number is None or right.number is None else left.number
    if isinstance(left, Label):
        right = meet(left.enumeration, right) if type(right) is Constant else right
        left = int(left)
    if isinstance(right, Label):
        right = int(right)
    if type(right) is Constant:
        right = _reading(right, left)
    if left is None or right is None:
        return None
    if isinstance(left, Decimal):
        left = float(left)
    if isinstance(right, Decimal):
        right = float(right)
    kind, other = type(left), type(right)
    if kind is not other:
        if kind is int and other is float:
            left = double(left)  # type: ignore[arg-type]
        elif kind is float and other is int:
            right = double(right)  # type: ignore[arg-type]
        else:
            return None
    elif kind is bool:
        return OPERATORS[sign](left, right) if sign in EQUALITY else None
    elif kind is datetime:
        left, right = microseconds(left), microseconds(right)  # type: ignore[arg-type]
    elif kind is not int and kind is not float and kind is not str:
        return None
    return OPERATORS[sign](left, right)


def _reading(constant: Constant, value: object) -> object:
    """A constant as it meets a value."""
    if isinstance(value, bool):
        return constant.boolean
    if isinstance(value, int | float | Decimal):
        return constant.number
    if isinstance(value, str):
        return constant.text
    if isinstance(value, datetime) and constant.time_us is not None:
        return _EPOCH + constant.time_us * _MICROSECOND
    return None


def meet(type: Type, constant: Constant) -> bool | int | float | str | None:
    """A constant as it meets a field of a known type; None if they do not meet. Times are in microseconds."""
    if isinstance(type, Enumeration):
        if constant.text is not None:
            number = type.number(constant.text)
            return number if number is not None else constant.number  # a parameter may be a number in text
        return constant.number
    if type is Scalar.BOOLEAN:
        return constant.boolean
    if type is Scalar.INTEGER or type is Scalar.FLOAT:
        return constant.number
    if type is Scalar.STRING:
        return constant.text
    return constant.time_us if type is Scalar.TIME else None


def domain_of(sign: str, left: Type, right: Type) -> Scalar | None:
    """As what two types are compared; None if they are not."""
    left, right = _plain(left), _plain(right)
    if left is right and isinstance(left, Scalar) and left is not Scalar.BINARY:
        return left if left is not Scalar.BOOLEAN or sign in EQUALITY else None
    numbers = (Scalar.INTEGER, Scalar.FLOAT)
    return Scalar.FLOAT if left in numbers and right in numbers else None


def _plain(type: Type) -> Type:
    return Scalar.INTEGER if isinstance(type, Enumeration) else type
