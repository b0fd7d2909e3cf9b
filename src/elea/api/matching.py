"""Does anybody listen? The matching status of publishers and queriers, and listeners to its changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from elea.api.handle import ReceivingHandle, weakly
from elea.api.info import MatchingStatus
from elea.api.sinks import Sink
from elea.io.dispatch import Mailbox
from elea.model.qos import Locality, QueryTarget
from elea.space.face import Entity, Final, InterestMode, Kinds

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["MatchingListener", "matching_status"]

H = TypeVar("H")
KINDS = {Entity.SUBSCRIBER: Kinds.SUBSCRIBERS, Entity.QUERYABLE: Kinds.QUERYABLES}


def matching_status(
    session: Session, entity: Entity, key: str, destination: Locality, *, complete: bool = False
) -> MatchingStatus:
    """Whether an entity that intersects `key` is known where `destination` allows: here, elsewhere, or both."""
    node, key = session._node, session._whole(key)
    if destination is not Locality.REMOTE:
        target = QueryTarget.ALL_COMPLETE if complete else QueryTarget.ALL
        own = node.local.boxes(key, here=True) if entity is Entity.SUBSCRIBER else []
        if own or (entity is Entity.QUERYABLE and node.local.queryables(key, target, here=True)):
            return MatchingStatus(True)
    if destination is Locality.SESSION_LOCAL:
        return MatchingStatus(False)
    with node.lock:
        return MatchingStatus(node.space.matching(node.local, entity, key, complete=complete))


class MatchingListener(ReceivingHandle[H]):
    """Tells when matching begins and ends."""

    def __init__(
        self,
        session: Session,
        entity: Entity,
        key: str,
        handler: Any,
        destination: Locality,
        *,
        complete: bool = False,
    ) -> None:
        sink: Sink[MatchingStatus]
        sink, user = session._handler(handler, "MatchingStatus")
        super().__init__(session, sink, user)  # type: ignore[arg-type]
        self._entity = entity
        self._key = key
        self._destination = destination
        self._complete = complete
        self._last = False
        self._known = False
        box = Mailbox(weakly(self._changed))
        self._interest = session._node.local.watch(session._whole(key), KINDS[entity], InterestMode.CURRENT_FUTURE, box)

    def _changed(self, message: object) -> None:
        if isinstance(message, Final):
            self._known = True
        if not self._known:
            return  # until everything is known there is nothing to compare with
        status = matching_status(self._session, self._entity, self._key, self._destination, complete=self._complete)
        if status.matching != self._last:
            self._last = status.matching
            self._sink.push(status)

    def _end(self) -> None:
        self._session._node.local.stop_watching(self._interest)
        self._sink.close()
