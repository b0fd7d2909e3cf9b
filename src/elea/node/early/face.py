"""One running session with a node of an early dialect: what it says to the space, and what the space says to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import DeclarationRejected
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.resource import ZENOH_SCHEME, Resource, Selection
from elea.node.early.arrivals import Arrivals
from elea.node.early.asking import Asking
from elea.node.early.declaring import OwnDeclarations
from elea.node.early.keys import key_of
from elea.node.early.pulling import Pulling
from elea.node.early.subscriptions import Address, Subscription, Subscriptions
from elea.node.early.wanted import Wanted
from elea.node.outboxface import OutboxFace
from elea.protocol.early.conduit import Arrived
from elea.protocol.early.declarations import Change, durability_of
from elea.protocol.early.names import Subject as Named
from elea.space.face import (
    Control,
    Declare,
    Entity,
    Interest,
    InterestDone,
    InterestMode,
    Kinds,
    Puller,
    Region,
    Request,
    Response,
    ResponseFinal,
    Subject,
    Undeclare,
)
from elea.space.face import Final as FinalMessage
from elea.space.regions import is_equal, is_gateway, is_north
from elea.wire.details import RawSample

if TYPE_CHECKING:
    from elea.io.outbox import Outbox
    from elea.node.early.catalogue import Catalogue, Known
    from elea.node.early.encoder import EarlyEncoder
    from elea.node.early.filters import Filter
    from elea.node.early.machine import EarlyMachine
    from elea.node.node import Node

__all__ = ["EarlyFace"]

_log = logger("elea.node")


LACKS: Final = (
    "a queryable",
    "a liveliness token",
    "a deletion",
    # Requests with parameters, to a store; what is durable says so itself, by a tag.
    "a put that is stored or acknowledged by a request",
    "a read of what a log has, or its history",
    "a cursor",
)
"""What the dialects have no words for."""


class EarlyFace(OutboxFace):
    """A neighbour that speaks an early dialect.

    `machine.lock` guards the session, what is declared in it, and what waits to be pulled. Who holds it calls nothing
    of the node: the node's lock is taken first.
    """

    def __init__(
        self,
        node: Node,
        subject: Subject,
        outbox: Outbox,
        encoder: EarlyEncoder,
        machine: EarlyMachine,
        catalogue: Catalogue,
    ) -> None:
        super().__init__(node, subject, outbox, encoder)
        encoder.face = self
        self.machine = machine
        self.catalogue = catalogue
        neighbour = machine.neighbour
        generation = neighbour.session.generation
        self.dialect = generation.name
        self.deletions = 0
        """Deletions that were not for this node: its dialect has no word for them."""
        self.unspeakable = 0
        """Control messages of the space that its dialect has no words for: queryables, tokens."""
        session = neighbour.session
        self.subscriptions: Subscriptions = Subscriptions(
            neighbour.names, session.prefix, has_tags=session.profile.has_tags
        )
        self.pulling = Pulling(self)
        self.asking = Asking(self)
        self.arrivals = Arrivals(self)
        self.own = OwnDeclarations(
            neighbour,
            initiates=machine.initiates,
            on_change=self._own_changed,
            on_forget=lambda id: self.subscriptions.leave(0, id),
        )
        self.wanted = Wanted(self)
        self.is_north = is_north(node.role, self.region)
        self._is_gateway = is_gateway(node.role, self.region)

    # -- what the neighbour says --------------------------------------------------------------------------------------

    @property
    def lacks(self) -> Mapping[str, str]:
        return dict.fromkeys(LACKS, self.dialect)

    def puller(self, key: str) -> Puller | None:
        """Have samples of a key wait at the other node, if it is a broker."""
        return self.asking.puller(key) if self.is_north else None

    def happened(self, events: Sequence[Any], now: float) -> None:
        """What a packet brought, in its order."""
        for event in events:
            if isinstance(event, Change):
                self._changed(event, now)
            elif isinstance(event, Arrived):
                if type(event.message).__name__ == "Pull":
                    self.arrivals.flush()
                    self.pulling.asked(event, now)
                else:
                    self.arrivals.take(event)
        self.arrivals.flush()

    def _changed(self, change: Change, now: float) -> None:
        self.arrivals.flush()
        self.subscriptions.version += 1
        if change.kind == "resource" and change.now is not None:
            self._named(change.space, change.now)
        elif change.kind == "subscriber":
            if change.before is not None:
                self._unsubscribe(change.space, change.id)
            if change.now is not None:
                self._subscribe(change, now)
        elif change.kind == "publisher":
            subject = self.named(change.space, change.id)
            if change.now is None:
                self.wanted.unpublished(change.space, change.id)
            elif subject is not None:
                self.wanted.published(change.space, change.id, subject)
        elif change.now is None:
            self.pulling.forgotten(change.space, change.id)

    def _named(self, space: int, declaration: Any) -> None:
        """A resource has a name: what is said of it, the whole node knows."""
        resource = Resource.parse(declaration.resource.decode("ascii"))
        if resource.trivial and not resource.meta:
            durability = durability_of(resource, declaration.properties)
            self.catalogue.declared(key_of(space, resource), resource.tags, durability, declaration.properties)

    def named(self, space: int, id: int) -> Named | None:
        """What an id stands for."""
        with self.machine.lock:
            return self.machine.neighbour.names.subject(space, id)

    def _subscribe(self, change: Change, now: float) -> None:
        subject = self.named(change.space, change.id)
        if subject is None:
            return
        durability = durability_of(_resource_of(subject), change.now.properties)
        where = self.filter_of(change.space, change.id)
        one = self.subscriptions.add(change.space, subject, change.now, durability, where)
        self.pulling.subscribed(one, now)
        self.node.control(self, Declare(Entity.SUBSCRIBER, one.number, one.key))
        self.pulling.joined(one)

    def filter_of(self, space: int, id: int) -> Filter | None:
        """The predicate of a selection, which was looked at when it was declared; None if it has none."""
        with self.machine.lock:
            subject = self.machine.neighbour.names.subject(space, id)
            declared = self.machine.neighbour.theirs.space(space).selections.get(id)
        if not isinstance(subject, Selection) or subject.predicate is None:
            return None
        from elea.node.early.filters import Filter

        properties = None if declared is None else declared.properties
        self.node.schemas.begin()  # devices do not look again, so the types should be known beforehand
        return Filter(subject.predicate, properties, self.catalogue, self.node.schemas.passing)

    def _unsubscribe(self, space: int, id: int) -> None:
        gone = self.subscriptions.remove(space, id)
        if gone is not None:
            self.pulling.forgotten(space, id)
            self.node.control(self, Undeclare(Entity.SUBSCRIBER, gone.number, gone.key))

    # -- what the space says ------------------------------------------------------------------------------------------

    def send(self, message: Control) -> None:
        """Say it in the words of the dialect; what it has none for is counted."""
        match message:
            case Declare(entity=Entity.SUBSCRIBER):
                if self.is_north:
                    self._declare(message)
                else:
                    self.wanted.told(message)
            case Undeclare(entity=Entity.SUBSCRIBER):
                if self.is_north:
                    with self.machine.lock:
                        self.own.unsubscribe(message.id or message.key or 0)
                else:
                    self.wanted.untold(message)
            case Interest():
                self._interested(message)
            case InterestDone():
                with self.machine.lock:
                    self.own.unpublish(message.id)
            case Response() | ResponseFinal():
                self.pulling.answered(message)
            case Request():
                self.asking.ask(message)
            case FinalMessage():
                pass  # its own questions only, which have their answers
            case _:
                self.unspeakable += 1

    def _declare(self, message: Declare) -> None:
        with self.machine.lock:
            # Between brokers a declaration has no number, only a key.
            self.own.subscribe(message.id or message.key, message.key, lambda error: self._told_no(error, message.key))

    def _own_changed(self) -> None:
        self.subscriptions.version += 1

    def _told_no(self, error: DeclarationRejected | None, key: str) -> None:
        if error is not None:
            _log.warning("declaration refused: node=%s key=%s problem=%s", NodeId(self.subject.node_id), key, error)

    def _interested(self, message: Interest) -> None:
        """Programs here publish or ask: publishers are declared, and whoever waits is told when that is done."""

        def done(error: DeclarationRejected | None) -> None:
            self._told_no(error, message.key or "")
            if message.mode & InterestMode.CURRENT:
                # Not now: what came with the answer is to be known before.
                self.machine.after_packet(lambda: self.node.control(self, FinalMessage(message.id)))

        if message.kinds & Kinds.SUBSCRIBERS and message.key is not None:
            with self.machine.lock:
                if self.own.publish(message.id, message.key, done):
                    return
        if message.kinds & Kinds.QUERYABLES and message.key is not None:
            # It may have stored something of any key, and says so of none.
            answers = Declare(Entity.QUERYABLE, message.id, message.key, interest_id=message.id)
            self.node.later(lambda: self.node.control(self, answers))
        self.node.later(lambda: done(None))

    # -- samples out --------------------------------------------------------------------------------------------------

    def conduit(self, qos: int, reliable: bool) -> int:
        """Conduit 0; its reliable channel or the other."""
        return int(reliable)

    def addresses(self, key: str, known: Known | None) -> list[Address]:
        """How a sample of a key is written for those of this node that take it."""
        with self.machine.lock:
            return self.subscriptions.addresses(key, known, self.arrivals.stored_as(key), in_doubt=self._is_gateway)

    def put(self, address: Address, key: str, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> None:
        """Send a sample of this process; waits as its quality of service says. Raises LinkClosed."""
        run: Sequence[RawSample] = [(0, 0, b"", qos, meta, payload)]
        if not self._chosen(address, key, run) or self._is_kept(address.to, key, run):
            return
        reliable = reliable and (address.to is None or address.to.reliable)
        front = address.reliable if reliable else address.best_effort
        droppable = not reliable or not qos & 8
        self.outbox.put(int(reliable), (front, payload), len(front) + len(payload), droppable)

    def forward_run(self, address: Address, key: str, run: Sequence[RawSample], reliable: bool, led: bool) -> None:
        """Send samples of others: droppable ones are dropped when there is no room, the rest holds up its link."""
        run = self._chosen(address, key, run)
        if not run or self._is_kept(address.to, key, run):
            return
        reliable = reliable and (address.to is None or address.to.reliable)
        front = address.reliable if reliable else address.best_effort
        parts: list[bytes] = []
        size = 0
        for _, _, _, _, _, payload in run:
            parts += (front, payload)
            size += len(front) + len(payload)
        droppable = not reliable or not run[0][3] & 8
        self.forward(parts, size, int(reliable), droppable, len(run), led)

    def _chosen(self, address: Address, key: str, run: Sequence[RawSample]) -> Sequence[RawSample]:
        """The samples that a predicate lets through; of several predicates one is enough."""
        wheres = address.wheres
        if not wheres:
            return run
        if len(wheres) == 1:
            return wheres[0].chosen(key, run)
        taken = [set(map(id, where.chosen(key, run))) for where in wheres]
        return [raw for raw in run if any(id(raw) in one for one in taken)]

    def _is_kept(self, one: Subscription | None, key: str, run: Sequence[RawSample]) -> bool:
        """Whether a subscriber does not get samples now: it pulls, has windows, or reads what is stored."""
        if one is None or not one.has_to_wait:
            return False
        return self.pulling.keep(one, key, run)

    def is_copy(self, space: int, message: Any, key: str) -> bool:
        """Whether a sample under an id of ours came for another subscriber of ours too, which has the smaller id."""
        return not space and self.own.is_copy(getattr(message, "id", 0), key)

    def greet(self) -> None:
        """The face is part of the space: a peer tells of its subscribers when it likes, nothing is waited for.

        Another broker tells of subscribers to publishers only (Z18-DAT-01), so a broker is one, of everything.
        """
        if is_equal(self.node.role, self.region):
            self.node.control(self, FinalMessage(0))
        elif self.region is Region.ROUTERS and self.node.role is Role.ROUTER:
            with self.machine.lock:
                self.own.publish("**", "**")

    # -- counted ------------------------------------------------------------------------------------------------------

    def counters(self) -> Mapping[str, int]:
        return {
            **super().counters(),
            **self.machine.counters(),
            **self.arrivals.counters(),
            **self.pulling.counters(),
            "unnamed_samples": self.subscriptions.unnamed,
            "unspoken_deletions": self.deletions,
            "unspoken_declarations": self.unspeakable + self.own.inexpressible,
            "unspoken_queries": self.asking.refused,
            "rejected_declarations": self.own.rejected,
        }


def _resource_of(subject: Named) -> Resource:
    """The resource whose tags say how durable something is."""
    if isinstance(subject, Selection):
        return subject.resource
    return subject if isinstance(subject, Resource) else Resource(ZENOH_SCHEME, "unnamed")
