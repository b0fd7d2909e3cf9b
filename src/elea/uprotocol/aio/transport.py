"""The transport for asyncio: the threaded one, awaited. Listeners are called in the loop, plain or asynchronous."""

from __future__ import annotations

import asyncio
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from elea.aio.handle import Pending
from elea.aio.inbox import DEFAULT_CAPACITY, Caller, Inbox, Overflow
from elea.aio.publisher import Turns
from elea.aio.workers import in_thread, in_thread_soon
from elea.api.config import Config
from elea.model.errors import EleaError
from elea.model.logger import logger
from elea.uprotocol import zenohtransport as threaded
from elea.uprotocol.message import UMessage
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.transport import ListenerFunction, UListener, listener_function
from elea.uprotocol.uuri import UUri

if TYPE_CHECKING:
    from elea.io.loop import Loop

__all__ = ["UTransport", "open"]

_log = logger("elea.uprotocol")

Registered = tuple[UUri, "UUri | None", object]


class UTransport:
    """Sends and receives messages. Use it in the loop that opened it.

    ::

        async with aio.open(elea.Config(), "//vcu.my_vin/10AB/3/0") as transport:
            await transport.send(UMessage.publish(transport.get_resource(0x8001), b"21.5", UPayloadFormat.TEXT))
    """

    def __init__(self, inner: threaded.UTransportZenoh) -> None:
        self.inner = inner
        self._turns = Turns()
        self._callers: dict[Registered, tuple[Inbox[UMessage], Caller[UMessage]]] = {}

    def get_authority(self) -> str:
        """The name of this machine or vehicle."""
        return self.inner.get_authority()

    def get_source(self) -> UUri:
        """The entity itself."""
        return self.inner.get_source()

    def get_resource(self, resource_id: int) -> UUri:
        """One of its topics or methods."""
        return self.inner.get_resource(resource_id)

    @property
    def loop(self) -> Loop:
        """Where timers of the session run."""
        return self.inner.loop

    @property
    def dropped(self) -> dict[str, int]:
        """Samples that were no message for anybody, by reason."""
        return self.inner.dropped

    async def send(self, message: UMessage) -> None:
        """Hand a message to the network; errors as in `UTransportZenoh.send`."""
        if self.send_soon(message):
            if self._turns.due():
                await asyncio.sleep(0)
        else:
            await in_thread(partial(self.inner.send, message))

    def send_soon(self, message: UMessage) -> bool:
        """The same at once; False if it would have to wait, and then it is not sent."""
        route, meta, payload, qos = self.inner.prepared(message)
        if route.is_full(qos):
            return False
        try:
            route.send(meta, payload, qos, True)
        except EleaError as error:
            raise UStatusError(UCode.UNAVAILABLE, f"message {message.attributes.id} not sent: {error}") from error
        return True

    def send_somehow(self, message: UMessage, *, wait: bool = True) -> None:
        """The same from any thread, without waiting: in another thread if it has to.

        Raises:
            UStatusError: as `send`; UNAVAILABLE if there is no room and it is not to wait.
        """
        if self.send_soon(message):
            return
        if not wait:
            raise UStatusError(UCode.UNAVAILABLE, f"no room for message {message.attributes.id} now")
        in_thread_soon(partial(self._send_late, message))

    def _send_late(self, message: UMessage) -> None:
        try:
            self.inner.send(message)
        except UStatusError as error:
            _log.warning("message not sent: to=%s problem=%s", message.sink, error)

    async def register_listener(
        self,
        source_filter: UUri,
        sink_filter: UUri | None,
        listener: UListener | ListenerFunction,
        *,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "block",
    ) -> None:
        """Call `listener` in the loop with messages that match, one after the other; it may be asynchronous.

        Args:
            capacity: messages that wait for it.
            overflow: what happens then (elea.aio.inbox).
        """
        name: Registered = (source_filter, sink_filter, listener)
        if name in self._callers:
            return
        inbox: Inbox[UMessage] = Inbox(capacity=capacity, overflow=overflow, of="UMessage")
        caller = Caller(inbox, listener_function(listener))
        self.inner.register_listener(source_filter, sink_filter, inbox.push)
        self._callers[name] = inbox, caller

    async def unregister_listener(
        self, source_filter: UUri, sink_filter: UUri | None, listener: UListener | ListenerFunction
    ) -> None:
        """Call it no more; what waits for it is forgotten."""
        inbox, caller = self._callers.pop((source_filter, sink_filter, listener), (None, None))
        if inbox is None or caller is None:
            raise UStatusError(UCode.NOT_FOUND, f"{listener!r} does not listen to {source_filter} and {sink_filter}")
        # Nobody may wait for room in an inbox that nobody empties while this waits for them.
        inbox.abandoned = True
        await in_thread(partial(self.inner.unregister_listener, source_filter, sink_filter, inbox.push))
        caller.cancel()

    async def receive(self, source_filter: UUri, sink_filter: UUri | None = None, *, timeout: float = 0.0) -> UMessage:
        """The next message that matches; as in `UTransportZenoh.receive`."""
        if timeout <= 0:
            return self.inner.receive(source_filter, sink_filter)
        return await in_thread(partial(self.inner.receive, source_filter, sink_filter, timeout=timeout))

    async def close(self) -> None:
        """End all listeners; and the session, if `open` has opened it."""
        callers = list(self._callers.values())
        self._callers.clear()
        for inbox, _ in callers:
            inbox.abandoned = True
        await in_thread(self.inner.close)
        for _, caller in callers:
            caller.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


def open(config: Config | None, uri: UUri | str, **options: Any) -> Pending[UTransport]:
    """Open a session and a transport on it: `await open(…)`, or `async with open(…) as transport`.

    Options and errors are those of `elea.uprotocol.open`.
    """

    async def begin() -> UTransport:
        opened = partial(threaded.open, config, uri, **options)
        return UTransport(await in_thread(opened, unwanted=threaded.UTransportZenoh.close))

    return Pending(begin())
