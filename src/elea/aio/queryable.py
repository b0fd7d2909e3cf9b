"""Queryables of the asyncio twin, and the queries they get."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from elea.aio.handle import ReceivingHandle
from elea.aio.workers import twin
from elea.api import query as threaded_query
from elea.api import queryable as threaded
from elea.api.identity import SourceInfo
from elea.api.instrumentation import TimestampStack
from elea.api.queryoptions import ReplyKeyExpr
from elea.api.zbytes import ZBytes
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.selector import Parameters, Selector

__all__ = ["Query", "Queryable"]


class Query:
    """A question to a queryable; it ends with `drop`, its `async with` block, or its last reference."""

    __slots__ = ("__weakref__", "_inner")

    def __init__(self, inner: threaded_query.Query) -> None:
        self._inner = inner

    @property
    def selector(self) -> Selector:
        """The key expression with the parameters."""
        return self._inner.selector

    @property
    def key_expr(self) -> KeyExpr:
        """The keys asked about."""
        return self._inner.key_expr

    @property
    def parameters(self) -> Parameters:
        """The parameters of the selector."""
        return self._inner.parameters

    @property
    def payload(self) -> ZBytes | None:
        """The value sent along with the question."""
        return self._inner.payload

    @property
    def encoding(self) -> Encoding | None:
        """What the payload is."""
        return self._inner.encoding

    @property
    def attachment(self) -> ZBytes | None:
        """What was attached to the question."""
        return self._inner.attachment

    @property
    def source_info(self) -> SourceInfo | None:
        """Who asks, if they said so."""
        return self._inner.source_info

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """The timestamps it has collected on its way, if that was asked for."""
        return self._inner.timestamp_stack

    def accepts_replies(self) -> ReplyKeyExpr:
        """Which keys replies may have."""
        return self._inner.accepts_replies()

    # Answers are queued and never wait for room, so they need no other thread.

    @twin(threaded_query.Query.reply)
    async def reply(self, key_expr: Any, payload: Any, **options: Any) -> None:
        self._inner.reply(key_expr, payload, **options)

    @twin(threaded_query.Query.reply_del)
    async def reply_del(self, key_expr: Any, **options: Any) -> None:
        self._inner.reply_del(key_expr, **options)

    @twin(threaded_query.Query.reply_err)
    async def reply_err(self, payload: Any, **options: Any) -> None:
        self._inner.reply_err(payload, **options)

    async def drop(self) -> None:
        """Finish the query; the asker waits no longer. Does nothing the second time."""
        self._finish()

    def _finish(self) -> None:
        self._inner.drop()

    async def __aenter__(self) -> Self:
        self._inner.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.drop()

    def __str__(self) -> str:
        return str(self._inner)

    def __repr__(self) -> str:
        return repr(self._inner)


class Queryable(ReceivingHandle[Query]):
    """Answers queries on a key expression.

    ::

        async with session.declare_queryable("home/1/temp") as queryable:
            async for query in queryable:
                async with query:
                    await query.reply(query.key_expr, "21.5")
    """

    _inner: threaded.Queryable[None]

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it answers for."""
        return self._inner.key_expr

    def _wrap(self, item: Any) -> Query:
        return Query(item)

    @staticmethod
    def _after(item: Query) -> None:
        # A query ends with its last reference. If that is the caller's, it ends here, where nobody holds a lock, and
        # not in the garbage collector, which would need another thread. Three: the caller's, ours, the count's own.
        if sys.getrefcount(item) <= 3:
            item._finish()
