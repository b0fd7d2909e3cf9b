"""`Query`: what a queryable gets, and through which it answers.

A query ends exactly once, when it is dropped: by `drop`, at the end of its `with` block, or with its last reference.
How an answer travels is the business of its `Responder`.
"""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Final, Protocol, Self

from elea.api.apierrors import QueryDropped, ReplyRefused
from elea.api.apitimestamp import Timestamp
from elea.api.identity import SourceInfo
from elea.api.instrumentation import TimestampStack
from elea.api.queryoptions import ReplyKeyExpr
from elea.api.sample import Sample
from elea.api.zbytes import IntoZBytes, ZBytes, into_bytes
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import CongestionControl, Priority, Qos, SampleKind
from elea.model.selector import Parameters, Selector

__all__ = ["Query", "Responder"]

REPLY_QOS: Final = Qos(congestion_control=CongestionControl.BLOCK).raw
"""Replies are never dropped for congestion; eclipse-zenoh sends them with the query's own quality."""

EXPRESS: Final = 0x10
PLAIN: Final = (None,) * 4

CALLER: Final = 3 if __file__.endswith(".py") else 1
"""How far up the user's call is from where warnings are given: compiled functions do not count."""


class Responder(Protocol):
    """Where the answers to one query go. Either `finish` or `abandoned` is called, exactly once."""

    def reply(self, sample: Sample) -> None:
        """Send a sample."""

    def error(self, payload: bytes, encoding: Encoding) -> None:
        """Send an error."""

    def finish(self) -> None:
        """Say that nothing more will come."""

    def abandoned(self) -> None:
        """The same when the last reference to the query has gone, which the garbage collector may find out.

        So it is called in any thread, at any place, with any lock held. It must neither block nor take a lock that its
        thread may hold; appending to a deque and waking somebody is what it may do.
        """


