"""The sending half of a link: many threads put messages, one thread at a time frames and writes them.

`put` only appends to a list, which one `+=` does atomically. Whoever finds the link idle writes at once in its own
thread; on a busy link messages pile up while the previous write is under way and leave together as the next batch.
The thread that fills a batch writes it; what is left over is written by the flusher, a thread that sleeps otherwise.
A caller's thread never waits for the socket: what the kernel does not take is left to the flusher, so that the
bounds below are the only waiting there is.

What a message or a batch is, the framing function knows; nothing here does.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from elea.io.errors import REASON_GENERIC, LinkClosed, LinkStalled
from elea.io.link import Link, Octets, after
from elea.io.losses import Losses
from elea.io.timers import monotonic, sleep
from elea.model.limits import CONTROL_BATCHES, QUEUE_BYTES
from elea.model.logger import logger

__all__ = ["CONTROL_BATCHES", "IDLE_SECONDS", "QUEUE_BYTES", "Batch", "Frame", "Outbox"]

Batch: TypeAlias = Sequence[Octets]
"""One batch, ready for the link with its length prefix, in pieces: large payloads need not be joined to anything."""

Frame: TypeAlias = Callable[[int, list[bytes], int, int], tuple[Sequence[Batch], int, int]]
"""`frame(conduit_key, queue, queued, most)` makes batches of the messages at the front of a queue.

It says how many parts it used, at least one message's and `most` at most, and their octets; `queued` is about what all
of them have. None at all means that the other end is behind: it is asked again a moment later. It is called by one
thread at a time, in the order of sending, while others may append to the queue.
"""

IDLE_SECONDS: Final = 15e-6
"""A link that wrote nothing for this long is idle: the next message is written by its own thread, at once.

A write costs its caller 3 to 5 µs, waking the flusher costs both threads 15 to 20 µs; below this distance between
messages collecting them is cheaper than either.
"""

PILED: Final = 524_288
"""Octets written at once, if so many wait; on a busy link messages larger than a batch wait until they are so many.

Each write wakes the other end, which costs the writer up to 10 µs while a core is idle, and ends with the small packet
that a message of 64 KiB leaves over. A bare stream of them is 32 k/s one by one, 57 k/s by four and 66 k/s by eight.
"""

_CREDIT: Final = 3
"""Messages written at once although they follow closely, after an idle time: a reply and its end, say, are two."""

_ROUNDS: Final = 4
"""Writes a caller's thread does before it leaves the rest to the flusher: nobody works for the others for ever."""

_OVERSHOOT: Final = 8
"""How far above the bound a conduit may be filled by those who cannot wait: 8 MiB of declarations and answers."""

_SLICE_BATCHES: Final = 4
"""How many batches of one large message are written together; then more urgent conduits get their turn."""

_WATCH_SECONDS: Final = 0.0005
"""How often the flusher looks after callers that write for themselves: the longest their last messages may wait."""

_MOMENT_SECONDS: Final = 0.0001
"""How long to wait for the other end where nothing tells that it has gone on; it reads some MiB meanwhile."""

_ALL: Final = 1 << 62
_JOIN_SECONDS: Final = 1.0
_log = logger("elea.io")


class _Lane:
    """What waits in one conduit: `queue` is a flat list of parts, two for each message; `framed` are batches of it."""

    __slots__ = ("framed", "key", "queue", "queued")

    def __init__(self, key: int) -> None:
        self.key = key
        self.queue: list[bytes] = []
        self.framed: list[Batch] = []
        # Changed in one line without a call, which the interpreter does not interrupt (a test hammers on it).
        self.queued = 0


