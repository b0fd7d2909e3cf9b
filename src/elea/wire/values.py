"""What makes a named tuple a message value: equal only to its own kind."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["message"]

C = TypeVar("C", bound=type)


def message(cls: C) -> C:
    """Class decorator: values compare equal only within their class.

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
