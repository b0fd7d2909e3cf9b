"""`RpcClient` for asyncio: any number of calls at a time, each a coroutine that waits for its answer."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

from elea.aio.inbox import Inbox
from elea.aio.workers import in_thread
from elea.api.apierrors import ChannelClosed
from elea.model.limits import UPROTOCOL_PENDING
from elea.uprotocol.aio.transport import UTransport
from elea.uprotocol.communication.calloptions import CallOptions
from elea.uprotocol.communication.calls import Calls
from elea.uprotocol.communication.rpcclient import request_message
from elea.uprotocol.message import UMessage
from elea.uprotocol.payload import IntoPayload, UPayload
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.uuri import ANY_UURI, UUri

__all__ = ["RpcClient"]

Result = asyncio.Future["UPayload | UStatusError | None"]


class RpcClient:
    """Calls methods for this entity.

    ::

        answers = await asyncio.gather(*(client.invoke_method(method, str(number)) for number in range(1000)))
    """

    def __init__(self, transport: UTransport) -> None:
        """Listen to the answers for this entity; to be made in the loop."""
        self._transport = transport
        self._calls = Calls(transport.loop)
        self._loop = asyncio.get_running_loop()
        # All answers that have come wake the loop once, and are handed out there.
        self._inbox: Inbox[UMessage] = Inbox(capacity=UPROTOCOL_PENDING, of="UMessage")
        self._inbox.on_ready = self._arrived
        transport.inner.register_listener(ANY_UURI, transport.get_source(), self._inbox.push)
        transport.inner.on_close(self._calls.close)

    @property
    def pending(self) -> int:
        """Calls that wait for an answer."""
        return len(self._calls)

    @property
    def unmatched(self) -> int:
        """Answers nobody waited for."""
        return self._calls.unmatched

    async def invoke_method(
        self, method: UUri, payload: IntoPayload = None, options: CallOptions | None = None
    ) -> UPayload | None:
        """Call a method and wait for its answer; errors as in `elea.uprotocol.RpcClient`. Cancelling ends the wait."""
        request = request_message(self._transport, method, payload, options)
        id = request.attributes.id
        assert id is not None
        result: Result = self._loop.create_future()
        self._calls.begin(id, request.attributes, partial(self._settle, result))
        try:
            await self._transport.send(request)
            outcome = await result
        finally:
            self._calls.forget(id)
        if isinstance(outcome, UStatusError):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Listen no more; calls that wait end with CANCELLED."""
        self._inbox.abandoned = True
        source = self._transport.get_source()
        try:
            await in_thread(partial(self._transport.inner.unregister_listener, ANY_UURI, source, self._inbox.push))
        except UStatusError as error:  # it has ended with its transport
            if error.code is not UCode.NOT_FOUND:
                raise
        self._calls.close()

    async def __aenter__(self) -> RpcClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _arrived(self) -> None:
        with contextlib.suppress(ChannelClosed):
            while (message := self._inbox.take()) is not None:
                self._calls.arrived(message)

    def _settle(self, result: Result, outcome: UPayload | UStatusError | None) -> None:
        """A call has ended: here in the loop if it was answered, in another thread if its time is over."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            _resolve(result, outcome)
            return
        # A loop that is closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_resolve, result, outcome)


def _resolve(result: Result, outcome: UPayload | UStatusError | None) -> None:
    if not result.done():
        result.set_result(outcome)
