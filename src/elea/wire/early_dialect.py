"""The early dialects behind the common interface: decode, encode, JSON and dissection of every unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, cast

from elea.model.errors import DecodeError, EncodeError, FrameTooLarge, LocalProtocolError, Truncated
from elea.model.limits import MAX_PACKET
from elea.notation.generate import plan_of
from elea.notation.jsonform import JsonForm
from elea.notation.plan import Plan
from elea.notation.walk import Walker
from elea.wire.dialect import Field, Json, dissection, moved
from elea.wire.early import Codec, Decorated, Packet, Stream, decode_stream, encode_stream
from elea.wire.markers import Conduit, RSpace
from elea.wire.primitives import read_nat, whole, write_nat

__all__ = ["EarlyDialect", "lenient_codec"]

UNITS = ("packet", "message", "declaration", "stream", "vle")


class EarlyDialect:
    """`xrce2017` or `zenoh2018`."""

    units = UNITS

    def __init__(self, name: str, codec: Codec, functions: ModuleType, messages: ModuleType) -> None:
        self.name = name
        self.codec = codec
        self._read_declaration: Callable[[bytes, int], tuple[Any, int]] = functions.read_declaration
        self._write_declaration: Callable[[bytearray, Any], None] = functions.write_declaration
        self._classes: Mapping[str, type] = vars(messages)

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self.name)

    @cached_property
    def _json(self) -> JsonForm:
        return JsonForm(self.plan, self._classes)

    # -- bytes --------------------------------------------------------------------------------------------------------

    def decode(self, unit: str, data: bytes) -> object:
        """The value of `data`, which is one `unit`."""
        match unit:
            case "message":
                return whole(data, self.codec.read_message, self.name)
            case "declaration":
                return whole(data, self._read_declaration, self.name)
            case "packet":
                return self.codec.decode_packet(data)
            case "stream":
                return decode_stream(self.codec, data)
            case "vle":
                return whole(data, lambda buf, at: read_nat(buf, at, self.name), self.name)
        raise LocalProtocolError(f"{self.name} has no unit {unit!r}; it has {', '.join(UNITS)}")

    def encode(self, unit: str, value: object) -> bytes:
        """The canonical bytes of a value."""
        out = bytearray()
        try:
            match unit:
                case "message":
                    self.codec.write_message(out, value)
                case "declaration":
                    self._write_declaration(out, value)
                case "packet":
                    out += self.codec.encode_packet(cast(Packet, value))
                case "stream":
                    out += encode_stream(self.codec, cast(Stream, value))
                case "vle":
                    write_nat(out, cast(int, value), "value")
                case _:
                    raise LocalProtocolError(f"{self.name} has no unit {unit!r}; it has {', '.join(UNITS)}")
        except (TypeError, AttributeError, ValueError) as error:
            raise EncodeError(unit, str(error)) from error
        return bytes(out)

    def decode_lenient(self, unit: str, data: bytes) -> object:
        """Like `decode` for one message or declaration, but padded numbers are accepted (option `lenient_vle`)."""
        return self._walker(data, lenient=True).whole(_ROOT[unit])

    @cached_property
    def lenient_codec(self) -> Codec:
        """A codec that accepts padded numbers: slower, for programs that write them."""

        def read_message(buf: bytes, at: int) -> tuple[Any, int]:
            walker = self._walker(buf[at:], lenient=True)
            try:
                return walker.named(_ROOT["message"], "message"), at + walker.at
            except DecodeError as error:
                raise error.moved(at) from None

        return replace(self.codec, read_message=read_message)

    # -- JSON ---------------------------------------------------------------------------------------------------------

    def to_json(self, unit: str, value: object, *, full: bool = False) -> Json:
        """The JSON form of a value."""
        form = self._json
        match value:
            case int():
                return {"value": value}
            case Packet(messages=messages):
                return {"messages": [self._decorated(decorated) for decorated in messages]}
            case Stream(packets=packets, unbounded=unbounded):
                result: dict[str, Json] = {"packets": [self.to_json("packet", packet) for packet in packets]}
                if unbounded is not None:
                    result["unbounded"] = self.to_json("packet", unbounded)
                return result
            case _:
                return form.record(cast(tuple[object, ...], value))

    def _decorated(self, decorated: Decorated) -> Json:
        markers: list[Json] = [self._json.record(marker) for marker in decorated.markers]
        return {"markers": markers, "message": self._json.record(decorated.message)}

    def from_json(self, unit: str, form: Json) -> object:
        """The value of a JSON form."""
        match unit:
            case "vle":
                return _member(form, "value", int, "vle")
            case "packet":
                return self._packet(form)
            case "stream":
                packets = tuple(self._packet(item) for item in _member(form, "packets", list, "stream"))
                loose = form.get("unbounded") if isinstance(form, dict) else None
                return Stream(packets, None if loose is None else self._packet(loose))
            case "declaration":
                return self._json.parse_record("Declaration", form)
            case _:
                return self._json.parse_record("Message", form)

    def _packet(self, form: Json) -> Packet:
        found = []
        for item in _member(form, "messages", list, "packet"):
            message = self._json.parse_record("Message", _member(item, "message", dict, "decorated message"))
            markers = _member(item, "markers", list, "decorated message") if "markers" in item else []
            found.append(Decorated(message, tuple(self._json.parse_record("Message", m) for m in markers)))
        return Packet(tuple(found))

    # -- dissection ---------------------------------------------------------------------------------------------------

    def dissect(self, unit: str, data: bytes) -> list[Field]:
        """Field by field; a last line holds the error, if there is one."""
        if unit == "stream":
            return self._dissect_stream(data)
        walker = self._walker(data)

        def walk() -> None:
            match unit:
                case "vle":
                    walker.note("value", 0, walker.nat())
                case "packet":
                    while walker.at < walker.end:
                        walker.named("Message", "Message")
                case _:
                    walker.whole(_ROOT[unit])

        return dissection(walker, walk, lambda: self.decode(unit, data))

    def _dissect_stream(self, data: bytes) -> list[Field]:
        fields: list[Field] = []
        at = 0
        try:
            while at < len(data):
                size, start = _size_at(data, at, self.name)
                fields.append(Field(0, "size", at, start, str(size)))
                if size > MAX_PACKET:
                    raise FrameTooLarge(self.name, at, "frame", size, MAX_PACKET)
                end = start + size if size else len(data)
                inner = moved(self.dissect("packet", data[start:end]), start)
                if end > len(data):
                    fields += [field for field in inner if field.error is None]
                    raise Truncated(self.name, len(data), end - len(data))
                fields += inner
                if fields[-1].error is not None:
                    break
                at = end
        except DecodeError as error:
            fields.append(Field(0, "error", error.at, error.at, str(error), error))
        return fields

    def _walker(self, data: bytes, *, lenient: bool = False) -> Walker:
        return Walker(self.plan, data, self._build, lenient=lenient)

    def _build(self, name: str, fields: dict[str, object]) -> object:
        if name in ("Conduit", "RSpace"):
            id_, compact = fields["id"], bool(fields["compact"])
            if isinstance(id_, dict):
                id_ = 1 + id_["id0"] + 2 * id_["id1"]
            return (Conduit if name == "Conduit" else RSpace)(cast(int, id_), compact)
        if name in ("ConduitId", "RSpaceId"):
            return fields
        return self._json.build(name, {_attribute(field): value for field, value in fields.items()})


_ROOT = {"message": "Message", "declaration": "Declaration"}


def _attribute(name: str) -> str:
    return "global_" if name == "global" else name


def _size_at(data: bytes, at: int, dialect: str) -> tuple[int, int]:
    """The size in front of a packet, and where the packet starts."""
    try:
        return read_nat(data, at, dialect)
    except IndexError:
        raise Truncated(dialect, len(data)) from None


def _member(form: Json, name: str, kind: type[Any], what: str) -> Any:
    if not isinstance(form, dict) or not isinstance(form.get(name), kind):
        raise EncodeError(f"{what}.{name}", "missing or of the wrong kind")
    return form[name]


def lenient_codec(name: str) -> Codec:
    """The codec of an early dialect that accepts padded numbers."""
    dialect: EarlyDialect = import_module(f"elea.wire.{name}.dialect").DIALECT
    return dialect.lenient_codec
