"""The space of one node: what its neighbours have declared and want to know, and where data and queries go.

`Space` takes control messages from faces and sends others; it knows no bytes, no sockets and no clock. What differs
between client, peer and router is in `regions`. Spec: zenoh-1 sections 9.3, 13 to 15, 17.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.model import keytext
from elea.model.encoding import Encoding
from elea.model.errors import InvalidKeyExpr, InvalidPredicate, InvalidResource, LimitReached
from elea.model.limits import CACHED_KEY_CHARS, MAX_DENIED, MAX_QUERIES, PREDICATES_DECLARED
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.values import replaced
from elea.space.announcements import Announcements
from elea.space.entities import Declarations, is_complete_for
from elea.space.face import (
    Control,
    Declare,
    Entity,
    Face,
    Final,
    Flow,
    Interest,
    InterestDone,
    InterestMode,
    Kinds,
    Region,
    Request,
    Response,
    ResponseFinal,
    Undeclare,
)
from elea.space.ignored import Ignored
from elea.space.interests import Asked, Interests
from elea.space.neighbour import Neighbour
from elea.space.queries import Queries
from elea.space.questions import ErrorBody
from elea.space.routes import Routes, Seen
from elea.space.snapshot import Snapshot, take_snapshot
from elea.space.upstream import Upstream, Wanted

if TYPE_CHECKING:
    from elea.space.guard import Guard

__all__ = ["Ignored", "Space"]

_log = logger("elea.space")


class Space:
    """Everything a node knows of its neighbours' entities."""

    def __init__(self, role: Role, node_id: bytes) -> None:
        self.role = role
        self.node_id = node_id
        self.ignored = Ignored()
        self.guard: Guard | None = None
        """What judges messages, if there are rules; `watch` sets it."""
        self._denied: dict[Neighbour, dict[tuple[Entity, int], Declare]] = {}
        self._neighbours: dict[Face, Neighbour] = {}
        self._north: list[Neighbour] = []  # few, where clients are many: nothing may look at all neighbours each time
        self._joined = 0
        self._declarations = Declarations()
        self._interests = Interests()
        self._upstream = Upstream()
        self._announcements = Announcements(self._declarations, self._interests, self._north)
        self._routes = Routes(self._declarations, self._upstream, self._north, is_valid=self._is_valid)
        self._queries = Queries()

    def set_interest_timeout(self, seconds: float) -> None:
        """After how long a gateway that says nothing is taken to have answered."""
        self._upstream.timeout = seconds

    # -- neighbours ------------------------------------------------------------------------------------------

    def add_face(self, face: Face) -> None:
        """A neighbour is there: tell it, and ask of it, what our role demands at the start."""
        if face in self._neighbours:
            raise ValueError(f"face {face!r} is there already: remove it first")
        self._joined += 1
        neighbour = self._neighbours[face] = Neighbour(face, self.role, self._joined)
        neighbour.guard = self.guard
        if neighbour.north:
            self._north.append(neighbour)
        if neighbour.gateway:
            for asked in self._interests.standing():
                interest = Interest(asked.id, asked.mode, asked.kinds, asked.key, asked.aggregate)
                if self.guard is None or self.guard.takes_interest(face, Flow.EGRESS, interest):
                    self._upstream.renew(asked, neighbour)
        if neighbour.north:
            self._announcements.introduce(neighbour)
        if neighbour.equal:
            neighbour.send(Final(0))
        self._routes.changed()

    def remove_face(self, face: Face, now: float) -> None:
        """A neighbour is gone, and with it all it has declared, asked and promised."""
        neighbour = self._neighbours.pop(face, None)
        if neighbour is None:
            return
        if neighbour.north:
            self._north.remove(neighbour)
        # First nothing more is said to it, then the others hear what its going means.
        self._announcements.drop(neighbour)
        for asked in self._interests.drop(neighbour):
            self._upstream.withdraw(asked)
        for record in self._declarations.drop(neighbour):
            self._announcements.spread(record, neighbour, grown=False)
        for asked in self._upstream.drop(neighbour):
            self._complete(asked)
        self._queries.drop(neighbour)
        self._denied.pop(neighbour, None)
        if self.guard is not None:
            self.guard.forget(face)
        self._routes.changed()

    def faces(self) -> list[Face]:
        """All neighbours, and the local face."""
        return list(self._neighbours)

    def watch(self, guard: Guard | None) -> None:
        """From now on these rules hold, or none: also for what was declared, asked and told before."""
        self.guard = guard
        for neighbour in self._neighbours.values():
            neighbour.guard = guard
        denied, self._denied = self._denied, {}
        for neighbour in list(self._neighbours.values()):
            for name, (record, complete, predicates) in self._declarations.of(neighbour):
                if guard is not None and not guard.may_declare(neighbour.face, record.entity, record.key):
                    number = 0 if isinstance(name, str) else name
                    self._on_undeclare(neighbour, Undeclare(record.entity, number, record.key))
                    aside = Declare(record.entity, number, record.key, complete, predicates=predicates)
                    self._put_aside(neighbour, aside)
            for message in denied.get(neighbour, {}).values():
                self._on_declare(neighbour, message)
        for asked in self._interests.standing():
            interest = Interest(asked.id, asked.mode, asked.kinds, asked.key, asked.aggregate)
            if guard is not None and not guard.takes_interest(asked.neighbour.face, Flow.INGRESS, interest):
                self._end(asked)
        self._announcements.judge_again()
        self._routes.changed()

    def _put_aside(self, source: Neighbour, message: Declare) -> None:
        """A declaration that rules deny: taken when other rules allow it."""
        held = self._denied.setdefault(source, {})
        if len(held) < MAX_DENIED and len(message.key) <= CACHED_KEY_CHARS:
            held[message.entity, message.id] = message

    def knows(self, face: Face) -> bool:
        """Whether a face has been added and not removed."""
        return face in self._neighbours

    def greeted(self, face: Face) -> bool:
        """Whether a peer has told us all it had when we met; always true of neighbours that do no such thing."""
        neighbour = self._neighbours[face]
        return neighbour.greeted or not neighbour.equal

    # -- messages --------------------------------------------------------------------------------------------

    def receive(self, face: Face, message: Control, now: float) -> None:
        """Take a message from a neighbour or from the node's own session."""
        neighbour = self._neighbours.get(face)
        if neighbour is None:
            self.ignored.unknown_face += 1
            return
        match message:
            case Request():
                self._on_request(neighbour, message, now)
            case Response() | ResponseFinal():
                self.answer(face, message)
            case Declare():
                self._on_declare(neighbour, message)
            case Undeclare():
                self._on_undeclare(neighbour, message)
            case Interest():
                self._on_interest(neighbour, message, now)
            case InterestDone():
                self._on_interest_done(neighbour, message)
            case _:
                self._on_final(neighbour, message)

    def answer(self, face: Face, message: Response | ResponseFinal) -> None:
        """Take an answer; `receive` takes it too, but there are many, and this is the shorter way."""
        neighbour = self._neighbours.get(face)
        if neighbour is None:
            self.ignored.unknown_face += 1
        elif type(message) is Response:
            if self.guard is not None and not self._takes_answer(self.guard, neighbour, message):
                return
            if not self._queries.respond(neighbour, message):
                self.ignored.unknown_query += 1
        elif not self._queries.finish(neighbour, message.id):
            self.ignored.unknown_query += 1

    def _takes_answer(self, guard: Guard, source: Neighbour, message: Response) -> bool:
        if not guard.takes_answer(source.face, Flow.INGRESS, message.key, message.body):
            return False
        asker = self._queries.asker(source, message.id)
        return asker is None or guard.takes_answer(asker.face, Flow.EGRESS, message.key, message.body)

    def ask(self, face: Face, message: Request, now: float, seen: Seen | None) -> None:
        """Take a query after `look_for_query`; `receive` takes it too, and looks itself."""
        neighbour = self._neighbours.get(face)
        if neighbour is None:
            self.ignored.unknown_face += 1
        else:
            self._on_request(neighbour, message, now, seen)

    def _on_declare(self, source: Neighbour, message: Declare) -> None:
        if not self._is_valid(message.key):
            return
        guard = self.guard
        if guard is not None and not guard.may_declare(source.face, message.entity, message.key):
            self._put_aside(source, message)
            return
        if message.predicates and not self._are_predicates(message.predicates):
            message = replaced(message, predicates=())
        wanted = self._upstream.find(source, message.interest_id)
        if wanted is not None and wanted.current_only and message.entity is Entity.TOKEN:
            self._relay_token(wanted, message)
            return
        try:
            record, changed = self._declarations.declare(source, message)
        except LimitReached as limit:
            self.ignored.too_many_declarations += 1
            _warn("declaration", self.ignored.too_many_declarations, source, limit)
            return
        if wanted is not None:
            # Before the rest is told, so that who waits for answers gets it as one.
            for asked in wanted.waiting:
                if asked.asks_for(message.entity):
                    self._announcements.answer_with(asked, record)
        if changed:
            self._announcements.spread(record, source, grown=True)
            self._routes.changed(message.entity)

    def _relay_token(self, wanted: Wanted, message: Declare) -> None:
        """A token that answers a question about now: passed on and not kept, since we never hear of its end."""
        for asked in wanted.waiting:
            is_told = asked.neighbour.may_hear(message.entity, message.key)
            if is_told and (message.entity, message.key) not in asked.answered:
                asked.answered.add((message.entity, message.key))
                asked.neighbour.send(Declare(message.entity, 0, message.key, interest_id=asked.id))

    def _on_undeclare(self, source: Neighbour, message: Undeclare) -> None:
        if self._denied and self._denied.get(source, {}).pop((message.entity, message.id), None) is not None:
            return
        record = self._declarations.undeclare(source, message)
        if record is not None:
            self._announcements.spread(record, source, grown=False)
            self._routes.changed(message.entity)
        elif message.entity is Entity.TOKEN and message.key is not None and source.gateway:
            guard = self.guard
            is_taken = guard is None or guard.may_declare(source.face, Entity.TOKEN, message.key)
            if is_taken and self._is_valid(message.key):
                self._announcements.spread_unknown_loss(message.key, source)
        else:
            self.ignored.unknown_declaration += 1

    def _on_interest(self, source: Neighbour, message: Interest, now: float) -> None:
        if source.north:
            self.ignored.unasked_interest += 1
            return
        if message.key is not None and not self._is_valid(message.key):
            source.send(Final(message.id))
            return
        if message.mode is InterestMode.CURRENT and message.kinds & ~Kinds.KEYEXPRS != Kinds.TOKENS:
            self.ignored.current_interest += 1
            return
        if self.guard is not None and not self.guard.takes_interest(source.face, Flow.INGRESS, message):
            source.send(Final(message.id))
            return
        known = self._interests.find(source, message.id)
        if known is not None:
            self._end(known)
        asked = Asked(source, _effective(source, message))
        try:
            self._interests.add(asked)
        except LimitReached as limit:
            self.ignored.too_many_interests += 1
            _warn("interest", self.ignored.too_many_interests, source, limit)
            # Without an answer its publishers send in doubt. One about now only has someone waiting for its end.
            if not asked.future:
                source.send(Final(message.id))
            return
        if asked.current:
            self._announcements.answer(asked)
        self._upstream.ask(asked, self._gateways_for(message), now)
        if not asked.waiting:
            self._complete(asked)

    def _gateways_for(self, message: Interest) -> list[Neighbour]:
        found = [neighbour for neighbour in self._north if neighbour.gateway]
        guard = self.guard
        if guard is None:
            return found
        return [one for one in found if guard.takes_interest(one.face, Flow.EGRESS, message)]

    def _on_interest_done(self, source: Neighbour, message: InterestDone) -> None:
        asked = self._interests.find(source, message.id)
        if asked is None:
            self.ignored.unknown_interest += 1
        else:
            self._end(asked)

    def _end(self, asked: Asked) -> None:
        self._interests.end(asked)
        self._upstream.withdraw(asked)
        self._routes.changed()

    def _complete(self, asked: Asked) -> None:
        """All that exists has been told."""
        self._announcements.finish(asked)
        if not asked.future:
            self._end(asked)

    def _on_final(self, source: Neighbour, message: Final) -> None:
        wanted = self._upstream.find(source, message.interest_id)
        if wanted is not None:
            for asked in self._upstream.finalise(wanted):
                self._complete(asked)
        elif source.equal and message.interest_id == 0:
            source.greeted = True
        else:
            self.ignored.unexpected_final += 1
            return
        self._routes.changed()

    def _on_request(self, source: Neighbour, message: Request, now: float, seen: Seen | None = None) -> None:
        if self._queries.is_open(source, message.id):
            self.ignored.repeated_query += 1
            return
        if self._queries.count(source) >= MAX_QUERIES:
            limit = LimitReached("MAX_QUERIES", MAX_QUERIES)
            self.ignored.too_many_queries += 1
            _warn("query", self.ignored.too_many_queries, source, limit)
            refusal = ErrorBody(str(limit).encode(), Encoding.ZENOH_STRING)
            source.send(Response(message.id, "", refusal, message.qos, (self.node_id, 0)))
            source.send(ResponseFinal(message.id, message.qos))
            return
        guard = self.guard
        if guard is not None and not guard.takes_query(source.face, Flow.INGRESS, message.key, message.body):
            denial = guard.refusal(message.key, message.body)
            if denial is not None:
                source.send(Response(message.id, message.key, denial, message.qos, (self.node_id, 0)))
            source.send(ResponseFinal(message.id, message.qos))
            return
        destinations = self._routes.destinations(source, message.key, message.target, seen)
        if guard is not None:
            key, body = message.key, message.body
            destinations = tuple([n for n in destinations if guard.takes_query(n.face, Flow.EGRESS, key, body)])
        self._queries.ask(source, message, destinations, now)

    def _is_valid(self, key: str) -> bool:
        try:
            keytext.check(key)
        except (InvalidKeyExpr, InvalidResource):
            self.ignored.invalid_key += 1
            return False
        return True

    def _are_predicates(self, texts: tuple[str, ...]) -> bool:
        from elea.model.predicate import Predicate  # not with the module: most nodes never see one

        try:
            for text in texts:
                Predicate.of(text)
        except InvalidPredicate as error:
            self.ignored.invalid_predicate += 1
            if self.ignored.invalid_predicate % 1000 == 1:
                _log.warning("predicate ignored: problem=%s ignored=%d", error, self.ignored.invalid_predicate)
            return False
        return len(texts) <= PREDICATES_DECLARED

    # -- questions -------------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """Changes whenever `targets` may answer differently from before."""
        return self._routes.generation

    def look(self, face: Face, key: str) -> Seen | None:
        """The long part of `targets`, of a valid key. It needs no lock: others may change the space meanwhile."""
        known = self._routes.known.get(face)
        return None if known is not None and key in known else self._routes.look(Entity.SUBSCRIBER, key)

    def look_for_query(self, face: Face, message: Request) -> Seen | None:
        """The long part of `ask`, of a valid key. It needs no lock either."""
        neighbour = self._neighbours.get(face)
        return None if neighbour is None else self._routes.look_for_query(neighbour, message.key, message.target)

    def targets(self, face: Face, key: str, seen: Seen | None = None) -> tuple[Face, ...]:
        """Who gets a sample on `key` that comes from `face`; never `face` itself, and nobody on an invalid key."""
        # The common case of every sample: two look-ups, 0.1 µs.
        try:
            return self._routes.known[face][key]
        except KeyError:
            return self._routes.targets(self._neighbours[face], key, seen)

    def filters(self, key: str) -> dict[Face, tuple[str, ...]]:
        """Who wants only samples on `key` for which one of some predicates holds, as far as everything is known."""
        return self._routes.filters(key) if self._declarations.filtered else {}

    def matching(self, face: Face, entity: Entity, key: str, *, complete: bool = False) -> bool:
        """Whether someone but `face` is known to have an entity that intersects `key`; with `complete`, all of it."""
        neighbour = self._neighbours[face]
        for record in self._declarations.intersecting(entity, key):
            if is_complete_for(record, neighbour, key) if complete else record.heard_by(neighbour):
                return True
        return False

    def cancel(self, face: Face, request_id: int) -> None:
        """Who asked a query wants no more answers, and gets none."""
        self.ignored.unknown_query += not self._queries.cancel(self._neighbours[face], request_id)

    def asker(self, face: Face, request_id: int) -> Face | None:
        """Who waits for the answer to a query that was passed on to `face`; None when nobody does any more."""
        neighbour = self._neighbours.get(face)
        source = None if neighbour is None else self._queries.asker(neighbour, request_id)
        return None if source is None else source.face

    def declared(self, entity: Entity) -> list[str]:
        """The keys that entities of a kind are declared on."""
        return [record.key for record in self._declarations.all(entity)]

    def snapshot(self) -> Snapshot:
        """What is known now."""
        return take_snapshot(self._neighbours, self._declarations, self._interests)

    # -- time ------------------------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When `on_deadline` has something to do."""
        queries, upstream = self._queries.next_deadline(), self._upstream.next_deadline()
        if queries is None or upstream is None:
            return upstream if queries is None else queries
        return min(queries, upstream)

    def on_deadline(self, now: float) -> None:
        """Stop waiting for those who were to answer by now."""
        self._queries.expire(now)
        for asked in self._upstream.expire(now):
            self._complete(asked)


def _warn(what: str, count: int, source: Neighbour, limit: LimitReached) -> None:
    """A refusal that the other node may not notice; for its first, second, fourth … time."""
    if count & (count - 1) == 0:
        _log.warning(
            "%s refused: node=%s problem=%s refused=%d", what, NodeId(source.face.subject.node_id), limit, count
        )


def _effective(source: Neighbour, message: Interest) -> Interest:
    """The interest as it will be answered."""
    aggregate = message.aggregate and message.key is not None and source.region is not Region.PEERS
    return Interest(message.id, message.mode, message.kinds, message.key, aggregate)
