"""`UTransportZenoh`: uProtocol messages as samples of the data space. All are put and subscribed, none is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from elea.api.apierrors import ChannelClosed
from elea.api.channels import Handler
from elea.api.config import Config
from elea.api.session import Session
from elea.api.session import open as open_session
from elea.model.errors import EleaError, OperationTimeout
from elea.model.limits import (
    UPROTOCOL_KEYS,
    UPROTOCOL_LISTENERS,
    UPROTOCOL_LISTENERS_PER_FILTER,
    UPROTOCOL_RECEIVED,
)
from elea.model.qos import CongestionControl, Locality, Qos
from elea.uprotocol.attachment import write_checked, written
from elea.uprotocol.attributes import UAttributes, UMessageType
from elea.uprotocol.filters import check_filters
from elea.uprotocol.listeners import Listening
from elea.uprotocol.message import UMessage
from elea.uprotocol.prepared import Prepared
from elea.uprotocol.received import Dropped, SampleReader
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.transport import ListenerFunction, LocalUri, UListener, listener_function
from elea.uprotocol.uuid7 import Clock, now_ms
from elea.uprotocol.uuri import UUri
from elea.uprotocol.zenohkey import key_of
from elea.uprotocol.zenohpriority import zenoh_priority
from elea.wire.details import pack_attachment

if TYPE_CHECKING:
    from elea.api.putroute import PutRoute
    from elea.io.loop import Loop

__all__ = ["UTransportZenoh", "open"]

_REQUEST: Final = UMessageType.REQUEST
_PUBLISH: Final = UMessageType.PUBLISH

Filters = tuple[UUri, "UUri | None"]
Outlet = tuple["PutRoute", int, "UUri | None"]
"""Where messages go, their quality of service, and who must be there to get them, if anybody."""


class UTransportZenoh(LocalUri):
    """Sends and receives messages for the entity at `uri`.

    ::

        with uprotocol.open(elea.Config(), "//vcu.my_vin/10AB/3/0") as transport:
            transport.register_listener(UUri.parse("//*/FFFFFFFF/FF/FFFF"), None, print)
            transport.send(UMessage.publish(transport.get_resource(0x8001), b"21.5", UPayloadFormat.TEXT))
    """

    def __init__(
        self,
        session: Session,
        uri: UUri | str,
        *,
        clock: Clock = now_ms,
        own_source_only: bool = False,
        max_listeners: int = UPROTOCOL_LISTENERS,
        max_listeners_per_filter: int = UPROTOCOL_LISTENERS_PER_FILTER,
    ) -> None:
        """Use a session that is open; `close` leaves it so.

        Args:
            clock: milliseconds since 1970, by which messages expire.
            own_source_only: refuse to send what claims to come from another authority.

        Raises:
            InvalidUri: `uri` is not the address of an entity.
        """
        super().__init__(uri)
        self._session = session
        self._own_source_only = own_source_only
        self._max_listeners = max_listeners
        self._max_per_filter = max_listeners_per_filter
        self._outlets: dict[tuple[object, ...], Outlet] = {}
        self._listening: dict[Filters, Listening] = {}
        self._received: dict[Filters, Handler[UMessage]] = {}
        self._lock = threading.Lock()
        self._receiving = threading.Lock()
        self._ends: list[Callable[[], None]] = []
        self._owns = False
        self._closed = False
        self._drops = Dropped()
        self._reader = SampleReader(clock, self._drops)

    @property
    def session(self) -> Session:
        """The session it uses."""
        return self._session

    @property
    def loop(self) -> Loop:
        """The loop of the session's node."""
        return self._session._node.loop

    @property
    def dropped(self) -> dict[str, int]:
        """Samples that were no message for anybody, by reason (`elea.uprotocol.received`)."""
        return dict(self._drops.counts)

    # -- sending

    def send(self, message: UMessage, *, wait: bool = True) -> None:
        """Hand a message to the network.

        Args:
            wait: until there is room for what may not be dropped; else it is UNAVAILABLE.

        Raises:
            UStatusError: INVALID_ARGUMENT (what is wrong with it), PERMISSION_DENIED (a source that is not ours),
                UNAVAILABLE (no session, or nobody who would get a request: try again later).
        """
        route, meta, payload, qos = self.prepared(message)
        if not wait and route.is_full(qos):
            raise UStatusError(UCode.UNAVAILABLE, f"no room for message {message.attributes.id} now; try again later")
        try:
            route.send(meta, payload, qos, True)
        except EleaError as error:
            raise UStatusError(UCode.UNAVAILABLE, f"message {message.attributes.id} not sent: {error}") from error

    def prepared(self, message: UMessage) -> tuple[PutRoute, bytes | None, bytes, int]:
        """A message as `PutRoute.send` takes it; for the asyncio twin, which must not wait in it."""
        attributes, payload = message
        attachment, problem = write_checked(attributes)
        if attributes.payload_format and payload is None:
            problem = "; ".join(part for part in (problem, "payload_format is set, but there is no payload") if part)
        if problem:
            raise UStatusError(UCode.INVALID_ARGUMENT, problem)
        outlet = self._outlet(attributes)
        self.check(outlet)
        route, qos, _ = outlet
        if payload is None:
            payload = b""
        elif type(payload) is not bytes:
            raise UStatusError(UCode.INVALID_ARGUMENT, f"the payload is {type(payload).__name__} and not bytes")
        return route, pack_attachment(attachment), payload, qos

    def prepare(self, attributes: UAttributes) -> Prepared:
        """Messages with these attributes, but for their identifiers, to be sent again and again.

        ::

            speed = transport.prepare(UMessage.publish(topic, payload_format=UPayloadFormat.TEXT).attributes)
            speed.send(b"50")

        Args:
            attributes: of one of them; `id` is not looked at, `reqid` only whether there is one.

        Raises:
            UStatusError: INVALID_ARGUMENT, PERMISSION_DENIED: as `send`.
        """
        known = written(attributes)
        if known.problem:
            raise UStatusError(UCode.INVALID_ARGUMENT, known.problem)
        has_format, has_reqid = bool(attributes.payload_format), attributes.reqid is not None
        return Prepared(self, known, self._outlet(attributes), has_format=has_format, has_reqid=has_reqid)

    def check(self, outlet: Outlet) -> None:
        """Raises UStatusError(UNAVAILABLE) if nothing can be sent there now, or nobody is there who must be."""
        if self._closed or self._session.is_closed():
            raise UStatusError(UCode.UNAVAILABLE, "this transport is closed")
        route, _, sink = outlet
        if sink is not None:
            if route.generation != self._session._node.generation:
                route.refresh()
            if not route.ways and not route.boxes:
                raise UStatusError(UCode.UNAVAILABLE, f"nobody listens to {sink} now; try again later")

    def _outlet(self, attributes: UAttributes) -> Outlet:
        """Where messages with this source, sink and priority go; they are valid."""
        known = self._outlets.get(attributes[1:5])
        return self._new_outlet(attributes) if known is None else known

    def _new_outlet(self, attributes: UAttributes) -> Outlet:
        source = attributes.source
        assert source is not None
        if self._own_source_only and source.with_authority(self.get_authority()).authority_name != self.get_authority():
            raise UStatusError(UCode.PERMISSION_DENIED, f"source {source} is not of authority {self.get_authority()}")
        from elea.api.putroute import PutRoute

        key = key_of(source, attributes.sink, self.get_authority())
        # Topics and methods are used again and again, and worth a number; whom we answer is not.
        numbered = attributes.type in (_PUBLISH, _REQUEST)
        # What everybody may get, may be dropped for those that are too slow; what one is waiting for, may not.
        control = CongestionControl.DROP if attributes.type == _PUBLISH else CongestionControl.BLOCK
        if len(self._outlets) >= UPROTOCOL_KEYS:
            self._outlets.clear()
        route = PutRoute(self._session, key, Locality.ANY, numbered=numbered)
        sink = attributes.sink if attributes.type == _REQUEST else None
        outlet = route, Qos(zenoh_priority(attributes.priority), control).raw, sink
        self._outlets[attributes[1:5]] = outlet
        return outlet

    # -- receiving

    def register_listener(
        self, source_filter: UUri, sink_filter: UUri | None, listener: UListener | ListenerFunction
    ) -> None:
        """Tell `listener` of messages that match, in the order they come, until it is unregistered.

        Without a sink filter these are publish messages, with one all others. The same listener again changes nothing.

        Raises:
            UStatusError: INVALID_ARGUMENT (nobody can listen with these filters), RESOURCE_EXHAUSTED (too many
                listeners), UNAVAILABLE (no session).
        """
        check_filters(source_filter, sink_filter)
        call = listener_function(listener)
        with self._lock:
            self._check_open()
            filters = self._resolved(source_filter, sink_filter)
            listening = self._listening.get(filters)
            if listening is not None and listener in listening:
                return
            self._check_room(listening)
            if listening is None:
                listening = self._subscribe(filters)
            listening.add(listener, call)

    def unregister_listener(
        self, source_filter: UUri, sink_filter: UUri | None, listener: UListener | ListenerFunction
    ) -> None:
        """Tell `listener` no more. A call that is under way is waited for, unless it is the caller's own.

        Raises:
            UStatusError: INVALID_ARGUMENT (no such filters can be), NOT_FOUND (it is not registered with these).
        """
        check_filters(source_filter, sink_filter)
        with self._lock:
            filters = self._resolved(source_filter, sink_filter)
            listening = self._listening.get(filters)
            if listening is None or listener not in listening:
                raise UStatusError(
                    UCode.NOT_FOUND, f"{listener!r} does not listen to {source_filter} and {sink_filter}"
                )
            entry = listening.remove(listener)
            if not listening:
                del self._listening[filters]
        if not listening:
            listening.end()
        entry.end()

    def receive(self, source_filter: UUri, sink_filter: UUri | None = None, *, timeout: float = 0.0) -> UMessage:
        """The next message that matches. They are kept from the first call on: at most 1,000, then the oldest goes.

        Args:
            timeout: seconds to wait if there is none.

        Raises:
            UStatusError: NOT_FOUND (none has come), UNAVAILABLE (the transport was closed), or as `register_listener`.
        """
        filters = self._resolved(source_filter, sink_filter)
        with self._receiving:
            channel = self._received.get(filters)
            if channel is None:
                channel = Handler(UPROTOCOL_RECEIVED, ring=True)
                channel.source = self._session._node
                self.register_listener(source_filter, sink_filter, channel.push)
                self._received[filters] = channel
        try:
            return channel.recv(timeout=timeout)
        except OperationTimeout:
            raise UStatusError(UCode.NOT_FOUND, f"no message from {source_filter} to {sink_filter}") from None
        except ChannelClosed:
            raise UStatusError(UCode.UNAVAILABLE, "this transport is closed") from None

    def _resolved(self, source: UUri, sink: UUri | None) -> Filters:
        authority = self.get_authority()
        return source.with_authority(authority), None if sink is None else sink.with_authority(authority)

    def _check_room(self, listening: Listening | None) -> None:
        if listening is not None and len(listening) >= self._max_per_filter:
            problem = f"{self._max_per_filter} listeners have these filters already"
            raise UStatusError(UCode.RESOURCE_EXHAUSTED, problem)
        if sum(map(len, self._listening.values())) >= self._max_listeners:
            raise UStatusError(UCode.RESOURCE_EXHAUSTED, f"there are {self._max_listeners} listeners already")

    def _subscribe(self, filters: Filters) -> Listening:
        listening = Listening(self._reader, has_sink_filter=filters[1] is not None)
        try:
            key = key_of(*filters, self.get_authority())
            listening.subscriber = self._session.declare_subscriber(key, listening.arrived)
        except EleaError as error:
            raise UStatusError(UCode.UNAVAILABLE, f"cannot listen: {error}") from error
        self._listening[filters] = listening
        return listening

    # -- its end

    def on_close(self, call: Callable[[], None]) -> None:
        """Call this when the transport ends: once, in the thread that ends it."""
        self._ends.append(call)

    def _check_open(self) -> None:
        if self._closed:
            raise UStatusError(UCode.UNAVAILABLE, "this transport is closed")

    def close(self) -> None:
        """End all listeners; and the session, if `open` has opened it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            ending = list(self._listening.values())
            self._listening.clear()
        for end in self._ends:
            end()
        for listening in ending:
            listening.end()
        for channel in self._received.values():
            channel.close()
        if self._owns:
            self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def open(
    config: Config | None,
    uri: UUri | str,
    *,
    clock: Clock = now_ms,
    own_source_only: bool = False,
    max_listeners: int = UPROTOCOL_LISTENERS,
    max_listeners_per_filter: int = UPROTOCOL_LISTENERS_PER_FILTER,
) -> UTransportZenoh:
    """Open a session and a transport on it for the entity at `uri`; closing it closes both.

    Raises:
        InvalidUri: `uri` is not the address of an entity.
        UStatusError: UNAVAILABLE: no node can be reached, or the configuration is wrong.
    """
    LocalUri(uri)
    try:
        session = open_session(config)
    except EleaError as error:
        raise UStatusError(UCode.UNAVAILABLE, f"no session: {error}") from error
    transport = UTransportZenoh(
        session,
        uri,
        clock=clock,
        own_source_only=own_source_only,
        max_listeners=max_listeners,
        max_listeners_per_filter=max_listeners_per_filter,
    )
    transport._owns = True
    return transport
