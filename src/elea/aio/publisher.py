"""Putting from a loop: at once while there is room, in another thread when the call would wait."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from elea.aio.handle import Handle, Pending
from elea.aio.inbox import DEFAULT_CAPACITY, TURN, Overflow
from elea.aio.matching import MatchingListener
from elea.aio.workers import in_thread, twin
from elea.api import publisher as threaded
from elea.api.apierrors import refuse_stack
from elea.api.info import MatchingStatus
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import CongestionControl, Priority, Reliability

if TYPE_CHECKING:
    from elea.aio.session import Session
    from elea.api.apitimestamp import Timestamp
    from elea.api.identity import SourceInfo
    from elea.api.instrumentation import TimestampInstrumentation
    from elea.api.receipt import Receipt
    from elea.api.zbytes import IntoZBytes

__all__ = ["Publisher", "Turns"]


class Turns:
    """Counts what was done without waiting, and pauses now and then so that other tasks run too."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def due(self) -> bool:
        """Whether it is time for a pause."""
        self._count = (self._count + 1) % TURN
        return not self._count


class Publisher(Handle):
    """Puts samples on one key expression.

    ::

        async with session.declare_publisher("home/1/temp") as publisher:
            await publisher.put("21.5")
    """

    _inner: threaded.Publisher

    def __init__(self, session: Session, inner: threaded.Publisher) -> None:
        self._session = session
        self._inner = inner
        self._turns = session._turns

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it puts to."""
        return self._inner.key_expr

    @property
    def encoding(self) -> Encoding:
        """What payloads are, if a put does not say."""
        return self._inner.encoding

    @property
    def congestion_control(self) -> CongestionControl:
        """What happens when a queue is full."""
        return self._inner.congestion_control

    @property
    def priority(self) -> Priority:
        """The lane samples take."""
        return self._inner.priority

    @property
    def reliability(self) -> Reliability:
        """Whether samples may be lost on the way."""
        return self._inner.reliability

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether anybody subscribes to what it puts."""
        return self._inner.matching_status

    def declare_matching_listener(
        self, handler: Any = None, *, capacity: int = DEFAULT_CAPACITY, overflow: Overflow = "block"
    ) -> Pending[MatchingListener]:
        """Be told when the first subscriber comes and when the last one goes."""

        async def begin() -> MatchingListener:
            declare = self._inner.declare_matching_listener
            return MatchingListener(
                self._session, declare, handler, "MatchingStatus", capacity=capacity, overflow=overflow
            )

        return Pending(begin())

    @twin(threaded.Publisher.put)
    async def put(self, payload: Any, **options: Any) -> Receipt | None:
        if self._inner._durability is not None:
            return await self._stored(payload=payload, **{"encoding": self.encoding, **options})
        if self._full():
            await in_thread(partial(self._inner.put, payload, **options))
            return None
        self._inner.put(payload, **options)
        if self._turns.due():
            await asyncio.sleep(0)
        return None

    @twin(threaded.Publisher.delete)
    async def delete(self, **options: Any) -> Receipt | None:
        if self._inner._durability is not None:
            return await self._stored(payload=None, encoding=None, **options)
        if self._full():
            await in_thread(partial(self._inner.delete, **options))
            return None
        self._inner.delete(**options)
        if self._turns.due():
            await asyncio.sleep(0)
        return None

    async def _stored(
        self,
        *,
        ack: bool = False,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
        timeout: float | int | None = None,
        **options: Any,
    ) -> Receipt | None:
        refuse_stack(timestamp_instrumentation)
        inner = self._inner
        inner._put_route.check()
        options |= {"attachment": attachment, "timestamp": timestamp, "source_info": source_info, "timeout": timeout}
        return await self._session._storing.put(ack=ack, numbers=inner._numbers, **inner._for_store(options))

    def _full(self) -> bool:
        return self._inner._put_route.would_wait()
