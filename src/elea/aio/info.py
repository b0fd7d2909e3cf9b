"""What a session knows of itself, for a loop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from elea.aio.handle import Pending, ReceivingHandle
from elea.aio.inbox import DEFAULT_CAPACITY, Overflow
from elea.api.events import LinkEvent, TransportEvent
from elea.api.identity import ZenohId
from elea.api.info import Link, Transport

if TYPE_CHECKING:
    from elea.aio.session import Session

__all__ = ["LinkEventsListener", "SessionInfo", "TransportEventsListener"]


class TransportEventsListener(ReceivingHandle[TransportEvent]):
    """Receives an event for every session that opens or ends."""


class LinkEventsListener(ReceivingHandle[LinkEvent]):
    """Receives an event for every link that is added or removed."""


class SessionInfo:
    """A view of a session's neighbours. Looking needs no waiting; only listeners are awaited."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inner = session._inner.info

    def zid(self) -> ZenohId:
        """The identifier of this node."""
        return self._inner.zid()

    def routers_zid(self) -> list[ZenohId]:
        """The routers it is connected to."""
        return self._inner.routers_zid()

    def peers_zid(self) -> list[ZenohId]:
        """The peers it is connected to."""
        return self._inner.peers_zid()

    def transports(self) -> list[Transport]:
        """The sessions that are open."""
        return self._inner.transports()

    def links(self) -> list[Link]:
        """The links that are open."""
        return self._inner.links()

    def locators(self) -> list[str]:
        """Where this node can be reached."""
        return self._inner.locators()

    def dropped(self) -> dict[str, int]:
        """Messages lost on the way out, by reason, over all links there were."""
        return self._inner.dropped()

    def refused(self) -> dict[str, int]:
        """What neighbours wanted and this node refused because a limit was reached, by kind."""
        return self._inner.refused()

    def declare_transport_events_listener(
        self,
        handler: Any = None,
        *,
        history: bool | None = None,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "block",
    ) -> Pending[TransportEventsListener]:
        """Be told when sessions open and end; with `history`, also of those that are open."""

        async def begin() -> TransportEventsListener:
            declare = partial(self._inner.declare_transport_events_listener, history=history)
            return TransportEventsListener(
                self._session, declare, handler, "TransportEvent", capacity=capacity, overflow=overflow
            )

        return Pending(begin())

    def declare_link_events_listener(
        self,
        handler: Any = None,
        *,
        history: bool | None = None,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "block",
    ) -> Pending[LinkEventsListener]:
        """Be told when links are added and removed; with `history`, also of those that are there."""

        async def begin() -> LinkEventsListener:
            declare = partial(self._inner.declare_link_events_listener, history=history)
            return LinkEventsListener(
                self._session, declare, handler, "LinkEvent", capacity=capacity, overflow=overflow
            )

        return Pending(begin())
