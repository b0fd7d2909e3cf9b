"""The node's own session, as the space sees it: the programs of this process.

It holds what they declared and what they wait for. Handlers are called through mailboxes, never inside the space.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from elea.io.dispatch import Mailbox
from elea.model import keyexpr, keytext
from elea.model.keyexpr import KeyExpr
from elea.model.limits import CACHED_KEY_CHARS, CACHED_ROUTES
from elea.model.qos import QueryTarget
from elea.node.querytimeouts import Timeouts
from elea.space.face import (
    Control,
    Declare,
    Entity,
    Interest,
    InterestDone,
    InterestMode,
    Kinds,
    Region,
    Request,
    Response,
    ResponseFinal,
    Subject,
    Undeclare,
)
from elea.space.face import (
    Final as FinalMessage,
)
from elea.space.keytree import KeyTree
from elea.space.questions import AnswerBody, QueryBody
from elea.space.way import NOWHERE, Encoder
from elea.wire.timestampstack import RECEIVE, ROUTE, SEND, CollectedStamps

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.node.route import Keeper

__all__ = ["EXPIRED", "Asked", "LocalFace", "LocalInterest", "LocalQueryable", "aggregate_of"]

EXPIRED: Final = object()
"""What an asker gets when the time for its query is over."""


class LocalQueryable:
    """A queryable of this process; its mailbox gets `Asked`."""

    __slots__ = ("box", "complete", "elsewhere", "here", "id", "key")

    def __init__(self, id: int, key: str, complete: bool, box: Mailbox, here: bool, elsewhere: bool) -> None:
        self.id = id
        self.key = key
        self.complete = complete
        self.box = box
        self.here = here
        self.elsewhere = elsewhere


class Asked:
    """A query for queryables of this process, who together are one answerer: `done` is called once by each."""

    __slots__ = ("_done", "_here", "_local", "_parties", "_received", "expr", "request")

    def __init__(self, local: LocalFace, request: Request, matching: MatchingQueryables, here: bool) -> None:
        self.request = request
        self.expr = matching.expr
        self._local = local
        self._here = here
        self._parties = len(matching.answering)
        self._received: CollectedStamps | None = None
        self._done = itertools.count(1)

    @property
    def here(self) -> bool:
        """Whether this process asks itself."""
        return self._here

    def received(self) -> CollectedStamps | None:
        """The timestamps it has collected up to here, if that was asked for."""
        if self._received is None and self.request.stack is not None:
            self._received = self._local.node.instruments.marked(self.request.stack, RECEIVE)
        return self._received

    def respond(self, response: Response) -> None:
        """Answer."""
        if self.request.stack is not None:
            self._send_stack(response)
        if self._here:
            self._local._answered(response)
            self._local.node.deliver_soon()
        else:
            self._local.node.answer(self._local, response)

    def _send_stack(self, response: Response) -> None:
        """The answer goes on collecting where the question has stopped."""
        instruments, stack = self._local.node.instruments, self.received()
        if stack is not None:
            sent = instruments.marked(stack, SEND)
            response.stack = sent if self._here else instruments.marked(sent, ROUTE)

    def done(self) -> None:
        """Say that there is no more; when all have said so, the asker is told."""
        if next(self._done) != self._parties:  # the counter gives no number to two threads
            return
        request = self.request
        if self._here:
            self._local._finished(request.id)
            self._local.node.deliver_soon()
        else:
            self._local.node.answer(self._local, ResponseFinal(request.id, request.qos))


class MatchingQueryables:
    """The queryables of this process that queries on one key go to."""

    __slots__ = ("answering", "expr")

    def __init__(self, key: str, answering: list[LocalQueryable]) -> None:
        self.expr = KeyExpr(key)  # made once for all queries on the key
        self.answering = answering


class LocalInterest:
    """An interest of this process: told of declarations that match."""

    __slots__ = ("box", "future", "id", "key", "kinds")

    def __init__(self, id: int, key: str, kinds: Kinds, box: Mailbox, future: bool) -> None:
        self.id = id
        self.key = key
        self.kinds = kinds
        self.box = box
        self.future = future

    def wants(self, message: Declare | Undeclare) -> bool:
        """Whether a message is about what it watches."""
        if not self.kinds & KIND_OF[message.entity]:
            return False
        return message.key is None or keytext.intersects(self.key, message.key)


KIND_OF = {Entity.SUBSCRIBER: Kinds.SUBSCRIBERS, Entity.QUERYABLE: Kinds.QUERYABLES, Entity.TOKEN: Kinds.TOKENS}


class LocalFace:
    """The `Face` of region LOCAL."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._subject = Subject(node.node_id, node.role)
        self.changes = 0  # of the subscribers of this process
        self.aggregated_subscribers: tuple[str, ...] = ()
        """Expressions that are declared to others in place of the subscribers they include."""
        self.aggregated_publishers: tuple[str, ...] = ()
        """Expressions that others are asked about in place of the keys of publishers they include."""
        self._aggregates: dict[str, tuple[int, int]] = {}  # those declared: number, and for how many subscribers
        self._ids = itertools.count(1)
        self._subscribers: KeyTree[list[tuple[Mailbox, bool, bool]]] = KeyTree()
        self._queryables: KeyTree[list[LocalQueryable]] = KeyTree()
        self._keepers: list[tuple[str, Keeper]] = []
        self._asking: dict[int, Mailbox] = {}
        self._left: dict[int, int] = {}  # how many may still answer, where that is more than one
        self._known: dict[tuple[str, QueryTarget, bool], MatchingQueryables] = {}
        self.timeouts = Timeouts(node.loop, self._asking, self._expired)
        self._watching: dict[int, LocalInterest] = {}
        self._tokens: dict[int, str] = {}
        self._lock = threading.Lock()

    @property
    def subject(self) -> Subject:
        return self._subject

    @property
    def region(self) -> Region:
        return Region.LOCAL

    @property
    def encoder(self) -> Encoder:
        return NOWHERE  # its samples go to mailboxes

    @property
    def has_priorities(self) -> bool:
        return False

    def await_room(self, qos: int, timeout: float) -> bool:
        return True  # whoever answers waits for room in the mailbox

    @property
    def lacks(self) -> Mapping[str, str]:
        return {}

    def counters(self) -> Mapping[str, int]:
        return {}

    # -- what the space says ------------------------------------------------------------------------------------------

    def send(self, message: Control) -> None:
        """Leave a message for its handler; it is brought when the space has been left."""
        match message:
            case Request():
                self._asked(message)
            case Response():
                self._answered(message)
            case ResponseFinal():
                self._finished(message.id)
            case Declare(interest_id=None) | Undeclare():
                for watching in list(self._watching.values()):
                    if watching.wants(message):
                        self.node.dispatch.add(watching.box, message)
            case Declare(interest_id=interest_id) | FinalMessage(interest_id=interest_id):
                found = self._watching.get(interest_id or 0)
                if found is not None:
                    self.node.dispatch.add(found.box, message)

    def _asked(self, request: Request) -> None:
        """A query from elsewhere: every matching queryable here gets it."""
        matching = self._matching(request.key, request.target, here=False)
        if not matching.answering:
            self.node.later(lambda: self.node.answer(self, ResponseFinal(request.id, request.qos)))
            return
        asked = Asked(self, request, matching, False)
        for answering in matching.answering:
            if not self.node.dispatch.add(answering.box, asked, _octets(request.body)):
                self.node.later(asked.done)  # it will not answer, so nobody need wait for it

    def _finished(self, number: int) -> None:
        """One party has answered all it will; after the last the asker is told."""
        with self._lock:
            left = self._left.get(number)
            if left is not None and left > 1:
                self._left[number] = left - 1
                return
            self._left.pop(number, None)
            box = self._asking.pop(number, None)
        if box is not None:
            # Beyond the limits: an asker with a full mailbox would else never hear that there is no more.
            self.node.dispatch.add(box, ResponseFinal(number), beyond=True)

    # -- what the process declares ------------------------------------------------------------------------------------

    def subscribe(
        self, key: str, box: Mailbox, *, here: bool = True, elsewhere: bool = True, predicates: tuple[str, ...] = ()
    ) -> int:
        """Samples on `key` go to `box`: those of this process if `here`, those of others if `elsewhere`.

        Others are told the predicates, for one of which samples are wanted; whoever reads the box looks itself.
        """
        number = next(self._ids)
        with self._lock:
            self._subscribers.add(key, [*(self._subscribers.get(key) or []), (box, here, elsewhere)])
            self.changes += 1
        if elsewhere:
            self._announce(number, key, predicates)
        self.node.refresh()
        self._tell(Declare(Entity.SUBSCRIBER, -number, key))
        return number

    def _announce(self, number: int, key: str, predicates: tuple[str, ...]) -> None:
        """Declare a subscriber to others, or the expression that stands for it and more. Spec: zenoh-1 §13.5."""
        whole = aggregate_of(self.aggregated_subscribers, key)
        if whole is not None:
            with self._lock:
                declared, count = self._aggregates.get(whole) or (next(self._ids), 0)
                self._aggregates[whole] = (declared, count + 1)
            if count:
                return
            number, key, predicates = declared, whole, ()
        self.node.control(self, Declare(Entity.SUBSCRIBER, number, key, predicates=predicates))

    def _withdraw(self, number: int, key: str) -> None:
        """The opposite of `_announce`."""
        whole = aggregate_of(self.aggregated_subscribers, key)
        if whole is not None:
            with self._lock:
                declared, count = self._aggregates[whole]
                if count > 1:
                    self._aggregates[whole] = (declared, count - 1)
                    return
                del self._aggregates[whole]
            number = declared
        self.node.control(self, Undeclare(Entity.SUBSCRIBER, number))

    def unsubscribe(self, number: int, key: str, box: Mailbox, *, elsewhere: bool = True) -> None:
        """The opposite of `subscribe`."""
        with self._lock:
            left = [other for other in self._subscribers.get(key) or [] if other[0] is not box]
            if left:
                self._subscribers.add(key, left)
            else:
                self._subscribers.remove(key)
            self.changes += 1
        if elsewhere:
            self._withdraw(number, key)
        self.node.refresh()
        self._tell(Undeclare(Entity.SUBSCRIBER, -number, key))

    def keep(self, key: str, keeper: Keeper) -> None:
        """Samples of others on `key` go to `keeper`, in the thread that read them; those of this process do not."""
        with self._lock:
            self._keepers.append((key, keeper))
            self.changes += 1
        self.node.control(self, Declare(Entity.SUBSCRIBER, next(self._ids), key))
        self.node.refresh()

    def keepers(self, key: str) -> tuple[Keeper, ...]:
        """The stores of this process that samples on `key` go to."""
        if not self._keepers:
            return ()
        return tuple(keeper for kept, keeper in self._keepers if keyexpr.intersects(kept, key))

    def answer(
        self, key: str, box: Mailbox, *, complete: bool, here: bool = True, elsewhere: bool = True
    ) -> LocalQueryable:
        """Queries on `key` go to `box`: those of this process if `here`, those of others if `elsewhere`."""
        answering = LocalQueryable(next(self._ids), key, complete, box, here, elsewhere)
        with self._lock:
            self._queryables.add(key, [*(self._queryables.get(key) or []), answering])
            self._known.clear()
        if elsewhere:
            self.node.control(self, Declare(Entity.QUERYABLE, answering.id, key, complete))
        self._tell(Declare(Entity.QUERYABLE, -answering.id, key, complete))
        return answering

    def stop_answering(self, answering: LocalQueryable) -> None:
        """The opposite of `answer`."""
        with self._lock:
            left = [other for other in self._queryables.get(answering.key) or [] if other is not answering]
            if left:
                self._queryables.add(answering.key, left)
            else:
                self._queryables.remove(answering.key)
            self._known.clear()
        if answering.elsewhere:
            self.node.control(self, Undeclare(Entity.QUERYABLE, answering.id))
        self._tell(Undeclare(Entity.QUERYABLE, -answering.id, answering.key))

    def declare_token(self, key: str) -> int:
        """A token of this process, which its own watchers see too."""
        number = next(self._ids)
        self._tokens[number] = key
        self.node.control(self, Declare(Entity.TOKEN, number, key))
        self._tell(Declare(Entity.TOKEN, -number, key))
        return number

    def undeclare_token(self, number: int) -> None:
        """The opposite of `declare_token`."""
        key = self._tokens.pop(number)
        self.node.control(self, Undeclare(Entity.TOKEN, number))
        self._tell(Undeclare(Entity.TOKEN, -number, key))

    def _tell(self, message: Declare | Undeclare) -> None:
        """Something of this process came or went: the space does not tell us so ourselves.

        The ids are below zero, those of others above.
        """
        for watching in list(self._watching.values()):
            if watching.future and watching.wants(message):
                self.node.dispatch.add(watching.box, message)
        self.node.deliver_soon()

    def watch(self, key: str, kinds: Kinds, mode: InterestMode, box: Mailbox) -> LocalInterest:
        """Declarations of these kinds that intersect `key` go to `box`, the end of the present ones too."""
        watching = LocalInterest(next(self._ids), key, kinds, box, mode is not InterestMode.CURRENT)
        self._watching[watching.id] = watching
        if mode is not InterestMode.FUTURE:
            for number, token in list(self._tokens.items()):
                message = Declare(Entity.TOKEN, -number, token, interest_id=watching.id)
                if watching.wants(message):
                    self.node.dispatch.add(box, message)
        self.node.control(self, Interest(watching.id, mode, kinds, key))
        return watching

    def stop_watching(self, watching: LocalInterest) -> None:
        if self._watching.pop(watching.id, None) is not None:
            self.node.control(self, InterestDone(watching.id))

    # -- queries ------------------------------------------------------------------------------------------------------

    def ask(self, request: Request, box: Mailbox, timeout: float, *, here: bool = True, elsewhere: bool = True) -> int:
        """Send a query and give it its number; its answers and its end, or `EXPIRED`, go to `box`."""
        number = request.id = next(self._ids)
        matching = self._matching(request.key, request.target, here=True).answering if here else []
        self._asking[number] = box
        if elsewhere and not matching:  # nobody but the space has to say that there is no more
            self.timeouts.add(timeout, number)
            self.node.ask(self, request if request.stack is None else self.node.instruments.routed(request))
            return number
        # One more party than there are: the end must not come before everybody has been asked.
        self._left[number] = 1 + elsewhere + bool(matching)
        self.timeouts.add(timeout, number)
        if matching:
            asked = Asked(self, request, self._matching(request.key, request.target, here=True), True)
            for answering in matching:
                if not self.node.dispatch.add(answering.box, asked, _octets(request.body)):
                    asked.done()
        if elsewhere:
            self.node.ask(self, request if request.stack is None else self.node.instruments.routed(request))
        self._finished(number)
        self.node.deliver_soon()
        return number

    def is_asking(self, number: int) -> bool:
        """Whether a query of this process still waits for answers."""
        return number in self._asking

    def forget(self, number: int) -> bool:
        """The asker wants no more answers; False if it has had all."""
        with self._lock:
            self._left.pop(number, None)
            return self._asking.pop(number, None) is not None

    def _expired(self, number: int) -> None:
        with self._lock:
            self._left.pop(number, None)
            box = self._asking.pop(number, None)
        if box is not None:
            self.node.dispatch.add(box, EXPIRED, beyond=True)
            self.node.deliver_soon()

    def _answered(self, response: Response) -> None:
        box = self._asking.get(response.id)
        if box is not None:
            # Replies are not dropped: who brought this one waits, once it is out of the space, until there is room.
            self.node.dispatch.add(box, response, _octets(response.body), beyond=True)
            if box.is_full():
                self.node.crowded(lambda: self.node.loop.hold(box) or box.wait_for_room())

    def _matching(self, key: str, target: QueryTarget, *, here: bool) -> MatchingQueryables:
        """The same as `queryables`, remembered until one is declared or undeclared."""
        name = (key, target, here)
        found = self._known.get(name)
        if found is None:
            with self._lock:  # nothing found before a change may be remembered after it
                found = MatchingQueryables(key, self._queryables_of(key, target, here))
                if len(key) <= CACHED_KEY_CHARS:
                    if len(self._known) >= CACHED_ROUTES:
                        self._known.clear()
                    self._known[name] = found
        return found

    def boxes(self, key: str, *, here: bool) -> list[Mailbox]:
        """The subscribers of this process that samples on `key` go to, from here or from elsewhere."""
        with self._lock:
            found = [entry for entries in self._subscribers.intersecting(key) for entry in entries]
        return [box for box, from_here, from_elsewhere in found if (from_here if here else from_elsewhere)]

    def queryables(self, key: str, target: QueryTarget, *, here: bool) -> list[LocalQueryable]:
        """The queryables of this process that a query on `key` goes to, from here or from elsewhere."""
        with self._lock:
            return self._queryables_of(key, target, here)

    def _queryables_of(self, key: str, target: QueryTarget, here: bool) -> list[LocalQueryable]:
        found = [one for many in self._queryables.intersecting(key) for one in many]
        complete = target is QueryTarget.ALL_COMPLETE
        return [one for one in found if (one.here if here else one.elsewhere) and (one.complete or not complete)]


def aggregate_of(aggregated: tuple[str, ...], key: str) -> str | None:
    """The first of some expressions that includes a key."""
    for whole in aggregated:
        if keyexpr.includes(whole, key):
            return whole
    return None


def _octets(body: QueryBody | AnswerBody) -> int:
    """What a query or an answer carries."""
    payload = body if isinstance(body, bytes) else body.payload
    return 0 if payload is None else len(payload)
