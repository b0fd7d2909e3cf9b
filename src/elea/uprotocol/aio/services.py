"""Core services for asyncio: what waits for an answer is awaited; those that answer run beside the loop."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from elea.aio.workers import in_thread
from elea.uprotocol.aio.transport import UTransport
from elea.uprotocol.message import UMessage
from elea.uprotocol.services import utwin
from elea.uprotocol.services.usubscription import USubscription as ThreadedSubscription
from elea.uprotocol.uuid7 import Clock, now_ms
from elea.uprotocol.uuri import UUri

__all__ = ["LastMessages", "USubscription", "UTwin"]


class LastMessages:
    """Reads the last message of topics from what brokers keep; as `elea.uprotocol.services.LastMessages`."""

    def __init__(self, transport: UTransport, *, clock: Clock = now_ms) -> None:
        self._inner = utwin.LastMessages(transport.inner, clock=clock)

    async def of(self, topic: UUri, *, timeout: float = utwin.PATIENCE) -> UMessage:
        """The last message of one topic; errors as in `elea.uprotocol.services.LastMessages`."""
        return await in_thread(partial(self._inner.of, topic, timeout=timeout))


class USubscription:
    """Serves subscriptions: `async with USubscription(transport):`; as `elea.uprotocol.services.USubscription`."""

    def __init__(self, transport: UTransport, *, path: str | Path | None = None, clock: Clock = now_ms) -> None:
        self._made = partial(ThreadedSubscription, transport.inner, path=path, clock=clock)

    async def __aenter__(self) -> ThreadedSubscription:
        self._inner = await in_thread(self._made)  # it may read a file
        return self._inner

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self._inner.close)


class UTwin:
    """Serves last messages: `async with UTwin(transport):`; as `elea.uprotocol.services.UTwin`."""

    def __init__(self, transport: UTransport, *, workers: int = 4, clock: Clock = now_ms) -> None:
        self._made = partial(utwin.UTwin, transport.inner, workers=workers, clock=clock)

    async def __aenter__(self) -> utwin.UTwin:
        self._inner = await in_thread(self._made)
        return self._inner

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self._inner.close)
