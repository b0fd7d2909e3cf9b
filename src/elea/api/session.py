"""`Session`: a program's end of the data space, with the names and defaults of eclipse-zenoh's Python API.

Most programs only put and subscribe. What belongs to the other verbs is imported by them: it would make every start
3 ms longer, and every process half a megabyte larger.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from elea.api.apierrors import refuse_stack
from elea.api.apitimestamp import Timestamp
from elea.api.config import Config
from elea.api.identity import EntityGlobalId, SourceInfo, ZenohId
from elea.api.publisher import Publisher
from elea.api.putroute import DELETE, PLAIN, PUT, PutRoute, into_encoding, meta_of
from elea.api.quality import qos_for_store, qos_of
from elea.api.sessionbase import SESSION_EID, SessionBase
from elea.api.subscriber import Subscriber
from elea.api.zbytes import IntoZBytes, into_bytes
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.limits import MAX_PUT_ROUTES
from elea.model.qos import CongestionControl, Locality, Priority, QueryTarget, Reliability

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    import pyarrow as pa

    from elea.api.cancellation import CancellationToken
    from elea.api.cursor import Cursor
    from elea.api.historysubscriber import Loss
    from elea.api.instrumentation import TimestampInstrumentation
    from elea.api.liveliness import Liveliness
    from elea.api.pacedsubscriber import Periodic, Pull
    from elea.api.publicationqos import Quality
    from elea.api.querier import Querier
    from elea.api.queryable import Queryable
    from elea.api.queryoptions import IntoQueryConsolidation, ReplyKeyExpr
    from elea.api.rangereader import Reading
    from elea.api.receipt import Receipt
    from elea.api.replay import Replay
    from elea.api.sessioninfo import SessionInfo
    from elea.api.storeclient import Durability, StoreClient
    from elea.model.predicate import Predicate
    from elea.model.qos import SampleKind
    from elea.model.selector import Selector
    from elea.model.timerange import TimeRange

__all__ = ["Session", "open"]

NO_OPTIONS = (None,) * 7
STORED_PUT = "a put that is stored or acknowledged by a request"
STORED_READ = "a read of what a log has, or its history"
NO_ORIGIN = "a log does not know where samples came from: leave out allowed_origin"
NO_HANDLER = "pull() of a subscriber with history, since or cursor returns its samples: leave out the handler"


class Session(SessionBase):
    """Puts, deletes, asks, and declares what receives and answers.

    ::

        with elea.open(elea.Config()) as session:
            session.put("home/1/temp", "21.5")
    """

    # -- the session itself

    @property
    def id(self) -> EntityGlobalId:
        """The identifier of the session as an entity."""
        return EntityGlobalId(self.zid(), SESSION_EID)

    @property
    def info(self) -> SessionInfo:
        """Whom this session is connected to, and what it has dropped."""
        from elea.api.sessioninfo import SessionInfo

        return SessionInfo(self)

    def zid(self) -> ZenohId:
        """The identifier of this node."""
        return ZenohId(self._node.node_id)

    def set_rules(self, config: Config) -> None:
        """From now on `access_control`, `downsampling` and `low_pass_filter` of a configuration hold for this node.

        Also for the sessions that are open: what they may not have is withdrawn, what they may now is told.
        """
        from elea.api.accesssettings import guard_rules

        self._check()
        self._node.watch(guard_rules(config))

    def is_closed(self) -> bool:
        """Whether `close` has been called."""
        return self._closed

    def close(self) -> None:
        """End the session and everything declared through it; returns soon, whatever others do."""
        if self._closed:
            return
        for handle in list(self._handles):
            handle._leave()
        self._closed = True
        self._forgotten.detach()
        if self._stores is not None:
            self._stores.close()
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
        return Timestamp.of(self._node.clock.tick(self._node.loop.wall_ns()))

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
        durability: Durability | None = None,
        ack: bool = False,
        timeout: float | int | None = None,
    ) -> Receipt | None:
        """Put a sample on a key.

        Args:
            durability: `persistent` or `transient` has a broker keep it, whatever its storages are.
            ack: return when the broker has it safe, with a receipt; it is tried again if the link is lost meanwhile.
            timeout: seconds to go on trying, 10 unless given.

        Raises:
            NotStored, StoreError, OperationTimeout: it was not acknowledged, and why.
        """
        if (ack or durability is not None) and self._storing.wants(durability, ack=ack):
            self._node.check_words(STORED_PUT)
            options = self._for_store(
                key_expr,
                payload=payload,
                durability=durability,
                timeout=timeout,
                encoding=encoding,
                congestion_control=congestion_control,
                priority=priority,
                express=express,
                attachment=attachment,
                timestamp=timestamp,
                timestamp_instrumentation=timestamp_instrumentation,
                allowed_destination=allowed_destination,
                source_info=source_info,
            )
            return self._storing.put(ack=ack, **options)
        data = into_bytes(payload)
        meta = None
        if encoding is not None or attachment is not None or timestamp is not None or source_info is not None:
            meta = meta_of(PUT, into_encoding(encoding), timestamp, attachment, source_info)
        quality = (congestion_control, priority, express, None, allowed_destination)
        self._send(key_expr, meta, data, quality, timestamp_instrumentation)
        return None

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
        durability: Durability | None = None,
        ack: bool = False,
        timeout: float | int | None = None,
    ) -> Receipt | None:
        """Delete a key; `durability`, `ack` and `timeout` as in `put`."""
        if (ack or durability is not None) and self._storing.wants(durability, ack=ack):
            self._node.check_words(STORED_PUT)
            options = self._for_store(
                key_expr,
                payload=None,
                durability=durability,
                timeout=timeout,
                congestion_control=congestion_control,
                priority=priority,
                express=express,
                attachment=attachment,
                timestamp=timestamp,
                timestamp_instrumentation=timestamp_instrumentation,
                allowed_destination=allowed_destination,
                source_info=source_info,
            )
            return self._storing.put(ack=ack, **options)
        meta = meta_of(DELETE, PLAIN, timestamp, attachment, source_info)
        quality = (congestion_control, priority, express, None, allowed_destination)
        self._send(key_expr, meta, b"", quality, timestamp_instrumentation)
        return None

    @overload
    def put_batch(
        self,
        batch: pa.RecordBatch | pa.Table | Iterable[tuple[str, IntoZBytes]],
        key_expr: KeyExpr | str | None = None,
        *,
        durability: Literal["persistent", "transient"] | None = "persistent",
        timeout: float | int | None = None,
    ) -> Receipt: ...

    @overload
    def put_batch(
        self,
        batch: pa.RecordBatch | pa.Table | Iterable[tuple[str, IntoZBytes]],
        key_expr: KeyExpr | str | None = None,
        *,
        durability: Literal["volatile"],
        timeout: float | int | None = None,
    ) -> None: ...

    def put_batch(
        self,
        batch: pa.RecordBatch | pa.Table | Iterable[tuple[str, IntoZBytes]],
        key_expr: KeyExpr | str | None = None,
        *,
        durability: Durability | None = "persistent",
        timeout: float | int | None = None,
    ) -> Receipt | None:
        """Have many samples stored; returns when a broker has them all safe. Needs pyarrow.

        ::

            session.put_batch([("home/1/temp", "21.5"), ("home/2/temp", "20.9")])

        Args:
            batch: pairs of key and payload, or columns `key, payload` and any of `kind` (0 put, 1 delete), `encoding`,
                `schema`, `attachment`, `ntp64` with `stamp_id`.
            key_expr: what has all the keys, such as the expression of the storage; found out unless given.
            durability: `volatile` publishes them, as `put` does, to whoever subscribes: nobody stores or acknowledges
                them, and it returns when they have been handed to their links, waiting for room there.
            timeout: seconds to go on trying with each part of about 8 MB.

        Raises:
            NotStored, StoreError, OperationTimeout: something was not acknowledged; a note says how much was.
        """
        if durability == "volatile":
            if self._bulk is None:
                from elea.api.batchput import Bulk

                self._bulk = Bulk(self)
            self._bulk.publish(batch)
            return None
        self._node.check_words(STORED_PUT)
        return self._storing.put_batch(batch, key_expr, durability, timeout)

    def read(
        self,
        key_expr: KeyExpr | str,
        *,
        start: int | None = None,
        end: int | None = None,
        time: TimeRange | str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
        by_time: bool = False,
        skip_damaged: bool = False,
        timeout: float | int | None = None,
        log: str | None = None,
        keys: Sequence[str] | None = None,
        kind: SampleKind | None = None,
        where: Predicate | str | None = None,
    ) -> Reading:
        """What a broker has stored of a key expression, as Arrow record batches. Needs pyarrow.

        ::

            for batch in session.read("home/**", start=1000):
                print(batch.num_rows, batch.column("key"))

        Args:
            start, end: positions in the log, the end not included.
            time: of the timestamps, such as `[now(-1h)..]`.
            by_time: in the order of timestamps, not of arrival; such an answer comes as a whole.
            skip_damaged: pass over what cannot be read, instead of raising StoreCorrupt.
            timeout: seconds to wait for each part of about 8 MB.
            log: the name of the log, if several keep keys of the expression.
            keys: only samples with a key of one of these expressions.
            kind: only puts, or only deletions.
            where: only samples for which a predicate holds; looked at by the broker (docs/predicates.md).

        Raises:
            InvalidPredicate: `where` is no predicate.
            NotStored, StoreTrimmed, StoreCorrupt, StoreError, OperationTimeout: by the iteration, if not at once.
        """
        from elea.api.rangereader import Reading

        self._node.check_words(STORED_READ)
        return Reading(
            self,
            str(self._key(key_expr)),
            start=start,
            end=end,
            time=time,
            limit=limit,
            newest_first=newest_first,
            by_time=by_time,
            skip_damaged=skip_damaged,
            timeout=timeout,
            log=log,
            keys=keys,
            kind=kind,
            where=where,
        )

    def cursor(self, key_expr: KeyExpr | str, name: str, *, log: str | None = None) -> Cursor:
        """A named position in the log of a key expression (of `log` if several have it), which the broker remembers."""
        from elea.api.cursor import Cursor

        self._node.check_words("a cursor")
        return Cursor(self, str(self._key(key_expr)), name, log=log)

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
        durability: Durability | None = None,
    ) -> Publisher:
        """Declare that this session will put to a key, again and again; with a `durability` a broker keeps it all."""
        if self._publication is not None:
            quality = (congestion_control, priority, express, reliability, allowed_destination)
            quality = self._publication.over(str(key_expr), quality)
            congestion_control, priority, express, reliability, allowed_destination = quality
        is_stored = durability is not None and self._storing.wants(durability, ack=False)
        if is_stored:
            self._node.check_words(STORED_PUT)
        publisher = Publisher(
            self,
            self._key(key_expr),
            encoding=into_encoding(encoding),
            qos=qos_of(congestion_control, priority, express, CongestionControl.DROP),
            reliability=Reliability.RELIABLE if reliability is None else reliability,
            destination=Locality.ANY if allowed_destination is None else allowed_destination,
        )
        if durability is not None and is_stored:
            publisher._store(durability)
        return self._keep(publisher)

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
    ) -> Subscriber[Any]:
        """Receive what is put to a key expression.

        Args:
            mode: when samples are given to the handler, if not at once; see `elea.api.pacedsubscriber`.
            history, since, cursor, auto_commit, on_loss: what was put before, kept by a broker; see
                `elea.api.historysubscriber`.
            where: only samples for which a predicate holds. Elea nodes on the way do not send the others, where they
                can tell (docs/predicates.md).

        Raises:
            InvalidPredicate: `where` is no predicate.
        """
        origin = Locality.ANY if allowed_origin is None else allowed_origin
        chosen = None if where is None else self._sample_predicate(where)
        follows = history is not None or since is not None or cursor is not None
        if mode is None and not follows:
            return self._keep(Subscriber(self, self._key(key_expr), handler, origin, chosen))
        if follows and allowed_origin is not None:
            raise ValueError(NO_ORIGIN)
        if not follows:
            from elea.api.pacedsubscriber import PacedSubscriber, Pull

            assert mode is not None
            if isinstance(mode, Pull) and origin is Locality.ANY:
                from elea.api.wirepulls import WirePullSubscriber, puller_of

                key = self._key(key_expr)
                remote = puller_of(self, self._whole(str(key)))
                if remote is not None:
                    return self._keep(WirePullSubscriber(self, key, handler, mode, remote, chosen))
            return self._keep(PacedSubscriber(self, self._key(key_expr), handler, origin, mode, chosen))
        self._node.check_words(STORED_READ)
        from elea.api.historysubscriber import FollowingSubscriber, Start
        from elea.api.pacedsubscriber import Periodic

        start = Start(history, since, cursor)
        windows = None
        if isinstance(mode, Periodic) and not mode.pull:
            windows = mode.windows(self._node.loop)
        elif mode is not None:
            from elea.api.pullsubscriber import PullingSubscriber

            if handler is not None:
                raise ValueError(NO_HANDLER)
            puller: Subscriber[Any] = PullingSubscriber(
                self, self._key(key_expr), start, mode, auto_commit=auto_commit, on_loss=on_loss, where=chosen
            )
            return self._keep(puller)
        follower: Subscriber[Any] = FollowingSubscriber(
            self,
            self._key(key_expr),
            handler,
            start,
            auto_commit=auto_commit,
            on_loss=on_loss,
            windows=windows,
            where=chosen,
        )
        return self._keep(follower)

    def replay(
        self,
        key_expr: KeyExpr | str,
        since: datetime | timedelta | None = None,
        until: datetime | timedelta | None = None,
        pace: float | None = 1.0,
    ) -> Replay:
        """The samples that a broker has kept, again: at the pace of their timestamps, see `elea.api.replay`."""
        from elea.api.replay import Replay

        self._node.check_words(STORED_READ)
        return Replay(self, self._key(key_expr), since, until, pace)

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
        where: Predicate | str | None = None,
    ) -> Any:
        """Ask for what a selector names; replies come through the handler, which ends with the last one.

        Args:
            where: only samples for which a predicate holds. Stores look at it, others need not know of it: it travels
                as the parameter `_where`, and replies are held against it here (docs/predicates.md).
        """
        if self._closed:
            self._check()
        if self._ask is None:
            from elea.api.outgoingquery import ask

            self._ask = ask  # even if it is there already, an import takes longer than the rest of this
        options = self._usual
        given = (target, consolidation, accept_replies, timeout, congestion_control, priority, express)
        if given != NO_OPTIONS or allowed_destination is not None:
            options = self._options(*given, allowed_destination)
        elif options is None:
            options = self._usual = self._options(*NO_OPTIONS, None)
        bare = payload is None and encoding is None and attachment is None and timestamp_instrumentation is None
        if bare and source_info is None and cancellation_token is None and where is None:
            return self._ask(self, selector, handler, options)  # compiled code takes its time with names
        return self._ask(
            self,
            selector,
            handler,
            options,
            payload=payload,
            encoding=encoding,
            attachment=attachment,
            source_info=source_info,
            cancellation_token=cancellation_token,
            where=None if where is None else self._sample_predicate(where),
            timestamp_instrumentation=timestamp_instrumentation,
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
        from elea.api.querier import Querier

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
        from elea.api.queryable import Queryable

        origin = Locality.ANY if allowed_origin is None else allowed_origin
        if origin is not Locality.SESSION_LOCAL:
            self._node.check_words("a queryable")
        return self._keep(Queryable(self, self._key(key_expr), handler, complete=bool(complete), origin=origin))

    def liveliness(self) -> Liveliness:
        """Tokens of this session, and those of others."""
        from elea.api.liveliness import Liveliness

        self._check()
        return Liveliness(self)

    # -- for the parts of a session

    @property
    def _storing(self) -> StoreClient:
        """What it has to do with stores; made when it is first needed, and once, for it counts samples."""
        if self._stores is None:
            from elea.api.storeclient import StoreClient

            with self._first_use:
                if self._stores is None:
                    self._stores = StoreClient(self)
        return self._stores

    def _for_store(
        self,
        key_expr: KeyExpr | str,
        *,
        payload: IntoZBytes | None,
        durability: Durability | None,
        timeout: float | int | None,
        encoding: Encoding | str | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
    ) -> dict[str, Any]:
        """The options of a put or a deletion as `StoreClient.prepare` takes them."""
        self._check()
        refuse_stack(timestamp_instrumentation)
        return {
            # What a store has taken before is a key; looking once more is a tenth of what an acknowledged put costs.
            "key": key_expr if self._storing.kept.has(key_expr, durability) else str(self._key(key_expr)),
            "payload": payload,
            "durability": durability,
            "timeout": timeout,
            "encoding": encoding,
            "attachment": attachment,
            "timestamp": timestamp,
            "source_info": source_info,
            "qos": qos_for_store(congestion_control, priority, express),
            "destination": allowed_destination,
        }

    def _send(
        self,
        key_expr: KeyExpr | str,
        meta: bytes | None,
        payload: bytes,
        quality: Quality,
        instrumentation: TimestampInstrumentation | None,
    ) -> None:
        if self._publication is not None:
            quality = self._publication.over(str(key_expr), quality)
        congestion_control, priority, express, reliability, destination = quality
        raw = qos_of(congestion_control, priority, express, CongestionControl.DROP).raw
        reliable = reliability is not Reliability.BEST_EFFORT
        self._put_route(key_expr, destination).send(meta, payload, raw, reliable, instrumentation)

    def _put_route(self, key_expr: KeyExpr | str, destination: Locality | None) -> PutRoute:
        self._check()
        name = (key_expr if type(key_expr) is str else str(key_expr), destination or Locality.ANY)
        if destination is not None:
            name = (name[0], destination)
        route = self._put_routes.get(name)
        if route is None:
            self._key(key_expr)
            if len(self._put_routes) >= MAX_PUT_ROUTES:
                self._put_routes.clear()
            route = self._put_routes[name] = PutRoute(self, *name, numbered=False)
        return route


def open(config: Config | None = None, *, timestamp_callback: Any = None) -> Session:
    """Open a session.

    Args:
        timestamp_callback: gives the bytes that messages of a `timestamp_instrumentation` collect at this node, in
            place of its clock; it is told a `TimestampContext`.

    Raises:
        ConfigError, SessionError, LinkError: what is wrong, and what to do about it.
    """
    session = Session(Config() if config is None else config)
    if timestamp_callback is not None:
        from elea.api.instrumentation import give_timestamps

        give_timestamps(session._node, timestamp_callback)
    return session
