"""The sending half of a link: many threads put messages, one thread at a time frames and writes them.

`put` only appends to a list, which one `+=` does atomically. Whoever finds the link idle writes at once in its own
thread; on a busy link messages pile up while the previous write is under way and leave together as the next batch.
The thread that fills a batch writes it; what is left over is written by the leader of the loop, and so is what is put
during one of its turns. Nobody waits for the socket: what the kernel does not take leaves when it has room again, so
that the bounds below are the only waiting there is.

What a message or a batch is, the framing function knows; nothing here does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from elea.io.interrupts import Shield, is_main_thread
from elea.io.lane import Lane, Patience
from elea.io.link import Link, Octets, TcpLink, UnixLink, after
from elea.io.linkerrors import REASON_GENERIC, LinkClosed, LinkStalled
from elea.io.loop import Flushable, Loop
from elea.io.losses import Losses
from elea.io.timers import monotonic
from elea.io.waiters import Waiters
from elea.model.limits import CONTROL_BATCHES, QUEUE_BYTES
from elea.model.logger import logger

__all__ = ["CONTROL_BATCHES", "IDLE_SECONDS", "QUEUE_BYTES", "Batch", "Frame", "Outbox"]

Batch: TypeAlias = Sequence[Octets]
"""One batch, ready for the link with its length prefix, in pieces: large payloads need not be joined to anything."""

Frame: TypeAlias = Callable[[int, list[bytes], int, int], tuple[Sequence[Batch], int, int]]
"""`frame(conduit_key, queue, queued, most)` makes batches of the messages at the front of a queue.

It says how many parts it used, at least one message's and `most` at most, and their bytes; `queued` is about what all
of them have. None at all means that the other end is behind: it is asked again a moment later. It is called by one
thread at a time, in the order of sending, while others may append to the queue.
"""

IDLE_SECONDS: Final = 15e-6
"""A link that wrote nothing for this long is idle: the next message is written by its own thread, at once.

A write costs its caller 3 to 5 µs, waking the leader costs both threads 15 to 20 µs; below this distance between
messages collecting them is cheaper than either.
"""

PILED: Final = 524_288
"""Bytes written at once, if so many wait; on a busy link messages larger than a batch wait until they are so many.

Each write wakes the other end, which costs the writer up to 10 µs while a core is idle, and ends with the small packet
that a message of 64 KiB leaves over. A bare stream of them is 32 k/s one by one, 57 k/s by four and 66 k/s by eight.
"""

_CREDIT: Final = 3
"""Messages written at once although they follow closely, after an idle time: a reply and its end, say, are two."""

_ROUNDS: Final = 4
"""Writes a caller's thread does before it leaves the rest to the leader: nobody works for the others for ever."""

_OVERSHOOT: Final = 8
"""How far above the bound a conduit may be filled by those who cannot wait: 8 MiB of declarations and answers."""

_SLICE_BATCHES: Final = 4
"""How many batches of one large message are written together; then more urgent conduits get their turn."""

FORWARDED: Final = 64
"""How many times the bound forwarded samples may reach that must not be dropped: the links they come from are not read
meanwhile, but each may bring a batch more.
"""

_INTERPRETED: Final = __file__.endswith(".py")
"""Ctrl-C interrupts what is interpreted, between any two steps. Machine code it does not, so that only links that are
none need a `Shield`, which takes 1 µs.
"""

REFUSED: Final = 0
TAKEN: Final = 1
FULL: Final = 2

_log = logger("elea.io")


