"""Batches cut off what a link brings. The bytes are received into a buffer of the leader's; a link keeps only what is
left over of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from elea.io.link import Link
from elea.io.linkerrors import BatchTooLarge, LinkClosed
from elea.model.limits import MAX_BATCH
from elea.model.values import mypyc_attr

__all__ = ["LARGE", "BatchReader"]

LARGE: Final = 16_384
"""Bytes from which on a batch is handed out as a view."""

_EMPTY: Final = bytearray()
_NOTHING: Final = memoryview(_EMPTY)


@mypyc_attr(allow_interpreted_subclasses=True)
class BatchReader:
    """The batches of one link; used by one thread at a time. Another framing is another `cut`."""

    def __init__(self, link: Link, *, limit: int = MAX_BATCH) -> None:
        self.link = link
        self.prefix = 2
        """Bytes of the length before the next batch: 4 once a low latency session is agreed."""
        self.settle: Callable[[], None] | None = None
        """Called before the bytes of views that were handed out change."""
        self._limit = limit
        self._streamed = link.streamed
        self._handed_out = False  # views
        self._rest = b""
        self._buffer = _EMPTY
        self._view = _NOTHING
        self._start = 0
        self._end = 0

    def receive(self, buffer: bytearray, view: memoryview) -> int:
        """Receive once into a buffer larger than any batch: 1; 0 when the other side is done or the link was closed
        here; -1 if nothing has come. `keep` must follow before the buffer is used for anything else.

        Raises:
            LinkClosed: the link broke, or ended inside a batch.
            BatchTooLarge: the other side sent a datagram of more than the limit.
        """
        self.load(buffer, view)
        end = self._end
        count = self.link.receive_ready(view[end:] if end else view)
        if count > 0:
            self._end = end + count
            if not self._streamed and count > self._limit:
                raise BatchTooLarge(self.link.remote, count, self._limit)
            return 1
        self.keep()
        if count < 0:
            return -1
        if self._streamed and end and not self.link.closed:
            raise LinkClosed(self.link.remote, f"ended by the other side inside a batch, {end} bytes into it")
        return 0

    def load(self, buffer: bytearray, view: memoryview) -> None:
        """Go on with what was kept."""
        rest = self._rest
        self._buffer, self._view = buffer, view
        self._start = 0
        self._end = len(rest)
        if rest:
            view[: len(rest)] = rest
            self._rest = b""

    def cut(self) -> bytes | memoryview | None:
        """The next batch that is complete, if there is one.

        Small ones are copied: slicing bytes is cheap. One of `LARGE` bytes or more is a view, good until `settle` is
        called.

        Raises:
            BatchTooLarge: the other side announced more than the limit.
        """
        start, end = self._start, self._end
        if not self._streamed:
            self._start = end
            return self._view[start:end].tobytes() if start < end else None
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
        if size < LARGE:
            return batch.tobytes()
        self._handed_out = True
        return batch

    def keep(self) -> None:
        """Put aside what has not been taken: the buffer is somebody else's from now on."""
        if self._handed_out:
            self._handed_out = False
            if self.settle is not None:
                self.settle()
        if self._start < self._end:
            self._rest = self._view[self._start : self._end].tobytes()
        self._buffer, self._view = _EMPTY, _NOTHING
        self._start = self._end = 0

    def begin_with(self, data: bytes) -> None:
        """What another reader has received of the link is to be taken first."""
        self._rest = data

    @property
    def has_kept(self) -> bool:
        """Whether something was put aside."""
        return len(self._rest) > 0

    @property
    def kept(self) -> int:
        """Bytes that were put aside."""
        return len(self._rest)

    @property
    def has_more(self) -> bool:
        """Whether bytes of a batch, or whole batches, have not been taken."""
        return self._start < self._end

    @property
    def waiting(self) -> memoryview:
        """What has not been taken, lengths of batches included; good until the next call."""
        return self._view[self._start : self._end]

    def pass_over(self, octets: int) -> None:
        """Whole batches at the front have been taken as they are."""
        self._start += octets
