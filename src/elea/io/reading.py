"""Reading batches off a link, in a way that one thread can stop and another go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, cast

from elea.io.errors import BatchTooLarge, LinkClosed
from elea.io.link import RECEIVE_BUFFER, DatagramLink, SocketLink, StreamLink
from elea.io.nearness import Nearness
from elea.io.sending import Outbox
from elea.io.timers import give_way, monotonic, thread_time
from elea.io.vigil import EARNED, Vigil
from elea.model.limits import MAX_BATCH

__all__ = ["LARGE", "BatchReader", "awake", "read_batches"]

LARGE: Final = 16_384

awake: Final = threading.Lock()
"""One thread of a process waits awake at a time: two would keep the interpreter from each other."""


class BatchReader:
    """The batches of one link, one at a time; used by one thread at a time."""

    def __init__(
        self,
        link: StreamLink | DatagramLink,
        *,
        limit: int = MAX_BATCH,
        buffer_size: int = RECEIVE_BUFFER,
    ) -> None:
        self.link = link
        self.prefix = 2
        """Octets of the length before the next batch: 4 once a low latency session is agreed."""
        self._limit = limit
        self._buffer = bytearray(max(buffer_size, limit + 4) if link.streamed else 0)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self.settle: Callable[[], None] = lambda: None
        """Called before the octets of views that were handed out change."""
        self.vigil: Vigil | None = None
        """Says which waits are awake; without one, none is."""
        self._outbox: Outbox | None = None
        self.nearness = Nearness()

    def next(self) -> bytes | memoryview | None:
        """The next batch, waiting for it; None when the other side is done or the link was closed here.

        A batch of `LARGE` octets or more is a view, good until `settle` is called.

        Raises:
            LinkClosed: the link broke, or ended inside a batch.
            BatchTooLarge: the other side announced more than the limit.
        """
        if not self.link.streamed:
            datagram = cast(DatagramLink, self.link).receive_batch()
            if datagram is not None and len(datagram) > self._limit:
                raise BatchTooLarge(self.link.remote, len(datagram), self._limit)
            return datagram
        while True:
            batch = self.cut()
            if batch is not None:
                return batch
            if not self.fill():
                return None

    @property
    def has_more(self) -> bool:
        """Whether octets of a batch, or whole batches, are in the buffer."""
        return self._start < self._end

    @property
    def waiting(self) -> memoryview:
        """What is in the buffer, lengths of batches included; good until the next call."""
        return self._view[self._start : self._end]

    def pass_over(self, octets: int) -> None:
        """Whole batches at the front of the buffer have been taken as they are."""
        self._start += octets

    def keep_vigil(self, vigil: Vigil, outbox: Outbox) -> None:
        """Wait awake where that pays; what is sent over the same link goes through the outbox."""
        self.vigil = vigil
        self._outbox = outbox

    def fill(self) -> bool:
        """Receive once, which on a link with octets to read takes no time; False and errors as for `next`.

        For the link's own thread, which may be moved to another core.
        """
        vigil, outbox = self.vigil, self._outbox
        if vigil is None or outbox is None:
            return self._receive()
        now = monotonic()
        if vigil.begin(outbox.batches, now):
            if self.nearness.is_due(now):
                self.nearness.seek(outbox.writer, now)
            came = self._receive_awake(vigil, now)
            if came >= 0:
                return came > 0
        filled = self._receive()
        vigil.ended(monotonic())
        return filled

    def fill_awake(self, now: float) -> int:
        """Receive once if something comes while it pays to wait for it awake: 1; 0 and errors as for `next`; else -1.

        After that somebody waits otherwise, and fills.
        """
        vigil, outbox = self.vigil, self._outbox
        if vigil is None or outbox is None or not vigil.begin(outbox.batches, now):
            return -1
        return self._receive_awake(vigil, now)

    def talks(self, now: float) -> bool:
        """A wait begins; whether it may be awake. `look` or `fill_ready` must follow."""
        vigil, outbox = self.vigil, self._outbox
        return vigil is not None and outbox is not None and vigil.talks(outbox.batches, now)

    def look(self) -> int:
        """Receive what has come already: 1; 0 and errors as for `next`; -1 if nothing has."""
        self._make_room()
        count = cast(SocketLink, self.link).receive_awake(self._view[self._end :], 0.0)
        return count if count < 0 else int(self._received(count))

    def fill_ready(self) -> bool:
        """Receive once, after somebody has waited otherwise; False and errors as for `next`."""
        filled = self._receive()
        if self.vigil is not None:
            self.vigil.ended(monotonic())
        return filled

    def _receive_awake(self, vigil: Vigil, now: float) -> int:
        if not awake.acquire(False):
            return -1
        try:
            # First whoever waits for this core: the one who is to answer what was just sent, or who was just called.
            give_way()
            before = thread_time()
            self._make_room()
            count = cast(SocketLink, self.link).receive_awake(self._view[self._end :], now + vigil.limit)
            after = monotonic()
            # What it used is no more than what it took. Asking the kernel takes a microsecond, of those that count.
            used = after - now if after - now < EARNED else thread_time() - before
        finally:
            awake.release()
        if count < 0:
            vigil.missed(after, used)
            return -1
        vigil.came(after, used)
        return int(self._received(count))

    def _receive(self) -> bool:
        self._make_room()
        return self._received(cast(StreamLink, self.link).receive_into(self._view[self._end :]))

    def _received(self, count: int) -> bool:
        if not count:
            if self._end and not self.link.closed:
                raise LinkClosed(
                    self.link.remote, f"ended by the other side inside a batch, {self._end} octets into it"
                )
            return False
        self._end += count
        return True

    def cut(self) -> bytes | memoryview | None:
        """A batch that is complete in the buffer, if there is one. Small ones are copied: slicing bytes is cheap."""
        start, end = self._start, self._end
        width = self.prefix
        first = start + width
        if first > end:
            return None
        if width == 2:
            size = self._buffer[start] | self._buffer[start + 1] << 8
        else:
            size = int.from_bytes(self._view[start:first], "little")
        if size > self._limit:
            raise BatchTooLarge(self.link.remote, size, self._limit)
        stop = first + size
        if stop > end:
            return None
        self._start = stop
        batch = self._view[first:stop]
        return batch if size >= LARGE else batch.tobytes()

    def _make_room(self) -> None:
        """Move what is left of a batch to the front, so that the rest fits behind it."""
        start, end = self._start, self._end
        if start:
            self.settle()
            left = end - start
            if left:
                self._view[:left] = self._view[start:end]
            self._start, self._end = 0, left


def read_batches(
    link: StreamLink | DatagramLink,
    on_batch: Callable[[bytes], None],
    prefix_size: Callable[[], int] = lambda: 2,
    *,
    limit: int = MAX_BATCH,
    buffer_size: int = RECEIVE_BUFFER,
) -> None:
    """Hand over every batch that arrives, until the link is closed here or the other side is done; raises as `next`.

    `prefix_size` is asked before each batch.
    """
    reader = BatchReader(link, limit=limit, buffer_size=buffer_size)
    reader.prefix = prefix_size()
    while (batch := reader.next()) is not None:
        on_batch(bytes(batch))
        reader.prefix = prefix_size()
