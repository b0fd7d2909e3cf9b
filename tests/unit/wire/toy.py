"""A toy dialect: enough of a wire language to test the tools without testing a codec.

zenoh1: a unit is one message: INIT (01, ack 21) with letters for extensions, OPEN (02, 22), CLOSE (03),
KEEP_ALIVE (04), FRAME (05 and text). Early: a packet is messages of one length octet and as much text.
"""

from __future__ import annotations

from elea.model.errors import DecodeError, EncodeError, Malformed, Truncated
from elea.wire.dialect import Field, Json

NAMES = {
    0x01: "INIT_SYN",
    0x21: "INIT_ACK",
    0x02: "OPEN",
    0x22: "OPEN",
    0x03: "CLOSE",
    0x04: "KEEP_ALIVE",
    0x05: "FRAME",
}
EXTENSIONS = {"c": "compression", "l": "lowlatency"}


class Toy1:
    """Stands in for zenoh1."""

    name = "zenoh1"
    units: tuple[str, ...] = ("batch", "message", "scouting", "compressed", "lowlatency", "stream", "vle")

    def decode(self, unit: str, data: bytes) -> object:
        if unit == "compressed":
            if data[:1] != b"\0":
                raise Malformed(self.name, 0, "compression header")
            data = data[1:]
        if not data:
            raise Truncated(self.name, 0)
        if data[0] not in NAMES:
            raise Malformed(self.name, 0, f"message {data[0]:#04x}")
        try:
            return NAMES[data[0]], data[1:].decode("ascii")
        except UnicodeDecodeError as error:
            raise Malformed(self.name, 1, "text") from error

    def encode(self, unit: str, value: object) -> bytes:
        assert isinstance(value, tuple)
        name, text = value
        return bytes([next(id for id, known in NAMES.items() if known == name)]) + str(text).encode()

    def to_json(self, unit: str, value: object, *, full: bool = False) -> Json:
        assert isinstance(value, tuple)
        name, text = value
        if not name.startswith("INIT"):
            return {"_": name, "text": text}
        return {"_": name, "ext": {EXTENSIONS[letter]: True for letter in text}}

    def from_json(self, unit: str, form: Json) -> object:
        if not isinstance(form, dict) or form.get("_") not in NAMES.values():
            raise EncodeError("_", "not a message")
        return form["_"], form.get("text", "")

    def dissect(self, unit: str, data: bytes) -> list[Field]:
        try:
            value = self.decode(unit, data)
        except DecodeError as error:
            return [Field(0, "octets", 0, len(data), data.hex(), None), Field(0, "error", 0, 0, "", error)]
        assert isinstance(value, tuple)
        name, text = value
        return [Field(0, name, 0, 1, ""), Field(1, "text", 1, len(data), text)]


class ToyEarly(Toy1):
    """Stands in for the early dialects."""

    name = "zenoh2018"
    units = ("packet", "message", "declaration", "stream", "vle")

    def decode(self, unit: str, data: bytes) -> object:
        texts, at = [], 0
        while at < len(data):
            end = at + 1 + data[at]
            if end > len(data):
                raise Truncated(self.name, len(data), need=end - at, have=len(data) - at)
            texts.append(data[at + 1 : end].decode("latin-1"))
            if texts[-1].startswith("!"):
                raise Malformed(self.name, at, "message")
            at = end
        if not texts:
            raise Truncated(self.name, 0)
        return "packet", texts

    def to_json(self, unit: str, value: object, *, full: bool = False) -> Json:
        assert isinstance(value, tuple)
        return {"messages": list(value[1])}
