"""Acknowledged samples that threads put at the same time: what comes while others are on their way goes together.

It is the group commit once more, on the side of the writers. The first threads send at once, so that a thread alone
waits no longer than before; those that come meanwhile are sent by one of them when an answer has come.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from elea.api.putgroups import Alone, Group, Lane, Outcome
from elea.model.errors import EleaError, EncodeError
from elea.model.limits import PUTS_BYTES, PUTS_SAMPLES
from elea.wire.puts import Given

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.api.storeclient import StoreClient

__all__ = ["PutCollector"]

LEADERS: Final = 2
"""Groups on their way at once: while a store syncs one the next is already there."""


class _Waiter:
    """A thread that waits: for its outcome, or to be the one who sends for itself and others."""

    __slots__ = ("given", "group", "lane", "outcome", "turn")

    def __init__(self, lane: Lane, given: Given) -> None:
        self.lane = lane
        self.given = given
        self.outcome: Outcome | None = None
        self.group: list[_Waiter] | None = None
        """Whom it sends for; itself is the first."""
        self.turn = threading.Lock()
        self.turn.acquire()


class PutCollector:
    """The samples that threads of one session put."""

    def __init__(self, session: Session, storing: StoreClient) -> None:
        self._session = session
        self._storing = storing
        self._lock = threading.Lock()
        self._due: list[_Waiter] = []  # empty unless all leaders are on their way
        self._leaders = 0

    def put(self, lane: Lane, given: Given) -> Outcome:
        """Send a sample, with others if there are any, and wait for what comes of it."""
        me = _Waiter(lane, given)
        with self._lock:
            if self._leaders < LEADERS:
                self._leaders += 1
                me.group = [me]
            else:
                self._due.append(me)
        try:
            if me.group is None:
                me.turn.acquire()
            if me.group is not None:
                self._send(me.group)
        except BaseException:  # somebody pressed control-C
            with self._lock:
                if me in self._due:
                    self._due.remove(me)
            raise
        finally:
            if me.group is not None:
                self._tell(me.group, [Alone(None)] * len(me.group))
                self._hand_over()
        return me.outcome or Alone(None)

    def _send(self, members: list[_Waiter]) -> None:
        group = Group(self._session, self._storing.kept, members[0].lane)
        self._tell(members, self._outcomes(group, [one.given for one in members]))

    @staticmethod
    def _tell(members: list[_Waiter], outcomes: list[Outcome]) -> None:
        """Let those go on who have no outcome yet."""
        for one, outcome in zip(members, outcomes, strict=True):
            if one.outcome is None:
                one.outcome = outcome
                if one is not members[0]:
                    one.turn.release()

    def _outcomes(self, group: Group, given: list[Given]) -> list[Outcome]:
        storing = self._storing
        while True:
            try:
                call = group.prepare(given)
            except EncodeError:  # one by one it is found out whose it is
                return [Alone(None)] * len(given)
            told = threading.Lock()
            told.acquire()
            storing.calls.add(call)
            try:
                call.send(told.release)
                told.acquire()
            except EleaError as error:
                call.fail(error)
            except BaseException:
                call.cancel()
                raise
            finally:
                storing.calls.discard(call)
            found = group.judge()
            if not isinstance(found, float):
                return found
            storing.closing.wait(found)

    def _hand_over(self) -> None:
        """Let one of those who wait send for all that go its way."""
        with self._lock:
            if not self._due:
                self._leaders -= 1
                return
            count, octets, first = 0, 0, self._due[0]
            for one in self._due:
                if one.lane != first.lane or count >= PUTS_SAMPLES or octets >= PUTS_BYTES:
                    break  # the others keep their place behind it
                count += 1
                octets += len(one.given[1] or b"")
            first.group = self._due[:count]
            del self._due[:count]
            first.turn.release()
