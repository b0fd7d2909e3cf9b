"""Queriers: declared asking. Plain Python for the reason that `elea.api.queryable` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elea.api.cancellation import CancellationToken
from elea.api.handle import Handle
from elea.api.identity import SourceInfo
from elea.api.info import MatchingStatus
from elea.api.instrumentation import TimestampInstrumentation
from elea.api.matching import MatchingListener, matching_status
from elea.api.outgoingquery import QueryOptions, ask
from elea.api.queryoptions import ReplyKeyExpr
from elea.api.zbytes import IntoZBytes
from elea.io.dispatch import Mailbox
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import QueryTarget
from elea.model.selector import Parameters, Selector
from elea.space.face import Entity, InterestMode, Kinds

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Querier"]


class Querier(Handle):
    """Asks about one key expression again and again."""

    def __init__(self, session: Session, key_expr: KeyExpr, options: QueryOptions) -> None:
        super().__init__(session)
        self._key_expr = key_expr
        self._options = options
        self._listeners: list[MatchingListener[Any]] = []
        self._interest = session._node.local.watch(
            session._whole(str(key_expr)),
            Kinds.KEYEXPRS | Kinds.QUERYABLES,
            InterestMode.CURRENT_FUTURE,
            Mailbox(lambda _: None),
        )

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it asks about."""
        return self._key_expr

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        """Which keys replies may have."""
        return self._options.accept

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether anybody can answer."""
        return matching_status(
            self._session,
            Entity.QUERYABLE,
            str(self._key_expr),
            self._options.destination,
            complete=self._options.target is QueryTarget.ALL_COMPLETE,
        )

    def declare_matching_listener(self, handler: Any = None) -> MatchingListener[Any]:
        """Be told when the first queryable comes and when the last one goes."""
        complete = self._options.target is QueryTarget.ALL_COMPLETE
        listener: MatchingListener[Any] = MatchingListener(
            self._session, Entity.QUERYABLE, str(self._key_expr), handler, self._options.destination, complete=complete
        )
        self._listeners.append(listener)
        return self._session._keep(listener)

    def get(
        self,
        handler: Any = None,
        *,
        parameters: Parameters | dict[str, str] | str | None = None,
        payload: IntoZBytes | None = None,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> Any:
        """Ask."""
        if self._gone:
            self._session._refuse(f"querier on {self._key_expr} is undeclared")
        return ask(
            self._session,
            self._key_expr if parameters is None else Selector(self._key_expr, Parameters(parameters)),
            handler,
            self._options,
            payload=payload,
            encoding=encoding,
            attachment=attachment,
            source_info=source_info,
            cancellation_token=cancellation_token,
            timestamp_instrumentation=timestamp_instrumentation,
        )

    def _end(self) -> None:
        for listener in self._listeners:
            listener._finish()
        self._session._node.local.stop_watching(self._interest)
