"""Payloads: bytes and what they are. Protobuf messages of any library that has `SerializeToString` and `FromString`."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from elea.model.errors import DecodeError
from elea.uprotocol.attributes import UPayloadFormat
from elea.uprotocol.protobuf import SIZED, fields, sized, text_of
from elea.uprotocol.status import UCode, UStatusError

__all__ = ["IntoPayload", "ProtobufMessage", "UPayload", "into_payload", "unwrap_any", "wrap_any"]

TYPE_URL: Final = "type.googleapis.com/"

M = TypeVar("M")


@runtime_checkable
class ProtobufMessage(Protocol):
    """A message of the protobuf library, or of another that has the same method."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - its name
        """The bytes."""


class UPayload(NamedTuple):
    """Bytes, and what they are.

    >>> UPayload.json({"speed": 50}), UPayload.text("hello").format
    (UPayload(data=b'{"speed": 50}', format=<UPayloadFormat.JSON: 3>), <UPayloadFormat.TEXT: 7>)
    """

    data: bytes
    format: int = UPayloadFormat.RAW

    @classmethod
    def text(cls, text: str) -> UPayload:
        """Text."""
        return cls(text.encode(), UPayloadFormat.TEXT)

    @classmethod
    def json(cls, value: object) -> UPayload:
        """A value that JSON can express."""
        return cls(json.dumps(value).encode(), UPayloadFormat.JSON)

    @classmethod
    def protobuf(cls, message: ProtobufMessage) -> UPayload:
        """A protobuf message as it is; the receiver knows its type."""
        return cls(message.SerializeToString(), UPayloadFormat.PROTOBUF)

    @classmethod
    def any(cls, message: ProtobufMessage) -> UPayload:
        """A protobuf message wrapped in `google.protobuf.Any`, which says its type."""
        name: str = message.DESCRIPTOR.full_name  # type: ignore[attr-defined]
        return cls(wrap_any(name, message.SerializeToString()), UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY)

    def to_text(self) -> str:
        """The bytes as UTF-8.

        Raises:
            ValueError: they are not.
        """
        return self.data.decode()

    def to_json(self) -> Any:
        """The value of a JSON text.

        Raises:
            ValueError: it is none.
        """
        return json.loads(self.data)

    def unpack(self, kind: type[M]) -> M | None:
        """The protobuf message of class `kind`, wrapped or not; None if this payload is none of that type."""
        data = self.message_bytes(getattr(kind, "DESCRIPTOR").full_name)  # noqa: B009 - not every class has it
        if data is None:
            return None
        try:
            made: M = kind.FromString(data)  # type: ignore[attr-defined]
        except Exception as error:
            raise UStatusError(UCode.INVALID_ARGUMENT, f"the payload is no {kind.__name__}: {error}") from error
        return made

    def message_bytes(self, name: str = "") -> bytes | None:
        """The bytes of the protobuf message, out of its wrapping; None if this is none, or of another type."""
        if self.format == UPayloadFormat.PROTOBUF:
            return self.data
        if self.format != UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY:
            return None
        try:
            found, data = unwrap_any(self.data)
        except DecodeError:
            return None
        return data if not name or found == name else None


IntoPayload: TypeAlias = "UPayload | ProtobufMessage | bytes | str | None"
"""What a payload may be given as: bytes are RAW, text is TEXT, a protobuf message is PROTOBUF."""


def into_payload(value: IntoPayload) -> tuple[bytes | None, int]:
    """The bytes and the format of what a user gave.

    Raises:
        UStatusError: INVALID_ARGUMENT: it is nothing that can be sent.
    """
    if isinstance(value, bytes):
        return value, UPayloadFormat.RAW
    if value is None:
        return None, UPayloadFormat.UNSPECIFIED
    if isinstance(value, UPayload):
        return value
    if isinstance(value, str):
        return value.encode(), UPayloadFormat.TEXT
    if isinstance(value, ProtobufMessage):
        return UPayload.protobuf(value)
    problem = f"a payload is a UPayload, a protobuf message, bytes or text, not {type(value).__name__}"
    raise UStatusError(UCode.INVALID_ARGUMENT, problem)


def wrap_any(name: str, data: bytes) -> bytes:
    """The protobuf of a `google.protobuf.Any` that holds a message of the type `name`."""
    return sized(1, f"{TYPE_URL}{name}".encode()) + (sized(2, data) if data else b"")


def unwrap_any(data: bytes) -> tuple[str, bytes]:
    """The type and the bytes of the message in a `google.protobuf.Any`.

    Raises:
        DecodeError: it is no protobuf.
    """
    name, inner = "", b""
    for field, wire, value in fields(data):
        if wire == SIZED and isinstance(value, bytes):
            if field == 1:
                name = text_of(value, "type_url")
            elif field == 2:
                inner = value
    return name.rpartition("/")[2], inner
