"""The node's own session, as the space sees it: the programs of this process.

It holds what they declared and what they wait for. Handlers are called through mailboxes, never inside the space.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elea.broker.delivery import Mailbox
from elea.model import keyexpr
from elea.model.qos import QueryTarget, Role
from elea.space.face import (
    Control,
    Declare,
    Entity,
    Final,
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
from elea.space.keytree import KeyTree

if TYPE_CHECKING:
    from elea.broker.node import Node

__all__ = ["Answering", "Asked", "OwnSession", "Watching"]


@dataclass(slots=True)
class Answering:
    """A queryable of this process; its mailbox gets `Asked`."""

    id: int
    key: str
    complete: bool
    box: Mailbox
    here: bool
    elsewhere: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A query for a queryable of this process: how to answer it, and how to say that there is no more."""

    request: Request
    respond: Callable[[Response], None]
    done: Callable[[], None]


@dataclass(slots=True)
class Asking:
    """A query of this process that is not finished: `left` is how many parties may still answer."""

    box: Mailbox
    left: int


@dataclass(slots=True)
class Watching:
    """An interest of this process: told of declarations that match."""

    id: int
    key: str
    kinds: Kinds
    box: Mailbox
    future: bool

    def wants(self, message: Declare | Undeclare) -> bool:
        """Whether a message is about what it watches."""
        if not self.kinds & KIND_OF[message.entity]:
            return False
        return message.key is None or keyexpr.intersects(self.key, message.key)


KIND_OF = {Entity.SUBSCRIBER: Kinds.SUBSCRIBERS, Entity.QUERYABLE: Kinds.QUERYABLES, Entity.TOKEN: Kinds.TOKENS}


