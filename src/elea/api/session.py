"""`Session`: a program's end of the data space, with the names and defaults of eclipse-zenoh's Python API."""

from __future__ import annotations

import _thread
import itertools
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from elea.api.answering import Queryable
from elea.api.cancellation import CancellationToken
from elea.api.config import Config
from elea.api.handle import Handle
from elea.api.identity import EntityGlobalId, SourceInfo, ZenohId
from elea.api.instrumentation import TimestampInstrumentation
from elea.api.liveliness import Liveliness
from elea.api.opening import start
from elea.api.outlet import PLAIN, Outlet, body_of, into_encoding
from elea.api.publishing import Publisher
from elea.api.querying import Querier, QueryOptions, ask, seconds
from elea.api.reply import IntoQueryConsolidation, ReplyKeyExpr, into_consolidation
from elea.api.sessioninfo import SessionInfo
from elea.api.settings import Settings
from elea.api.sinks import Sink, into_handler
from elea.api.subscribing import Subscriber
from elea.api.timestamp import Timestamp
from elea.api.zbytes import IntoZBytes, into_bytes
from elea.broker.runtime import Runtime
from elea.model.encoding import Encoding
from elea.model.errors import LimitReached, SessionClosed
from elea.model.keyexpr import KeyExpr
from elea.model.limits import MAX_DECLARATIONS
from elea.model.qos import CongestionControl, Locality, Priority, Qos, QueryTarget, Reliability
from elea.model.selector import Selector
from elea.wire.zenoh1.samples import split_body

__all__ = ["Session", "open"]

T = TypeVar("T", bound=Handle)

SESSION_EID = 1
MAX_OUTLETS = 4096
NO_OPTIONS = (None,) * 7


