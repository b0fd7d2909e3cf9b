"""One link of a node from its opening to its end: read when the poller says so, timed, and ended once.

What is read and said on it, the machine of its dialect knows (`elea.node.dialect`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from elea.io.batchreader import BatchReader
from elea.io.link import Link
from elea.io.linkerrors import LinkError
from elea.io.loop import IN, OUT, SERVED, Pollable
from elea.io.outbox import Frame, Outbox
from elea.io.timers import Timer, thread_time
from elea.model.errors import EleaError, SessionClosed
from elea.model.logger import logger
from elea.model.values import mypyc_attr

if TYPE_CHECKING:
    from elea.io.halfopen import Place
    from elea.io.memorybudget import Share
    from elea.node.dialect import Dialect, Machine, Refusal
    from elea.node.links import Links
    from elea.space.face import Face

__all__ = ["Connection"]

_log = logger("elea.node")

RECEIVED_AT_ONCE: Final = 16
"""How often a link is read in one turn that must be read until nothing is left."""

BLOCKED_SECONDS: Final = 0.001
"""How long a link waits that shares a socket with others, when that takes no more."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection(Pollable):
    """A link, the machine that speaks over it, and, once a session is open, the face of the other node."""

    def __init__(
        self, links: Links, link: Link, dialect: Dialect, *, accepted: bool, timeout: float, locator: str = ""
    ) -> None:
        super().__init__()
        self.links = links
        self.link = link
        self.loop = links.loop
        self.dialect = dialect
        self.accepted = accepted
        self.locator = locator
        """Where we have connected to, or which of our own the other node has."""
        self.face: Face | None = None
        self.peer_id = b""  # known before the face is
        self.place: Place | None = None
        """Its place among the links that are opening, if the other node has opened it."""
        self.error: EleaError | None = None
        self.ready = threading.Event()
        self.ended = threading.Event()
        self._now = links.loop.now
        self._timer: Timer | None = None
        self._ending = threading.Lock()
        self._drains = link.drains
        self._pauses = 0
        self._put_aside: Share | None = None  # bytes received that wait for the end of a pause
        self._is_late = False
        self.machine: Machine = dialect.accept(self) if accepted else dialect.initiate(self, timeout)
        self.reader = self.machine.reader

    def start(self) -> None:
        """Begin to speak, and to read."""
        self.machine.start(self._now())
        if self.ended.is_set():
            return
        self.set_timer()
        self._say()
        self._begin_reading()

    # -- for the machine ----------------------------------------------------------------------------------------------

    def batches(self) -> BatchReader:
        """A reader of batches behind a length of two bytes, or of datagrams."""
        return BatchReader(self.link)

    def make_outbox(
        self,
        frame: Frame,
        *,
        room: int,
        count: Callable[[Sequence[bytes]], int] | None = None,
        name: Callable[[Sequence[bytes]], str] | None = None,
        told: bool = False,
    ) -> Outbox:
        """Where the face puts what it says: `frame` makes batches of `room` bytes of it."""
        settings = self.links.settings
        return Outbox(
            self.link,
            frame,
            self.loop,
            room=room,
            on_blocked=self._on_blocked,
            on_broken=self.end,
            wait_before_drop=settings.wait_before_drop,
            wait_before_drop_fragments=settings.wait_before_drop_fragments,
            wait_before_close=settings.wait_before_close,
            losses=self.links.losses,
            count=count,
            name=name,
            told=told,
        )

    def recognise(self, node_id: bytes) -> Refusal | None:
        """A link of ours: whom it leads to; why it is not to go on, if so."""
        self.peer_id = node_id
        return self.links.recognised(self)

    def admit(self, node_id: bytes) -> Refusal | None:
        """A link of another node, which wants a session: why it does not get one, if so."""
        return self.links.admit(self, node_id)

    def receive_later(self, batch: bytes, delay: float) -> None:
        """Have the machine take a batch again in a while; nothing else is read until then."""
        self.pause()

        def take() -> None:
            if self.ended.is_set():
                return
            try:
                self._receive(batch)
            except EleaError as error:
                self._give_up(error)
                return
            self.resume()

        self.loop.after(delay, take)

    def go_on_with(self, machine: Machine, first: bytes) -> None:
        """The link is another machine's from now on, which has not got its first bytes yet; by who reads it."""
        self.machine = machine
        self.reader = machine.reader
        self.reader.begin_with(first)
        machine.start(self._now())
        self.loop.soon(self._serve)

    def read_late(self) -> None:
        """Take what has come and was not read yet: perhaps it is this node that is late."""
        self._is_late = True
        try:
            self._serve()
        finally:
            self._is_late = False

    @property
    def is_paused(self) -> bool:
        """Whether nothing is read now, whatever the other node says."""
        return self._pauses > 0

    # -- reading ------------------------------------------------------------------------------------------------------

    def _begin_reading(self) -> None:
        descriptor = self.link.fileno()
        if descriptor >= 0:
            self.loop.add(self, descriptor)
        else:
            self.link.on_arrival = self._serve
        if self._drains:
            self.loop.soon(self._serve)  # what came with the end of a TLS handshake, the poller does not see

    def on_ready(self, mask: int) -> None:
        if mask & OUT and self.machine.outbox is not None:
            self.machine.outbox.on_writable()
        if mask & ~OUT:
            self._read()

    def _read(self) -> None:
        """Take what has arrived."""
        try:
            self._read_on()
        except EleaError as error:
            self._give_up(error)
        except Exception as error:  # noqa: BLE001 - whatever it was, the link must not stay half alive
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        _log.exception("reading failed: link=%s", self.link.remote)
        self.end(SessionClosed(text=f"internal error: {error!r}"))

    def _read_on(self) -> None:
        reader, loop = self.reader, self.loop
        for _ in range(RECEIVED_AT_ONCE):
            if self._pauses or self.ended.is_set():
                return
            came = reader.receive(loop.buffer, loop.view)
            if came < 0:
                return
            if not came:
                # A write may have ended it, which is about to be told: that is the reason then.
                outbox = self.machine.outbox
                broken = None if outbox is None else outbox.error
                self.end(broken or SessionClosed(text="the other node closed the link"))
                return
            if not self._take() or not self._drains:
                return
        loop.soon(self._serve)

    def _take(self) -> bool:
        """Take the batches that have been received; whether this thread may read on."""
        reader, loop = self.reader, self.loop
        while (batch := reader.cut()) is not None:
            begun = thread_time() if self.is_costly else 0.0
            try:
                self._receive(batch)
            finally:
                is_aside = not loop.is_led_here()
                if is_aside:
                    loop.rejoin()
            if is_aside:
                self.is_costly = not begun or thread_time() - begun > SERVED
                self.resume()  # it had to wait for something, and what is left has been kept
                return False
            if loop.dispatch and not loop.deliver(reader.has_more):
                if loop.is_led_here():
                    self.on_takeover()  # a thread of the user's, which leaves the rest to others
                return False
            if self._pauses or self.ended.is_set():
                self._keep()
                return False
            if loop.is_served_long():
                self.on_takeover()
                return False
        reader.keep()
        return True

    def on_takeover(self) -> None:
        self.reader.keep()
        self.loop.soon(self._serve)

    def _serve(self) -> None:
        """As if the poller had found it ready: take what was kept, and what has come since."""
        loop = self.loop
        if not loop.is_led_here():
            loop.soon(self._serve)
            return
        before = loop.current
        loop.begin_serving(self)
        try:
            self._go_on()
        finally:
            if loop.is_led_here():
                loop.current = before

    def _go_on(self) -> None:
        if self._pauses or self.ended.is_set():
            return
        if not self.reader.has_kept:
            self._read()
            return
        try:
            self.reader.load(self.loop.buffer, self.loop.view)
            if self._take() and (self._drains or self._is_late):
                self._read_on()
        except EleaError as error:
            self._give_up(error)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)

    def pause(self) -> None:
        self._pauses += 1
        self.loop.change(self, self.mask & ~IN)
        if not self.loop.in_turn:
            self._keep()

    def _keep(self) -> None:
        """Put aside what has been received. As long as it waits it counts: others with more in the making give way."""
        self.reader.keep()
        kept = self.reader.kept
        if kept and self._pauses and self._put_aside is None and not self.ended.is_set():
            share = self._put_aside = self.links.node.memory.share()
            share.take(kept)

    def _give_back(self) -> None:
        share, self._put_aside = self._put_aside, None
        if share is not None:
            share.close()

    def resume(self) -> None:
        self._pauses -= 1
        if not self._pauses:
            self._give_back()
            self.loop.change(self, self.mask | IN)
            self.loop.soon(self._serve)

    def _give_up(self, error: EleaError) -> None:
        """What came cannot be taken: say so if that is usual, and end."""
        with contextlib.suppress(LinkError):  # it may be gone already
            self.machine.refuse(error)
            self._say()
        self.end(error)

    def _receive(self, batch: bytes | memoryview) -> None:
        machine = self.machine
        machine.receive(batch, self._now())
        if self.face is None:
            self._advance()
        if machine.closed:
            self.end(SessionClosed(text="the other node closed the session"))

    def _on_blocked(self, blocked: bool) -> None:
        """The kernel takes no more, or does again."""
        outbox = self.machine.outbox
        if outbox is not None:
            if blocked:
                self.links.node.memory.blocked(outbox)
            else:
                self.links.node.memory.unblocked(outbox)
        if self.descriptor >= 0:
            self.loop.change(self, self.mask | OUT if blocked else self.mask & ~OUT)
        elif blocked and outbox is not None:
            self.loop.after(BLOCKED_SECONDS, outbox.on_writable)

    # -- opening ------------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """The machine has come further in opening a session."""
        face = self.face = self.machine.face
        self._say()
        if face is None:
            if self.place is not None:
                self.place.advance()
            self.set_timer()
            return
        # The last message of the handshake is out: the session begins.
        self._opened()

    def _opened(self) -> None:
        self.links.joined(self)
        self.set_timer()
        self.ready.set()

    def _say(self) -> None:
        for batch in self.machine.to_send(self._now()):
            self.link.send(batch)

    # -- time ---------------------------------------------------------------------------------------------------------

    def set_timer(self) -> None:
        """Have the machine called at its next deadline, which may have changed; in a turn of the loop."""
        when = self.machine.next_deadline()
        timer = self._timer
        if timer is not None:
            if timer.when == when and not timer.cancelled:
                return
            timer.cancel()
        self._timer = None if when is None or self.ended.is_set() else self.loop.at(when, self._on_deadline)

    def _on_deadline(self) -> None:
        if self.ended.is_set():
            return
        self._timer = None
        try:
            self.machine.on_deadline(self._now())
            if self.face is None:
                self._advance()
            else:
                self.set_timer()
        except EleaError as error:
            self._give_up(error)

    # -- the end ------------------------------------------------------------------------------------------------------

    def say_goodbye(self) -> None:
        """Tell the other node that the session ends, before everything that waits."""
        self.machine.say_goodbye()

    def close(self) -> None:
        """End the session; what still waits is lost, so close gracefully first."""
        self.end(SessionClosed(text="closed by this node"))

    def end(self, error: EleaError) -> None:
        """However it came: the link is closed, the space is told, once."""
        with self._ending:
            if self.ended.is_set():
                return
            self.error = error
            self.ended.set()
        if self._timer is not None:
            self._timer.cancel()
        self.loop.remove(self)
        self.link.close()
        if self.machine.outbox is not None:
            self.machine.outbox.close()
            self.links.node.memory.unblocked(self.machine.outbox)
        self._give_back()
        self.machine.on_end()
        self.links.left(self)
        self.ready.set()
