"""`value_class`: what `@dataclass(frozen=True, slots=True)` gives, for a tenth of the time that making the class takes.

A dataclass costs half a millisecond of every program's start, because its six methods are compiled there and then, and
`dataclasses` itself brings `inspect` (6 ms, 1 MB). On the way of a client to an open session there are some sixty.
Here the constructor is compiled when it has been called a few times, and all classes share the other methods.

Type checkers take the classes for dataclasses (PEP 681), and so do `dataclasses.replace`, `fields` and `asdict`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar, cast, dataclass_transform, overload

__all__ = ["field", "mypyc_attr", "replaced", "value_class"]

T = TypeVar("T")
C = TypeVar("C", bound=type)

# What mypyc is told about a class that it compiles; the package of that name is not needed to run.
if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_):
        return lambda cls: cls


COMPILED_AFTER: Final = 16
"""Calls of a constructor before it is compiled, which takes as long as twenty: most settings are made once."""

_MADE: Final = object()
"""The default, in the signature, of what is made for each value."""


class _Factory:
    __slots__ = ("make",)

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], T]) -> T:
    """A default of which every value gets its own."""
    return cast(T, _Factory(default_factory))


def replaced(value: T, **changes: object) -> T:
    """A copy with some fields changed."""
    fields: dict[str, object] = {name: getattr(value, name) for name in _names(type(value))}
    return type(value)(**{**fields, **changes})


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: C, /) -> C: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(*, frozen: bool = True, order: bool = False) -> Callable[[C], C]: ...


def value_class(cls: C | None = None, /, *, frozen: bool = True, order: bool = False) -> C | Callable[[C], C]:
    """Class decorator: fields from annotations, in slots; made, compared, hashed and printed by them.

    What the class defines itself stays. Its own `__slots__` are no fields, but for what a value remembers of itself. A
    class that is not frozen has no hash.

    >>> @value_class
    ... class Place:
    ...     row: int
    ...     column: int = 0
    >>> Place(1), Place(1) == Place(1, 0)
    (Place(row=1, column=0), True)
    """

    def decorate(cls: C) -> C:
        return cast(C, _make(cls, frozen, order))

    return decorate if cls is None else decorate(cls)


def _make(cls: type, frozen: bool, order: bool) -> type:
    names = tuple(name for name, kind in cls.__annotations__.items() if "ClassVar" not in str(kind))
    own = tuple(cls.__dict__.get("__slots__", ()))
    left_out = ("__dict__", "__weakref__", "__slots__", *own)
    body = {name: item for name, item in cls.__dict__.items() if name not in left_out}
    defaults = {name: body.pop(name) for name in names if name in body}

    calls = 0

    def init(self: object, *args: object, **kwargs: object) -> None:
        nonlocal calls
        calls += 1
        fields = None if calls > COMPILED_AFTER else _fields(names, defaults, args, kwargs)
        if fields is None:  # or it is called wrongly, which the compiled one can say best
            constructor = _constructor(made, names, defaults, frozen)
            made.__init__ = constructor  # type: ignore[misc]
            constructor(self, *args, **kwargs)
            return
        for name, item in fields.items():
            object.__setattr__(self, name, item)
        if post_init is not None:
            post_init(self)

    given = {"__slots__": names + own, "__match_args__": names, "__init__": init, "_parts": _getter(names), **_METHODS}
    given |= _FROZEN if frozen else _NOT_FROZEN
    if order:
        given |= _ORDERED
    # Slots must be there when a class is made, so it is made again.
    made = type(cls)(cls.__name__, cls.__bases__, {**given, **body})
    post_init: Callable[[object], None] | None = getattr(made, "__post_init__", None)
    return made


def _getter(names: tuple[str, ...]) -> object:
    """What takes the fields out of a value, as a tuple, to compare and to hash."""
    if len(names) > 1:
        return attrgetter(*names)
    return staticmethod(lambda value: tuple(getattr(value, name) for name in names))


def _fields(
    names: tuple[str, ...], defaults: Mapping[str, object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> dict[str, object] | None:
    """The fields that a call gives, with the defaults; None if it is no right call."""
    fields = dict(zip(names, args, strict=False))
    fields.update(kwargs)
    if len(fields) < len(args) + len(kwargs):
        return None
    for name, default in defaults.items():
        if name not in fields:
            fields[name] = default.make() if isinstance(default, _Factory) else default
    return fields if fields.keys() == set(names) else None


def _constructor(
    cls: type, names: tuple[str, ...], defaults: Mapping[str, object], frozen: bool
) -> Callable[..., None]:
    """`__init__`, as one would write it."""
    scope: dict[str, object] = {"_MADE": _MADE}
    parameters, lines = ["self"], []
    for name in names:
        parameter = name
        if name in defaults:
            default = defaults[name]
            scope[f"_default_{name}"] = default.make if isinstance(default, _Factory) else default
            parameter = f"{name}=_default_{name}"
            if isinstance(default, _Factory):
                parameter = f"{name}=_MADE"
                lines.append(f"if {name} is _MADE: {name} = _default_{name}()")
        parameters.append(parameter)
        # The slot itself is not frozen, and half again as fast as `object.__setattr__`.
        scope[f"_set_{name}"] = cls.__dict__[name].__set__
        lines.append(f"_set_{name}(self, {name})" if frozen else f"self.{name} = {name}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), scope)
    constructor = cast("Callable[..., None]", scope["__init__"])
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"  # named by Python when it is called wrongly
    return constructor


def _names(cls: type) -> tuple[str, ...]:
    return cast("tuple[str, ...]", cls.__match_args__)  # type: ignore[attr-defined]


# -- the methods that all share ----------------------------------------------------------------------------------------


class _Value:
    """The shape of a value, for the methods below."""

    _parts: Callable[[object], tuple[object, ...]]


def _repr(self: _Value) -> str:
    fields = (f"{name}={getattr(self, name)!r}" for name in _names(type(self)))
    return f"{type(self).__qualname__}({', '.join(fields)})"


def _eq(self: _Value, other: _Value) -> bool:
    return self._parts(self) == other._parts(other) if type(self) is type(other) else NotImplemented


def _lt(self: _Value, other: _Value) -> bool:
    return self._parts(self) < other._parts(other) if type(self) is type(other) else NotImplemented


def _le(self: _Value, other: _Value) -> bool:
    return self._parts(self) <= other._parts(other) if type(self) is type(other) else NotImplemented


def _gt(self: _Value, other: _Value) -> bool:
    return self._parts(self) > other._parts(other) if type(self) is type(other) else NotImplemented


def _ge(self: _Value, other: _Value) -> bool:
    return self._parts(self) >= other._parts(other) if type(self) is type(other) else NotImplemented


def _hash(self: _Value) -> int:
    return hash(self._parts(self))


def _reduce(self: _Value) -> tuple[type, tuple[object, ...]]:
    return type(self), tuple(getattr(self, name) for name in _names(type(self)))


def _refuse(self: object, name: str, value: object = None) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change field {name!r}: a {type(self).__name__} stays as it was made")


class _Fields:
    """What `dataclasses` looks for in a class; made when it does."""

    def __get__(self, _: object, cls: type) -> object:
        from dataclasses import make_dataclass

        return make_dataclass(cls.__name__, _names(cls)).__dataclass_fields__  # type: ignore[attr-defined]


_METHODS: Final[dict[str, object]] = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__reduce__": _reduce,
    "__dataclass_fields__": _Fields(),
}
_FROZEN: Final[dict[str, object]] = {"__hash__": _hash, "__setattr__": _refuse, "__delattr__": _refuse}
_NOT_FROZEN: Final[dict[str, object]] = {"__hash__": None}
_ORDERED: Final[dict[str, object]] = {"__lt__": _lt, "__le__": _le, "__gt__": _gt, "__ge__": _ge}
