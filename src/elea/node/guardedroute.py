"""Routes where there are rules: whom samples of a key reach is judged here, once; denied ones are counted on their way.

A face that may not have the samples gets a way that leads nowhere and counts; one behind a filter gets a way of its
own, which looks at each sample. All others are grouped as without rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from elea.model.values import value_class
from elea.node.route import Route
from elea.space.access import Action
from elea.space.face import Flow
from elea.space.guard import Guard, Sieve, attachment_size
from elea.space.way import Collector, Encoder, Publication, Way

if TYPE_CHECKING:
    from elea.model.errors import EleaError
    from elea.node.node import Node
    from elea.space.face import Face
    from elea.wire.details import RawSample

__all__ = ["GuardedRoute", "guarded_route"]


@value_class
class GuardedRoute:
    """A route that is asked for: from whom, on which key, to whom without rules."""

    source: Face
    key: str
    faces: tuple[Face, ...]
    deletions: bool
    declared: bool
    generation: int


def guarded_route(node: Node, guard: Guard, asked: GuardedRoute) -> Route:
    """The route as the rules leave it."""
    source, key = asked.source, asked.key
    action = Action.DELETE if asked.deletions else Action.PUT
    if not guard.allows(source, Flow.INGRESS, action, key):
        route = Route(key, asked.generation, (), (_Denied(guard, source, Flow.INGRESS, action, key),))
        route.is_denied = True
        return route
    ways: list[Way] = []
    groups: dict[Encoder, list[Face]] = {}
    for face in asked.faces:
        if face is node.local:
            continue
        if not guard.allows(face, Flow.EGRESS, action, key):
            ways.append(_Denied(guard, face, Flow.EGRESS, action, key))
            continue
        sieve = guard.sieve(face, Flow.EGRESS, action, key)
        if sieve is None:
            groups.setdefault(face.encoder, []).append(face)
        else:
            encoder = guard.filtering.setdefault(face.encoder, _Filtering(face.encoder))
            ways.append(_Filtered(face.encoder.way(key, (face,), asked.declared), sieve, encoder))
    with node.lock:
        alike = [node.same(tuple(group), asked.generation) for group in groups.values()]
    ways += [group[0].encoder.way(key, group, asked.declared) for group in alike]
    boxes = node.local.boxes(key, here=source is node.local)
    found = guard.sieve(source, Flow.INGRESS, action, key)
    sifted = None if found is None else lambda run: _sifted(run, found)
    if node.future is not None:
        sifted = node.future.sieve(key, sifted)
    keepers = node.local.keepers(key)
    if keepers and not guard.allows_every(source, action, key):
        keepers = ()  # a store would apply it to keys that its sender may not touch
    return Route(key, asked.generation, boxes, tuple(ways), keepers, sifted)


def _sifted(run: list[RawSample], sieve: Sieve) -> list[RawSample]:
    return [one for one in run if sieve.passes(len(one[5]) + attachment_size(one[4]))]


class _Nowhere(Encoder):
    """Of ways that are closed."""

    def collector(self, *, waits: bool = True) -> Collector:
        return _Counting()


class _Counting(Collector):
    def add(self, way: Way, run: list[RawSample], reliable: bool, now_ns: int, is_stamped: bool) -> None:
        assert isinstance(way, _Denied)
        way.count(len(run))


CLOSED: Final = _Nowhere()


class _Denied(Way):
    """A way that rules have closed."""

    def __init__(self, guard: Guard, face: Face, flow: Flow, action: Action, key: str) -> None:
        super().__init__(key, (face,), CLOSED)
        self._guard = guard
        self._flow = flow
        self._action = action

    def count(self, samples: int) -> None:
        """Samples came this way."""
        self._guard.deny(self.faces[0], self._flow, self._action, self.key, samples)

    def put(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> EleaError | None:
        self.count(1)
        return None

    def publication(self, meta: bytes | None, qos: int, reliable: bool) -> Publication:
        return _Published(self, meta, qos, reliable)

    def put_columns(self, columns: Any, ways: Sequence[Way], chosen: Any, qos: int) -> bool | EleaError:
        return False


class _Published(Publication):
    """Puts one by one."""

    def __init__(self, way: Way, meta: bytes | None, qos: int, reliable: bool) -> None:
        self._way = way
        self._meta = meta
        self._qos = qos
        self._reliable = reliable

    def put(self, payload: bytes) -> EleaError | None:
        return self._way.put(self._meta, payload, self._qos, self._reliable)


class _Filtered(Way):
    """A way that samples take one by one, if a filter lets them."""

    def __init__(self, way: Way, sieve: Sieve, encoder: Encoder) -> None:
        super().__init__(way.key, way.faces, encoder)
        self.way = way
        self.sieve = sieve

    def put(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> EleaError | None:
        if not self.sieve.passes(len(payload) + attachment_size(meta)):
            return None
        return self.way.put(meta, payload, qos, reliable)

    def publication(self, meta: bytes | None, qos: int, reliable: bool) -> Publication:
        return _Published(self, meta, qos, reliable)

    def is_full(self, qos: int, reliable: bool) -> bool:
        return self.way.is_full(qos, reliable)


class _Filtering(Encoder):
    """In front of the encoder of a dialect."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def collector(self, *, waits: bool = True) -> Collector:
        return _FilteringCollector(self._encoder.collector(waits=waits))


class _FilteringCollector(Collector):
    def __init__(self, inner: Collector) -> None:
        self._inner = inner

    def add(self, way: Way, run: list[RawSample], reliable: bool, now_ns: int, is_stamped: bool) -> None:
        assert isinstance(way, _Filtered)
        left = _sifted(run, way.sieve)
        if left:
            self._inner.add(way.way, left, reliable, now_ns, is_stamped)

    def flush(self) -> None:
        self._inner.flush()
