"""Sessions and links of a node that come and go, as values and as events."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from elea.api.handle import ReceivingHandle, weakly
from elea.api.identity import ZenohId
from elea.api.info import Link, Transport
from elea.api.sinks import Sink
from elea.api.whatami import WhatAmI
from elea.io.dispatch import Mailbox
from elea.model.qos import Priority, Reliability, SampleKind
from elea.model.values import value_class
from elea.node.admin import interface_names

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.node.connection import Connection

__all__ = [
    "LinkEvent",
    "LinkEventsListener",
    "TransportEvent",
    "TransportEventsListener",
    "link_of",
    "transport_of",
]

E = TypeVar("E")
H = TypeVar("H")

_KINDS = {SampleKind.PUT: "Put", SampleKind.DELETE: "Delete"}


def transport_of(connection: Connection) -> Transport | None:
    """The session of a connection as users see it; None before there is one."""
    face = connection.face
    if face is None:
        return None
    return Transport(ZenohId(face.subject.node_id), WhatAmI.of(face.subject.role), face.has_priorities, False)


def link_of(connection: Connection) -> Link | None:
    """The link of a connection as users see it; None before there is a session."""
    face, link = connection.face, connection.link
    if face is None:
        return None
    qos = face.has_priorities
    reliability = Reliability.RELIABLE if link.reliable else Reliability.BEST_EFFORT
    return Link(
        ZenohId(face.subject.node_id),
        link.local,
        link.remote,
        None,
        link.mtu,
        link.streamed,
        interface_names(link),
        None,
        # Without QoS there are no conduits to choose from, and eclipse-zenoh tells neither.
        (0, int(Priority.BACKGROUND)) if qos else None,
        reliability if qos else None,
    )


@value_class
class TransportEvent:
    """A session was opened (PUT) or has ended (DELETE)."""

    kind: SampleKind
    transport: Transport

    def __repr__(self) -> str:
        return f"TransportEvent {{ kind: {_KINDS[self.kind]}, transport: {self.transport!r} }}"


@value_class
class LinkEvent:
    """A link was added (PUT) or removed (DELETE)."""

    kind: SampleKind
    link: Link

    def __repr__(self) -> str:
        return f"LinkEvent {{ kind: {_KINDS[self.kind]}, link: {self.link!r} }}"


class _Listener(ReceivingHandle[H], Generic[H, E]):
    """Turns connections that come and go into events; each one comes once and goes once."""

    def __init__(self, session: Session, handler: object, of: str, *, history: bool) -> None:
        sink: Sink[E]
        sink, user = session._handler(handler, of)
        super().__init__(session, sink, user)  # type: ignore[arg-type]
        self._box = Mailbox(sink.push)
        # What each connection was: when it has gone, its link can no longer be asked.
        self._known: dict[Connection, Callable[[SampleKind], E]] = {}
        self._order = threading.Lock()
        links = session._runtime.links
        self._told = weakly(self._changed)
        links.link_listeners.append(self._told)
        for connection in list(links.connections):
            self._came(connection, told=history)
        session._node.deliver_soon()

    def _changed(self, connection: Connection, opened: bool) -> None:
        if opened:
            self._came(connection, told=True)
        else:
            with self._order:
                event = self._known.pop(connection, None)
                if event is not None:
                    self._tell(event(SampleKind.DELETE))
        self._session._node.deliver_soon()

    def _came(self, connection: Connection, *, told: bool) -> None:
        event = self._event(connection)
        with self._order:
            # One that has ended while we looked is not told at all: it could not be told to have gone.
            if event is None or connection in self._known or connection.ended.is_set():
                return
            self._known[connection] = event
            if told:
                self._tell(event(SampleKind.PUT))

    def _tell(self, event: E) -> None:
        self._session._node.dispatch.add(self._box, event)

    @abstractmethod
    def _event(self, connection: Connection) -> Callable[[SampleKind], E] | None:
        """How to tell of a connection; None while there is nothing to tell."""

    def _end(self) -> None:
        watching: list[Any] = self._session._runtime.links.link_listeners
        if self._told in watching:
            watching.remove(self._told)
        self._sink.close()


class TransportEventsListener(_Listener[H, TransportEvent]):
    """Receives an event for every session that opens or ends."""

    def _event(self, connection: Connection) -> Callable[[SampleKind], TransportEvent] | None:
        transport = transport_of(connection)
        return None if transport is None else lambda kind: TransportEvent(kind, transport)


class LinkEventsListener(_Listener[H, LinkEvent]):
    """Receives an event for every link that is added or removed."""

    def _event(self, connection: Connection) -> Callable[[SampleKind], LinkEvent] | None:
        link = link_of(connection)
        return None if link is None else lambda kind: LinkEvent(kind, link)
