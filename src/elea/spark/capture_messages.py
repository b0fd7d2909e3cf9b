"""Units of a capture to rows: one a message, errors in their place.

Follows each connection: keys are named by what was declared on it, fragments of 1.x put together. What is kept for that
is bounded; a key that is not known (the capture began later, or it was declared on another link) is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from elea.model.encoding import Encoding
from elea.model.errors import DecodeError, Oversize
from elea.model.limits import CAPTURE_FRAGMENT_BYTES, TCP_FLOWS
from elea.model.qos import Priority
from elea.model.timestamp import ns_from_ntp64
from elea.spark.capture_talk import PUT, Talk, early_samples, key_of
from elea.wire.detecting import Detected, connection_of
from elea.wire.dialect import Dialect
from elea.wire.early import Packet
from elea.wire.pcap import Flow
from elea.wire.traffic import DATA_PORT
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.jsonform import TAGS

__all__ = ["Message", "Messages"]

LAST_MICROSECOND: Final = 253_402_300_799_999_999
"""The end of the year 9999: where Python's times end, and a clock that says more is broken."""

DEFAULT_PRIORITY: Final = int(Priority.DEFAULT)
DELETE: Final = "DELETE"


class Message(NamedTuple):
    """One row, but for the file; the names are the columns."""

    time: int | None
    packet: int
    number: int | None
    transport: str | None = None
    source: str | None = None
    target: str | None = None
    direction: str | None = None
    dialect: str | None = None
    sn: int | None = None
    reliability: str | None = None
    priority: int | None = None
    message: str | None = None
    kind: str | None = None
    key: str | None = None
    payload: bytes | None = None
    encoding: str | None = None
    timestamp: int | None = None
    attachment: bytes | None = None
    json: str | None = None
    error: str | None = None
    octets: bytes | None = None


