"""Who reads a link: its own thread, or a thread of the user's that waits for what comes over it.

A thread that waits in `recv` is woken by the one that has read, and on an idle machine waking a thread takes longer
than all the rest of a message's way. So one who waits may take the *lead*: it reads the link itself, and what it reads
is for itself. The link's own thread steps back meanwhile. It takes the lead again when nobody has read for a moment
(`MOMENT`), so that question after question never wakes it; or at once, if there is something for others: a user's
thread runs no handler but its own.

The lead is offered by nodes with one link only (`Links`): who waits there cannot be waiting for another. With several
links it is taken by the thread that waits awake for all of them (`guarding.py`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from elea.io.errors import LinkClosed
from elea.io.lookout import Lookout
from elea.io.timers import monotonic
from elea.model.errors import SessionClosed

if TYPE_CHECKING:
    from elea.broker.links import Connection
    from elea.broker.node import Node
    from elea.io.link import SocketLink

__all__ = ["MOMENT", "Lead"]

MOMENT: Final = 0.001
"""Seconds without a reader after which the link's own thread reads again: the longest that anything waits unread."""

SHARED: Final = 1.0
"""Seconds in which a link is read by its own thread only, after it has brought something for others."""

LOST: Final = 1_000
"""Looks of a `MOMENT` each at a lead that is taken by nobody, after which it is: its thread was interrupted (control-C)
between taking the lead and saying so."""