class Outbox:
    """Queues, framing and writing of one link.

    Args:
        room: octets of messages that fit one batch beside its headers; larger ones are framed alone.
        on_broken: told once when the link broke or stalled, not on `close`; in the outbox's own thread, so it may
            take any lock.
        wait_before_drop: how long a droppable message may wait for room.
        wait_before_close: how long any other may, before the link is given up with reason 6.
        losses: what is lost here is counted there too.
        count: how many messages some parts are, where that is not one for every two.
        now: the clock.
        soon: has something done later by somebody else. Given that, there is no flusher and no thread is started, and
            the link must take whatever it is given (`elea.testing`).
    """

    def __init__(
        self,
        link: Link,
        frame: Frame,
        *,
        room: int,
        on_broken: Callable[[LinkClosed], None] | None = None,
        queue_bytes: int = QUEUE_BYTES,
        wait_before_drop: float = 0.001,
        wait_before_close: float = 5.0,
        losses: Losses | None = None,
        count: Callable[[Sequence[bytes]], int] | None = None,
        name: str = "",
        now: Callable[[], float] = monotonic,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        self._now = now
        self._soon = soon
        self._called = False
        self.link = link
        self.room = room
        self.large = room
        """Larger messages fill no batch with others: they do not fit, or are not in it at all."""
        self.batches = 0
        self.writer = 0
        """The thread that wrote last, by its number in the system."""
        self.octets = 0
        self.messages = 0
        self.waited = 0
        self.losses = Losses(losses)
        self.last_sent = now()
        self.error: LinkClosed | None = None
        self._broken: LinkClosed | None = None
        self._frame = frame
        self._count = count
        self._on_broken = on_broken
        self._bound = queue_bytes
        self._half = queue_bytes // 2
        self._pile = min(PILED, queue_bytes // 2)
        self._wait_before_drop = wait_before_drop
        self._wait_before_close = wait_before_close
        self._name = f"elea-send-{name or link.remote}"
        self._lanes: dict[int, _Lane] = {}
        self._order: tuple[_Lane, ...] = ()
        self._control: list[bytes] = []
        self._rest: Sequence[Batch] = ()
        self._right = threading.Lock()  # to write; taken without waiting, always
        self._books = threading.Lock()
        self._waiters: list[threading.Lock] = []
        self._flusher: threading.Thread | None = None
        self._wake = threading.Lock()  # the flusher sleeps by taking it twice
        self._wake.acquire()
        self._asleep = True
        self._credit = _CREDIT
        self._behind = False  # the other end, when asked last
        self._taken = 0  # parts, then

    # -- what callers use ------------------------------------------------------------------------------------------

    def put(self, key: int, parts: Sequence[bytes], size: int, droppable: bool, messages: int = 0) -> bool:
        """Send a message, or several, of two parts each; False when it was dropped.

        `size` is the octets of all `parts`, which must not change; `messages` how many they are, if not one for every
        two. What is not taken has been counted, whether this returns False or raises.

        Raises:
            LinkClosed: the link has ended; `LinkStalled` when this message waited in vain and ended it.
        """
        try:
            lane = self._lanes[key]
        except KeyError:
            lane = self._new_lane(key)
        if lane.queued >= self._bound:
            if not self._admit(lane, droppable, messages or len(parts) >> 1):
                return False
        lane.queued = queued = lane.queued + size
        queue = lane.queue
        queue += parts
        # The batch is full when another message like this one would not fit. Order matters: append, then look
        # whether the flusher sleeps; it says that it sleeps, then looks for messages. So one sees the other.
        if queued + size > self.room and self._is_due(queued, size, len(parts)):
            self._write_now()
        elif self._asleep:
            self._write_or_rouse()
        return True

    def put_now(self, key: int, parts: Sequence[bytes], size: int, droppable: bool) -> bool:
        """The same for an express message: written by this thread at once, unless another is writing."""
        taken = self.put(key, parts, size, droppable)
        if taken and self._lanes[key].queue:
            self._write_now()
        return taken

    def offer(self, key: int, parts: Sequence[bytes], size: int, droppable: bool, messages: int = 0) -> bool:
        """The same for threads that must neither wait nor fail: False when there is no room or no link any more.

        What happens to a link that has no room for a message that must not be dropped is the caller's to decide.
        """
        try:
            lane = self._lanes[key]
        except KeyError:
            lane = self._new_lane(key)
        if lane.queued >= self._bound:
            self._write_now()
            if lane.queued >= self._bound:
                self._turn_away(droppable, messages or len(parts) >> 1)
                return False
        lane.queued = queued = lane.queued + size
        queue = lane.queue
        queue += parts
        if queued + size > self.room and self._is_due(queued, size, len(parts)):
            self._write_now()
        elif self._asleep:
            self._write_or_rouse()
        return True

    def push(self, key: int, parts: Sequence[bytes], size: int) -> bool:
        """The same for what can neither wait here nor be lost: taken beyond the bound, up to `_OVERSHOOT` times it.

        Who may wait does so afterwards, with `wait_for_room`; else False says that the other node takes nothing more.
        """
        try:
            lane = self._lanes[key]
        except KeyError:
            lane = self._new_lane(key)
        if self._bound < 0 or lane.queued >= self._bound * _OVERSHOOT:
            self._turn_away(False, len(parts) >> 1)
            return False
        lane.queued = queued = lane.queued + size
        queue = lane.queue
        queue += parts
        if queued + size > self.room and self._is_due(queued, size, len(parts)):
            self._write_now()
        elif self._asleep:
            self._write_or_rouse()
        return True

    def wait_for_room(self, key: int) -> None:
        """Wait until a conduit is below its bound again; a link that stays full is given up. Raises as `put`."""
        lane = self._lanes.get(key)
        if lane is not None and lane.queued >= self._bound:
            self._admit(lane, False, 0)  # it has been taken: if the link ends, `_discard` counts it

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

    def queued(self, key: int) -> int:
        """Octets of a conduit that wait to be framed."""
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
        if lane is None or lane.queued <= self._half:
            return self._is_open()
        deadline = monotonic() + timeout
        while self._is_open():
            waiter = self._register()
            if lane.queued <= self._half:
                self._unregister(waiter)
                return self._is_open()
            self._rouse()
            remaining = deadline - monotonic()
            if remaining <= 0 or not waiter.acquire(timeout=remaining):
                self._unregister(waiter)
                return self._is_open() and lane.queued <= self._half
        return False

    def flush(self, timeout: float) -> bool:
        """Wait until nothing waits any more; False when that took too long or the link has ended."""
        if self._soon is not None:
            self._flush_once()
            return self._is_open()
        deadline = monotonic() + timeout
        while True:
            self._write_now()
            waiter = self._register()
            if not self._is_open() or self._all_written():
                self._unregister(waiter)
                return self._is_open()
            self._rouse()
            remaining = deadline - monotonic()
            if remaining <= 0 or not waiter.acquire(timeout=remaining):
                self._unregister(waiter)
                return self._is_open() and self._all_written()

    def close(self, reason: int = REASON_GENERIC) -> None:
        """End at once: the link is closed, what waits is counted as dropped, blocked callers raise `LinkClosed`."""
        self._end(LinkClosed(self.link.remote, "closed", reason))
        flusher = self._flusher
        if flusher is not None and flusher is not threading.current_thread():
            flusher.join(_JOIN_SECONDS)

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _admit(self, lane: _Lane, droppable: bool, messages: int) -> bool:
        """Whether there is room, or was in time."""
        if self._is_open() and self._wait_for_room(lane, droppable):
            return True
        self._turn_away(droppable, messages)
        if self._is_open():
            if droppable:
                return False
            self._fail(LinkStalled(self.link.remote, self._wait_before_close))
        self._check_open()
        return False

    def _wait_for_room(self, lane: _Lane, droppable: bool) -> bool:
        """False if it waited in vain, or the link ended meanwhile."""
        self._write_now()
        if lane.queued < self._bound:
            return True
        with self._books:
            self.waited += 1
        deadline = monotonic() + (self._wait_before_drop if droppable else self._wait_before_close)
        while True:
            waiter = self._register()
            # Half empty, not just below the bound: else every batch written would wake a thread for one message.
            if lane.queued <= self._half and self._is_open():
                self._unregister(waiter)
                return True
            self._rouse()
            remaining = deadline - monotonic()
            if self._is_open() and remaining > 0 and waiter.acquire(timeout=remaining):
                continue
            self._unregister(waiter)
            return lane.queued < self._bound  # never, once the link has ended

    def _turn_away(self, droppable: bool, messages: int) -> None:
        self.losses.add("closed" if self.error is not None else "full" if droppable else "refused", messages)

    def _register(self) -> threading.Lock:
        waiter = threading.Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        return waiter

    def _unregister(self, waiter: threading.Lock) -> None:
        with contextlib.suppress(ValueError):  # woken in between
            self._waiters.remove(waiter)

    def _wake_waiters(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._waiters.pop().release()

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
        if none come, the flusher sees to it.
        """
        return size <= self.large or parts > 2 or queued >= self._pile

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
        if not self._right.acquire(False):
            return
        try:
            self._drain(_ROUNDS, False)
        finally:
            self._right.release()
        if self._work():
            if self._asleep:
                self._rouse()
        elif self._waiters:
            self._wake_waiters()

    def _rouse(self) -> None:
        if self._soon is not None:
            if not self._called:
                self._called = True
                self._soon(self._flush_once)
            return
        self._asleep = False
        if self._flusher is None:
            self._start()
        if self._wake.locked():
            with contextlib.suppress(RuntimeError):  # somebody else was faster
                self._wake.release()

    def _flush_once(self) -> None:
        """What the flusher does, where there is none."""
        self._called = False
        if self._is_open():
            self._drain(_ALL, False)
        if not self._is_open():
            self._discard()
            broken, self._broken = self._broken, None
            if broken is not None and self._on_broken is not None:
                self._on_broken(broken)

    def _flush_forever(self) -> None:
        """The flusher: the only thread that waits for the socket."""
        try:
            while self._is_open():
                self._wake.acquire()
                while self._is_open() and self._flush_or_watch():
                    pass
        except Exception:  # noqa: BLE001 - a fault in framing; it has ended the link already
            _log.exception("framing failed remote=%s", self.link.remote)
        self._discard()
        if self._broken is not None and self._on_broken is not None:
            try:
                self._on_broken(self._broken)
            except Exception:  # noqa: BLE001 - nobody else would see it
                _log.exception("link owner failed remote=%s", self.link.remote)

    def _flush_or_watch(self) -> bool:
        """Write what waits; False when there is nothing left to do but sleep."""
        before = self.batches
        if self._right.acquire(False):
            try:
                self._drain(_ALL, True)
            finally:
                self._right.release()
        if self.batches == before:
            # Called in vain: the callers fill batches faster than this thread gets its turn. Calling it for each
            # batch would cost four context switches a time, so it stays up and looks from time to time instead.
            while not self._wake.acquire(timeout=_WATCH_SECONDS) and self.batches != before:
                before = self.batches
            if self._work() and not self._right.locked():
                return True
        self._asleep = True
        # Whoever holds the right to write now looks for work after it, and finds us asleep.
        if self._work() and not self._right.locked():
            self._asleep = False
            return True
        if self._waiters:
            self._wake_waiters()
        return False

    def _work(self) -> bool:
        if self._rest or self._control or self.link.held:
            return True
        for lane in self._order:  # noqa: SIM110 - a generator costs more than all of this, after every message
            if lane.queue or lane.framed:
                return True
        return False

    def _all_written(self) -> bool:
        return not self._work() and not self._right.locked() and not self._work()

    def _drain(self, rounds: int, wait: bool) -> None:
        """Frame and write, the most urgent conduit first; without `wait`, stop where the kernel takes no more."""
        try:
            if (self._rest or self.link.held) and not self._write(self._rest, wait):
                return
            while rounds and self._is_open():
                rounds -= 1
                lane = None
                if self._control:
                    batches: Sequence[Batch] = [(batch,) for batch in self._control]
                    del self._control[: len(batches)]
                else:
                    lane, most = self._most_urgent()
                    if lane is None:
                        return
                    batches = self._take_more(lane, most) if self.link.streamed else self._take(lane, most)
                    if self._behind and not batches:
                        if not wait:
                            return
                        sleep(_MOMENT_SECONDS)
                        continue
                self.batches += len(batches)
                self.writer = threading.get_native_id()
                if not self._write(batches, wait):
                    return
                if self._waiters and (lane is None or lane.queued <= self._half):
                    self._wake_waiters()
        except LinkClosed as error:
            self._fail(error)
        except BaseException as error:
            # A fault in framing, or an interrupt: nobody knows how much was written, so the stream has no next octet.
            self._fail(LinkClosed(self.link.remote, f"writing was interrupted by {type(error).__name__}: {error}"))
            raise

    def _most_urgent(self) -> tuple[_Lane | None, int]:
        """The next conduit that has something, and how many parts of its queue may go before anything more urgent.

        What was put into a more urgent conduit first goes first, always: a declaration and the sample that relies on it
        are in two of them, and both may come while this looks.
        """
        while True:
            found: _Lane | None = None
            for lane in self._order:
                if lane.queue or lane.framed:
                    found = lane
                    break
            if found is None:
                return None, 0
            most = len(found.queue)
            for lane in self._order:  # again, and it may be another
                if lane is found:
                    return found, most
                if lane.queue or lane.framed:
                    break

    def _take_more(self, lane: _Lane, most: int) -> Sequence[Batch]:
        """Several batches: each write costs the flusher its turn, and getting it back may take 5 ms."""
        batches = list(self._take(lane, most))
        octets = _octets(batches)
        while octets < PILED and not lane.framed and not self._behind:
            most -= self._taken
            if most <= 0:
                break
            more = self._take(lane, most)
            batches += more
            octets += _octets(more)
        return batches

    def _take(self, lane: _Lane, most: int) -> Sequence[Batch]:
        """The next batches of a conduit."""
        self._taken, self._behind = 0, False
        if not lane.framed:
            queue = lane.queue
            batches, count, size = self._frame(lane.key, queue, lane.queued, most)
            self._taken, self._behind = count, count == 0
            del queue[:count]
            lane.queued -= size
            self.messages += count >> 1
            if len(batches) <= _SLICE_BATCHES:
                return batches
            lane.framed = list(batches)
        taken, lane.framed = lane.framed[:_SLICE_BATCHES], lane.framed[_SLICE_BATCHES:]
        return taken

    def _write(self, batches: Sequence[Batch], wait: bool) -> bool:
        """Whether everything is with the kernel; the rest is kept in `_rest` otherwise."""
        link = self.link
        if not batches and not link.held:
            return True
        if link.streamed:
            pieces = batches[0] if len(batches) == 1 else [piece for batch in batches for piece in batch]
            data = pieces[0] if len(pieces) == 1 else pieces
            if wait:
                link.send(data)
                self.octets += sum(map(len, pieces))
                self._rest = ()
            else:
                sent = link.try_send(data)
                self.octets += sent
                size = len(pieces[0]) if len(pieces) == 1 else _octets((pieces,))
                self._rest = (after(pieces, sent),) if sent < size else ()
        else:
            done = 0
            for batch in batches:
                data = batch[0] if len(batch) == 1 else b"".join(batch)
                if wait:
                    link.send(data)
                elif not link.try_send(data):
                    break
                self.octets += len(data)
                done += 1
            self._rest = batches[done:]
        self.last_sent = self._now()
        return not self._rest and not link.held

    # -- beginning and end -----------------------------------------------------------------------------------------

    def _new_lane(self, key: int) -> _Lane:
        with self._books:
            if key not in self._lanes:
                self._lanes[key] = _Lane(key)
                self._order = tuple(self._lanes[known] for known in sorted(self._lanes))
            return self._lanes[key]

    def _start(self) -> None:
        with self._books:
            if self._flusher is None:
                self._flusher = threading.Thread(target=self._flush_forever, name=self._name, daemon=True)
                self._flusher.start()

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
        self.link.close()
        if broken is None and self._flusher is None:
            self._discard()
        else:
            self._rouse()
        self._wake_waiters()

    def _discard(self) -> None:
        """Count and forget what was never framed."""
        with self._books:
            for lane in self._order:
                lost = len(lane.queue) >> 1 if self._count is None else self._count(lane.queue)
                self.losses.add("closed", lost)
                lane.queue.clear()
                lane.framed.clear()


def _octets(batches: Sequence[Batch]) -> int:
    octets = 0
    for batch in batches:
        for piece in batch:
            octets += len(piece)
    return octets
