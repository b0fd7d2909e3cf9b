"""What a session knows of itself: neighbours, links, and what was dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.api.identity import ZenohId
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

    def dropped(self) -> dict[str, int]:
        """Messages lost on the way out, by reason, over all links. Not part of eclipse-zenoh's API."""
        total: dict[str, int] = {}
        for connection in list(self._session._runtime.links.connections):
            if connection.session is not None:
                for reason, count in connection.session.outbox.dropped.items():
                    total[reason] = total.get(reason, 0) + count
        return total

    def _neighbours(self, role: Role) -> list[ZenohId]:
        sessions = [c.session for c in list(self._session._runtime.links.connections)]
        return [ZenohId(s.node_id) for s in sessions if s is not None and s.role is role]
