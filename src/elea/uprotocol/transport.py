"""What layer 2 needs of a transport (L1), whatever it is made of; and who we are on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from elea.uprotocol.attributes import UAttributes
from elea.uprotocol.message import UMessage
from elea.uprotocol.status import InvalidUri
from elea.uprotocol.uuid7 import UUID
from elea.uprotocol.uuri import ANY_AUTHORITY, UUri

if TYPE_CHECKING:
    from elea.io.loop import Loop

__all__ = [
    "ListenerFunction",
    "LocalUri",
    "LocalUriProvider",
    "PreparedMessages",
    "UListener",
    "UTransport",
    "listener_function",
]

ListenerFunction = Callable[[UMessage], object]


@runtime_checkable
class UListener(Protocol):
    """An object that is told of messages; a plain function does as well."""

    def on_receive(self, message: UMessage) -> object:
        """A message has come."""


class LocalUriProvider(Protocol):
    """Knows the addresses of this entity."""

    def get_authority(self) -> str:
        """The name of this machine or vehicle."""

    def get_source(self) -> UUri:
        """The entity itself: where answers and notifications go."""

    def get_resource(self, resource_id: int) -> UUri:
        """One of its topics or methods."""


class LocalUri:
    """The addresses of an entity that has one.

    >>> LocalUri("//vcu.my_vin/10AB/3/0").get_resource(0x8001)
    UUri('//vcu.my_vin/10AB/3/8001')
    """

    def __init__(self, uri: UUri | str) -> None:
        """Take the entity at `uri`, whatever its resource.

        Raises:
            InvalidUri: it has no authority, or a wildcard.
        """
        entity = (UUri.parse(uri) if isinstance(uri, str) else uri).with_resource(0)
        if not entity.authority_name or entity.authority_name == ANY_AUTHORITY:
            raise InvalidUri(str(uri), "the address of an entity needs an authority, such as //vcu.my_vin/10AB/3/0")
        problem = entity.problem or (f"an entity has no wildcard {entity.wildcards[0]}" if entity.wildcards else "")
        if problem:
            raise InvalidUri(str(uri), problem)
        self._entity = entity

    def get_authority(self) -> str:
        """The name of this machine or vehicle."""
        return self._entity.authority_name

    def get_source(self) -> UUri:
        """The entity itself."""
        return self._entity

    def get_resource(self, resource_id: int) -> UUri:
        """One of its topics or methods.

        Raises:
            InvalidUri: the number is none of 16 bits.
        """
        uri = self._entity.with_resource(resource_id)
        if uri.problem:
            raise InvalidUri(str(uri), uri.problem)
        return uri


class PreparedMessages(Protocol):
    """Messages that differ in identifier and payload only."""

    def send(
        self, payload: bytes | None, id: UUID | None = None, reqid: UUID | None = None, *, wait: bool = True
    ) -> None:
        """Hand one more over, with an identifier of its own unless one is given; as `UTransport.send`."""


class UTransport(LocalUriProvider, Protocol):
    """Sends whole messages, and tells listeners of those that come."""

    @property
    def loop(self) -> Loop:
        """Where timers run."""

    def send(self, message: UMessage, *, wait: bool = True) -> None:
        """Hand a message over: on its way then, not yet there. Without `wait` it is refused if there is no room."""

    def prepare(self, attributes: UAttributes) -> PreparedMessages:
        """Check once what messages have in common that differ in identifier and payload only."""

    def register_listener(
        self, source_filter: UUri, sink_filter: UUri | None, listener: UListener | ListenerFunction
    ) -> None:
        """Tell `listener` of messages from now on."""

    def unregister_listener(
        self, source_filter: UUri, sink_filter: UUri | None, listener: UListener | ListenerFunction
    ) -> None:
        """Tell it no more."""

    def on_close(self, call: Callable[[], None]) -> None:
        """Call this when the transport ends."""


def listener_function(listener: UListener | ListenerFunction) -> ListenerFunction:
    """What is to be called with a message."""
    if isinstance(listener, UListener):
        return listener.on_receive
    if callable(listener):
        return listener
    raise TypeError(f"a listener is a function or has on_receive, not {type(listener).__name__}")
