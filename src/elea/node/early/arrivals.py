"""Samples of one early neighbour on their way into the common space. Spec: zenoh-2018 §5.11, Z18-DUR-03, 05."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import InvalidResource
from elea.model.limits import CACHED_KEY_CHARS, CACHED_ROUTES
from elea.model.qos import Durability
from elea.model.resource import Resource
from elea.node.early.keys import key_of
from elea.protocol.early.declarations import durability_of
from elea.protocol.early.terms import PropertyId, property_number, value_of
from elea.wire.details import RawSample

if TYPE_CHECKING:
    from elea.node.early.face import EarlyFace
    from elea.node.route import Route, SafeKeeper
    from elea.protocol.early.conduit import Arrived

__all__ = ["PROPERTY", "Arrivals"]

RELIABLE_QOS: Final = 13
"""Data, and wait for room: who writes reliably does not want to lose it on the way."""

BEST_EFFORT_QOS: Final = 5
PROPERTY: Final = "/property"
DURABILITIES: Final = (Durability.VOLATILE, Durability.TRANSIENT, Durability.PERSISTENT)

_Name = tuple[int, int, int] | tuple[int, bytes]


class _Origin:
    """Where samples of an id or a name belong; without a route they are dropped."""

    __slots__ = ("durability", "key", "route", "tags", "version")

    def __init__(self, key: str, tags: tuple[str, ...], durability: Durability, route: Route | None) -> None:
        self.key = key
        self.tags = tags
        self.durability = durability
        self.route = route
        self.version = -1


class Arrivals:
    """What one neighbour brings."""

    def __init__(self, face: EarlyFace) -> None:
        self.samples = 0
        self.read_only = 0
        """Samples of properties and meta resources, which nobody may write (Z18-RES-06)."""
        self.copies = 0
        """Samples that came once more, for another subscriber of ours that takes them too."""
        self.not_kept = 0
        """Durable samples that no storage here takes."""
        self._face = face
        self._origins: dict[_Name, _Origin] = {}
        self._has_some = False

    def counters(self) -> Mapping[str, int]:
        return {
            "received_samples": self.samples,
            "read_only_samples": self.read_only,
            "copied_samples": self.copies,
            "not_kept_samples": self.not_kept,
            "unroutable_samples": self._face.machine.neighbour.names.unknown,
        }

    def take(self, event: Arrived) -> None:
        """A WriteData, StreamData or BatchedData."""
        message, space = event.message, event.space
        kind = type(message).__name__
        if kind == "WriteData":
            self._add(event, self._written(space, message), [message.payload])
        elif kind == "StreamData":
            if message.prid == 0:
                self._face.asking.ended(space, message.id)
            else:
                self._add(event, self._streamed(space, message, message.prid), [message.payload])
        elif not message.hasPrid:
            self._add(event, self._streamed(space, message, None), list(message.payload))
        else:
            for one in message.payload:
                if one.prid == 0:
                    self._face.asking.ended(space, message.id)
                else:
                    self._add(event, self._streamed(space, message, one.prid), [one.payload])

    def _add(self, event: Arrived, origin: _Origin | None, payloads: list[bytes]) -> None:
        if origin is None or origin.route is None or not payloads:
            return
        face = self._face
        self.samples += len(payloads)
        if face.asking.takes(event.space, getattr(event.message, "id", 0)):
            for payload in payloads:
                face.asking.answered(event.message.id, origin.key, payload)
            return
        qos = RELIABLE_QOS if event.reliable else BEST_EFFORT_QOS
        run: list[RawSample] = [(0, 0, b"", qos, None, payload) for payload in payloads]
        route = origin.route
        keeper = None
        if origin.durability is not Durability.VOLATILE and not route.is_denied:
            if route.sieve is not None:
                run, route = route.sieve(run), route.without(None)
            if not run:
                return
            keeper = self._keeper(origin, len(run))
        self._has_some = True
        if keeper is None:
            face.outflow.add(route, run, event.reliable, face.node.loop.wall_ns())
            return
        run = keeper.stamped(run)
        # Live first: who reads what is stored, and then what is live, knows what came twice while it was reading.
        face.outflow.add(route.without(keeper), run, event.reliable, face.node.loop.wall_ns())
        is_awaited = origin.durability is Durability.PERSISTENT and event.reliable
        keeper.keep_safely(origin.key, run, face.machine.hold(event) if is_awaited else _done)

    def _keeper(self, origin: _Origin, count: int) -> SafeKeeper | None:
        """Who keeps durable samples; a persistent one is acknowledged when it is on disk (Z18-DUR-03)."""
        durable = self._face.node.durable
        keeper = None if durable is None else durable.keeper_of(origin.key, origin.durability.name.lower())
        self.not_kept += count if keeper is None else 0
        return keeper

    def flush(self) -> None:
        """The end of a packet, or something comes that must not overtake samples."""
        if self._has_some:
            self._has_some = False
            self._face.outflow.flush(self._face.node.loop.wall_ns())

    # -- what they belong to ------------------------------------------------------------------------------------------

    def _written(self, space: int, message: Any) -> _Origin | None:
        name = (space, message.resource)
        origin = self._known(name)
        if origin is None:
            origin = self._found(name, space, message, None)
        if origin is not None and origin.route is not None and not origin.route.is_denied:
            # Z18-DUR-05: the latest write decides, and somebody else may have written meanwhile.
            self._face.catalogue.written(origin.key, origin.tags, origin.durability)
        return origin

    def _streamed(self, space: int, message: Any, prid: int | None) -> _Origin | None:
        name = (space, message.id, -1 if prid is None else prid)
        origin = self._known(name) or self._found(name, space, message, prid)
        if origin is not None and origin.route is None:
            self.copies += 1
        return origin

    def _known(self, name: _Name) -> _Origin | None:
        face = self._face
        origin = self._origins.get(name)
        if origin is None or origin.version != face.subscriptions.version:
            return None
        if origin.route is not None and origin.route.generation != face.node.generation:
            origin.route = face.node.route(face, origin.key)
        return origin

    def _found(self, name: _Name, space: int, message: Any, prid: int | None) -> _Origin | None:
        face = self._face
        version = face.subscriptions.version
        with face.machine.lock:
            names = face.machine.neighbour.names
            try:
                resource = names.origin(space, message, prid)
                durability = Durability.VOLATILE if resource is None else self._durability(space, message, resource)
            except (InvalidResource, ValueError):
                resource = None
            is_copy = resource is not None and face.is_copy(space, message, key_of(space, resource))
        if resource is None:
            return None  # and counted by the names
        if isinstance(resource, Resource) and (resource.meta or resource.path.endswith(PROPERTY)):
            self.read_only += 1
            return None
        key = key_of(space, resource)
        tags = () if isinstance(resource, int) else resource.tags
        origin = _Origin(key, tags, durability, None if is_copy else face.node.route(face, key))
        origin.version = version
        if len(key) <= CACHED_KEY_CHARS:
            if len(self._origins) >= CACHED_ROUTES:
                self._origins.clear()
            self._origins[name] = origin
        return origin

    def _durability(self, space: int, message: Any, resource: Resource | int) -> Durability:
        """What its publisher says, or else its resource."""
        neighbour = self._face.machine.neighbour
        declared = neighbour.theirs.spaces.get(space)
        if isinstance(resource, int) or declared is None or not hasattr(message, "id"):
            return Durability.VOLATILE if isinstance(resource, int) else durability_of(resource, None)
        publisher = declared.publishers.get(message.id)
        if publisher is not None and value_of(publisher.properties, PropertyId.DURABILITY) is not None:
            return DURABILITIES[property_number(publisher.properties, PropertyId.DURABILITY, 0, most=2)]
        decl = declared.resources.get(message.id)
        return durability_of(resource, None if decl is None else decl.properties)

    def stored_as(self, key: str) -> str:
        """How durable samples of a key are whatever was said of them: as the storage that keeps it."""
        found = [keeper.durability for keeper in self._face.node.local.keepers(key)]
        return "persistent" if "persistent" in found else "transient" if found else ""


def _done(error: Exception | None) -> None:
    """Nobody waits for it."""
