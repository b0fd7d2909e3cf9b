"""Zenoh 1.x behind the common interface: decode, encode, JSON and dissection of every unit."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

from elea.model.errors import DecodeError, EncodeError, LocalProtocolError
from elea.notation import syntax as s
from elea.notation.generate import plan_of
from elea.notation.plan import Plan
from elea.notation.walk import Walker
from elea.wire.dialect import Field, Json, dissection, moved
from elea.wire.primitives import Unknown, read_z, whole, write_z
from elea.wire.zenoh1 import codec, messages
from elea.wire.zenoh1.batch import (
    FIRST_NETWORK_ID,
    BatchStream,
    compress,
    decode_batch,
    decode_low_latency,
    decompress,
    encode_batch,
    encode_low_latency,
)
from elea.wire.zenoh1.jsonform import TAGS, Zenoh1Json

__all__ = ["DIALECT", "Zenoh1Dialect"]

UNITS = ("batch", "message", "scouting", "compressed", "lowlatency", "stream", "declaration", "vle")
_ROOT = {"message": "NetworkMessage", "scouting": "ScoutingMessage", "declaration": "Declaration"}


class Zenoh1Dialect:
    """`zenoh1`. A batch is a tuple of transport messages, a stream a tuple of batches."""

    name = "zenoh1"
    units = UNITS

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self.name)

    @cached_property
    def _json(self) -> Zenoh1Json:
        return Zenoh1Json(self.plan, vars(messages))

    # -- bytes --------------------------------------------------------------------------------------------------------

    def decode(self, unit: str, data: bytes) -> object:
        """The value of `data`, which is one `unit`."""
        match unit:
            case "batch":
                return decode_batch(data)
            case "lowlatency":
                return decode_low_latency(data)
            case "compressed":
                return decode_batch(decompress(data))
            case "stream":
                return _decode_stream(data)
            case "message":
                return whole(data, codec.read_network_message, self.name)
            case "scouting":
                return whole(data, codec.read_scouting_message, self.name)
            case "declaration":
                return whole(data, codec.read_declaration, self.name)
            case "vle":
                return whole(data, lambda buf, at: read_z(buf, at, 64, self.name), self.name)
        raise LocalProtocolError(f"zenoh1 has no unit {unit!r}; it has {', '.join(UNITS)}")

    def encode(self, unit: str, value: object) -> bytes:
        """The canonical bytes of a value."""
        out = bytearray()
        given = cast(Any, value)
        try:
            match unit:
                case "batch":
                    return encode_batch(given)
                case "lowlatency":
                    return encode_low_latency(given)
                case "compressed":
                    return compress(encode_batch(given))
                case "stream":
                    batches = [encode_batch(batch) for batch in given]
                    return b"".join(len(batch).to_bytes(2, "little") + batch for batch in batches)
                case "message":
                    codec.write_network_message(out, given)
                case "scouting":
                    codec.write_scouting_message(out, given)
                case "declaration":
                    codec.write_declaration(out, given)
                case "vle":
                    write_z(out, given, 64, "value")
                case _:
                    raise LocalProtocolError(f"zenoh1 has no unit {unit!r}; it has {', '.join(UNITS)}")
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            raise EncodeError(unit, str(error)) from error
        return bytes(out)

    # -- JSON ---------------------------------------------------------------------------------------------------------

    def to_json(self, unit: str, value: object, *, full: bool = False) -> Json:
        """The JSON form; a batch of one message is that message."""
        form = self._json
        form.full = full
        given = cast(Any, value)
        match unit:
            case "vle":
                return {"value": given}
            case "batch" | "lowlatency" | "compressed":
                found: list[Json] = [form.record(item) for item in given]
                return found[0] if len(found) == 1 else found
            case "stream":
                return [self.to_json("batch", batch, full=full) for batch in given]
            case _:
                return form.record(given)

    def from_json(self, unit: str, form: Json) -> object:
        """The value of a JSON form."""
        match unit:
            case "vle":
                if not isinstance(form, dict) or not isinstance(form.get("value"), int):
                    raise EncodeError("value", "a number is needed")
                return form["value"]
            case "batch" | "compressed":
                return self._messages("TransportMessage", form)
            case "lowlatency":
                return tuple(self._either(item) for item in (form if isinstance(form, list) else [form]))
            case "stream":
                if not isinstance(form, list):
                    raise EncodeError("stream", "a list of batches is needed")
                return tuple(self._messages("TransportMessage", item) for item in form)
            case _:
                return self._json.parse_record(_ROOT[unit], form)

    def _messages(self, union: str, form: Json) -> tuple[object, ...]:
        return tuple(self._json.parse_record(union, item) for item in (form if isinstance(form, list) else [form]))

    def _either(self, form: Json) -> object:
        # Both layers have an OAM; the network's is the one a low-latency session carries.
        arms = self.plan.unions["NetworkMessage"].arms.values()
        network = isinstance(form, dict) and form.get("_") in [TAGS[arm] for arm in arms]
        return self._json.parse_record("NetworkMessage" if network else "TransportMessage", form)

    # -- dissection ---------------------------------------------------------------------------------------------------

    def dissect(self, unit: str, data: bytes) -> list[Field]:
        """Field by field; a last line holds the error, if there is one."""
        if unit == "stream":
            return self._dissect_stream(data)
        if unit == "compressed":
            try:
                unit, data = "batch", decompress(data)
            except DecodeError as error:
                return [Field(0, "error", error.at, error.at, str(error), error)]
        walker = Walker(self.plan, data, self.build)

        def walk() -> None:
            match unit:
                case "vle":
                    walker.note("value", 0, walker.bounded(64))
                case "batch" | "lowlatency":
                    while walker.at < walker.end:
                        network = unit == "lowlatency" and data[walker.at] & 0x1F >= FIRST_NETWORK_ID
                        name = "NetworkMessage" if network else "TransportMessage"
                        walker.named(name, name)
                case _:
                    walker.whole(_ROOT[unit])

        return dissection(walker, walk, lambda: self.decode(unit, data))

    def _dissect_stream(self, data: bytes) -> list[Field]:
        fields: list[Field] = []
        at = 0
        try:
            for batch in _batches(data):
                fields.append(Field(0, "batch", at, at + 2 + len(batch), f"{len(batch)} octets"))
                fields += moved(self.dissect("batch", batch), at + 2, depth=1)
                if fields[-1].error is not None:
                    break
                at += 2 + len(batch)
        except DecodeError as error:
            fields.append(Field(0, "error", error.at, error.at, str(error), error))
        return fields

    def build(self, name: str, fields: dict[str, object]) -> object:
        """A value from the fields a walk found."""
        for field in self.plan.records[name].fields:
            enum = self.plan.enum_name(field.type)
            if enum is None and isinstance(field.type, s.Option):
                enum = self.plan.enum_name(field.type.base)
            if enum is not None and fields[field.name] is not None:
                fields[field.name] = vars(messages)[enum](fields[field.name])
        if "unknown" in fields:
            fields["unknown"] = tuple(Unknown(*pair) for pair in cast(Any, fields["unknown"]))
        return vars(messages)[name](**fields)


def _batches(data: bytes) -> list[bytes]:
    reader = BatchStream()
    batches = reader.feed(data)
    reader.close()
    return batches


def _decode_stream(data: bytes) -> tuple[object, ...]:
    found: list[object] = []
    at = 0
    for batch in _batches(data):
        try:
            found.append(decode_batch(batch))
        except DecodeError as error:
            raise error.moved(at + 2) from None
        at += 2 + len(batch)
    return tuple(found)


DIALECT = Zenoh1Dialect()
