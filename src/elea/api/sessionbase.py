"""What every part of a session stands on: its node, the keys it knows, and the handles it has given out."""

from __future__ import annotations

import _thread
import contextlib
import itertools
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from elea.api.config import Config
from elea.api.handle import Handle
from elea.api.namespace import Namespace
from elea.api.nodefactory import start
from elea.api.putroute import PutRoute
from elea.api.quality import qos_of
from elea.api.settings import Settings
from elea.api.sinks import Sink, into_handler
from elea.model.errors import LimitReached, SessionClosed
from elea.model.keyexpr import KeyExpr
from elea.model.limits import MAX_DECLARATIONS
from elea.model.qos import CongestionControl, Locality, Priority, QueryTarget
from elea.node.runtime import Runtime

if TYPE_CHECKING:
    from elea.api.batchput import Bulk
    from elea.api.outgoingquery import QueryOptions
    from elea.api.publicationqos import PublicationQos
    from elea.api.queryoptions import IntoQueryConsolidation, ReplyKeyExpr
    from elea.api.storeclient import StoreClient
    from elea.content import SamplePredicate
    from elea.model.predicate import Predicate

__all__ = ["SESSION_EID", "SessionBase"]

T = TypeVar("T", bound=Handle)

SESSION_EID = 1


class SessionBase:
    """A session without its verbs."""

    _has_plain_channels: ClassVar[bool] = True
    """Whether `_handler` makes a plain channel for those who ask for none, which they may then make themselves."""

    def __init__(self, config: Config, *, start: Callable[[Settings], Runtime] = start) -> None:
        self._settings = Settings.of(config)
        self._namespace = None if self._settings.namespace is None else Namespace(self._settings.namespace)
        self._handles: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._background: set[Handle] = set()  # of those, the ones that go on when a program drops them
        self._eids = itertools.count(SESSION_EID + 1)
        self._put_routes: dict[tuple[str, Locality], PutRoute] = {}
        self._declared: list[str] = []
        self._closed = False
        self._usual: QueryOptions | None = None
        self._ask: Callable[..., object] | None = None
        self._stores: StoreClient | None = None
        self._bulk: Bulk | None = None
        self._publication: PublicationQos | None = None
        if self._settings.publication:
            from elea.api.publicationqos import PublicationQos  # few configurations have any

            self._publication = PublicationQos(self._settings.publication)
        self._first_use = threading.Lock()
        self._runtime = start(self._settings)
        self._node = self._runtime.node
        self._forgotten = weakref.finalize(self, _close_forgotten, self._runtime)
        self._forgotten.atexit = False  # the runtime itself sees to that

    def _sample_predicate(self, where: Predicate | str) -> SamplePredicate:
        """A predicate, ready for samples."""
        from elea.content import SamplePredicate

        return SamplePredicate(where, contents=self._node.schemas.contents)

    def _keep(self, handle: T) -> T:
        """Remember what has been declared, to end it with the session; not before it is declared completely."""
        self._handles.add(handle)
        if handle._is_background:
            self._background.add(handle)
        return handle

    def _forget(self, handle: Handle) -> None:
        """It has ended."""
        self._handles.discard(handle)
        self._background.discard(handle)

    def _end_dropped(self, handle: Handle) -> None:
        """A handle that nobody has any more; called as `_close_forgotten` is, so it ends in a thread of its own."""
        if not self._closed:
            with contextlib.suppress(RuntimeError):  # the interpreter ends, and with it everything
                _thread.start_new_thread(handle._finish, ())

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

    def _whole(self, key: str) -> str:
        """A key of this session as the node and others know it."""
        return key if self._namespace is None else self._namespace.whole(key)

    def _own(self, key: str) -> str | None:
        """A key of others as this session knows it; None if it is outside its namespace."""
        return key if self._namespace is None else self._namespace.own(key)

    def _check(self) -> None:
        if self._closed:
            self._refuse("this session is closed")
        self._node.check_process()

    def _refuse(self, problem: str) -> NoReturn:
        raise SessionClosed(text=problem)

    def _wake(self) -> None:
        self._node.loop.at(self._node.loop.now(), self._node.settle)

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
        from elea.api.outgoingquery import QueryOptions, seconds
        from elea.api.queryoptions import ReplyKeyExpr, into_consolidation

        return QueryOptions(
            QueryTarget.BEST_MATCHING if target is None else target,
            into_consolidation(consolidation),
            ReplyKeyExpr.MATCHING_QUERY if accept is None else accept,
            self._settings.queries_default_timeout if timeout is None else seconds(timeout),
            qos_of(congestion_control, priority, express, CongestionControl.BLOCK),
            Locality.ANY if destination is None else destination,
        )


def _close_forgotten(runtime: Runtime) -> None:
    """Nobody has the session any more, so nobody can close it."""
    # The garbage collector calls this in any thread, whatever locks that holds: so neither close here, nor start a
    # `Thread` here, which takes locks itself.
    closing = threading.Thread(target=runtime.close, name="elea-close", daemon=True)
    _thread.start_new_thread(closing.start, ())
