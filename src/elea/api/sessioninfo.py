"""What a session knows of itself: neighbours, links, and what was dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elea.api.events import LinkEventsListener, TransportEventsListener, link_of, transport_of
from elea.api.identity import ZenohId
from elea.api.info import Link, Transport
from elea.model.qos import Role

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["SessionInfo"]


class SessionInfo:
    """A view of a session's neighbours."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def zid(self) -> ZenohId:
        """The identifier of this node."""
        return self._session.zid()

    def routers_zid(self) -> list[ZenohId]:
        """The routers it is connected to."""
        return self._neighbours(Role.ROUTER)

    def peers_zid(self) -> list[ZenohId]:
        """The peers it is connected to."""
        return self._neighbours(Role.PEER)

    def transports(self) -> list[Transport]:
        """The sessions that are open."""
        found = map(transport_of, list(self._session._runtime.links.connections))
        return [transport for transport in found if transport is not None]

    def links(self) -> list[Link]:
        """The links that are open."""
        found = map(link_of, list(self._session._runtime.links.connections))
        return [link for link in found if link is not None]

    def locators(self) -> list[str]:
        """Where this node can be reached; an extra of Elea."""
        return self._session._runtime.links.locators()

    def declare_transport_events_listener(
        self, handler: Any = None, *, history: bool | None = None
    ) -> TransportEventsListener[Any]:
        """Be told when sessions open and end; with `history`, also of those that are open."""
        self._session._check()
        return self._session._keep(
            TransportEventsListener(self._session, handler, "TransportEvent", history=bool(history))
        )

    def declare_link_events_listener(
        self, handler: Any = None, *, history: bool | None = None
    ) -> LinkEventsListener[Any]:
        """Be told when links are added and removed; with `history`, also of those that are there."""
        self._session._check()
        return self._session._keep(LinkEventsListener(self._session, handler, "LinkEvent", history=bool(history)))

    def dropped(self) -> dict[str, int]:
        """Messages lost in this node, each counted once, by reason; an extra of Elea.

        On the way out, over all links there were: `full` had no room and may be dropped, `refused` had none and may
        not, `closed` came or waited when the link ended, `oversized` were larger than a batch of a low-latency
        session, which has no fragments. `undelivered` were for handlers here that were too slow.
        """
        return self._session._runtime.links.dropped()

    def refused(self) -> dict[str, int]:
        """What neighbours wanted and this node refused because a limit was reached, by kind; an extra of Elea."""
        ignored = self._session._node.space.ignored
        return {
            "sessions": self._session._runtime.links.refused,
            "declarations": ignored.too_many_declarations,
            "interests": ignored.too_many_interests,
            "queries": ignored.too_many_queries,
        }

    def _neighbours(self, role: Role) -> list[ZenohId]:
        faces = [c.face for c in list(self._session._runtime.links.connections)]
        return [ZenohId(face.subject.node_id) for face in faces if face is not None and face.subject.role is role]
