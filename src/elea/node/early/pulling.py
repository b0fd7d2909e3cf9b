"""What a neighbour does not get at once: pulls, windows, and what is stored before what is live.

The queues are `protocol.early.pulls`; what is stored comes as answers to queries of the common space, so it does not
matter which node keeps it. Spec: zenoh-2018 §5.12, Z18-DAT-09, Z18-DUR-04, Z18-RES-06, Z18-MET-01.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from elea.io.outbox import FORWARDED, REFUSED
from elea.model.errors import RuleBroken
from elea.model.keytext import cover
from elea.model.keytext import pattern_of as keys_of
from elea.model.limits import EARLY_LENT, EARLY_SNAPSHOT_BYTES, PACED_OCTETS, PACED_SAMPLES
from elea.model.qos import QueryTarget
from elea.model.resource import Resource, Selection, tags_agree
from elea.node.early.arrivals import PROPERTY
from elea.node.early.catalogue import children
from elea.node.early.declaring import ROOM_BESIDE
from elea.node.early.keys import key_of, pattern_of, place_of
from elea.node.early.subscriptions import Subscription, tags_of
from elea.protocol.early.names import Subject
from elea.protocol.early.numbered import plain_entry, stream_entry, vle
from elea.protocol.early.pulls import Due, Pulls
from elea.space.face import Flow, Request, Response, ResponseFinal
from elea.space.questions import ErrorBody, QueryBody
from elea.wire.details import RawSample, has_timestamp, is_deletion, read_stamp

if TYPE_CHECKING:
    from elea.node.early.face import EarlyFace
    from elea.protocol.early.conduit import Arrived

__all__ = ["Pulling"]

AT_ONCE: Final = 64
"""Samples of each queue that are sent before the next one has its turn."""

FIRST_LENT: Final = 1 << 32
"""Where the ids begin that a broker gives to resources which a neighbour has none for: far from those it chooses."""

STORE_MS: Final = 10_000
"""Milliseconds the stores have to answer."""

UNKNOWN: Final = (0, b"")
NEVER: Final = (1 << 64, b"")
"""Of a live sample without a timestamp: it is newer than anything stored."""

Waiting = tuple[str, bytes]
"""A sample: key and payload."""


class _Asked:
    """A question to the stores: what has been answered so far, the newest of each key."""

    def __init__(self, key: str, done: Callable[[_Asked], None]) -> None:
        self.has = keys_of(key)
        self.done = done
        self.found: dict[str, tuple[tuple[int, bytes], bytes]] = {}
        self.octets = 0
        self.beyond = 0


class Pulling:
    """The queues of one neighbour, guarded by the lock of its machine."""

    def __init__(self, face: EarlyFace) -> None:
        self.store_errors = 0
        """Answers of stores that were errors."""
        self.beyond = 0
        """Stored samples that there was no room for (EARLY_SNAPSHOT_BYTES)."""
        self.dropped = 0
        """Live samples that gave way while what is stored was read."""
        self._face = face
        self._generation = face.machine.neighbour.session.generation
        self._pulls: Pulls[Waiting] = Pulls(self._generation, _size)
        self._asked: dict[int, _Asked] = {}
        self._next = 1 << 20
        self._lent = 0

    def counters(self) -> Mapping[str, int]:
        return {
            "unpulled_samples_dropped": self._pulls.dropped + self.dropped,
            "stored_samples_beyond_limit": self.beyond,
            "store_errors": self.store_errors,
        }

    # -- subscribers --------------------------------------------------------------------------------------------------

    def subscribed(self, one: Subscription, now: float) -> None:
        """A subscriber is about to be part of the space."""
        with self._face.machine.lock:
            if one.is_paced:
                self._pulls.subscribe(one.space, one.id, one.mode, now)
            if one.is_durable and not one.mode.pull:
                one.backlog = deque()

    def joined(self, one: Subscription) -> None:
        """It is: ask for what is stored, now that nothing live is missed any more."""
        if one.backlog is not None:
            self._ask(one.key, lambda asked: self._begin(one, asked), one.tags)

    def forgotten(self, space: int, id: int) -> None:
        """A subscriber or selection is gone, and with it its pulls."""
        with self._face.machine.lock:
            self._pulls.forget(space, id)

    def keep(self, one: Subscription, key: str, run: Sequence[RawSample]) -> bool:
        """Samples for a subscriber that does not get them now; False if it does, after all."""
        face = self._face
        with face.machine.lock:
            if one.backlog is not None:
                one.backlog.extend((key, meta, raw[5]) for raw in run for meta in (raw[4],))
                one.backlog_octets += sum(len(raw[5]) for raw in run)
                while len(one.backlog) > PACED_SAMPLES or one.backlog_octets > PACED_OCTETS:
                    one.backlog_octets -= len(one.backlog.popleft()[2])
                    self.dropped += 1
                return True
            if not one.is_paced:
                return False
            self._pulls.add(one.space, one.id, [(key, raw[5]) for raw in run], face.node.loop.now())
        face.machine.later_look()
        return True

    def _begin(self, one: Subscription, asked: _Asked) -> None:
        """What is stored has been read: it goes first, then what has come meanwhile, each sample once."""
        face = self._face
        with face.machine.lock:
            if face.subscriptions.get(one.space, one.id) is not one:
                return  # gone meanwhile
            samples: list[Waiting] = [
                (key, payload)
                for key, (_, payload) in sorted(asked.found.items())
                if one.where is None or one.where.takes(key, payload)
            ]
            for key, meta, payload in one.backlog or ():
                stored = asked.found.get(key)
                if stored is None or _stamp(meta) > stored[0]:
                    samples.append((key, payload))
            if one.is_paced:
                self._pulls.add(one.space, one.id, samples, face.node.loop.now())
            else:
                for key, payload in samples:
                    self._send(0, one.space, one.id, one.subject, key, payload, one.reliable, one)
            one.backlog = None  # last: whoever finds none has its samples sent at once
        face.machine.later_look()

    # -- pulls --------------------------------------------------------------------------------------------------------

    def asked(self, event: Arrived, now: float) -> None:
        """A Pull has come. Raises RuleBroken if there are too many."""
        face = self._face
        space, id = event.space, event.message.id
        with face.machine.lock:
            name = self._pulls.pull(event.conduit, space, event.message, now)
            if name is not None:
                subject = face.machine.neighbour.names.subject(space, id)
        if name is not None:
            own = self._own_answer(space, subject)
            if own is not None:
                self._fill(name, [one for one in own if self._may_have(one[0].partition("$")[0], one[1])])
            elif subject is None:
                self._fill(name, [])
            else:
                self._ask(
                    pattern_of(space, subject),
                    lambda asked: self._fill(name, self._stored(space, id, asked)),
                    tags=() if isinstance(subject, int) else subject.tags,
                )
        self.serve(now)

    def _stored(self, space: int, id: int, asked: _Asked) -> list[Waiting]:
        """What was found, by name, as far as the predicate of the selection lets it through."""
        where = self._face.filter_of(space, id)
        found = [(key, payload) for key, (_, payload) in sorted(asked.found.items())]
        return found if where is None else [one for one in found if where.takes(*one)]

    def _fill(self, name: Any, samples: list[Waiting]) -> None:
        face = self._face
        with face.machine.lock:
            self._pulls.fill(name, samples, face.node.loop.now())
        face.machine.later_look()

    def _may_have(self, key: str, payload: bytes) -> bool:
        """Whether access rules let this neighbour ask for a key, and have what is known of it."""
        guard = self._face.node.space.guard
        if guard is None:
            return True
        asks = guard.takes_query(self._face, Flow.INGRESS, key, QueryBody())
        return asks and guard.takes_answer(self._face, Flow.EGRESS, key, payload)

    def _own_answer(self, space: int, subject: Subject | None) -> list[Waiting] | None:
        """What a node itself says of a resource: its properties, its children, an id of it; None for other names."""
        resource = subject.resource if isinstance(subject, Selection) else subject
        if not isinstance(resource, Resource):
            return None
        face = self._face
        if resource.meta == "id":
            with face.machine.lock:
                plain = Resource(resource.scheme, resource.path)
                id = face.machine.neighbour.names.id_of(space, plain)
            return [] if id is None else [(f"{key_of(space, plain)}$id", vle(id))]
        if resource.meta == "ls":
            key = key_of(space, Resource(resource.scheme, resource.path))
            below = children(key, [*face.catalogue.names(), *face.machine.declared_keys()])
            found = [child for child in below if self._may_have(child, b"")]
            names = [
                str(Resource(self._face.machine.session.prefix, place[1].path)).encode()
                for one in found
                if (place := place_of(one)) is not None and isinstance(place[1], Resource)
            ]
            octets = vle(len(names)) + b"".join(vle(len(name)) + name for name in names)
            return [(f"{key}$ls", octets)] if names else []
        if resource.trivial and resource.path.endswith(PROPERTY):
            key = key_of(space, Resource(resource.scheme, resource.path.removesuffix(PROPERTY)))
            known = face.catalogue.get(key)
            return [(key_of(space, resource), b"\0" if known is None else known.properties)]
        return None

    # -- what is due --------------------------------------------------------------------------------------------------

    def serve(self, now: float) -> None:
        """Send what is due, as far as the outbox has room."""
        face = self._face
        with face.machine.lock:
            while not face.outbox.is_full(1):
                found = self._pulls.due(now, AT_ONCE)
                if not found:
                    return
                for due in found:
                    self._give(due)

    def _give(self, due: Due[Waiting]) -> None:
        subject = self._face.machine.neighbour.names.subject(due.space, due.id)
        one = self._face.subscriptions.get(due.space, due.id)
        for key, payload in due.samples:
            self._send(due.conduit, due.space, due.id, subject, key, payload, True, one)
        if due.ends:
            self._push(due.conduit, stream_entry(due.id, b"", reliable=True, prid=0, space=due.space), True)

    def _send(
        self,
        conduit: int,
        space: int,
        id: int,
        subject: Subject | None,
        key: str,
        payload: bytes,
        reliable: bool,
        to: Subscription | None,
    ) -> None:
        face = self._face
        resource = self._resource(key)
        if resource is None:
            face.subscriptions.unnamed += 1
            return
        known = face.catalogue.get(key)
        tags = () if known is None else known.tags
        address = face.subscriptions.address(to, space, id, subject, resource, tags)
        is_pulled = to is None or to.mode.pull
        if not address.id and isinstance(resource, Resource) and is_pulled and self._lend(conduit, space, resource):
            address = face.subscriptions.address(to, space, id, subject, resource, tags)
        self._push(conduit, (address.reliable if reliable else address.best_effort, payload), reliable)

    def _lend(self, conduit: int, space: int, resource: Resource) -> bool:
        """Give a resource an id of our own, so that a sample can be told to belong to the pull (Z18-PUL-04)."""
        m = self._generation.messages
        name = str(Resource(self._face.machine.session.prefix, resource.path, (), resource.meta)).encode()
        neighbour = self._face.machine.neighbour
        if self._lent >= EARLY_LENT or len(name) + ROOM_BESIDE > neighbour.room:
            return False
        self._lent += 1
        declare = m.Declare(0, (m.ResourceDecl(FIRST_LENT + 2 * self._lent, name),), committed=True)
        try:
            neighbour.ours.receive(conduit, space, neighbour.session.profile.received(declare))
        except RuleBroken:
            return False
        self._push(conduit, plain_entry(self._generation, declare, space=space), True)
        return True

    def _resource(self, key: str) -> Resource | int | None:
        base, dollar, meta = key.partition("$")
        place = place_of(base)
        if place is None or not dollar or isinstance(place[1], int):
            return None if place is None else place[1]
        return Resource(place[1].scheme, place[1].path, (), meta)

    def _push(self, conduit: int, entry: tuple[bytes, bytes], reliable: bool) -> None:
        face = self._face
        size = len(entry[0]) + len(entry[1])
        if face.outbox.push(conduit << 1 | reliable, entry, size, FORWARDED) == REFUSED:
            face.node.later(face.on_stalled)

    def next_deadline(self, now: float) -> float | None:
        """When `serve` has something to do."""
        if not len(self._pulls):
            return None
        due = self._pulls.next_deadline(now)
        # What is due now and has not been sent waits for room: acknowledgements bring that, and a look with them.
        return None if due is None or (due <= now and self._face.outbox.is_full(1)) else due

    # -- what is stored -----------------------------------------------------------------------------------------------

    def _ask(self, key: str, done: Callable[[_Asked], None], tags: tuple[str, ...] = ()) -> None:
        face = self._face

        def sifted(asked: _Asked) -> None:
            if tags:
                for known in list(asked.found):
                    if not tags_agree(tags, tags_of(face.catalogue.get(known), face.arrivals.stored_as(known))):
                        del asked.found[known]
            done(asked)

        with face.machine.lock:
            self._next += 1
            number = self._next
            self._asked[number] = _Asked(key, sifted)
        request = Request(number, cover(key), QueryTarget.BEST_MATCHING, QueryBody(), timeout_ms=STORE_MS)
        face.node.ask(face, request)

    def answered(self, message: Response | ResponseFinal) -> None:
        """A store answers; the space is locked."""
        asked = self._asked.get(message.id)
        if asked is None:
            return
        if isinstance(message, ResponseFinal):
            del self._asked[message.id]
            self.beyond += asked.beyond
            self._face.node.later(lambda: asked.done(asked))
            return
        body = message.body
        if isinstance(body, ErrorBody):
            self.store_errors += 1
            return
        meta, payload = (None, body) if isinstance(body, bytes) else (body.meta, body.payload)
        if is_deletion(meta) or not asked.has.matches(message.key):
            return
        stamp = _stamp(meta, UNKNOWN)
        before = asked.found.get(message.key)
        if before is not None and before[0] >= stamp:
            return
        more = len(payload) - (0 if before is None else len(before[1]))
        if asked.octets + more > EARLY_SNAPSHOT_BYTES:
            asked.beyond += 1
            return
        asked.octets += more
        asked.found[message.key] = (stamp, payload)


def _stamp(meta: bytes | None, default: tuple[int, bytes] = NEVER) -> tuple[int, bytes]:
    return read_stamp(meta)[:2] if meta is not None and has_timestamp(meta) else default


def _size(sample: Waiting) -> int:
    return len(sample[1]) + len(sample[0])