class Session:
    """Puts, deletes, asks, and declares what receives and answers.

    ::

        with elea.open(elea.Config()) as session:
            session.put("home/1/temp", "21.5")
    """

    def __init__(self, config: Config, *, start: Callable[[Settings], Runtime] = start) -> None:
        self._settings = Settings.of(config)
        self._handles: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._eids = itertools.count(SESSION_EID + 1)
        self._outlets: dict[tuple[str, Locality], Outlet] = {}
        self._declared: list[str] = []
        self._closed = False
        self._usual = self._options(None, None, None, None, None, None, None, None)
        self._runtime = start(self._settings)
        self._node = self._runtime.node
        self._forgotten = weakref.finalize(self, _close_forgotten, self._runtime)
        self._forgotten.atexit = False  # the runtime itself sees to that

    # -- the session itself

    @property
    def id(self) -> EntityGlobalId:
        """The identifier of the session as an entity."""
        return EntityGlobalId(self.zid(), SESSION_EID)

    @property
    def info(self) -> SessionInfo:
        """Whom this session is connected to, and what it has dropped."""
        return SessionInfo(self)

    def zid(self) -> ZenohId:
        """The identifier of this node."""
        return ZenohId(self._node.node_id)

    def is_closed(self) -> bool:
        """Whether `close` has been called."""
        return self._closed

    def close(self) -> None:
        """End the session and everything declared through it; returns soon, whatever others do."""
        if self._closed:
            return
        self._closed = True
        self._forgotten.detach()
        for handle in list(self._handles):
            handle._finish()
        self._runtime.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def new_timestamp(self) -> Timestamp:
        """A timestamp of now, above all this session has given."""
        return Timestamp.of(self._node.clock.tick(self._node.keeper.wall_ns()))

    def undeclare(self, obj: KeyExpr) -> None:
        """Undeclare a key expression declared by `declare_keyexpr`.

        Raises:
            SessionClosed: it was not declared.
        """
        try:
            self._declared.remove(str(obj))
        except ValueError:
            self._refuse(f"key expression {obj} was not declared by this session")

    def declare_keyexpr(self, key_expr: KeyExpr | str) -> KeyExpr:
        """A key expression to use again and again; resources are declared by themselves where they help."""
        key = self._key(key_expr)
        self._declared.append(str(key))
        return key

    # -- samples

    def put(
        self,
        key_expr: KeyExpr | str,
        payload: IntoZBytes,
        *,
        encoding: Encoding | str | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Put a sample on a key."""
        data = into_bytes(payload)
        meta = None
        if encoding is not None or attachment is not None or timestamp is not None or source_info is not None:
            meta, _ = split_body(body_of(b"", into_encoding(encoding), timestamp, attachment, source_info))
            if meta == b"\x01":
                meta = None
        raw = _qos(congestion_control, priority, express, CongestionControl.DROP).raw
        self._outlet(key_expr, allowed_destination).send(meta, data, raw, True)

    def delete(
        self,
        key_expr: KeyExpr | str,
        *,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Delete a key."""
        meta, payload = split_body(body_of(None, PLAIN, timestamp, attachment, source_info))
        raw = _qos(congestion_control, priority, express, CongestionControl.DROP).raw
        self._outlet(key_expr, allowed_destination).send(meta, payload, raw, True)

    def declare_publisher(
        self,
        key_expr: KeyExpr | str,
        *,
        encoding: Encoding | str | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        reliability: Reliability | None = None,
        allowed_destination: Locality | None = None,
    ) -> Publisher:
        """Declare that this session will put to a key, again and again."""
        publisher = Publisher(
            self,
            self._key(key_expr),
            encoding=into_encoding(encoding),
            qos=_qos(congestion_control, priority, express, CongestionControl.DROP),
            reliability=Reliability.RELIABLE if reliability is None else reliability,
            destination=Locality.ANY if allowed_destination is None else allowed_destination,
        )
        return self._keep(publisher)

    def declare_subscriber(
        self, key_expr: KeyExpr | str, handler: Any = None, *, allowed_origin: Locality | None = None
    ) -> Subscriber[Any]:
        """Receive what is put to a key expression."""
        origin = Locality.ANY if allowed_origin is None else allowed_origin
        return self._keep(Subscriber(self, self._key(key_expr), handler, origin))

    # -- queries

    def get(
        self,
        selector: Selector | KeyExpr | str,
        handler: Any = None,
        *,
        target: QueryTarget | None = None,
        consolidation: IntoQueryConsolidation | None = None,
        accept_replies: ReplyKeyExpr | None = None,
        timeout: float | int | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        payload: IntoZBytes | None = None,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> Any:
        """Ask for what a selector names; replies come through the handler, which ends with the last one."""
        self._check()
        options = self._usual
        given = (target, consolidation, accept_replies, timeout, congestion_control, priority, express)
        if given != NO_OPTIONS or allowed_destination is not None:
            options = self._options(*given, allowed_destination)
        return ask(
            self,
            selector,
            handler,
            options,
            payload=payload,
            encoding=encoding,
            attachment=attachment,
            source_info=source_info,
            cancellation_token=cancellation_token,
        )

    def declare_querier(
        self,
        key_expr: KeyExpr | str,
        *,
        target: QueryTarget | None = None,
        consolidation: IntoQueryConsolidation | None = None,
        accept_replies: ReplyKeyExpr | None = None,
        timeout: float | int | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        allowed_destination: Locality | None = None,
    ) -> Querier:
        """Declare that this session will ask about a key expression, again and again."""
        options = self._options(
            target, consolidation, accept_replies, timeout, congestion_control, priority, express, allowed_destination
        )
        return self._keep(Querier(self, self._key(key_expr), options))

    def declare_queryable(
        self,
        key_expr: KeyExpr | str,
        handler: Any = None,
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Queryable[Any]:
        """Answer queries on a key expression; `complete` says that nobody else need be asked."""
        origin = Locality.ANY if allowed_origin is None else allowed_origin
        return self._keep(Queryable(self, self._key(key_expr), handler, complete=bool(complete), origin=origin))

    def liveliness(self) -> Liveliness:
        """Tokens of this session, and those of others."""
        self._check()
        return Liveliness(self)

    # -- for the parts of a session

    def _keep(self, handle: T) -> T:
        """Remember what has been declared, to end it with the session; not before it is declared completely."""
        self._handles.add(handle)
        return handle

    def _handler(self, argument: object, of: str) -> tuple[Sink[Any], object]:
        """Where to push for what a user passed as handler, and what they get; `elea.testing` has its own channels."""
        return into_handler(argument, of)

    def _next_eid(self) -> int:
        self._check()
        if len(self._handles) >= MAX_DECLARATIONS:
            # A router of ours would refuse the next one, and Zenoh has no words for telling us so.
            raise LimitReached("MAX_DECLARATIONS", MAX_DECLARATIONS)
        return next(self._eids)

    def _key(self, key_expr: KeyExpr | str) -> KeyExpr:
        self._check()
        return key_expr if isinstance(key_expr, KeyExpr) else KeyExpr(key_expr)

    def _check(self) -> None:
        if self._closed:
            self._refuse("this session is closed")

    def _refuse(self, problem: str) -> NoReturn:
        raise SessionClosed(text=problem)

    def _wake(self) -> None:
        self._node.keeper.at(self._node.keeper.now(), self._node.settle)

    def _outlet(self, key_expr: KeyExpr | str, destination: Locality | None) -> Outlet:
        self._check()
        name = (key_expr if type(key_expr) is str else str(key_expr), destination or Locality.ANY)
        if destination is not None:
            name = (name[0], destination)
        outlet = self._outlets.get(name)
        if outlet is None:
            self._key(key_expr)
            if len(self._outlets) >= MAX_OUTLETS:
                self._outlets.clear()
            outlet = self._outlets[name] = Outlet(self, *name, numbered=False)
        return outlet

    def _options(
        self,
        target: QueryTarget | None,
        consolidation: IntoQueryConsolidation | None,
        accept: ReplyKeyExpr | None,
        timeout: float | int | None,
        congestion_control: CongestionControl | None,
        priority: Priority | None,
        express: bool | None,
        destination: Locality | None,
    ) -> QueryOptions:
        return QueryOptions(
            QueryTarget.BEST_MATCHING if target is None else target,
            into_consolidation(consolidation),
            ReplyKeyExpr.MATCHING_QUERY if accept is None else accept,
            self._settings.queries_default_timeout if timeout is None else seconds(timeout),
            _qos(congestion_control, priority, express, CongestionControl.BLOCK),
            Locality.ANY if destination is None else destination,
        )


def _close_forgotten(runtime: Runtime) -> None:
    """Nobody has the session any more, so nobody can close it."""
    # The garbage collector calls this in any thread, whatever locks that holds: so neither close here, nor start a
    # `Thread` here, which takes locks itself.
    closing = threading.Thread(target=runtime.close, name="elea-close", daemon=True)
    _thread.start_new_thread(closing.start, ())


def open(config: Config | None = None, *, timestamp_callback: Any = None) -> Session:
    """Open a session.

    Raises:
        ConfigError, SessionError, LinkError: what is wrong, and what to do about it.
    """
    return Session(Config() if config is None else config)


def _qos(
    congestion_control: CongestionControl | None,
    priority: Priority | None,
    express: bool | None,
    default: CongestionControl,
) -> Qos:
    for value, kind in ((congestion_control, CongestionControl), (priority, Priority)):
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"a {kind.__name__} is needed, not {type(value).__name__}")
    return Qos(
        Priority.DATA if priority is None else priority,
        default if congestion_control is None else congestion_control,
        bool(express),
    )