class OwnSession:
    """The `Face` of region LOCAL."""

    region = Region.LOCAL

    def __init__(self, node: Node) -> None:
        self.node = node
        self.changes = 0  # of the subscribers of this process
        self._ids = itertools.count(1)
        self._subscribers: KeyTree[list[tuple[Mailbox, bool, bool]]] = KeyTree()
        self._queryables: KeyTree[list[Answering]] = KeyTree()
        self._asking: dict[int, Asking] = {}
        self._watching: dict[int, Watching] = {}
        self._tokens: dict[int, str] = {}
        self._lock = threading.Lock()

    @property
    def node_id(self) -> bytes:
        return self.node.node_id

    @property
    def role(self) -> Role:
        return self.node.role

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
                        self.node.round.add(watching.box, message)
            case Declare(interest_id=interest_id) | Final(interest_id=interest_id):
                found = self._watching.get(interest_id or 0)
                if found is not None:
                    self.node.round.add(found.box, message)

    def _asked(self, request: Request) -> None:
        """A query from elsewhere: every matching queryable here gets it, and all together are one answerer."""

        def end() -> None:
            self.node.control(self, ResponseFinal(request.id, request.qos))

        def respond(response: Response) -> None:
            self.node.control(self, response)

        matching = self.queryables(request.key, request.target, here=False)
        if not matching:
            self.node.later(end)
            return
        pending = Countdown(len(matching), end)
        for answering in matching:
            self.node.round.add(answering.box, Asked(request, respond, pending.done))

    def _finished(self, number: int) -> None:
        """One party has answered all it will; after the last the asker is told."""
        with self._lock:
            asking = self._asking.get(number)
            if asking is None:
                return
            asking.left -= 1
            if asking.left > 0:
                return
            del self._asking[number]
        self.node.round.add(asking.box, ResponseFinal(number))

    # -- what the process declares ------------------------------------------------------------------------------------

    def subscribe(self, key: str, box: Mailbox, *, here: bool = True, elsewhere: bool = True) -> int:
        """Samples on `key` go to `box`: those of this process if `here`, those of others if `elsewhere`."""
        number = next(self._ids)
        with self._lock:
            self._subscribers.add(key, [*(self._subscribers.get(key) or []), (box, here, elsewhere)])
            self.changes += 1
        if elsewhere:
            self.node.control(self, Declare(Entity.SUBSCRIBER, number, key))
        self.node.refresh()
        self._tell(Declare(Entity.SUBSCRIBER, -number, key))
        return number

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
            self.node.control(self, Undeclare(Entity.SUBSCRIBER, number))
        self.node.refresh()
        self._tell(Undeclare(Entity.SUBSCRIBER, -number, key))

    def answer(self, key: str, box: Mailbox, *, complete: bool, here: bool = True, elsewhere: bool = True) -> Answering:
        """Queries on `key` go to `box`: those of this process if `here`, those of others if `elsewhere`."""
        answering = Answering(next(self._ids), key, complete, box, here, elsewhere)
        with self._lock:
            self._queryables.add(key, [*(self._queryables.get(key) or []), answering])
        if elsewhere:
            self.node.control(self, Declare(Entity.QUERYABLE, answering.id, key, complete))
        self._tell(Declare(Entity.QUERYABLE, -answering.id, key, complete))
        return answering

    def stop_answering(self, answering: Answering) -> None:
        """The opposite of `answer`."""
        with self._lock:
            left = [other for other in self._queryables.get(answering.key) or [] if other is not answering]
            if left:
                self._queryables.add(answering.key, left)
            else:
                self._queryables.remove(answering.key)
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
                self.node.round.add(watching.box, message)
        self.node.deliver_soon()

    def watch(self, key: str, kinds: Kinds, mode: InterestMode, box: Mailbox) -> Watching:
        """Declarations of these kinds that intersect `key` go to `box`, the end of the present ones too."""
        watching = Watching(next(self._ids), key, kinds, box, mode is not InterestMode.CURRENT)
        self._watching[watching.id] = watching
        if mode is not InterestMode.FUTURE:
            for number, token in list(self._tokens.items()):
                message = Declare(Entity.TOKEN, -number, token, interest_id=watching.id)
                if watching.wants(message):
                    self.node.round.add(box, message)
        self.node.control(self, Interest(watching.id, mode, kinds, key))
        return watching

    def stop_watching(self, watching: Watching) -> None:
        if self._watching.pop(watching.id, None) is not None:
            self.node.control(self, InterestDone(watching.id))

    # -- queries ------------------------------------------------------------------------------------------------------

    def ask(self, request: Callable[[int], Request], box: Mailbox, *, here: bool = True, elsewhere: bool = True) -> int:
        """Send a query; its answers and its end go to `box`."""
        number = next(self._ids)
        message = request(number)
        matching = self.queryables(message.key, message.target, here=True) if here else []
        # One more party than there are: the end must not come before everybody has been asked.
        self._asking[number] = Asking(box, 1 + elsewhere + bool(matching))

        def end() -> None:
            self._finished(number)
            self.node.deliver_soon()

        def respond(response: Response) -> None:
            self._answered(response)
            self.node.deliver_soon()

        pending = Countdown(len(matching), end)
        for answering in matching:
            self.node.round.add(answering.box, Asked(message, respond, pending.done))
        if elsewhere:
            self.node.control(self, message)
        end()
        return number

    def forget(self, number: int) -> bool:
        """The asker wants no more answers; False if it has had all."""
        with self._lock:
            return self._asking.pop(number, None) is not None

    def _answered(self, response: Response) -> None:
        asking = self._asking.get(response.id)
        if asking is not None:
            self.node.round.add(asking.box, response)

    def boxes(self, key: str, *, here: bool) -> list[Mailbox]:
        """The subscribers of this process that samples on `key` go to, from here or from elsewhere."""
        with self._lock:
            found = [entry for entries in self._subscribers.intersecting(key) for entry in entries]
        return [box for box, from_here, from_elsewhere in found if (from_here if here else from_elsewhere)]

    def queryables(self, key: str, target: QueryTarget, *, here: bool) -> list[Answering]:
        """The queryables of this process that a query on `key` goes to, from here or from elsewhere."""
        with self._lock:
            found = [one for many in self._queryables.intersecting(key) for one in many]
        complete = target is QueryTarget.ALL_COMPLETE
        return [one for one in found if (one.here if here else one.elsewhere) and (one.complete or not complete)]


class Countdown:
    """Counts down to an end that comes once."""

    __slots__ = ("_end", "_left", "_lock")

    def __init__(self, count: int, end: Callable[[], None]) -> None:
        self._left = count
        self._end = end
        self._lock = threading.Lock()

    def done(self) -> None:
        with self._lock:
            self._left -= 1
            last = self._left == 0
        if last:
            self._end()
