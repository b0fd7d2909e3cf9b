"""`MessageValue`: the base of message values, named tuples that equal only their own kind."""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]
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
# itself would compile the annotation of every field and `collections` the constructor of every class: 100 and 60
# against 15 µs a class, 3 ms of every program's start. Here a constructor is compiled when it is first called.
if TYPE_CHECKING:
    from typing import NamedTuple as MessageValue
else:

    class _Kind(type):
        """Makes the named tuple that a class statement describes."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}

            def first(cls, *args, **kwargs):
                made.__new__ = staticmethod(_constructor(made))
                return made.__new__(cls, *args, **kwargs)

            given = {field: _tuplegetter(place, f"Field {place}") for place, field in enumerate(fields)}
            given |= {"__new__": first, "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            given |= {one: body[one] for one in _KEPT if one in body}
            made = type(name, (tuple,), {**_NAMED, **given})
            return made

    class MessageValue(metaclass=_Kind):
        """A message value."""

    def _constructor(cls):
        """`__new__`, as `collections.namedtuple` makes it."""
        fields = "".join(f"{field}, " for field in cls._fields)
        made = eval(f"lambda _cls, {fields}: _new(_cls, ({fields}))", {"_new": tuple.__new__})
        made.__defaults__ = tuple(cls._field_defaults.values())
        made.__qualname__ = f"{cls.__qualname__}.__new__"  # named by Python when it is called wrongly
        return made

    @classmethod
    def _make(cls, fields):
        """A value of fields in their order."""
        return cls(*fields)

    def _replace(self, /, **changes):
        """A copy with some fields changed."""
        return type(self)(**{**self._asdict(), **changes})

    def _asdict(self):
        """Names and values of the fields."""
        return dict(zip(self._fields, self, strict=True))

    def _repr(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

    _KEPT = ("__annotations__", "__doc__", "__module__", "__qualname__")
    _NAMED = {
        "__slots__": (),
        "__eq__": _equal,
        "__ne__": _unequal,
        "__hash__": _hash,
        "__repr__": _repr,
        "__getnewargs__": lambda self: tuple(self),
        "_asdict": _asdict,
        "_make": _make,
        "_replace": _replace,
    }
