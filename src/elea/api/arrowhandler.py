"""Samples as Arrow record batches: the handler `elea.handlers.Arrow`, and what stands behind it.

What arrives is gathered to columns where it was read, without a sample object or a call per sample. A batch is handed
over when it has enough rows or bytes, or when its first sample has waited long enough. Batches that nobody takes are
kept up to a number; then the rule is that of channels (`elea.api.channels`): *block* makes samples wait, first in a
mailbox (32 MiB), then those sent with BLOCK on their link, *drop_oldest* forgets batches. Every sample lost here is
counted in `dropped`. Imports numpy, pyarrow and Numba when it is used, not before.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from elea.api.callbacks import Callback, DirectSink
from elea.api.channels import Handler
from elea.api.namespace import Namespace
from elea.io.dispatch import Mailbox
from elea.model.limits import CACHED_ROUTES, PATIENCE
from elea.node.node import Node
from elea.node.route import SampleRun
from elea.wire.details import RawSample

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.columnar.batchfilter import BatchFilter
    from elea.content import SamplePredicate

__all__ = ["Arrow", "BatchChannel", "BatchSink", "Overflow"]

Overflow: TypeAlias = Literal["block", "drop_oldest"]

ROWS: Final = 65_536
OCTETS: Final = 4 << 20
"""As much as 65,536 samples of 64; larger buffers are not used again by Arrow, and new ones cost more than the rest."""

CAPACITY: Final = 8
TOGETHER: Final = 1_024
"""Samples that came one by one are turned into a block together: a block costs 20 µs, however small."""

HELD: Final = 4
"""How much more than its payloads a batch may keep in memory, in attachments and other details."""

TICK: Final = object()
END: Final = object()


class Arrow:
    """Asks for record batches in place of samples.

    ::

        for batch in session.declare_subscriber("home/**", elea.handlers.Arrow(rows=65_536, seconds=1.0)):
            print(batch.num_rows, batch.column("key"))

    Columns: `key, payload, ntp64, stamp_id, arrival, kind, encoding, schema, attachment, source_id, source_eid,
    source_sn, qos`, as in a log; `ntp64` and `stamp_id` are null where nobody gave a timestamp.

    Args:
        rows: a batch has at most so many.
        seconds: how long a sample waits for others.
        octets: a batch with so many bytes of payload is full.
        capacity: batches that wait to be taken.
        overflow: what happens when so many wait: `block` or `drop_oldest`.
        callback: called with each batch, in place of a channel.
    """

    __slots__ = ("_finish", "callback", "capacity", "octets", "overflow", "rows", "seconds")

    def __init__(
        self,
        rows: int = ROWS,
        seconds: float = 1.0,
        *,
        octets: int = OCTETS,
        capacity: int = CAPACITY,
        overflow: Overflow = "block",
        callback: Callable[[pa.RecordBatch], object] | Callback[pa.RecordBatch] | None = None,
    ) -> None:
        for name, number in (("rows", rows), ("seconds", seconds), ("octets", octets), ("capacity", capacity)):
            if not number > 0:
                raise ValueError(f"{name} of a batch is above 0, {number} is not")
        if overflow not in get_args(Overflow):
            raise ValueError(f"overflow {overflow!r} is none of {', '.join(get_args(Overflow))}")
        self.rows = rows
        self.seconds = seconds
        self.octets = octets
        self.capacity = capacity
        self.overflow = overflow
        self.callback = callback
        self._finish: Callable[[], None] | None = None

    def calling(self, callback: Callback[Any], finish: Callable[[], None]) -> Arrow:
        """The same with a callback, for those who have a queue; `finish` is called before the last batches come."""
        found = Arrow(
            self.rows,
            self.seconds,
            octets=self.octets,
            capacity=self.capacity,
            overflow=self.overflow,
            callback=callback,
        )
        found._finish = finish
        return found


class BatchChannel(Handler[Any]):
    """A channel of batches whose `dropped` are samples, and whose last batches are not lost when it is closed."""

    __slots__ = ()

    def __init__(self, asked: Arrow) -> None:
        super().__init__(asked.capacity, ring=asked.overflow == "drop_oldest", of="RecordBatch")

    def push(self, item: Any) -> None:
        """Add a batch, by the rule of the channel."""
        with self._lock:
            if len(self._items) >= self._capacity:
                if self._ring:
                    self.dropped += self._items.popleft().num_rows
                elif not self._wait_for_room():
                    self.dropped += item.num_rows
                    return
            self._items.append(item)
            self._ring_for(1)

    def finish(self) -> None:
        """Take what comes from now on beyond the capacity, also of those who wait for room: `close` will follow."""
        with self._lock:
            self._capacity = sys.maxsize
            if self._room is not None:
                self._room.notify_all()


class BatchSink:
    """From what a mailbox brings to batches; one thread at a time brings it."""

    def __init__(
        self, asked: Arrow, node: Node, namespace: Namespace | None, where: SamplePredicate | None = None
    ) -> None:
        from elea.columnar.compiled import kernels
        from elea.columnar.gather import MOST, Columns
        from elea.columnar.scanner import Scanner

        self.undecodable = 0
        """Samples left out because their timestamp, encoding, attachment or source cannot be read."""
        self.handler: BatchChannel | None = None
        self._out: BatchChannel | DirectSink[Any]
        self._finish = asked._finish
        if asked.callback is None:
            self._out = self.handler = BatchChannel(asked)
            self._finish = self.handler.finish
        elif isinstance(asked.callback, Callback):
            self._out = DirectSink(asked.callback.callback, asked.callback.drop)
        else:
            self._out = DirectSink(asked.callback)
        self._node = node
        self._namespace = namespace
        self._where = where
        self._filter: BatchFilter | None = None
        if where is not None:
            from elea.columnar.batchfilter import BatchFilter

            self._filter = BatchFilter(where.predicates[0], contents=node.schemas.contents)
        self._rows = asked.rows
        self._octets = min(asked.octets, MOST)
        self._seconds = asked.seconds
        self._columns = Columns(asked.rows, self._octets)
        self._due = 0.0  # when the batch must be handed over; 0 if it is empty
        self._keys: list[str] = []
        self._codes: dict[str, int] = {}
        self._run: list[RawSample] = []  # samples that came one by one
        self._run_codes: list[int] = []
        self._run_times: list[int] = []
        self._run_octets = 0
        self._bringer = 0
        self._ended = threading.Event()
        compiled = kernels()
        self.box: Final = Mailbox(self._bring, takes_blocks=compiled is not None and namespace is None)
        if self.box.takes_blocks and compiled is not None:
            with node.lock:
                node.scanner = lambda: Scanner(compiled)
                node.block_takers += 1

    @property
    def dropped(self) -> int:
        """Samples lost because batches were not taken in time."""
        return self._out.dropped + self.box.dropped + self.undecodable

    def push(self, item: Any, /) -> None:
        """Not for this sink: what it takes comes through its mailbox."""
        raise TypeError("an Arrow handler takes live samples only")

    push_many = push

    def close(self) -> None:
        """Hand over all that has arrived; then nothing more will come."""
        if self._finish is not None:
            self._finish()
        # Behind all that waits, whoever brings it.
        self.box.add(END, beyond=True)
        self.box.empty()
        if self._bringer != threading.get_ident():  # else this is called by a callback, and goes on when that is done
            self._ended.wait(2 * PATIENCE)

    def _bring(self, item: Any) -> None:
        if self._ended.is_set():
            return
        self._bringer = threading.get_ident()
        if item is END:
            self._flush()
            self._out.close()
            self._leave()
            self._ended.set()
        elif item is TICK:
            if self._due and self._node.loop.now() >= self._due:
                self._flush()
            elif self._due:
                self._wait()
        else:
            if isinstance(item, SampleRun):
                self._take_run(item)
            else:
                self._settle()
                self._take(item)
            if not self._due and (self._columns.count or self._run):
                self._wait()
        self._bringer = 0

    def _leave(self) -> None:
        node = self._node
        if self.box.takes_blocks:
            with node.lock:
                node.block_takers -= 1
                if not node.block_takers:
                    node.scanner = None

    def _wait(self) -> None:
        loop = self._node.loop
        if not self._due:
            self._due = loop.now() + self._seconds
        loop.at(self._due, self._tick)

    def _tick(self) -> None:
        self._node.dispatch.add(self.box, TICK)
        self._node.deliver_soon()

    def _take_run(self, arrived: SampleRun) -> None:
        key: str | None = str(arrived.key)
        if self._namespace is not None:
            key = self._namespace.own(str(arrived.key))
            if key is None:
                return
        assert key is not None
        code = self._codes.get(key)
        if code is None:
            if len(self._keys) >= CACHED_ROUTES:
                self._settle()
                self._keys, self._codes = [], {}
            code = self._codes[key] = len(self._keys)
            self._keys.append(key)
        count = len(arrived.run)
        self._run += arrived.run
        self._run_codes += [code] * count
        self._run_times += [self._node.loop.wall_ns()] * count
        self._run_octets += arrived.octets
        waiting = len(self._run)
        if waiting >= min(TOGETHER, self._rows - self._columns.count) or self._run_octets >= self._octets:
            self._settle()

    def _settle(self) -> None:
        """Turn the samples that came one by one into a block."""
        if self._run:
            from elea.columnar.blocks import block_of_samples

            block, bad = block_of_samples(self._keys, self._run_codes, self._run, self._run_times)
            self.undecodable += bad
            self._run, self._run_codes, self._run_times, self._run_octets = [], [], [], 0
            self._take(block)

    def _take(self, block: Any) -> None:
        columns = self._columns
        while block is not None:
            fitting = min(len(block), self._rows - columns.count)
            if columns.octets + block.size > self._octets:
                fitting = min(fitting, block.fitting(self._octets - columns.octets))
            if not fitting and columns.count:
                self._hand_over()
                continue
            rest, block = (None, block) if fitting == len(block) else block.split(max(fitting, 1))
            columns.add(block)
            if columns.is_full or columns.octets >= self._octets or columns.held >= HELD * self._octets:
                self._hand_over()
            block = rest if rest is not None and len(rest) else None

    def _flush(self) -> None:
        self._settle()
        if self._columns.count:
            self._hand_over()
        self._due = 0.0

    def _hand_over(self) -> None:
        self._due = 0.0
        batch = self._columns.take()
        if self._filter is not None and self._where is not None:
            batch = self._filter.filter(batch)
            self._filter.tell(self._where)
            if not batch.num_rows:
                return
        self._out.push(batch)