class Lead:
    """The right to read one link, which its own thread has at first."""

    def __init__(self, connection: Connection) -> None:
        self.turns = 0
        """How often a thread of the user's has read."""
        self.fault: Exception | None = None
        """What went wrong in such a thread, for the link's own to deal with."""
        self._connection = connection
        self._node: Node = connection.links.node
        self._right = threading.Lock()
        self._right.acquire()
        self._wanted: object = None  # the channel somebody waits at, who would read himself
        self._shared_until = 0.0
        self._at_once = False  # the link's own thread is to go on without delay
        self._asleep = False  # it sleeps until it is woken, and not for a moment
        self._bell = threading.Lock()
        self._bell.acquire()
        self._reader = 0  # the thread that reads
        self._lookout: Lookout | None = None
        self._ended = False
        self.stepped_back = False
        """Whether the link's own thread does not have the lead."""

    # -- the link's own thread ----------------------------------------------------------------------------------------

    def is_wanted(self) -> bool:
        """Whether what is to be delivered now is for one who would rather have read it himself, and for nobody else.

        What has been read already would not wake him: while there is more of it the link's own thread goes on.
        """
        channel = self._wanted
        if channel is None or self._connection.reader.has_more:
            return False
        self._wanted = None
        if self._node.round.is_only_for(channel):
            return True
        self._shared_until = monotonic() + SHARED
        return False

    def step_back(self) -> bool:
        """Let others read; returns when this thread has the lead again, or False when the link has ended."""
        turns, lost = self.turns, 0
        self.stepped_back = True
        self._right.release()
        while not self._ended:
            self._bell.acquire(timeout=MOMENT)
            if self.turns != turns and not self._at_once:
                turns, lost = self.turns, 0
                continue
            if self._right.acquire(False) or lost >= LOST:
                self._at_once = self.stepped_back = False
                return True
            if not self._reader:
                lost += 1
                continue
            # Somebody has been reading, or waiting for something to read, for a while: he will say when he is done.
            self._asleep = True
            if self._reader and not self._ended:
                self._bell.acquire()
            self._asleep = False
        return False

    def end(self) -> None:
        """The link has ended: nobody need read any more."""
        self._ended = True
        self._ring()
        if self._right.acquire(False):  # else the one who reads sees to it, a thread of the user's or `close`
            self.close()
            self._right.release()

    def close(self) -> None:
        """Give back what the system gave; only with the lead, and when the link has ended."""
        if self._lookout is not None:
            self._lookout.close()
            self._lookout = None

    def _ring(self) -> None:
        if self._bell.locked():
            with contextlib.suppress(RuntimeError):  # somebody else was faster
                self._bell.release()

    # -- threads that wait --------------------------------------------------------------------------------------------

    def take(self, channel: object) -> bool:
        """Take the lead to read what comes for a channel, if that is possible now; `give_back` must follow."""
        if self._shared_until and monotonic() < self._shared_until:
            return False
        if not self._right.acquire(False):
            self._wanted = channel
            return False
        if self._ended or self._at_once or not self._is_ready():
            self._hand_over()
            return False
        self._reader = threading.get_ident()
        return True

    def _is_ready(self) -> bool:
        """Whether there is something to wait with; not if the link has just ended, or no more files can be open."""
        if self._lookout is None:
            link: SocketLink = self._connection.link  # type: ignore[assignment]  # see `has_lookout`
            try:
                self._lookout = Lookout(link)
            except (LinkClosed, OSError):
                return False
        return True

    def forget(self, channel: object) -> None:
        """Nobody waits at a channel any more."""
        if self._wanted is channel:
            self._wanted = None

    def read(self, channel: object, done: Callable[[], bool], until: float | None) -> None:
        """Read until something has come for the channel, something for others, a `release`, or its time."""
        lookout = self._lookout
        assert lookout is not None
        while not done():
            now = monotonic()
            if until is not None and until <= now:
                return
            if self._read_once(channel, now) or (
                lookout.wait(None if until is None else until - now) and self._read_once(channel, None)
            ):
                if self._at_once:
                    return

    def _read_once(self, channel: object, now: float | None) -> bool:
        """Take what has arrived, or comes soon after `now`; `_at_once` is set if the link's own thread has to see to
        the rest. Whether there was anything to take.
        """
        readers = self._node.readers
        readers.add(self._reader)
        try:
            return self._receive(channel, now)
        except Exception as error:  # noqa: BLE001 - whatever it is, the link's own thread says and ends it
            self.fault, self._at_once = error, True
            return True
        except BaseException as error:
            # An interrupt: nobody knows how much of a batch was taken.
            self.fault = SessionClosed(text=f"reading was interrupted by {type(error).__name__}: {error}")
            self._at_once = True
            raise
        finally:
            readers.discard(self._reader)

    def _receive(self, channel: object, now: float | None) -> bool:
        intake = self._connection.intake
        assert intake is not None  # who waits has asked or subscribed, over a session
        reader, round_ = intake.reader, intake.round
        came = int(reader.fill_ready()) if now is None else reader.fill_awake(now)
        if came < 0:
            return False
        if not came:
            self._at_once = True  # the end of the link is for its own thread to see
            return True
        batch = reader.cut()
        if batch is None:
            return True
        if intake.take(batch) or reader.has_more:
            self._at_once = True
        if not round_.bring_only(channel):
            self._shared_until = monotonic() + SHARED
            self._at_once = True
            round_.make_soon()
        return True

    def give_back(self) -> None:
        """The end of `take`, also if that was in vain or interrupted."""
        if self._reader == threading.get_ident():
            self._reader = 0
            self.turns += 1
            self._hand_over()

    def _hand_over(self) -> None:
        self._right.release()
        if self._asleep or self._at_once:
            self._ring()
        if self._ended:
            self.end()

    def release(self) -> None:
        """Let the one who reads look whether he is done: as one rings for those who wait by a lock."""
        lookout = self._lookout
        if lookout is not None and self._reader != threading.get_ident():
            lookout.call()

    # -- the guard of the node (`guarding.py`) ------------------------------------------------------------------------

    def enter(self) -> bool:
        """Take the lead of a ward for a moment; `leave` must follow."""
        if not self._right.acquire(False):
            return False
        if self._ended or self._at_once:
            self._hand_over()
            return False
        self._reader = threading.get_ident()
        return True

    def look(self) -> bool:
        """Receive what has come; False if nothing has. The end of a link is left to its own thread."""
        try:
            came = self._connection.reader.look()
        except Exception as error:  # noqa: BLE001 - as below
            self.fault, came = error, 0
        if came == 0:
            self._at_once = True
        return came > 0

    def take_all(self) -> None:
        """Take what was received, up to something that is to be delivered; the ward's own thread sees to the rest."""
        intake, vigil = self._connection.intake, self._connection.vigil
        assert intake is not None  # who talks has a session
        reader = intake.reader
        vigil.ended(monotonic())
        vigil.hits += 1
        self.turns += 1
        try:
            batch = reader.cut()
            closed = batch is not None and intake.take(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, the link's own thread says and ends it
            self.fault, self._at_once = error, True
            return
        if closed or (intake.round and reader.has_more) or not reader.talks(monotonic()):
            self._at_once = True

    def leave(self) -> None:
        """The end of `enter`."""
        self._reader = 0
        self._hand_over()

    def dismiss(self) -> None:
        """The guard goes to sleep: the link's own thread is to read."""
        self._at_once = True
        self._ring()