class Outbox(Flushable):
    """Queues, framing and writing of one link.

    Args:
        room: bytes of messages that fit one batch beside its headers; larger ones are framed alone.
        loop: whose leader writes what callers leave.
        on_blocked: told that the kernel takes no more, or does again: `on_writable` is to be called when there is room.
        on_broken: told once when the link broke or stalled, not on `close`; by the leader, so it may take any lock.
        wait_before_drop: how long a droppable message may wait for room.
        wait_before_drop_fragments: how much longer it may at most, if it is sent in fragments.
        wait_before_close: how long any other may, before the link is given up with reason 6.
        losses: what is lost here is counted there too.
        count: how many messages some parts are, where that is not one for every two.
        name: the key of the first message of some parts, for the log.
        told: whether `reopen` says when an end that was behind may be sent to again; otherwise it is asked.
    """

    def __init__(
        self,
        link: Link,
        frame: Frame,
        loop: Loop,
        *,
        room: int,
        on_blocked: Callable[[bool], None],
        on_broken: Callable[[LinkClosed], None] | None = None,
        queue_bytes: int = QUEUE_BYTES,
        wait_before_drop: float = 0.001,
        wait_before_drop_fragments: float = 0.05,
        wait_before_close: float = 5.0,
        losses: Losses | None = None,
        count: Callable[[Sequence[bytes]], int] | None = None,
        name: Callable[[Sequence[bytes]], str] | None = None,
        told: bool = False,
    ) -> None:
        super().__init__()
        self.link = link
        self.room = room
        self.large = room
        """Larger messages fill no batch with others: they do not fit, or are not in it at all."""
        self.batches = 0
        self.octets = 0
        self.messages = 0
        self.waited = 0
        self.losses = Losses(losses, link.remote)
        self.last_sent = loop.now()
        self.error: LinkClosed | None = None
        self._broken: LinkClosed | None = None
        self.loop = loop
        self._now = loop.now
        self._frame = frame
        self._count = count
        self._name = name
        self._told = told
        self._on_blocked = on_blocked
        self._on_broken = on_broken
        self._bound = queue_bytes
        self._half = queue_bytes // 2
        self._pile = min(PILED, queue_bytes // 2)
        self.patience = Patience(wait_before_drop, wait_before_drop_fragments)
        self._wait_before_close = wait_before_close
        self._lanes: dict[int, Lane] = {}
        self._order: tuple[Lane, ...] = ()
        self._control: list[bytes] = []
        self._rest: Sequence[Batch] = ()
        # Looked up once, not five times for every write: what a link is, and whether it holds bytes after the last.
        self._streamed = link.streamed
        self._try_send = link.try_send
        self._held = False
        self._right = threading.Lock()  # to write; taken without waiting, always
        self._books = threading.Lock()
        self._waiters = Waiters()
        self._blocked = False  # the kernel takes no more
        self._asleep = True  # the leader does not look after it
        self._seen = 0  # batches, when it looked last
        self._credit = _CREDIT
        self._interruptible = _INTERPRETED or type(link) not in (TcpLink, UnixLink)
        self._behind = False  # the other end, when asked last
        self._taken = 0  # parts, then

    # -- what callers use ------------------------------------------------------------------------------------------

    def put(self, key: int, parts: Sequence[bytes], size: int, droppable: bool, messages: int = 0) -> bool:
        """Send a message, or several, of two parts each; False when it was dropped.

        `size` is the bytes of all `parts`, which must not change; `messages` how many they are, if not one for every
        two. What is not taken has been counted, whether this returns False or raises.

        Raises:
            LinkClosed: the link has ended; `LinkStalled` when this message waited in vain and ended it.
        """
        lane = self._lanes.get(key) or self._new_lane(key)
        if lane.queued >= self._bound:
            if not self._admit(lane, droppable, messages or len(parts) >> 1, size, parts):
                return False
        self._append(lane, parts, size, False)
        return True

    def _append(self, lane: Lane, parts: Sequence[bytes], size: int, last: bool) -> None:
        """Queue what there is room for, and see that it is written."""
        lane.queued = queued = lane.queued + size
        queue = lane.queue
        queue += parts
        # The batch is full when another message like this one would not fit. Order matters: append, then look
        # whether anybody looks after it; the leader says that it does not, then looks for messages. So one sees the
        # other.
        if last:
            self._write_now()
        elif lane.shut:
            pass  # nothing of it can be written: `reopen` will say when, or who is asking for room just now
        elif self.loop.in_turn:
            self._write_at_end(queued)
        elif queued + size > self.room and self._is_due(queued, size, len(parts)):
            self._write_now()
        elif self._asleep:
            self._write_or_rouse()

    def put_now(self, key: int, parts: Sequence[bytes], size: int, droppable: bool) -> bool:
        """The same for an express message: written by this thread at once, unless another is writing."""
        taken = self.put(key, parts, size, droppable)
        if taken and self._lanes[key].queue:
            self._write_now()
        return taken

    def pass_on(self, key: int, parts: Sequence[bytes], size: int, messages: int) -> bool:
        """The same for droppable messages that the leader of the loop passes on: it neither waits nor fails.

        Where a thread would wait, the link is not read from which they come; what it has brought so far is queued
        beyond the bound, up to twice that.
        """
        lane = self._lanes.get(key) or self._new_lane(key)
        if lane.queued >= self._bound:
            self._write_now()
            if lane.queued >= self._bound and not self._holds_source(lane, size, len(parts)):
                self._turn_away(True, messages, parts)
                return False
        self._append(lane, parts, size, False)
        return True

    def _holds_source(self, lane: Lane, size: int, parts: int) -> bool:
        if self._bound < 0 or lane.queued >= 2 * self._bound:
            return False
        return lane.patience.hold(self.patience.of(size, parts, self.room))

    def push(self, key: int, parts: Sequence[bytes], size: int, most: int = _OVERSHOOT, last: bool = False) -> int:
        """The same for what can neither wait here nor be lost: taken beyond the bound, up to `most` times it.

        Returns `REFUSED` if the other node takes nothing more, `TAKEN`, or `FULL` if it was taken and the conduit is at
        its bound: who may wait does so now, with `wait_for_room` or `hold_back`.
        """
        lane = self._lanes.get(key) or self._new_lane(key)
        if self._bound < 0 or lane.queued >= self._bound * most:
            self._turn_away(False, len(parts) >> 1, parts)
            return REFUSED
        self._append(lane, parts, size, last)
        return FULL if lane.queued >= self._bound else TAKEN

    def wait_for_room(self, key: int) -> None:
        """Wait until a conduit is below its bound again; a link that stays full is given up. Raises as `put`."""
        lane = self._lanes.get(key)
        if lane is not None and lane.queued >= self._bound:
            self._admit(lane, False, 0, 0, ())  # it has been taken: if the link ends, `_discard` counts it

    def count_wait(self) -> None:
        """Somebody waits for room."""
        with self._books:
            self.waited += 1

    def hold_back(self, key: int) -> bool:
        """Have the link that is read now wait until a conduit has room again; False if this thread reads none.

        A link that takes nothing for `wait_before_close` is given up.
        """
        lane = self._lanes.get(key)
        if lane is None or lane.queued < self._bound or not self._is_open():
            return True
        if not self.loop.hold(lane):
            return False
        if not lane.full_since:
            lane.full_since = self._now()
            self.count_wait()
        return True

    def watch(self, key: int) -> None:
        """Give the link up if it takes nothing for `wait_before_close`: for what was taken beyond the bound of a
        conduit, and nobody waits for.
        """
        lane = self._lanes.get(key)
        if lane is not None and not lane.full_since and self._is_open():
            lane.seen, lane.full_since = self.octets, self._now()
            self._look_at(lane)

    def _look_at(self, lane: Lane) -> None:
        if not self.has_room(lane):
            self.loop.after(self._wait_before_close / 4, lambda: self._look_at(lane))

    def has_room(self, lane: Lane) -> bool:
        """Whether those who wait for room in a conduit may go on."""
        if not self._is_open() or lane.queued <= self._half:
            lane.full_since = 0.0
            return True
        if self.octets != lane.seen:
            lane.seen, lane.full_since = self.octets, self._now()
        elif self._now() - lane.full_since > self._wait_before_close:
            self._fail(LinkStalled(self.link.remote, self._wait_before_close))
            return True
        return False

    def limit(self, octets: int) -> None:
        """How much may wait in each conduit from now on: less, while many links take nothing."""
        with self._books:
            if self.error is None:
                self._bound, self._half = octets, octets // 2
                self._pile = min(PILED, octets // 2)

    def hold(self) -> bool:
        """Write nothing until `let_go`, which must follow: messages put in between leave together. False if one is
        writing; `let_go` must follow all the same.
        """
        if not self._right.acquire(False):
            return False
        self._asleep = False  # nobody need be woken
        return True

    def let_go(self, held: bool) -> None:
        """The end of `hold`."""
        if held:
            self._asleep = True
            self._right.release()
        self._write_now()

    def control(self, batch: bytes) -> bool:
        """Send a ready-made batch before everything that waits; never blocks, False when too many wait already."""
        self._check_open()
        if len(self._control) >= CONTROL_BATCHES:
            return False
        self._control.append(batch)
        self._write_now()
        return True

    def go_over(self, link: Link) -> None:
        """Another link, of the same kind, stands for the one there was."""
        self.link = link
        self._try_send = link.try_send
        self._interruptible = True

    def queued(self, key: int) -> int:
        """Bytes of a conduit that wait to be framed."""
        lane = self._lanes.get(key)
        return 0 if lane is None else lane.queued

    def is_full(self, key: int) -> bool:
        """Whether the next message of a conduit would have to wait for room."""
        return self.queued(key) >= self._bound

    def await_room(self, key: int, timeout: float) -> bool:
        """Wait until a conduit is at most half full; False when that took too long or the link has ended.

        Nothing is given up: for those who make messages only as fast as they leave.
        """
        lane = self._lanes.get(key)
        return (lane is None or self._wait(lambda: lane.queued <= self._half, timeout)) and self._is_open()

    def flush(self, timeout: float) -> bool:
        """Wait until nothing waits any more; False when that took too long or the link has ended."""

        def is_written() -> bool:
            self._write_now()
            return self._all_written()

        return self._wait(is_written, timeout) and self._is_open()

    def close(self, reason: int = REASON_GENERIC) -> None:
        """End at once: the link is closed, what waits is counted as dropped, blocked callers raise `LinkClosed`."""
        self._end(LinkClosed(self.link.remote, "closed", reason))

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _admit(self, lane: Lane, droppable: bool, messages: int, size: int, parts: Sequence[bytes]) -> bool:
        """Whether there is room, or was in time."""
        if self._is_open() and self._wait_for_room(lane, droppable, size, messages):
            return True
        self._turn_away(droppable, messages, parts)
        if self._is_open():
            if droppable:
                return False
            self._fail(LinkStalled(self.link.remote, self._wait_before_close))
        self._check_open()
        return False

    def _wait_for_room(self, lane: Lane, droppable: bool, size: int, messages: int) -> bool:
        """False if it waited in vain, or the link ended meanwhile."""
        self._write_now()
        if lane.queued < self._bound:
            return True
        if droppable and lane.patience.is_spent():
            return False
        self.count_wait()
        wait = self.patience.of(size, messages << 1, self.room) if droppable else self._wait_before_close
        # Half empty, not just below the bound: else every batch written would wake a thread for one message.
        self._wait(lambda: lane.queued <= self._half, wait)
        if droppable and lane.queued >= self._bound:
            lane.patience.spent_at = self.octets
        return lane.queued < self._bound  # never, once the link has ended

    def _wait(self, is_done: Callable[[], bool], timeout: float) -> bool:
        """Wait until something is done, the link has ended, or the time; whether it is done."""
        deadline = monotonic() + timeout
        while True:
            waiter = self._waiters.register()
            if not is_done() and self._is_open():
                self._rouse()
                remaining = deadline - monotonic()
                if remaining > 0 and waiter.acquire(timeout=remaining):
                    continue
            self._waiters.unregister(waiter)
            return is_done()

    def _turn_away(self, droppable: bool, messages: int, parts: Sequence[bytes]) -> None:
        self._lose("closed" if self.error is not None else "full" if droppable else "refused", messages, parts)

    def _lose(self, reason: str, messages: int, parts: Sequence[bytes]) -> None:
        """Count some messages, and say so the 1st, 2nd, 4th … time."""
        if self.losses.add(reason, messages):
            self.losses.tell(reason, "" if self._name is None or not parts else self._name(parts))

    def _is_open(self) -> bool:
        # A method, so that nobody who reads it twice is told by a type checker that it cannot have changed.
        return self.error is None

    def _check_open(self) -> None:
        error = self.error
        if error is not None:
            raise error.with_traceback(None)

    # -- writing ---------------------------------------------------------------------------------------------------

    def _is_due(self, queued: int, size: int, parts: int) -> bool:
        """Whether what fills a batch is written at once. On a busy link, a message that fills several waits for others;
        if none come, the leader sees to it.
        """
        return size <= self.large or parts > 2 or queued >= self._pile

    def _write_at_end(self, queued: int) -> None:
        """Leave what was put to the end of the turn, unless that is much."""
        if queued >= self._pile:
            self._write_now()
        elif not self.is_dirty:
            self.is_dirty = True
            self.loop.dirty.append(self)
            if not self.loop.in_turn:  # it has just ended: the leader may have looked already
                self._write_now()

    def _write_or_rouse(self) -> None:
        if self._now() - self.last_sent > IDLE_SECONDS:
            self._credit = _CREDIT
            self._write_now()
        elif self._credit:
            self._credit -= 1
            self._write_now()
        else:
            self._rouse()

    def _write_now(self) -> None:
        """Write as far as the kernel takes it. Whoever writes already looks again when done, so one try is enough."""
        if self._blocked or self._right.locked():
            return
        if self._interruptible and is_main_thread():
            with Shield():
                self._write_here()
        else:
            self._write_here()

    def _write_here(self) -> None:
        if not self._right.acquire(False):
            return
        try:
            self._drain(_ROUNDS)
        finally:
            self._right.release()
        if not self._is_open():
            self._discard()
        elif self._work():
            if self._asleep and not self._blocked:
                self._rouse()
        elif self._waiters.some and not self._is_behind():
            self._waiters.wake()

    def _rouse(self) -> None:
        """Have the leader look after it."""
        if self._interruptible and is_main_thread():
            with Shield():
                self._asleep = False
                self.loop.flush_soon(self)
        else:
            self._asleep = False
            self.loop.flush_soon(self)

    def on_flush(self) -> bool:
        """What the leader does: write what waits. Whether it is to look again in a moment."""
        self.is_dirty = False
        has_more = False
        others_wrote = self.batches != self._seen
        if not self._blocked and self._right.acquire(False):
            try:
                has_more = self._drain(_ROUNDS)
            finally:
                self._right.release()
        if not self._is_open():
            self._discard()
            return False
        if has_more and self._work():
            self.loop.flush_soon(self)  # the others first
            return False
        if not self._asleep and not self._blocked:
            self._seen = self.batches
            if others_wrote:
                # Callers fill batches. Calling the leader for each would cost four context switches a time, so it
                # looks from time to time instead.
                return True
            self._asleep = True
        # Whoever holds the right to write now looks for work after it, and finds that nobody looks after this.
        if self._work() and not self._blocked and not self._right.locked():
            self._asleep = False
            return True
        if self._waiters.some and not self._blocked and not self._is_behind():
            self._waiters.wake()
        return False

    def on_writable(self) -> None:
        """The kernel has room again."""
        self._blocked = False
        self._on_blocked(False)
        self.loop.flush_one(self)

    def _work(self) -> bool:
        if self._rest or self._control or self._held:
            return True
        for lane in self._order:  # noqa: SIM110 - a generator costs more than all of this, after every message
            if lane.framed or (lane.queue and not lane.shut):
                return True
        return False

    def _all_written(self) -> bool:
        if self._told and any(lane.queue for lane in self._order):
            return False
        return not self._work() and not self._right.locked() and not self._work()

    def _is_behind(self) -> bool:
        """Whether something waits until `reopen`: who waits for room is woken then, and not to look again and again."""
        return self._told and any(lane.shut and lane.queue for lane in self._order)

    def reopen(self) -> None:
        """The other end may be sent to again: by the thread that leads, or in a turn."""
        for lane in self._order:
            lane.shut = False
        if self._work():
            self._write_now()

    def _drain(self, rounds: int) -> bool:
        """Frame and write, the most urgent conduit first, until the kernel takes no more; whether there is more."""
        try:
            if (self._rest or self._held) and not self._write(self._rest):
                return False
            while rounds and self._is_open():
                rounds -= 1
                lane = None
                if self._control:
                    batches: Sequence[Batch] = [(batch,) for batch in self._control]
                    del self._control[: len(batches)]
                else:
                    lane, most = self._most_urgent()
                    if lane is None:
                        return False
                    batches = self._take_more(lane, most) if self._streamed else self._take(lane, most)
                    if self._behind and not batches:
                        if not self._told:
                            return False
                        continue  # it is shut now, unless it has been reopened; the others may go on
                self.batches += len(batches)
                if not self._write(batches):
                    return False
                if self._waiters.some and (not self._told if lane is None else lane.queued <= self._half):
                    self._waiters.wake()
        except LinkClosed as error:
            self._fail(error)
        except BaseException as error:
            # A fault in framing, or an interrupt: nobody knows how much was written, so the stream has no next byte.
            self._fail(LinkClosed(self.link.remote, f"writing was interrupted by {type(error).__name__}: {error}"))
            raise
        return True

    def _most_urgent(self) -> tuple[Lane | None, int]:
        """The next conduit that has something, and how many parts of its queue may go before anything more urgent.

        What was put into a more urgent conduit first goes first, always: a declaration and the sample that relies on it
        are in two of them, and both may come while this looks.
        """
        while True:
            found: Lane | None = None
            for lane in self._order:
                if lane.framed or (lane.queue and not lane.shut):
                    found = lane
                    break
            if found is None:
                return None, 0
            most = len(found.queue)
            for lane in self._order:  # again, and it may be another
                if lane is found:
                    return found, most
                if lane.framed or (lane.queue and not lane.shut):
                    break

    def _take_more(self, lane: Lane, most: int) -> Sequence[Batch]:
        """Several batches: each write lets other threads have the interpreter, and getting it back may take 5 ms."""
        taken = self._take(lane, most)
        if self._taken >= most:
            return taken
        batches = list(taken)
        octets = _octets(batches)
        while octets < PILED and not lane.framed and not self._behind:
            most -= self._taken
            if most <= 0:
                break
            more = self._take(lane, most)
            batches += more
            octets += _octets(more)
        return batches

    def _take(self, lane: Lane, most: int) -> Sequence[Batch]:
        """The next batches of a conduit."""
        self._taken, self._behind = 0, False
        if not lane.framed:
            queue = lane.queue
            lane.shut = self._told  # before it is asked: who reopens meanwhile is heard
            batches, count, size = self._frame(lane.key, queue, lane.queued, most)
            if count:
                lane.shut = False
            self._taken, self._behind = count, count == 0
            del queue[:count]
            lane.queued -= size
            self.messages += count >> 1
            if len(batches) <= _SLICE_BATCHES:
                return batches
            lane.framed = list(batches)
        taken, lane.framed = lane.framed[:_SLICE_BATCHES], lane.framed[_SLICE_BATCHES:]
        return taken

    def _write(self, batches: Sequence[Batch]) -> bool:
        """Whether everything is with the kernel; the rest is kept in `_rest` otherwise."""
        if not batches and not self._held:
            return True
        if self._streamed:
            pieces = batches[0] if len(batches) == 1 else [piece for batch in batches for piece in batch]
            sent = self._try_send(pieces[0] if len(pieces) == 1 else pieces)
            self.octets += sent
            size = len(pieces[0]) if len(pieces) == 1 else _octets((pieces,))
            self._rest = (after(pieces, sent),) if sent < size else ()
        else:
            done = 0
            for batch in batches:
                data = batch[0] if len(batch) == 1 else b"".join(batch)
                if not self._try_send(data):
                    break
                self.octets += len(data)
                done += 1
            self._rest = batches[done:]
        self._held = self.link.held
        self.last_sent = self._now()
        self.loop.writes += 1
        if not self._rest and not self._held:
            return True
        self._blocked = True
        self._on_blocked(True)
        return False

    # -- beginning and end -----------------------------------------------------------------------------------------

    def _new_lane(self, key: int) -> Lane:
        with self._books:
            if key not in self._lanes:
                self._lanes[key] = Lane(self, key)
                self._order = tuple(self._lanes[known] for known in sorted(self._lanes))
            return self._lanes[key]

    def _fail(self, error: LinkClosed) -> None:
        self._end(error, broken=error)

    def _end(self, error: LinkClosed, broken: LinkClosed | None = None) -> None:
        with self._books:
            if self.error is not None:
                return
            self.error = error
            self._broken = broken
            self._bound = -1
        if broken is not None:
            _log.info("link broke remote=%s problem=%s", self.link.remote, error.problem)
            self.loop.soon(self._tell_broken)
        self.link.close()
        self._blocked = False
        if self._right.acquire(False):  # else who writes now sees to it
            self._discard()
            self._right.release()
        self._waiters.wake()

    def _tell_broken(self) -> None:
        if self._broken is not None and self._on_broken is not None:
            self._on_broken(self._broken)

    def _discard(self) -> None:
        """Count and forget what was never framed."""
        discarded: list[list[bytes]] = []
        with self._books:
            for lane in self._order:
                discarded.append(lane.queue[:])
                lane.queue.clear()
                lane.framed.clear()
        for parts in discarded:  # not under the lock: a handler of the log may put something
            self._lose("closed", len(parts) >> 1 if self._count is None else self._count(parts), parts)


def _octets(batches: Sequence[Batch]) -> int:
    octets = 0
    for batch in batches:
        for piece in batch:
            octets += len(piece)
    return octets
