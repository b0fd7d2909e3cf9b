"""`MessageValue`: the base of message values, named tuples that equal only their own kind."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, TypeVar

__all__ = ["MessageValue", "message"]

C = TypeVar("C", bound=type)


def message(cls: C) -> C:
    """Class decorator of named tuples: values compare equal only within their class.

    Named tuples are immutable, printable, and three to five times cheaper to build than frozen dataclasses (140
    against 690 ns for six fields), but as tuples `AckNack(1, None)` would equal `Scout(1, None)`.
    """
    for name, method in (("__eq__", _equal), ("__ne__", _unequal), ("__hash__", _hash)):
        setattr(cls, name, method)
    return cls


def _equal(self: tuple[object, ...], other: object) -> bool:
    return type(self) is type(other) and tuple.__eq__(self, other)


def _unequal(self: tuple[object, ...], other: object) -> bool:
    return not _equal(self, other)


def _hash(self: tuple[object, ...]) -> int:
    return hash((type(self).__name__, tuple.__hash__(self)))


# `class Push(MessageValue)` is written as one writes a `typing.NamedTuple`, and type checkers take it for one. `typing`
# itself would compile the annotation of every field: 100 against 40 µs a class and 1 ms for the first, 5 ms of every
# program's start.
if TYPE_CHECKING:
    from typing import NamedTuple as MessageValue
else:

    class _Kind(type):
        """Makes the named tuple that a class statement describes."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body["__annotations__"]
            defaults = [body[field] for field in fields if field in body]
            made = message(namedtuple(name, fields, defaults=defaults, module=body["__module__"]))
            made.__annotations__ = fields
            made.__doc__ = body.get("__doc__", made.__doc__)
            return made

    class MessageValue(metaclass=_Kind):
        """A message value."""