class Messages:
    """Makes the rows of one capture; `forms` says whether the JSON forms are wanted, which take the most time."""

    def __init__(self, ports: frozenset[int], *, forms: bool = True) -> None:
        self._ports = ports or frozenset({DATA_PORT})
        self._forms = forms
        self._talks: dict[Flow, Talk] = {}
        self._fragment_bytes = 0
        self._furthest = self._last = (0, -1)

    def rows(self, detected: Detected) -> Iterator[Message]:
        """The rows of one unit."""
        unit, dialect = detected.found, detected.dialect
        talk = self._talk(unit.flow)
        try:
            if unit.error is not None:
                raise unit.error
            value: Any = dialect.decode(unit.unit, unit.data)
        except DecodeError as error:
            yield self._row(detected, talk, error=f"{error.code}: {error}", octets=unit.data)
            return
        side = talk.side(unit.flow)
        if unit.unit == "scouting":
            found: Iterator[dict[str, Any]] = iter([self._transport(dialect, "scouting", value, value)])
        elif dialect.name == "zenoh1":
            found = self._zenoh1(dialect, talk, side, value)
        else:
            found = self._early(dialect, talk, side, value)
        for columns in found:
            yield self._row(detected, talk, **columns)

    def _talk(self, flow: Flow) -> Talk:
        name = connection_of(flow)
        talk = self._talks.pop(name, None)
        if talk is None:
            listens = flow.source_port in self._ports and flow.target_port not in self._ports
            talk = Talk(flow.reverse() if listens else flow)
            if len(self._talks) >= TCP_FLOWS:
                self._forget(self._talks.pop(next(iter(self._talks))))
        self._talks[name] = talk  # at the end: the one longest idle goes first
        return talk

    def _forget(self, talk: Talk) -> None:
        self._fragment_bytes -= sum(len(piece) for pieces in talk.fragments.values() for piece in pieces)
        talk.fragments.clear()

    def _row(self, detected: Detected, talk: Talk, **columns: Any) -> Message:
        unit = detected.found
        ends = talk.ends.get(unit.flow)
        if ends is None:
            ends = talk.ends[unit.flow] = unit.flow.source_text, unit.flow.target_text
        # Packets of a connection whose dialect was open for a while come late; those at the end of the file, again.
        before = self._furthest if detected.packet >= self._furthest[0] else self._last
        self._last = (detected.packet, before[1] + 1 if before[0] == detected.packet else 0)
        self._furthest = max(self._furthest, self._last)
        return Message(
            _microseconds(unit.time),
            *self._last,
            detected.transport,
            *ends,
            "accepting" if talk.side(unit.flow) else "connecting",
            detected.dialect.name,
            **columns,
        )

    def _form(self, dialect: Dialect, unit: str, value: object) -> str | None:
        return json.dumps(dialect.to_json(unit, value), separators=(",", ":")) if self._forms else None

    # -- 1.x -----------------------------------------------------------------------------------------------------------

    def _zenoh1(self, dialect: Dialect, talk: Talk, side: int, batch: Any) -> Iterator[dict[str, Any]]:
        for message in batch:
            if isinstance(message, m.Frame):
                for inner in message.messages:
                    yield self._network(dialect, talk, side, inner, message)
            elif isinstance(message, m.Fragment):
                yield self._transport(dialect, "batch", message, (message,))
                yield from self._fragment(dialect, talk, side, message)
            elif isinstance(message, m.TransportMessage):
                if isinstance(message, m.Init) and not message.ack:
                    self._restart(talk, side)
                yield self._transport(dialect, "batch", message, (message,))
            else:
                yield self._network(dialect, talk, side, message, None)  # low latency: no frame around it

    def _restart(self, talk: Talk, side: int) -> None:
        """A session opens: ports may have been used before, and whoever opens it has connected."""
        self._forget(talk)
        for keys in talk.keys:
            keys.clear()
        if side:
            talk.connecting = talk.connecting.reverse()

    def _transport(self, dialect: Dialect, unit: str, message: Any, value: object) -> dict[str, Any]:
        name = TAGS.get(type(message).__name__, type(message).__name__)
        if isinstance(message, m.Init | m.Open):
            name += "_ACK" if message.ack else "_SYN"
        columns = {"message": name, "json": self._form(dialect, unit, value)}
        return columns | _conduit(message) if isinstance(message, m.Fragment) else columns

    def _fragment(self, dialect: Dialect, talk: Talk, side: int, message: m.Fragment) -> Iterator[dict[str, Any]]:
        """The whole message, with the last piece of it."""
        conduit = side, message.reliable, message.qos or 0
        if message.first or message.drop:
            self._fragment_bytes -= sum(map(len, talk.fragments.pop(conduit, [])))
        if message.drop:
            return
        pieces = talk.fragments.setdefault(conduit, [])
        pieces.append(message.chunk)
        self._fragment_bytes += len(message.chunk)
        if message.more and self._fragment_bytes <= CAPTURE_FRAGMENT_BYTES:
            return
        del talk.fragments[conduit]
        size = sum(map(len, pieces))
        self._fragment_bytes -= size
        try:
            if message.more:
                raise Oversize(dialect.name, 0, "held fragments", self._fragment_bytes + size, CAPTURE_FRAGMENT_BYTES)
            whole = dialect.decode("message", b"".join(pieces))
        except DecodeError as error:
            # As a rule its beginning was not captured.
            yield _conduit(message) | {"error": f"{error.code}: fragments of {size} octets: {error}"}
            return
        yield self._network(dialect, talk, side, whole, message)

    def _network(self, dialect: Dialect, talk: Talk, side: int, message: Any, frame: Any) -> dict[str, Any]:
        parts = [message]
        while isinstance(body := getattr(parts[-1], "body", None), tuple):
            parts.append(body)
        names = [TAGS.get(type(part).__name__, type(part).__name__) for part in parts]
        columns: dict[str, Any] = {
            "message": " ".join(names[1:] if names[0] == "DECLARE" and len(names) > 1 else names),
            "key": key_of(talk, side, parts),
            "json": self._form(dialect, "message", message),
        }
        if frame is not None:
            columns |= _conduit(frame)
        qos = getattr(message, "qos", None)
        if qos is not None or frame is None:
            columns["priority"] = DEFAULT_PRIORITY if qos is None else qos & 7
        return columns | _content(parts)

    # -- early dialects ------------------------------------------------------------------------------------------------

    def _early(self, dialect: Dialect, talk: Talk, side: int, packet: Any) -> Iterator[dict[str, Any]]:
        for decorated in packet.messages:
            message, markers = decorated.message, {type(marker).__name__: marker for marker in decorated.markers}
            name = type(message).__name__
            if name == "Open":
                self._restart(talk, side)
            columns: dict[str, Any] = {"message": name, "sn": getattr(message, "sn", None)}
            if hasattr(message, "reliable"):
                columns["reliability"] = "reliable" if message.reliable else "best_effort"
            if self._forms:
                form: Any = dialect.to_json("packet", Packet((decorated,)))
                columns["json"] = json.dumps(form["messages"][0], separators=(",", ":"))
            space = getattr(markers.get("RSpace"), "id", 0)
            samples = list(early_samples(talk, side, space, message, whole="Frag" not in markers))
            for i, sample in enumerate(samples or [{}]):
                yield columns | sample
                if not i:
                    columns.pop("json", None)  # Of a message with many samples, only the first has the form.


# -- parts of 1.x messages ---------------------------------------------------------------------------------------------


def _conduit(frame: Any) -> dict[str, Any]:
    priority = DEFAULT_PRIORITY if frame.qos is None else frame.qos & 7
    return {"sn": frame.sn, "reliability": "reliable" if frame.reliable else "best_effort", "priority": priority}


def _content(parts: list[Any]) -> dict[str, Any]:
    """What the innermost body carries."""
    body = parts[-1]
    carried = body.value if isinstance(body, m.Query) else body
    columns: dict[str, Any] = {"attachment": getattr(body, "attachment", None)}
    if isinstance(body, m.Put | m.Del):
        columns["kind"] = PUT if isinstance(body, m.Put) else DELETE
    if isinstance(carried, m.Put | m.Err | m.Value):
        encoding = carried.encoding
        columns["payload"] = carried.payload
        columns["encoding"] = _encoding(0, None) if encoding is None else _encoding(encoding.id, encoding.schema)
    stamp = getattr(body, "timestamp", None) or getattr(parts[0], "timestamp", None)
    columns["timestamp"] = None if stamp is None else _microseconds(ns_from_ntp64(stamp.ntp64))
    return columns


@lru_cache(maxsize=1024)
def _encoding(id: int, schema: bytes | None) -> str:
    return str(Encoding.of(id, schema))


def _microseconds(nanoseconds: int | None) -> int | None:
    if nanoseconds is None:
        return None
    micros = nanoseconds // 1000
    return micros if 0 <= micros <= LAST_MICROSECOND else None
