"""Functions that predicates may call, by name: `inRange` and `distance`, and what programs register.

A function gets values, None for unknown, and gives one; what it cannot make sense of is None, too. Columns need a form
of their own, in `elea.columnar` and `elea.spark`; a function without one is called row by row there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from elea.model.predicate.constants import Given, number_in, point_in
from elea.model.predicate.types import Scalar
from elea.model.values import value_class

__all__ = ["Function", "double", "find", "number_of", "point_of", "register"]


@value_class
class Function:
    """What a name stands for."""

    name: str
    evaluate: Callable[..., object]
    arity: int
    returns: Scalar = Scalar.BOOLEAN


_functions: dict[str, Function] = {}


def register(name: str, evaluate: Callable[..., object], *, arity: int, returns: Scalar = Scalar.BOOLEAN) -> None:
    """Make a function known to the predicates of this process; a name is given once.

    It gets values as they are: None, bool, int, float, str, list, dict, bytes or datetime; parameters as they were
    given. For the same values it gives the same.

    Raises:
        ValueError: the name is taken.
    """
    if name in _functions:
        raise ValueError(f"there is a function {name!r} already")
    _functions[name] = Function(name, evaluate, arity, returns)


def find(name: str) -> Function | None:
    """The function of that name; names differ by case."""
    return _functions.get(name)


def point_of(value: object) -> Sequence[float] | None:
    """One to three numbers, or None."""
    if type(value) is Given:
        return point_in(value)
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= 3:
        return None
    numbers = [number_of(each) for each in value]
    return None if None in numbers else [number for number in numbers if number is not None]


def number_of(value: object) -> float | None:
    """A number as a double, or None."""
    if type(value) is Given:
        value = number_in(value)
    if type(value) is float:
        return value
    return double(value) if type(value) is int else None


def double(value: int) -> float:
    """A whole number as a double; one that no double can hold is beyond all of them."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _squares(p: object, q: object) -> float | None:
    """The squared distance: the same products and sums in every compiler, so that none rounds otherwise."""
    first, second = point_of(p), point_of(q)
    if first is None or second is None or len(first) != len(second):
        return None
    total = 0.0
    for a, b in zip(first, second, strict=True):
        total += (a - b) * (a - b)
    return total


def in_range(p: object, q: object, r: object) -> bool | None:
    """Whether two points lie at most `r` apart. Spec: zenoh-2018.md section 6."""
    squares, radius = _squares(p, q), number_of(r)
    if squares is None or radius is None:
        return None
    return radius >= 0 and squares <= radius * radius


def distance(p: object, q: object) -> float | None:
    """How far apart two points lie."""
    squares = _squares(p, q)
    return None if squares is None else math.sqrt(squares)


register("inRange", in_range, arity=3)
register("distance", distance, arity=2, returns=Scalar.FLOAT)
