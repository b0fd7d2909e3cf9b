"""`RpcServer` for asyncio: a task for each request."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from elea.aio.inbox import Inbox
from elea.aio.workers import in_thread
from elea.api.apierrors import ChannelClosed
from elea.model.limits import UPROTOCOL_CALLS
from elea.uprotocol.aio.transport import UTransport
from elea.uprotocol.attributes import UAttributes
from elea.uprotocol.communication.answering import Answerer, Authorize, Request, any_client
from elea.uprotocol.message import UMessage
from elea.uprotocol.payload import IntoPayload, UPayload
from elea.uprotocol.status import UCode, UStatus, UStatusError
from elea.uprotocol.uuri import UUri

__all__ = ["RequestHandler", "RpcServer"]

RequestHandler: TypeAlias = Callable[[int, UAttributes, "UPayload | None"], "IntoPayload | Awaitable[IntoPayload]"]
"""`handler(resource_id, attributes, payload)`, plain or asynchronous, gives the payload of the answer."""


class RpcServer:
    """Serves methods of this entity; requests are worked on at the same time if their handlers are asynchronous."""

    def __init__(self, transport: UTransport, *, authorize: Authorize | None = None) -> None:
        """Serve nothing yet; to be made in the loop.

        Args:
            authorize: says for the attributes of a request whether it is allowed (`UCode.OK`), or the code to refuse.
        """
        self._transport = transport
        self._answerer = Answerer(transport.loop, transport.send_somehow, authorize)
        self._endpoints: dict[int, tuple[UUri, RequestHandler, Inbox[UMessage]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pending(self) -> int:
        """Requests that are worked on."""
        return len(self._answerer)

    @property
    def timed_out(self) -> int:
        """Requests whose handler took longer than their time to live; they were answered so."""
        return self._answerer.timed_out

    async def register_endpoint(self, origin_filter: UUri | None, resource_id: int, handler: RequestHandler) -> None:
        """Answer calls of the method `resource_id`; errors as in `elea.uprotocol.RpcServer`."""
        origin = any_client(origin_filter)
        method = self._transport.get_resource(resource_id)
        if not method.is_method:
            raise UStatusError(UCode.INVALID_ARGUMENT, f"{method} is no method: its resource must be in 1..7FFF")
        if resource_id in self._endpoints:
            raise UStatusError(UCode.ALREADY_EXISTS, f"{method} has a handler already")
        inbox: Inbox[UMessage] = Inbox(capacity=UPROTOCOL_CALLS, of="UMessage")
        inbox.on_ready = partial(self._arrived, resource_id, handler, inbox)
        self._transport.inner.register_listener(origin, method, inbox.push)
        self._endpoints[resource_id] = origin, handler, inbox

    async def unregister_endpoint(self, origin_filter: UUri | None, resource_id: int, handler: RequestHandler) -> None:
        """Answer no more; a call that is being worked on is still answered."""
        origin = any_client(origin_filter)
        found = self._endpoints.get(resource_id)
        if found is None or found[:2] != (origin, handler):
            raise UStatusError(UCode.NOT_FOUND, f"method {resource_id:X} has no such handler")
        del self._endpoints[resource_id]
        await self._end(resource_id, origin, found[2])

    async def close(self) -> None:
        """Answer nothing any more; handlers that are at work are cancelled."""
        endpoints, self._endpoints = self._endpoints, {}
        for resource_id, (origin, _, inbox) in endpoints.items():
            await self._end(resource_id, origin, inbox)
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> RpcServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _end(self, resource_id: int, origin: UUri, inbox: Inbox[UMessage]) -> None:
        inbox.abandoned = True
        method = self._transport.get_resource(resource_id)
        try:
            await in_thread(partial(self._transport.inner.unregister_listener, origin, method, inbox.push))
        except UStatusError as error:  # it has ended with its transport
            if error.code is not UCode.NOT_FOUND:
                raise

    def _arrived(self, resource_id: int, handler: RequestHandler, inbox: Inbox[UMessage]) -> None:
        with contextlib.suppress(ChannelClosed):
            while (message := inbox.take()) is not None:
                request = self._answerer.accept(message)
                if request is None:
                    continue
                if len(self._tasks) >= UPROTOCOL_CALLS:
                    full = UStatus(UCode.RESOURCE_EXHAUSTED, f"{UPROTOCOL_CALLS} requests are worked on already")
                    self._answerer.refuse(request, full)
                    continue
                task = asyncio.get_running_loop().create_task(_work(resource_id, handler, request))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)


async def _work(resource_id: int, handler: RequestHandler, request: Request) -> None:
    try:
        value = handler(resource_id, request.attributes, request.payload)
        if inspect.isawaitable(value):
            value = await value
    except Exception as error:  # noqa: BLE001 - the caller is told
        request.fail(error)
    else:
        request.answer(value)
