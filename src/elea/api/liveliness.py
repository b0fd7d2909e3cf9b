"""Liveliness: tokens that live as long as their session, who has them, and when they come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from elea.api.cancellation import Cancellable, CancellationToken
from elea.api.channels import Handler
from elea.api.handle import Handle, ReceivingHandle, weakly
from elea.api.outgoingquery import seconds
from elea.api.reply import Reply, ReplyError
from elea.api.sample import Sample
from elea.api.sinks import Sink
from elea.io.dispatch import Mailbox
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import SampleKind
from elea.node.localface import LocalInterest
from elea.space.face import Declare, Final, InterestMode, Kinds, Undeclare

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Liveliness", "LivelinessSubscriber", "LivelinessToken"]

H = TypeVar("H")


class LivelinessToken(Handle):
    """Says that this session is alive, for as long as it is."""

    def __init__(self, session: Session, key_expr: KeyExpr) -> None:
        super().__init__(session)
        self._number = session._node.local.declare_token(session._whole(str(key_expr)))

    def _end(self) -> None:
        self._session._node.local.undeclare_token(self._number)


class LivelinessSubscriber(ReceivingHandle[H]):
    """Receives a put for every token that appears and a deletion for every one that goes."""

    def __init__(self, session: Session, key_expr: KeyExpr, handler: object, *, history: bool) -> None:
        sink: Sink[Any]
        sink, user = session._handler(handler, "Sample")
        super().__init__(session, sink, user)  # type: ignore[arg-type]
        self._key_expr = key_expr
        self._keys: dict[int, str] = {}
        mode = InterestMode.CURRENT_FUTURE if history else InterestMode.FUTURE
        box = Mailbox(weakly(self._changed))
        key = session._whole(str(key_expr))
        self._watching = session._node.local.watch(key, Kinds.KEYEXPRS | Kinds.TOKENS, mode, box)

    @property
    def key_expr(self) -> KeyExpr:
        """The keys of the tokens it watches."""
        return self._key_expr

    def _changed(self, message: object) -> None:
        """A token is known by its key: a router tells a client of its own tokens, which the session knows too."""
        if isinstance(message, Declare):
            if self._keys.get(message.id) == message.key:
                return  # known already
            self._keys[message.id] = message.key
            own = self._session._own(message.key)
            if own is not None and list(self._keys.values()).count(message.key) == 1:
                self._sink.push(Sample.of(own, b""))
        elif isinstance(message, Undeclare):
            # A token older than the interest is named by its key (zenoh-1 §9.3).
            key = self._keys.pop(message.id, None) or (message.key if message.id >= 0 else None)
            own = None if key is None or key in self._keys.values() else self._session._own(key)
            if own is not None:
                self._sink.push(Sample.of(own, b"", kind=SampleKind.DELETE))

    def _end(self) -> None:
        self._session._node.local.stop_watching(self._watching)
        self._sink.close()


class Liveliness:
    """What a session can do with liveliness tokens."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def declare_token(self, key_expr: KeyExpr | str) -> LivelinessToken:
        """Declare a token."""
        self._session._node.check_words("a liveliness token")
        return self._session._keep(LivelinessToken(self._session, self._session._key(key_expr)))

    def declare_subscriber(
        self, key_expr: KeyExpr | str, handler: Any = None, *, history: bool | None = None
    ) -> LivelinessSubscriber[Any]:
        """Be told of tokens that come and go; with `history`, also of those that are there."""
        self._session._node.check_words("a liveliness token")
        subscriber: LivelinessSubscriber[Any] = LivelinessSubscriber(
            self._session, self._session._key(key_expr), handler, history=bool(history)
        )
        return self._session._keep(subscriber)

    def get(
        self,
        key_expr: KeyExpr | str,
        handler: Any = None,
        *,
        timeout: float | int | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> Any:
        """Ask which tokens there are."""
        sink: Sink[Any]
        session = self._session
        if cancellation_token is not None:
            cancellation_token._check()
        sink, user = session._handler(handler, "Reply")
        own = session._node.local
        state: dict[str, Any] = {"over": False}
        seen: set[str] = set()

        def stop() -> None:
            state["over"] = True
            if "timer" in state:
                state["timer"].cancel()
            watching: LocalInterest | None = state.pop("watching", None)
            if watching is not None:
                own.stop_watching(watching)

        def end() -> None:
            if not state["over"]:
                sink.close()
                stop()
                if cancellable is not None:
                    cancellable.end()

        def take(message: object) -> None:
            if state["over"]:
                return
            if isinstance(message, Declare) and message.key not in seen:
                seen.add(message.key)
                key = session._own(message.key)
                if key is not None:
                    sink.push(Reply(Sample.of(key, b"")))
            elif isinstance(message, Final):
                end()
            elif isinstance(message, ReplyError):
                sink.push(Reply(message))
                end()

        cancellable: Cancellable | None = None
        if cancellation_token is not None:
            cancellable = Cancellable(cancellation_token, take, sink.close, isinstance(sink, Handler))
        box = Mailbox(take if cancellable is None else cancellable.take)

        def say(message: object) -> None:
            session._node.dispatch.add(box, message)
            session._node.deliver_soon()

        wait = session._settings.queries_default_timeout if timeout is None else seconds(timeout)
        state["timer"] = session._node.loop.after(wait, lambda: say(ReplyError(b"Timeout", Encoding.ZENOH_STRING)))
        kinds = Kinds.KEYEXPRS | Kinds.TOKENS
        state["watching"] = own.watch(session._whole(str(session._key(key_expr))), kinds, InterestMode.CURRENT, box)
        if state["over"]:
            stop()
        if cancellable is not None:
            cancellable.begin(stop)
        return user
