"""The kinds of values a configuration is made of: what each accepts, and how it says no.

A kind takes a parsed JSON value and returns it in normal form, or raises `ConfigError` with the path of the entry,
what is wrong and what to write instead. This module knows no entry by name; those are in `elea.api.configschema`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NoReturn, Protocol

from elea.api.json5 import Json
from elea.io.linkerrors import LocatorError
from elea.io.locator import host_port
from elea.model.errors import ConfigError, InvalidKeyExpr
from elea.model.keyexpr import check
from elea.model.node_id import NodeId
from elea.model.values import field, value_class

__all__ = [
    "Anything",
    "ByMode",
    "ByTarget",
    "Choice",
    "Either",
    "Field",
    "Flag",
    "Key",
    "Kind",
    "Listed",
    "Locator",
    "Matcher",
    "Node",
    "Nullable",
    "Real",
    "Record",
    "Section",
    "SizeRange",
    "SocketAddress",
    "Text",
    "Whole",
    "nearest",
    "refuse",
]

_MODES: Final = ("router", "peer", "client")
_WITH_PORT: Final = frozenset({"tcp", "udp", "tls", "quic", "quic-datagram", "ws", "wss"})


class Kind(Protocol):
    """What a value must be."""

    @property
    def expects(self) -> str:
        """What to write, for error messages."""

    def read(self, value: Json, path: str) -> Json:
        """The value in normal form; raises ConfigError if it is of another kind."""


def nearest(name: str, names: Iterable[str]) -> str:
    """What to say about a name that is none of `names`."""
    known = list(names)
    import difflib  # for mistakes only

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known here: {', '.join(known)}" if known else "no entries are known here"


def refuse(path: str, value: Json, expects: str) -> NoReturn:
    """Say no to a value."""
    raise ConfigError(path, f"{_shown(value)} does not belong here", f"write {expects}")


def _shown(value: Json) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:80]}…"


# -- single values ---------------------------------------------------------------------------------------------------


@value_class
class Anything:
    """Any JSON value; numbers that JSON does not have become null."""

    expects: str = "any JSON value"

    def read(self, value: Json, path: str) -> Json:
        if isinstance(value, list):
            return [self.read(item, path) for item in value]
        if isinstance(value, dict):
            return {name: self.read(item, path) for name, item in value.items()}
        return None if isinstance(value, float) and not math.isfinite(value) else value


@value_class
class Flag:
    """A truth value."""

    expects: str = "true or false"

    def read(self, value: Json, path: str) -> Json:
        return value if isinstance(value, bool) else refuse(path, value, self.expects)


@value_class
class Whole:
    """A whole number from `low` to `high`; one above `limit` counts as `limit` where the two differ.

    eclipse-zenoh cuts what does not fit the width of a field (`batch_size: 65536` is 65535). That is followed above
    the width, where the meaning is plain, and refused below it, where -1 would silently become 0.
    """

    low: int
    limit: int
    high: int | None = None

    @property
    def expects(self) -> str:
        top = self.high if self.high is not None else self.limit
        if top >= 1 << 31:
            return f"a whole number of at least {self.low}" if self.low >= 0 else "a whole number"
        return f"a whole number from {self.low} to {top}"

    def read(self, value: Json, path: str) -> Json:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < self.low:
            refuse(path, value, self.expects)
        if self.high is not None and value > self.high:
            refuse(path, value, self.expects)
        return min(value, self.limit)


@value_class
class Real:
    """A number."""

    expects: str = "a number"

    def read(self, value: Json, path: str) -> Json:
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse(path, value, self.expects)
        return float(value)


@value_class
class Text:
    """Any text, of at most `longest` bytes, perhaps not empty."""

    filled: bool = False
    longest: int | None = None

    @property
    def expects(self) -> str:
        limit = f" of at most {self.longest} bytes" if self.longest else ""
        return f"{'non-empty text' if self.filled else 'text'}{limit}"

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, str) or (self.filled and not value):
            refuse(path, value, self.expects)
        if self.longest is not None and len(value.encode()) > self.longest:
            refuse(path, value, self.expects)
        return value


@value_class
class Choice:
    """One of some names."""

    names: tuple[str, ...]

    @property
    def expects(self) -> str:
        return "one of " + ", ".join(f'"{name}"' for name in self.names)

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, str):
            refuse(path, value, self.expects)
        if value not in self.names:
            raise ConfigError(path, f"{value!r} is not {self.expects}", nearest(value, self.names))
        return value


@value_class
class Key:
    """A key expression, perhaps one without wildcards."""

    wild: bool = True

    @property
    def expects(self) -> str:
        return "a key expression" if self.wild else "a key without wildcards"

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, str):
            refuse(path, value, self.expects)
        try:
            check(value)
        except InvalidKeyExpr as error:
            raise ConfigError(path, str(error), f"write {self.expects}") from error
        if not self.wild and "*" in value:
            refuse(path, value, self.expects)
        return value


@value_class
class Node:
    """The identifier of a node."""

    expects: str = "1 to 32 lower-case hexadecimal digits, the first not 0"

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, str):
            refuse(path, value, self.expects)
        try:
            NodeId.parse(value)
        except ValueError:
            refuse(path, value, self.expects)
        return value


@value_class
class SocketAddress:
    """An IP address with a port."""

    expects: str = "an address such as 224.0.0.224:7446 or [ff02::224]:7446"

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, str):
            refuse(path, value, self.expects)
        import ipaddress  # not with the module: few configurations have such an address

        match = re.fullmatch(r"(?:\[(?P<six>[^\]]+)\]|(?P<four>[0-9.]+)):(?P<port>[0-9]{1,5})", value)
        try:
            if match is None or int(match["port"]) > 65_535:
                raise ValueError(value)
            if match["six"]:
                ipaddress.IPv6Address(match["six"])
            else:
                ipaddress.IPv4Address(match["four"])
        except ValueError:
            refuse(path, value, self.expects)
        return value


@value_class
class SizeRange:
    """A range of sizes such as `100..2000`, either bound left out."""

    expects: str = 'a range such as "100..2000", "..2000" or "100.."'

    def read(self, value: Json, path: str) -> Json:
        match = re.fullmatch(r"\+?([0-9]*)\.\.\+?([0-9]*)", value) if isinstance(value, str) else None
        if match is None or any(int(bound or 0) >= 1 << 64 for bound in match.groups()):
            refuse(path, value, self.expects)
        # eclipse-zenoh writes an open bound back as 0, which reads as another range; here it stays open.
        return f"{int(match[1]) if match[1] else ''}..{int(match[2]) if match[2] else ''}"


@value_class
class Locator:
    """An address text `protocol/address[?metadata][#options]`; its parameters are put in order."""

    expects: str = "a locator such as tcp/192.168.0.1:7447"

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, str):
            refuse(path, value, self.expects)
        protocol, _, address = value.partition("/")
        if not protocol or not address or re.search(r"[?#]", protocol):
            refuse(path, value, self.expects)
        before, sharp, options = value.partition("#")
        if "?" in options:
            raise ConfigError(path, f"{value!r} has '?' behind '#'", "write protocol/address?metadata#options")
        before, mark, metadata = before.partition("?")
        if protocol in _WITH_PORT:
            try:
                host_port(value, before.partition("/")[2])
            except LocatorError as error:
                raise ConfigError(path, f"{value!r}: {error.problem}", error.hint) from error
        return before + self._sorted(mark, metadata, path, value) + self._sorted(sharp, options, path, value)

    def _sorted(self, mark: str, text: str, path: str, value: str) -> str:
        if not mark:
            return ""
        pairs = [piece.partition("=") for piece in text.split(";") if piece]
        names = [name for name, _, _ in pairs]
        if not pairs or not all(names):
            problem = f"{value!r} has no name=value after {mark!r}"
            raise ConfigError(path, problem, "write for example tcp/[::]:7447#iface=eth0")
        ordered = sorted(pairs, key=lambda pair: pair[0])
        return mark + ";".join(f"{name}={text}" if text else name for name, _, text in ordered)


@value_class
class Matcher:
    """A set of modes, as a list."""

    expects: str = 'a list of "router", "peer", "client"'

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, list):
            refuse(path, value, self.expects)
        for index, mode in enumerate(value):
            Choice(_MODES).read(mode, f"{path}[{index}]")
        return [mode for mode in _MODES if mode in value]


# -- values made of values -------------------------------------------------------------------------------------------


@value_class
class Nullable:
    """A value or null."""

    kind: Kind

    @property
    def expects(self) -> str:
        return f"{self.kind.expects}, or null"

    def read(self, value: Json, path: str) -> Json:
        return None if value is None else self.kind.read(value, path)


@value_class
class Listed:
    """A list, perhaps not empty."""

    kind: Kind
    filled: bool = False

    @property
    def expects(self) -> str:
        return f"a {'non-empty ' if self.filled else ''}list of: {self.kind.expects}"

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, list) or (self.filled and not value):
            refuse(path, value, self.expects)
        return [self.kind.read(item, f"{path}[{index}]") for index, item in enumerate(value)]


@value_class
class Either:
    """An object of one kind, anything else of another."""

    object: Kind
    other: Kind

    @property
    def expects(self) -> str:
        return f"{self.other.expects}, or {self.object.expects}"

    def read(self, value: Json, path: str) -> Json:
        return (self.object if isinstance(value, dict) else self.other).read(value, path)


@value_class
class ByMode:
    """One value for all modes, or an object with a value for some of them."""

    kind: Kind

    @property
    def expects(self) -> str:
        return f"{self.kind.expects}, or {{router: …, peer: …, client: …}} of that"

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, dict):
            return self.kind.read(value, path)
        if isinstance(self.kind, ByTarget) and any(name.startswith("to_") for name in value):
            return self.kind.read(value, path)
        _only(value, _MODES, path)
        given = {mode: Nullable(self.kind).read(value[mode], f"{path}/{mode}") for mode in _MODES if mode in value}
        return {mode: item for mode, item in given.items() if item is not None}


@value_class
class ByTarget:
    """One value for all targets, or an object with a value for some of them."""

    kind: Kind

    @property
    def expects(self) -> str:
        return f"{self.kind.expects}, or {{to_router: …, to_peer: …, to_client: …}} of that"

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, dict):
            return self.kind.read(value, path)
        targets = [f"to_{mode}" for mode in _MODES]
        _only(value, targets, path)
        given = {name: Nullable(self.kind).read(value[name], f"{path}/{name}") for name in targets if name in value}
        return {name: item for name, item in given.items() if item is not None}


@value_class
class Record:
    """An object that is one value: entries that must be there, and others that default to null or to a value."""

    required: Mapping[str, Kind]
    optional: Mapping[str, Kind]
    defaults: Mapping[str, Json] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    @property
    def expects(self) -> str:
        return f"an object with {', '.join([*self.required, *self.optional])}"

    def read(self, value: Json, path: str) -> Json:
        if not isinstance(value, dict):
            refuse(path, value, self.expects)
        _only(value, [*self.required, *self.optional], path)
        found: dict[str, Json] = {}
        for name, kind in self.required.items():
            if name not in value:
                raise ConfigError(f"{path}/{name}", "this entry is missing", f"write {kind.expects}")
            found[name] = kind.read(value[name], f"{path}/{name}")
        for name, kind in self.optional.items():
            fallback = self.defaults.get(name)
            if name not in value or (value[name] is None and fallback is None):
                found[name] = fallback
            else:
                found[name] = kind.read(value[name], f"{path}/{name}")
        return {name: found[name] for name in self.order} if self.order else found


@value_class
class Field:
    """An entry of a section; a hidden one is not shown with its section, because it is a secret or has no effect."""

    kind: Kind
    default: Json = None
    hidden: bool = False


@value_class
class Section:
    """A part of the tree: entries with defaults, each of which can be read and set by its path."""

    entries: Mapping[str, Field | Section]
    agrees: Callable[[Mapping[str, Json], str], None] | None = None

    @property
    def expects(self) -> str:
        return f"an object with {', '.join(self.entries)}"

    def default(self) -> dict[str, Json]:
        """The section as it is when nothing is said."""
        # A field's default is read like any other value, which also makes it a copy.
        return {
            name: entry.default() if isinstance(entry, Section) else entry.default
            for name, entry in self.entries.items()
        }

    def read(self, value: Json, path: str) -> Json:
        """What is not given has its default, whatever it was before: so does eclipse-zenoh."""
        if not isinstance(value, dict):
            refuse(path or "configuration", value, self.expects)
        _only(value, self.entries, path)
        found = self.default()
        for name, item in value.items():
            entry = self.entries[name]
            kind = entry if isinstance(entry, Section) else entry.kind
            found[name] = kind.read(item, f"{path}/{name}" if path else name)
        if self.agrees is not None:
            self.agrees(found, path)
        return found

    def shown(self, value: Json) -> Json:
        """The values without the hidden ones."""
        if not isinstance(value, dict):
            return value
        return {
            name: entry.shown(value[name]) if isinstance(entry, Section) else value[name]
            for name, entry in self.entries.items()
            if isinstance(entry, Section) or not entry.hidden
        }


def _only(value: Mapping[str, Json], names: Iterable[str], path: str) -> None:
    known = list(names)
    for name in value:
        if name not in known:
            raise ConfigError(f"{path}/{name}" if path else name, "there is no such entry", nearest(name, known))
