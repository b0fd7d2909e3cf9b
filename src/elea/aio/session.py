"""`Session` for asyncio: the threaded one, awaited."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, overload

from elea.aio.handle import Pending
from elea.aio.inbox import DEFAULT_CAPACITY, Caller, Overflow
from elea.aio.info import SessionInfo
from elea.aio.liveliness import Liveliness
from elea.aio.publisher import Publisher, Turns
from elea.aio.querier import Querier, ask
from elea.aio.queryable import Queryable
from elea.aio.subscriber import BatchSubscriber, Subscriber, is_pull, paced
from elea.aio.workers import in_thread, twin
from elea.api import session as threaded
from elea.api.apitimestamp import Timestamp
from elea.api.arrowhandler import Arrow
from elea.api.callbacks import Callback
from elea.api.cancellation import CancellationToken
from elea.api.config import Config
from elea.api.identity import EntityGlobalId, ZenohId
from elea.model.keyexpr import KeyExpr
from elea.model.qos import Locality, Priority
from elea.model.selector import Selector

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from elea.aio.historysubscriber import Replay
    from elea.aio.rangereader import Cursor, Reading
    from elea.aio.storeclient import StoreClient
    from elea.api.historysubscriber import Loss
    from elea.api.pacedsubscriber import Periodic, Pull
    from elea.api.receipt import Receipt
    from elea.api.storeclient import Durability
    from elea.model.predicate import Predicate

__all__ = ["Session", "open"]

CLOSING_SECONDS: Final = 1.0
"""How long a closing session waits for functions that still have items to be called with."""


class Session:
    """Puts, deletes, asks, and declares what receives and answers. Use it in the loop that opened it.

    Options are those of `elea.Session`; what receives also takes `capacity` and `overflow` (elea.aio.inbox).
    """

    def __init__(self, inner: threaded.Session) -> None:
        self._inner = inner
        self._turns = Turns()
        self._stores: StoreClient | None = None
        self._callers: weakref.WeakSet[Caller[Any]] = weakref.WeakSet()

    # -- the session itself

    @property
    def id(self) -> EntityGlobalId:
        """The identifier of the session as an entity."""
        return self._inner.id

    @property
    def info(self) -> SessionInfo:
        """Whom this session is connected to, and what it has dropped."""
        return SessionInfo(self)

    def zid(self) -> ZenohId:
        """The identifier of this node."""
        return self._inner.zid()

    def set_rules(self, config: Config) -> None:
        """As `elea.Session.set_rules`; it does not wait."""
        self._inner.set_rules(config)

    def is_closed(self) -> bool:
        """Whether `close` has been called."""
        return self._inner.is_closed()

    def new_timestamp(self) -> Timestamp:
        """A timestamp of now, above all this session has given."""
        return self._inner.new_timestamp()

    async def close(self) -> None:
        """End the session and everything declared through it; returns soon, whatever others do."""
        # Whatever happens to the caller's task meanwhile, the closing goes on in its thread.
        await in_thread(self._inner.close)
        if self._stores is not None:
            self._stores.wake()  # nobody brings anything round any more
        callers = list(self._callers)
        await asyncio.gather(*(caller.settle(CLOSING_SECONDS) for caller in callers))
        for caller in callers:
            caller.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def declare_keyexpr(self, key_expr: KeyExpr | str) -> KeyExpr:
        """A key expression to use again and again."""
        return self._inner.declare_keyexpr(key_expr)

    async def undeclare(self, obj: KeyExpr) -> None:
        """Undeclare a key expression."""
        self._inner.undeclare(obj)

    # -- samples

    @twin(threaded.Session.put)
    async def put(
        self,
        key_expr: Any,
        payload: Any,
        *,
        durability: Durability | None = None,
        ack: bool = False,
        timeout: float | int | None = None,
        **options: Any,
    ) -> Receipt | None:
        if (ack or durability is not None) and self._inner._storing.wants(durability, ack=ack):
            return await self._storing.put(
                ack=ack,
                **self._inner._for_store(key_expr, payload=payload, durability=durability, timeout=timeout, **options),
            )
        if self._full(key_expr, **options):
            await in_thread(partial(self._inner.put, key_expr, payload, **options))
            return None
        self._inner.put(key_expr, payload, **options)
        if self._turns.due():
            await asyncio.sleep(0)
        return None

    @twin(threaded.Session.delete)
    async def delete(
        self,
        key_expr: Any,
        *,
        durability: Durability | None = None,
        ack: bool = False,
        timeout: float | int | None = None,
        **options: Any,
    ) -> Receipt | None:
        if (ack or durability is not None) and self._inner._storing.wants(durability, ack=ack):
            return await self._storing.put(
                ack=ack,
                **self._inner._for_store(key_expr, payload=None, durability=durability, timeout=timeout, **options),
            )
        if self._full(key_expr, **options):
            await in_thread(partial(self._inner.delete, key_expr, **options))
            return None
        self._inner.delete(key_expr, **options)
        if self._turns.due():
            await asyncio.sleep(0)
        return None

    @overload
    async def put_batch(
        self,
        batch: Any,
        key_expr: KeyExpr | str | None = None,
        *,
        durability: Literal["persistent", "transient"] | None = "persistent",
        timeout: float | int | None = None,
    ) -> Receipt: ...

    @overload
    async def put_batch(
        self,
        batch: Any,
        key_expr: KeyExpr | str | None = None,
        *,
        durability: Literal["volatile"],
        timeout: float | int | None = None,
    ) -> None: ...

    async def put_batch(
        self,
        batch: Any,
        key_expr: KeyExpr | str | None = None,
        *,
        durability: Durability | None = "persistent",
        timeout: float | int | None = None,
    ) -> Receipt | None:
        """Have many samples stored, or published if `volatile`; as in `elea.Session`."""
        if durability == "volatile":
            return await in_thread(partial(self._inner.put_batch, batch, key_expr, durability=durability))
        return await self._storing.put_batch(batch, key_expr, durability, timeout)

    def read(self, key_expr: KeyExpr | str, **options: Any) -> Reading:
        """What a broker has stored of a key expression; options as in `elea.Session.read`.

        ::

            async for batch in session.read("home/**", start=1000):
                print(batch.num_rows)
        """
        from elea.aio.rangereader import Reading

        return Reading(partial(self._inner.read, key_expr, **options))

    def cursor(self, key_expr: KeyExpr | str, name: str, *, log: str | None = None) -> Cursor:
        """A named position in the log of a key expression, which the broker remembers."""
        from elea.aio.rangereader import Cursor

        return Cursor(self._storing, self._inner.cursor(key_expr, name, log=log))

    def declare_publisher(self, key_expr: KeyExpr | str, **options: Any) -> Pending[Publisher]:
        """Declare that this session will put to a key, again and again; options as in `elea.Session`."""

        async def begin() -> Publisher:
            return Publisher(self, self._inner.declare_publisher(key_expr, **options))

        return Pending(begin())

    def declare_subscriber(
        self,
        key_expr: KeyExpr | str,
        handler: Any = None,
        *,
        allowed_origin: Locality | None = None,
        mode: Pull | Periodic | None = None,
        history: int | None = None,
        since: datetime | timedelta | int | None = None,
        cursor: str | None = None,
        auto_commit: bool = True,
        on_loss: Callable[[Loss], object] | None = None,
        where: Predicate | str | None = None,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "block",
    ) -> Pending[Subscriber]:
        """Receive what is put to a key expression; options as in `elea.Session`."""
        follows = history is not None or since is not None or cursor is not None
        waiting: dict[str, Any] = {"capacity": capacity, "overflow": overflow}

        async def begin() -> Subscriber:
            if mode is not None and not follows:
                return paced(self, key_expr, handler, allowed_origin, mode, where, **waiting)
            if follows:
                from elea.aio.historysubscriber import follow, sleeping
                from elea.api.logreader import Start

                if allowed_origin is not None:
                    raise ValueError(threaded.NO_ORIGIN)
                given: dict[str, Any] = {"mode": mode, "auto_commit": auto_commit, "on_loss": on_loss}
                given["where"] = None if where is None else self._inner._sample_predicate(where)
                key, start = self._inner._key(key_expr), Start(history, since, cursor)
                if mode is not None and is_pull(mode):
                    if handler is not None:
                        raise ValueError(threaded.NO_HANDLER)
                    return await sleeping(self, key, start, **given)
                return await follow(self, key, handler, start, **given, **waiting)
            declare = partial(self._inner.declare_subscriber, key_expr, allowed_origin=allowed_origin, where=where)
            if isinstance(handler, Arrow):
                return BatchSubscriber(self, declare, handler)
            return Subscriber(self, declare, handler, "Sample", **waiting)

        return Pending(begin())

    def replay(
        self,
        key_expr: KeyExpr | str,
        since: datetime | timedelta | None = None,
        until: datetime | timedelta | None = None,
        pace: float | None = 1.0,
    ) -> Replay:
        """The samples that a broker has kept, again: `async for sample in session.replay(…)`."""
        from elea.aio.historysubscriber import Replay

        return Replay(self._inner.replay(key_expr, since, until, pace))

    # -- queries

    async def get(
        self,
        selector: Selector | KeyExpr | str,
        handler: Any = None,
        *,
        cancellation_token: CancellationToken | None = None,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "block",
        **options: Any,
    ) -> Any:
        """Ask for what a selector names; options as in `elea.Session.get`.

        Returns `Replies`, unless a function takes them::

            async for reply in await session.get("home/**"):
                print(reply.ok)
        """

        def send(callback: Callback[Any], token: CancellationToken) -> object:
            return self._inner.get(selector, callback, cancellation_token=token, **options)

        return ask(self, send, handler, cancellation_token, capacity=capacity, overflow=overflow)

    def declare_querier(self, key_expr: KeyExpr | str, **options: Any) -> Pending[Querier]:
        """Declare that this session will ask about a key expression, again and again; options as in `elea.Session`."""

        async def begin() -> Querier:
            return Querier(self, self._inner.declare_querier(key_expr, **options))

        return Pending(begin())

    def declare_queryable(
        self,
        key_expr: KeyExpr | str,
        handler: Any = None,
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "block",
    ) -> Pending[Queryable]:
        """Answer queries on a key expression; `complete` says that nobody else need be asked."""

        async def begin() -> Queryable:
            declare = partial(self._inner.declare_queryable, key_expr, complete=complete, allowed_origin=allowed_origin)
            return Queryable(self, declare, handler, "Query", capacity=capacity, overflow=overflow)

        return Pending(begin())

    def liveliness(self) -> Liveliness:
        """Tokens of this session, and those of others."""
        return Liveliness(self)

    @property
    def _storing(self) -> StoreClient:
        if self._stores is None:
            from elea.aio.storeclient import StoreClient

            self._stores = StoreClient(self._inner)
        return self._stores

    def _full(
        self,
        key_expr: KeyExpr | str,
        *,
        priority: Priority | None = None,
        allowed_destination: Locality | None = None,
        **others: object,
    ) -> bool:
        qos = int(Priority.DATA if priority is None else priority)
        return self._inner._put_route(key_expr, allowed_destination).is_full(qos)


def open(config: Config | None = None, *, timestamp_callback: Any = None) -> Pending[Session]:
    """Open a session: `session = await open(config)`, or `async with open(config) as session`.

    Raises:
        ConfigError, SessionError, LinkError: what is wrong, and what to do about it.
    """

    async def begin() -> Session:
        opened = partial(threaded.open, config, timestamp_callback=timestamp_callback)
        return Session(await in_thread(opened, unwanted=threaded.Session.close))

    return Pending(begin())
