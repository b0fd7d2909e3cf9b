"""`ServiceEntity`: another entity on the same transport, such as a core service beside an application."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from elea.uprotocol.attributes import UAttributes
from elea.uprotocol.message import UMessage
from elea.uprotocol.transport import ListenerFunction, LocalUri, PreparedMessages, UListener, UTransport
from elea.uprotocol.uuri import UUri

if TYPE_CHECKING:
    from elea.io.loop import Loop

__all__ = ["ServiceEntity"]


class ServiceEntity(LocalUri):
    """The transport as the entity at `uri` sees it."""

    def __init__(self, transport: UTransport, uri: UUri) -> None:
        super().__init__(uri)
        self._transport = transport

    @property
    def loop(self) -> Loop:
        """Where timers run."""
        return self._transport.loop

    def send(self, message: UMessage, *, wait: bool = True) -> None:
        """Hand a message over."""
        self._transport.send(message, wait=wait)

    def prepare(self, attributes: UAttributes) -> PreparedMessages:
        """Check once what messages have in common."""
        return self._transport.prepare(attributes)

    def register_listener(
        self, source_filter: UUri, sink_filter: UUri | None, listener: UListener | ListenerFunction
    ) -> None:
        """Tell `listener` of messages from now on."""
        self._transport.register_listener(source_filter, sink_filter, listener)

    def unregister_listener(
        self, source_filter: UUri, sink_filter: UUri | None, listener: UListener | ListenerFunction
    ) -> None:
        """Tell it no more."""
        self._transport.unregister_listener(source_filter, sink_filter, listener)

    def on_close(self, call: Callable[[], None]) -> None:
        """Call this when the transport ends."""
        self._transport.on_close(call)
