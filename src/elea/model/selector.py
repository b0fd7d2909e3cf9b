"""Selectors of Zenoh 1.x: a key expression and parameters, `home/*/temp?_time=[now(-60s)..];unit=C`.

Parameters stay the text they came as, because they travel verbatim; they are looked into when asked. Names,
methods and corner cases are those of eclipse-zenoh's Python API. Spec: zenoh-1.md section 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from elea.model.errors import InvalidSelector
from elea.model.keyexpr import KeyExpr

if TYPE_CHECKING:
    from elea.model.timerange import TimeRange

__all__ = ["Parameters", "Selector"]


class Parameters:
    """Named values in order; of a name given twice the first one counts.

    >>> parameters = Parameters("unit=C;room=1|2;fast")
    >>> parameters.get("unit"), parameters.values("room"), parameters.get("fast"), parameters.get("slow")
    ('C', ['1', '2'], '', None)
    >>> parameters.insert("unit", "F")
    'C'
    >>> str(parameters)
    'room=1|2;fast;unit=F'
    """

    __slots__ = ("_text",)
    __hash__ = None  # type: ignore[assignment]  # it changes, so it is no key of a dict
    _text: str

    def __init__(self, parameters: Mapping[str, str] | Parameters | str | None = None) -> None:
        if isinstance(parameters, Parameters):
            self._text = parameters._text
        elif isinstance(parameters, str):
            # Spec: separators at the end are cut, also those of a value such as `a=QQ==`, as eclipse-zenoh
            # does.
            self._text = parameters.rstrip(";=|")
        else:
            self._text = _join([_checked(*pair) for pair in (parameters or {}).items()])

    def is_empty(self) -> bool:
        """Whether there is no parameter."""
        return not self._text

    def is_ordered(self) -> bool:
        """Whether the names are in alphabetical order."""
        names = [name for name, _ in self]
        return names == sorted(names)

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value of a name, empty if it was given without one."""
        for name, value in self:
            if name == key:
                return value
        return default

    def values(self, key: str) -> list[str]:
        """The values of a name, which `|` parts."""
        value = self.get(key)
        return [] if value is None else value.split("|")

    def insert(self, key: str, value: str) -> str | None:
        """Put a value last, in place of the one the name had, which is returned.

        Raises:
            InvalidSelector: the name or value contains what would part it from itself.
        """
        pair = _checked(key, value)
        old = self.remove(key)
        self._text = _join([*self, pair])
        return old

    def remove(self, key: str) -> str | None:
        """Take a name away and return the value it had."""
        old = self.get(key)
        self._text = _join([pair for pair in self if pair[0] != key])
        return old

    def extend(self, parameters: Mapping[str, str] | Parameters | str) -> None:
        """Take the other parameters, which win over those of the same name."""
        added = list(Parameters(parameters))
        names = {name for name, _ in added}
        self._text = _join([*(pair for pair in self if pair[0] not in names), *added])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for piece in self._text.split(";"):
            if piece:
                name, _, value = piece.partition("=")
                yield name, value

    def __contains__(self, key: object) -> bool:
        return any(name == key for name, _ in self)

    def __getitem__(self, key: str) -> str | None:
        return self.get(key)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            other = Parameters(other)
        return self._first() == other._first() if isinstance(other, Parameters) else NotImplemented

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Parameters({self._text!r})"

    def _first(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in self:
            found.setdefault(name, value)
        return found


class Selector:
    """A key expression with parameters; both are copies, so that a selector never changes.

    >>> selector = Selector("home/*/temp?_time=[now(-60s)..]")
    >>> selector.key_expr == "home/*/temp", str(selector.time_range)
    (True, '[now(-60s)..]')
    """

    __slots__ = ("_key_expr", "_parameters")
    _key_expr: KeyExpr
    _parameters: str

    def __init__(self, arg: KeyExpr | str, /, parameters: Mapping[str, str] | Parameters | str | None = None) -> None:
        text: str | None = None
        if isinstance(arg, str) and parameters is None:
            arg, _, text = arg.partition("?")
        self._key_expr = arg if isinstance(arg, KeyExpr) else KeyExpr(arg)
        self._parameters = str(Parameters(parameters if text is None else text))

    @property
    def key_expr(self) -> KeyExpr:
        """The keys asked about."""
        return self._key_expr

    @property
    def parameters(self) -> Parameters:
        """A copy of the parameters."""
        return Parameters(self._parameters)

    @property
    def time_range(self) -> TimeRange | None:
        """The range of the parameter `_time`, if given.

        Raises:
            InvalidSelector: it is no time range.
        """
        value = self.parameters.get("_time")
        if value is None:
            return None
        if value[:1] in ("[", "]") and value[-1:] not in ("[", "]"):
            # Spec: `;` parts parameters as well, so that `[start;duration]` is cut in two on its way.
            raise InvalidSelector(str(self), "a '_time' with ';' cannot travel; write '[start..end]'")
        from elea.model.timerange import TimeRange  # not with the module: few selectors have one

        return TimeRange.parse(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self._key_expr == other._key_expr and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash(self._key_expr)

    def __str__(self) -> str:
        return f"{self._key_expr}?{self._parameters}" if self._parameters else str(self._key_expr)

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})"


def _join(pairs: list[tuple[str, str]]) -> str:
    return ";".join(f"{name}={value}" if value else name for name, value in pairs if name)


def _checked(name: str, value: str) -> tuple[str, str]:
    """A pair that stays one when written; a nameless one is dropped when joined, as eclipse-zenoh does."""
    if ";" in name or "=" in name or ";" in value:
        shown = f"{name}={value}"
        raise InvalidSelector(shown, "a parameter has no ';', and its name no '='")
    return name, value
