"""`UMessage`: attributes and payload; and how messages of each type are made."""

from __future__ import annotations

from typing import Any, NamedTuple

from elea.uprotocol.attributes import (
    RPC_PRIORITY,
    UAttributes,
    UMessageType,
    UPayloadFormat,
    UPriority,
    read_attributes,
    write_attributes,
)
from elea.uprotocol.protobuf import SIZED, fields, sized
from elea.uprotocol.status import UCode
from elea.uprotocol.uuid7 import UUID, new_uuid
from elea.uprotocol.uuri import UUri
from elea.uprotocol.zenohkey import resolved

__all__ = ["ReceivedMessage", "UMessage"]

_UNSPECIFIED = UPayloadFormat.UNSPECIFIED


class UMessage(NamedTuple):
    """A message. No payload (None) and an empty one are different things.

    >>> message = UMessage.publish(UUri.parse("//vcu/10AB/3/80CD"), b"21.5", UPayloadFormat.TEXT)
    >>> message.type, message.payload, str(message.source)
    (<UMessageType.PUBLISH: 1>, b'21.5', '//vcu/10AB/3/80CD')
    """

    attributes: UAttributes = UAttributes()
    payload: bytes | None = None

    @property
    def type(self) -> int:
        """What kind of message it is."""
        return self.attributes.type

    @property
    def source(self) -> UUri | None:
        """Where it comes from."""
        return self.attributes.source

    @property
    def sink(self) -> UUri | None:
        """Whom it is for, if for somebody."""
        return self.attributes.sink

    @classmethod
    def publish(
        cls,
        topic: UUri,
        payload: bytes | None = None,
        payload_format: int = _UNSPECIFIED,
        *,
        id: UUID | None = None,
        ttl: int | None = None,
        priority: int = UPriority.UNSPECIFIED,
        traceparent: str | None = None,
    ) -> UMessage:
        """Something that happened, for everybody who listens to the topic."""
        more = {"priority": priority, "ttl": ttl, "traceparent": traceparent, "payload_format": payload_format}
        return cls(UAttributes(id or new_uuid(), UMessageType.PUBLISH, topic, **more), payload)  # type: ignore[arg-type]

    @classmethod
    def notification(
        cls,
        source: UUri,
        sink: UUri,
        payload: bytes | None = None,
        payload_format: int = _UNSPECIFIED,
        *,
        id: UUID | None = None,
        ttl: int | None = None,
        priority: int = UPriority.UNSPECIFIED,
        traceparent: str | None = None,
    ) -> UMessage:
        """Something that happened, for one entity."""
        more: dict[str, Any] = {"priority": priority, "ttl": ttl, "traceparent": traceparent}
        attributes = UAttributes(
            id or new_uuid(), UMessageType.NOTIFICATION, source, sink, payload_format=payload_format, **more
        )
        return cls(attributes, payload)

    @classmethod
    def request(
        cls,
        source: UUri,
        method: UUri,
        payload: bytes | None = None,
        payload_format: int = _UNSPECIFIED,
        *,
        ttl: int,
        id: UUID | None = None,
        priority: int = RPC_PRIORITY,
        token: str | None = None,
        permission_level: int | None = None,
        traceparent: str | None = None,
    ) -> UMessage:
        """A call of a method; the answer is to be sent to `source`."""
        attributes = UAttributes(
            id or new_uuid(),
            UMessageType.REQUEST,
            source,
            method,
            priority,
            ttl,
            permission_level,
            None,
            None,
            token,
            traceparent,
            payload_format,
        )
        return cls(attributes, payload)

    @classmethod
    def response(
        cls,
        request: UAttributes,
        payload: bytes | None = None,
        payload_format: int = _UNSPECIFIED,
        *,
        id: UUID | None = None,
        code: UCode = UCode.OK,
    ) -> UMessage:
        """The answer to a request."""
        attributes = UAttributes(
            id or new_uuid(),
            UMessageType.RESPONSE,
            # The way back, with the same priority and time to live.
            request.sink,
            request.source,
            request.priority,
            request.ttl,
            None,
            None if code is UCode.OK else code,
            request.id,
            None,
            None,
            payload_format,
        )
        return cls(attributes, payload)

    def to_bytes(self) -> bytes:
        """The protobuf of the whole message."""
        payload = b"" if self.payload is None else sized(2, self.payload)
        return sized(1, write_attributes(self.attributes)) + payload

    @classmethod
    def from_bytes(cls, data: bytes) -> UMessage:
        """The message of a protobuf.

        Raises:
            DecodeError: it is no protobuf.
        """
        attributes: list[bytes] = []
        payload = None
        for field, wire, value in fields(data):
            if wire == SIZED and isinstance(value, bytes):
                if field == 1:
                    attributes.append(value)
                elif field == 2:
                    payload = value
        return cls(read_attributes(b"".join(attributes)), payload)


class ReceivedMessage(UMessage):
    """A message with the key it came by. It equals the message that was sent."""

    key: str = ""

    @property
    def origin(self) -> UUri | None:
        """The source, with the authority that the key says if the sender left it out."""
        source = self.attributes.source
        return None if source is None or not self.key else resolved(source, self.key)
