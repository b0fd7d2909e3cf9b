"""A session and what both nodes have declared in it: transactions, results, names, announcements.

It takes the Declares out of what a session hands on and gives the changes they make; data and pulls pass.
Spec: zenoh-2018 §5.7, Z18-DAT-01.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from elea.model.errors import DeclarationRejected, RuleBroken
from elea.protocol.early.announcements import Announcements
from elea.protocol.early.declarations import Change, Declarations, Status
from elea.protocol.early.declarer import Declarer, declares
from elea.protocol.early.names import Names, Subject
from elea.protocol.early.numbered import plain_entry, vle
from elea.protocol.early.rules import check_declaration, declared_id
from elea.protocol.early.session import Arrived, Event, Opened, Session

__all__ = ["Neighbour"]

Done = Callable[[DeclarationRejected | None], None]


class Neighbour:
    """The other node of a session.

    Args:
        judge: as that of `Declarations`.
        is_wanted: a broker says by it whether others subscribe to something; publishers are told then.
    """

    def __init__(
        self,
        session: Session,
        *,
        judge: Callable[[int, Any, Any], int] = lambda space, declaration, named: Status.SUCCESS,
        is_wanted: Callable[[int, Subject], bool] | None = None,
    ) -> None:
        self.session = session
        generation = session.generation
        self.ours = Declarations(generation)
        self.theirs = Declarations(generation, mode=session.offer.commit_mode, judge=judge, others=self.ours)
        self.names = Names(self.theirs, self.ours)
        self._declarer: Declarer | None = None
        self._announcements = (
            None if is_wanted is None else Announcements(generation, self.theirs, self.names, is_wanted)
        )
        self._results: dict[int, deque[bytes]] = {}

    def receive(self, packet: bytes, now: float) -> list[Event | Change]:
        """Take one packet: what happened, and what changed by it."""
        found: list[Event | Change] = []
        for event in self.session.receive(packet, now):
            if isinstance(event, Opened):
                self._declarer = Declarer(
                    self.session.generation,
                    mode=event.agreement.peer_commit_mode,
                    room=self._room(0),
                    alone=self.session.profile.one_declaration,
                )
            if not isinstance(event, Arrived) or type(event.message).__name__ != "Declare":
                found.append(event)
                continue
            try:
                found += self._declared(event)
            except RuleBroken as error:
                found.append(self.session.fail(error))
                break
        return found

    def _declared(self, event: Arrived) -> list[Change]:
        self._count_answered(event.conduit)
        message = event.message
        if not self.session.profile.declares_publishers:
            message = self._with_publishers(message)
        changes, result, results = self.theirs.receive(event.conduit, event.space, message)
        if result is not None:
            generation = self.session.generation
            entry = plain_entry(generation, generation.messages.Declare(0, (result,)), space=event.space)
            self._results.setdefault(event.conduit, deque()).append(entry[1])
            self.session.watched.add(id(entry[1]))
            self.session.send(entry, conduit=event.conduit)
        if results and self._declarer is not None:
            for one in results:
                self._declarer.result(one)
            self._declare_more()
        if any(change.kind in ("publisher", "resource", "selection") for change in changes):
            self.announce()
        return changes

    def _with_publishers(self, message: Any) -> Any:
        """As if a publisher had been declared with each resource."""
        m = self.session.generation.messages
        listed: list[Any] = []
        for one in message.declarations:
            listed.append(one)
            if isinstance(one, m.ResourceDecl):
                listed.append(m.PublisherDecl(one.rid))
        return message._replace(declarations=tuple(listed))

    def _count_answered(self, conduit: int) -> None:
        """A commit is answered when its result has left; whether it arrived cannot be told from a lost AckNack."""
        waiting = self._results.get(conduit)
        if waiting:
            while waiting and id(waiting[0]) not in self.session.watched:
                waiting.popleft()
                self.theirs.answered(conduit)

    # -- our own ------------------------------------------------------------------------------------------------------

    def declare(self, declarations: Sequence[Any], done: Done = lambda error: None, *, space: int = 0) -> None:
        """Declare something as one transaction; `done` is told how it ended. The session must be open.

        Raises:
            RuleBroken: a declaration could not be right for anybody.
        """
        assert self._declarer is not None
        # With names as the papers have them, however this node writes them to the other.
        meant = tuple(map(self.session.profile.declared, declarations))
        for one in meant:
            check_declaration(one)

        def accepted(error: DeclarationRejected | None) -> None:
            if error is None:
                try:
                    message = self.session.generation.messages.Declare(0, meant, committed=True)
                    self.ours.receive(0, space, message)
                except RuleBroken:  # the other node takes anything, but these ids would mean nothing here
                    error = DeclarationRejected(declared_id(declarations[0]), Status.INVALID)
            done(error)

        self._declarer.declare(declarations, accepted, space=space)
        self._declare_more()

    def _declare_more(self) -> None:
        assert self._declarer is not None
        for entry in self._declarer.take():
            self.session.send(entry)

    @property
    def room(self) -> int:
        """Octets of a Declare that fits a packet."""
        return self._room(0)

    def announce(self) -> None:
        """Subscribers elsewhere may have changed: tell the publishers here."""
        if self._announcements is None or not self.session.is_open:
            return
        generation = self.session.generation
        for space, listed in self._announcements.review().items():
            alone = self.session.profile.one_declaration
            for entry in declares(generation, listed, room=self._room(0), space=space, committed=True, alone=alone):
                self.session.send(entry)

    def _room(self, conduit: int) -> int:
        """Octets of an entry that fits a packet: the number comes in addition, the octet of its size goes."""
        own = self.session.conduit(conduit)
        return self.session.offer.mtu - len(own.marker) - len(vle((1 << own.reliable.sn_bits) - 1)) + 1