class Query:
    """A question to a queryable.

    ::

        with queryable.recv() as query:
            query.reply(query.key_expr, "21.5")
    """

    __slots__ = (
        "_attachment",
        "_encoding",
        "_key",
        "_open",
        "_parameters",
        "_payload",
        "_source",
        "_stack",
    )

    def __init__(
        self,
        key_expr: KeyExpr,
        parameters: str,
        responder: Responder,
        *,
        payload: bytes | None = None,
        encoding: Encoding | None = None,
        attachment: bytes | None = None,
        source_info: SourceInfo | None = None,
        timestamp_stack: TimestampStack | None = None,
    ) -> None:
        self._key = key_expr
        self._parameters = parameters
        # A list of one: taking the last item out is what only one thread can do.
        self._open = [responder]
        self._payload = payload
        self._encoding = encoding
        self._attachment = attachment
        self._source = source_info
        self._stack = timestamp_stack

    # -- the question

    @property
    def selector(self) -> Selector:
        """The key expression with the parameters."""
        self._responder()
        return Selector(self._key, self._parameters)

    @property
    def key_expr(self) -> KeyExpr:
        """The keys asked about."""
        self._responder()
        return self._key

    @property
    def parameters(self) -> Parameters:
        """The parameters of the selector."""
        self._responder()
        return Parameters(self._parameters)

    @property
    def payload(self) -> ZBytes | None:
        """The value sent along with the question."""
        self._responder()
        return None if self._payload is None else ZBytes(self._payload)

    @property
    def encoding(self) -> Encoding | None:
        """What the payload is."""
        self._responder()
        return self._encoding

    @property
    def attachment(self) -> ZBytes | None:
        """What was attached to the question."""
        self._responder()
        return None if self._attachment is None else ZBytes(self._attachment)

    @property
    def source_info(self) -> SourceInfo | None:
        """Who asks, if they said so."""
        self._responder()
        return self._source

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """The timestamps it has collected on its way, if that was asked for."""
        self._responder()
        return self._stack

    def accepts_replies(self) -> ReplyKeyExpr:
        """Which keys replies may have."""
        self._responder()
        return ReplyKeyExpr.ANY if "_anyke" in Parameters(self._parameters) else ReplyKeyExpr.MATCHING_QUERY

    # -- the answers

    def reply(
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
    ) -> None:
        """Answer with a value; a query takes any number of answers.

        Raises:
            ReplyRefused: the key does not intersect the one asked about, and the query does not accept that.
            QueryDropped: the query has been finished.
        """
        if congestion_control is not None or priority is not None:
            _warn_ignored("reply", congestion_control, priority)
        elif (
            type(payload) is bytes and encoding is None and express is None and attachment is None and timestamp is None
        ):
            # The way of nearly every reply: its sample is made of what is there.
            key = self._key
            if key_expr is not key and key_expr != key._text:
                key = self._reply_key(key_expr)
            self._responder().reply(Sample(key, (0, 0, b"", REPLY_QOS, None, payload)))
            return
        self._send(SampleKind.PUT, key_expr, into_bytes(payload), encoding, express, attachment, timestamp)

    def reply_del(
        self,
        key_expr: KeyExpr | str,
        *,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
    ) -> None:
        """Answer that a key was deleted; raises like `reply`."""
        _warn_ignored("reply_del", congestion_control, priority)
        self._send(SampleKind.DELETE, key_expr, b"", None, express, attachment, timestamp)

    def reply_err(self, payload: IntoZBytes, *, encoding: Encoding | str | None = None) -> None:
        """Answer with an error."""
        self._responder().error(into_bytes(payload), _into_encoding(encoding))

    def drop(self) -> None:
        """Finish the query; the asker waits no longer. Does nothing the second time."""
        try:
            responder = self._open.pop()
        except IndexError:
            return
        responder.finish()

    def __enter__(self) -> Self:
        self._responder()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.drop()

    def __del__(self) -> None:
        try:
            responder = self._open.pop()
        except (IndexError, AttributeError):  # it was dropped, or not made whole: its constructor was interrupted
            return
        responder.abandoned()

    def __str__(self) -> str:
        return f'Query {{ selector: "{self.selector}" }}'

    def __repr__(self) -> str:
        if not self._open:
            return "Query(dropped)"
        return f"Query({str(self.selector)!r})"

    def _responder(self) -> Responder:
        try:
            return self._open[0]
        except IndexError:
            raise QueryDropped from None

    def _reply_key(self, key_expr: KeyExpr | str) -> KeyExpr:
        key = key_expr if isinstance(key_expr, KeyExpr) else KeyExpr(key_expr)
        if not self._key.intersects(key) and self.accepts_replies() is not ReplyKeyExpr.ANY:
            raise ReplyRefused(str(key), str(self._key))
        return key

    def _send(
        self,
        kind: SampleKind,
        key_expr: KeyExpr | str,
        payload: bytes,
        encoding: Encoding | str | None,
        express: bool | None,
        attachment: IntoZBytes | None,
        timestamp: Timestamp | None,
    ) -> None:
        responder = self._responder()
        key = self._reply_key(key_expr)
        if timestamp is not None and not isinstance(timestamp, Timestamp):
            raise TypeError(f"argument 'timestamp': {type(timestamp).__name__!r} object is no Timestamp")
        sample = Sample.of(
            key,
            payload,
            kind=kind,
            encoding=_into_encoding(encoding),
            timestamp=timestamp,
            qos=REPLY_QOS | (EXPRESS if express else 0),
            attachment=None if attachment is None else into_bytes(attachment),
        )
        responder.reply(sample)


def _into_encoding(encoding: Encoding | str | None) -> Encoding:
    if encoding is None:
        return Encoding.ZENOH_BYTES
    return encoding if isinstance(encoding, Encoding) else Encoding(encoding)


def _warn_ignored(method: str, congestion_control: CongestionControl | None, priority: Priority | None) -> None:
    for name, value in (("congestion_control", congestion_control), ("priority", priority)):
        if value is not None:
            warnings.warn(
                f"{name} in Query.{method} is deprecated and ignored: a reply has the quality of its query",
                DeprecationWarning,
                stacklevel=CALLER,
            )
