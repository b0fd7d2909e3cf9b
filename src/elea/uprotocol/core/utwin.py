"""core.utwin v2: where it is, and its messages."""

from __future__ import annotations

from typing import Final

from elea.uprotocol.core.protomessage import Descriptor, ProtoMessage, each, message
from elea.uprotocol.message import UMessage
from elea.uprotocol.status import UStatus
from elea.uprotocol.uuri import UUri

__all__ = [
    "GET_LAST_MESSAGES",
    "GetLastMessagesRequest",
    "GetLastMessagesResponse",
    "MessageResponse",
    "UUriBatch",
    "service_uri",
]

GET_LAST_MESSAGES: Final = 1


def service_uri(authority: str, resource: int = 0) -> UUri:
    """The service of an authority, or one of its methods."""
    return UUri(authority, 3, 2, resource)


def _named(name: str) -> Descriptor:
    return Descriptor(f"uprotocol.core.utwin.v2.{name}")


class UUriBatch(ProtoMessage):
    """Several addresses."""

    DESCRIPTOR = Descriptor("uprotocol.v1.UUriBatch")
    MEMBERS = (each(1, "uris", UUri),)
    uris: tuple[UUri, ...]


class GetLastMessagesRequest(ProtoMessage):
    """What was last published on these topics?"""

    DESCRIPTOR = _named("GetLastMessagesRequest")
    MEMBERS = (message(1, "topics", UUriBatch),)
    topics: UUriBatch | None


class MessageResponse(ProtoMessage):
    """The last message of a topic, or why there is none."""

    DESCRIPTOR = _named("MessageResponse")
    MEMBERS = (message(1, "topic", UUri), message(2, "status", UStatus), message(3, "message", UMessage))
    topic: UUri | None
    status: UStatus | None
    message: UMessage | None


class GetLastMessagesResponse(ProtoMessage):
    """These messages."""

    DESCRIPTOR = _named("GetLastMessagesResponse")
    MEMBERS = (each(2, "responses", MessageResponse),)
    responses: tuple[MessageResponse, ...]
