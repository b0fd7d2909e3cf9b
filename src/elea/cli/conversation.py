"""What two nodes say to each other over one stream, message by message, as somebody between them sees it.

Follows the handshake into compression and low latency (`elea.wire.framing`), puts fragments together, and names keys
by what was declared. It knows neither sockets nor how messages are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from elea.model.errors import DecodeError, EncodeError
from elea.model.limits import CLI_UNIT_BYTES, MAX_BATCH
from elea.wire.dialect import Dialect, Json
from elea.wire.framing import Direction, EarlyDirection, Framed, Handshake, Zenoh1Direction
from elea.wire.primitives import write_nat

__all__ = ["Conversation", "Seen"]

MAX_KEYS: Final = 100_000
"""Declared keys remembered of one side; later ones are shown by their number."""

NOT_DETAILS: Final = frozenset({"_", "kind", "payload", "cookie", "chunk_sha256", "zid_len", "version", "raw"})

Form = dict[str, Json]


class Seen(NamedTuple):
    """A message, or the error in its place. `data` are the octets of the unit it came in, as is the first of them."""

    name: str
    key: str | None
    size: int
    form: Json
    unit: str
    data: bytes
    first: bool = True
    pieces: int = 0
    """How many fragments it was put together from."""
    error: DecodeError | None = None

    @property
    def payload(self) -> bytes | None:
        """The octets of its value, if it has one and is not too long to be in the form."""
        for part in _parts(self.form):
            payload = part.get("payload")
            if isinstance(payload, str):
                return bytes.fromhex(payload)
        return None

    @property
    def details(self) -> str:
        """The small members, `name=value`."""
        pairs = [
            f"{name}={value}"
            for part in _parts(self.form)
            for name, value in part.items()
            if name not in NOT_DETAILS and isinstance(value, str | int)
        ]
        return " ".join(pairs)


class Conversation:
    """Two directions of one stream; side 0 has connected, side 1 has accepted."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._directions = _directions(dialect)
        self._keys: tuple[dict[int, str], dict[int, str]] = ({}, {})
        self._fragments: dict[tuple[int, bool, int], list[bytes]] = {}

    def prefix(self, size: int) -> bytes:
        """What stands before so many octets in a stream, and not before a datagram."""
        if self._dialect.name == "zenoh1":
            return size.to_bytes(2, "little")
        out = bytearray()
        write_nat(out, size, "size")
        return bytes(out)

    def feed(self, side: int, data: bytes) -> Iterator[Seen]:
        """The messages completed by what `side` sends."""
        yield from self._seen(side, self._directions[side].feed(data))

    def end(self, side: int) -> Iterator[Seen]:
        """`side` sends no more."""
        yield from self._seen(side, self._directions[side].end())

    def _seen(self, side: int, framed: Framed) -> Iterator[Seen]:
        for found in framed:
            if isinstance(found, DecodeError):
                yield _bad(found, "stream", b"")
                continue
            unit, data = found
            try:
                value: Any = self._dialect.decode(unit, data)
            except DecodeError as error:
                yield _bad(error, unit, data)
                continue
            messages = self._early(value) if self._dialect.name != "zenoh1" else self._zenoh1(side, value)
            named = self._key if self._dialect.name == "zenoh1" else self._early_key
            for number, (name, form, size, pieces) in enumerate(messages):
                yield Seen(name, named(side, form), size, form, unit, data, number == 0, pieces)

    # -- messages ------------------------------------------------------------------------------------------------------

    def _early(self, packet: Any) -> Iterator[tuple[str, Json, int, int]]:
        for message in packet.messages:
            alone = packet._replace(messages=(message,))
            whole = self._dialect.to_json("packet", alone)
            forms = whole.get("messages") if isinstance(whole, dict) else None
            form = forms[0] if isinstance(forms, list) else whole
            yield str(_parts(form)[-1].get("kind", "?")), form, self._size("packet", alone), 0

    def _zenoh1(self, side: int, batch: Any) -> Iterator[tuple[str, Json, int, int]]:
        from elea.wire.zenoh1 import messages as m

        for message in batch:
            if isinstance(message, m.Frame):
                for inner in message.messages:
                    yield self._network(inner)
                continue
            if not isinstance(message, m.TransportMessage):
                yield self._network(message)  # low latency: no frame around it
                continue
            form = self._dialect.to_json("batch", (message,))
            yield _name(form), form, self._size("batch", (message,)), 0
            if isinstance(message, m.Fragment):
                yield from self._fragment(side, message)

    def _network(self, message: object, pieces: int = 0) -> tuple[str, Json, int, int]:
        form = self._dialect.to_json("message", message)
        return _name(form), form, self._size("message", message), pieces

    def _fragment(self, side: int, message: Any) -> Iterator[tuple[str, Json, int, int]]:
        """The whole message, with the last piece of it."""
        conduit = side, message.reliable, message.qos or 0
        if message.first or message.drop:
            self._fragments.pop(conduit, None)
        if message.drop:
            return
        pieces = self._fragments.setdefault(conduit, [])
        pieces.append(message.chunk)
        if message.more:
            if len(pieces) * MAX_BATCH > CLI_UNIT_BYTES:
                del self._fragments[conduit]  # Too much to hold; shown as fragments only.
            return
        del self._fragments[conduit]
        try:
            yield self._network(self._dialect.decode("message", b"".join(pieces)), len(pieces))
        except DecodeError:
            return  # Its beginning was not seen, or was dropped on the way.

    def _size(self, unit: str, value: object) -> int:
        try:
            return len(self._dialect.encode(unit, value))
        except EncodeError:
            return 0

    # -- keys ----------------------------------------------------------------------------------------------------------

    def _key(self, side: int, form: Json) -> str | None:
        for part in _parts(form):
            if part.get("_") == "U_KEYEXPR":
                return self._keys[side].pop(_number(part.get("id")), None)
            extensions = part.get("ext")
            expression = part.get("wire_expr") or (
                extensions.get("wire_expr") if isinstance(extensions, dict) else None
            )
            if isinstance(expression, dict):
                declared = part.get("_") == "D_KEYEXPR"
                key = self._resolve(side, expression, declared)
                if declared and len(self._keys[side]) < MAX_KEYS:
                    self._keys[side].setdefault(_number(part.get("id")), key)
                return key
        return None

    def _early_key(self, side: int, form: Json) -> str | None:
        """The name of a resource: as it is, or what either side has declared its id to be."""
        part = _parts(form)[-1]
        declarations = part.get("declarations")
        if isinstance(declarations, list):
            found = [self._declared(side, one) for one in declarations if isinstance(one, dict)]
            return next((name for name in found if name is not None), None)
        if isinstance(part.get("resource"), str):
            return str(part["resource"])
        id = part.get("prid") or part.get("id")
        if not isinstance(id, int):
            return None
        return self._keys[side].get(id) or self._keys[1 - side].get(id) or f"<{id}>"

    def _declared(self, side: int, form: Form) -> str | None:
        name = form.get("resource") or form.get("query")
        id = form.get("rid") or form.get("sid") or form.get("id")
        if not isinstance(id, int):
            return None
        if not isinstance(name, str):
            return self._keys[side].get(id) or self._keys[1 - side].get(id)
        if len(self._keys[side]) < MAX_KEYS:
            self._keys[side][id] = name
        return name

    def _resolve(self, side: int, expression: Form, declared: bool) -> str:
        scope, suffix = _number(expression.get("scope")), expression.get("suffix") or ""
        if not scope:
            return str(suffix)
        # Spec zenoh-1 §9.1: inside of a declaration of a key there is no mapping flag.
        owner = 1 - side if declared or expression.get("mapping") == "receiver" else side
        return f"{self._keys[owner].get(scope, f'<{scope}>')}{suffix}"


def _directions(dialect: Dialect) -> tuple[Direction, Direction]:
    if dialect.name != "zenoh1":
        return EarlyDirection(dialect, True), EarlyDirection(dialect, True)
    handshake = Handshake()
    return Zenoh1Direction(dialect, True, handshake), Zenoh1Direction(dialect, True, handshake)


def _bad(error: DecodeError, unit: str, data: bytes) -> Seen:
    form: Json = {"error": error.code, "at": error.at, "dialect": error.dialect, "problem": error.problem}
    return Seen(error.code, None, len(data), form, unit, data, error=error)


def _parts(form: Json) -> list[Form]:
    """A message and the bodies inside of it, outermost first."""
    parts: list[Form] = []
    while isinstance(form, dict):
        parts.append(form)
        form = form.get("body") or form.get("message")
    return parts


def _name(form: Json) -> str:
    """`PUSH PUT`; a declaration goes without the word that all of them share."""
    names = [str(part.get("_", "?")) for part in _parts(form)]
    return " ".join(names[1:] if names[:1] == ["DECLARE"] and len(names) > 1 else names)


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
