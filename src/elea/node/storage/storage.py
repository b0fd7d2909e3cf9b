"""One storage: its log, the thread that commits to it, and the samples that arrive on their own.

Samples come from the links as fast as they like; the disk takes them as fast as it can. Between the two is the
committer's bounded queue. When it is full, links that bring samples with BLOCK are not read for a bounded time, which
holds up their publishers; other samples, and those after that time, are counted as not kept, by reason, and logged.
Nothing else of the node waits for the disk.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc

from elea.content.registry import EVERYTHING
from elea.io.backpressure import Gate
from elea.io.timers import monotonic
from elea.model import keyexpr
from elea.model.errors import Congested, StoreError
from elea.model.qos import BLOCK
from elea.node.stamper import Stamper, stamped
from elea.node.storage.records import records_of_run
from elea.node.storage.settings import DEFAULT_LOG
from elea.node.storage.stampcheck import Stamping
from elea.node.storage.wildcardupdates import WildcardUpdates, stamp_of
from elea.store import Committer, Log, Outcome, Receipt, Record, Retention, State, Sync, memory_log, open_log
from elea.store.digest import Digest
from elea.wire.details import STAMPED

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.node.route import SampleRun
    from elea.node.storage.aligner_facts import Alignment
    from elea.node.storage.settings import StorageSettings
    from elea.wire.details import RawSample

__all__ = ["Storage", "Waiting"]

_log: Final = logging.getLogger("elea.node")

BLOCKED_SECONDS: Final = 5.0
"""How long samples sent with BLOCK wait for the disk: as long as for a neighbour, before it is given up."""

SETTLE_SECONDS: Final = 10.0
"""How long a query waits for samples that came before it to be on disk; then it sees what is there."""


class Waiting(Protocol):
    """Who wants to know what became of records."""

    def settled(self, outcome: Outcome) -> None:
        """Told by the commit thread, once; must be quick."""
        ...


class Storage:
    """A log and everything that writes to it."""

    def __init__(self, node: Node, settings: StorageSettings) -> None:
        self.settings = settings
        self.name = settings.name
        self.key_expr = settings.key_expr
        self.key_exprs = (settings.key_expr,) if settings.name != DEFAULT_LOG else (settings.key_expr, EVERYTHING)
        """All keys that belong to it: what a data space says of its types is kept in the default log."""
        self.log = _open(settings)
        self.kept = 0
        self.acknowledged = 0
        self.aligned = 0
        """Samples brought from other logs."""
        self.digest = Digest(self.log)
        self.alignments: list[Alignment] = []
        """What is known of the logs it is aligned with."""
        self.refused = 0
        """Batches and pieces that were no Arrow streams of samples."""
        self.not_kept: Counter[str] = Counter()
        self.on_group: Callable[[], None] = lambda: None
        """Told when outcomes of a group have been handed out."""
        self._node = node
        self._stamper = Stamper(node.clock)
        self.wild = WildcardUpdates(self.log)
        self.stamping = Stamping(node, self.name)
        self.stamping.begin(max(self.log.newest, self.wild.newest_time), node.loop.wall_ns())
        self._submitted = 0
        self._settled = 0
        self._turn = threading.Condition()
        self._committer: Committer[Waiting | int] = Committer(cast(Log, _Guarded(self.log)), self._deliver)
        self._gate = _Disk(self._committer)
        self._thread = threading.Thread(target=self._committer.run, name=f"elea-commit-{self.name}", daemon=True)
        self._thread.start()
        with contextlib.suppress(Congested):
            if self.log.state is State.OPEN:
                self.go_on_with_updates()

    @property
    def restamped(self) -> int:
        """Samples that came to it with a timestamp too far ahead, and were given another."""
        return self.stamping.restamped + self._stamper.replaced

    @property
    def durability(self) -> str:
        """Whether what it keeps outlives this process."""
        return self.settings.durability

    @property
    def groups(self) -> int:
        """Commits so far."""
        return self._committer.groups

    @property
    def retention(self) -> Retention | None:
        """How much is kept; None is everything."""
        wanted = self.settings
        if wanted.max_age is None and wanted.max_bytes is None and wanted.max_samples is None:
            return None
        age = None if wanted.max_age is None else int(wanted.max_age * 1e9)
        return Retention(age_ns=age, octets=wanted.max_bytes, samples=wanted.max_samples)

    def has(self, key: str) -> bool:
        """Whether all keys of an expression belong to it."""
        return any(keyexpr.includes(expr, key) for expr in self.key_exprs)

    def meets(self, key: str) -> bool:
        """Whether some keys of an expression belong to it."""
        return any(keyexpr.intersects(expr, key) for expr in self.key_exprs)

    # -- samples that arrive on their own -----------------------------------------------------------------------------

    def keep(self, pieces: Sequence[tuple[str, Sequence[RawSample]]], arrival_ns: int) -> None:
        """Take runs of samples in the order they came (`Keeper`)."""
        records: list[Record] = []
        blocking = False
        now_ns, arrival_ns = arrival_ns, self.stamping.arrival(arrival_ns)
        for key, run in pieces:
            blocking = blocking or bool(run[0][3] & BLOCK)
            if not all(meta is not None and meta[0] & STAMPED for _, _, _, _, meta, _ in run):
                run = stamped(run, self._stamper, now_ns)
            found = records_of_run(key, run, arrival_ns)
            if "*" not in key:
                records += found
                continue
            self._keep_checked(records, blocking, now_ns)
            records = []
            for record in self.stamping.checked(found, now_ns):
                self._keep_wild(record, blocking)
        self._keep_checked(records, blocking, now_ns)

    def stamped(self, run: list[RawSample]) -> list[RawSample]:
        """The samples as `keep_safely` keeps them."""
        return stamped(run, self._stamper, self._node.loop.wall_ns())

    def keep_safely(self, key: str, run: list[RawSample], done: Callable[[Exception | None], None]) -> None:
        """Store samples of one key that have timestamps; say when they are on disk, or that they will not be."""
        now_ns = self._node.loop.wall_ns()
        records = self.stamping.checked(records_of_run(key, run, self.stamping.arrival(now_ns)), now_ns)
        token = _Told(done)
        try:
            self.submit(records, token, wait=0.0)
        except Congested:
            self._gate.is_worth_waiting()
            self._node.loop.hold(self._gate)
            try:
                self.submit(records, token, wait=0.0, beyond=True)
            except StoreError as error:
                token.settled(error)
        except StoreError as error:
            token.settled(error)

    def arrived(self, arrived: SampleRun) -> None:
        """The same for samples of this process, which come through a mailbox."""
        self.keep([(str(arrived.key), arrived.run)], self._node.loop.wall_ns())

    def resolved(self, record: Record) -> list[Record]:
        """What to store for a record: one on an expression is one for each of its keys that has a value.

        Spec: zenoh-1 section 20. Such an update is remembered for samples that are older than it and come later.

        Raises:
            StoreError: it cannot be remembered.
        """
        if "*" not in record.key:
            return [record]
        update = record._replace(once=False)  # its number stands for many samples
        self.wild.take_in(update, self._turn)
        if self.wild.is_crowded():
            self.wild.shorten(record.arrival_ns)
        self.wait_settled()  # for the keys of samples that came before; those that come from now on are seen to
        # Also where the value is newer: it is part of the history, and of the state at a time.
        return [update._replace(key=key) for key in self.log.live_keys(update.key)]

    def _older(self, update: Record) -> list[Record]:
        return [update._replace(key=key) for key in self.log.older_keys(update.key, stamp_of(update))]

    def go_on_with_updates(self) -> None:
        """Apply updates that were interrupted: by a crash, or by a disk that was full.

        Raises:
            StoreError, Congested: there is still no room.
        """
        for key, update in list(self.wild.pending.items()):
            if not self.is_settled():
                return
            missing = self._older(update)
            if missing:
                _log.info("update goes on: storage=%s key=%s samples=%d", self.name, key, len(missing))
                self.submit(missing, len(missing), wait=0.0, is_update=True)
            else:
                self.wild.done(key)

    def append_arrow(self, batch: pa.RecordBatch) -> Receipt:
        """Store the rows of a batch at once, and what updates of many keys make of them; errors as of the log."""
        times = batch.column("ntp64")
        is_old = len(self.wild) and batch.num_rows and self.wild.is_newer(pc.min(times).as_py())
        receipt = self.log.append_arrow(batch)
        self.kept += receipt.rows
        self.acknowledged += receipt.rows + len(receipt.repeated)
        if is_old:
            self._update_keys(pc.unique(batch.column("key")).to_pylist())
        return receipt

    def bring(self, records: list[Record]) -> None:
        """Store samples that another log has and this one lacks: published to nobody, since they are no news there."""
        is_old = len(self.wild) and self.wild.is_newer(min(record.ntp64 for record in records))
        self.aligned += self.log.append(records, sift=False).rows
        if is_old:
            self._update_keys(list({record.key for record in records}))

    def _update_keys(self, keys: list[str]) -> None:
        found: list[Record] = []
        for key in keys:
            stored = self.log.latest(key, deleted=True)
            if stored is not None:
                update = self.wild.newest(key, stamp_of(stored.record))
                found += [] if update is None else [update]
        if found:
            self.submit(found, len(found), wait=BLOCKED_SECONDS)

    def _keep_wild(self, record: Record, blocking: bool) -> None:
        self._node.loop.step_aside()  # the keys of earlier samples are waited for
        try:
            self._keep(self.resolved(record), blocking, is_update=True)
        except StoreError as error:
            self._lost(1, _reason(error), error)

    def _keep_checked(self, records: list[Record], blocking: bool, now_ns: int) -> None:
        if records:
            self._keep(self.stamping.checked(records, now_ns), blocking)

    def _keep(self, records: list[Record], blocking: bool, *, is_update: bool = False) -> None:
        if not records:
            return
        waits = blocking and not self._node.loop.is_led_here()
        try:
            self.submit(records, len(records), wait=BLOCKED_SECONDS if waits else 0.0, is_update=is_update)
        except Congested as error:
            if not blocking or waits or not self._gate.is_worth_waiting() or not self._node.loop.hold(self._gate):
                self._lost(len(records), _reason(error), error)
                return
            self.submit(records, len(records), wait=0.0, is_update=is_update, beyond=True)
        except StoreError as error:
            self._lost(len(records), _reason(error), error)

    def _lost(self, count: int, reason: str, error: Exception) -> None:
        before = self.not_kept[reason]
        self.not_kept[reason] += count
        if (before + count).bit_length() > before.bit_length():  # said the 1st, 2nd, 4th … time
            _log.error("samples not kept: storage=%s not_kept=%d problem=%s", self.name, before + count, error)

    # -- committing ---------------------------------------------------------------------------------------------------

    def submit(
        self,
        records: list[Record],
        token: Waiting | int,
        *,
        wait: float,
        is_update: bool = False,
        beyond: bool = False,
    ) -> None:
        """Queue records for the disk; `token` is told what became of them, a number only counts.

        Args:
            is_update: whether they are those of an update of many keys, which no other one follows.
            beyond: whether they are taken although there is no room: who brings them waits afterwards.

        Raises:
            Congested: too much was waiting for the disk all the time.
            StoreReadOnly: the storage is being closed.
        """
        until = monotonic() + wait
        with self._turn:
            while True:
                try:
                    found = records if is_update else self._updated(records, token)
                    self._committer.submit(found, token, beyond=beyond)
                    self._submitted += 1
                    return
                except Congested:
                    left = until - monotonic()
                    if left <= 0:
                        raise
                self._turn.wait(left)

    def _updated(self, records: list[Record], token: Waiting | int) -> list[Record]:
        """The records, and what newer updates of many keys make of them: behind all of them for one who waits, who
        knows the records by their places, and else each behind its own.
        """
        late = self.wild.late(records)
        if not late:
            return records
        if not isinstance(token, int):
            return [*records, *late]
        return [one for record in records for one in (record, *self.wild.late([record]))]

    def is_settled(self) -> bool:
        """Whether nothing waits for the disk."""
        return self._settled == self._submitted

    def wait_settled(self, timeout: float = SETTLE_SECONDS) -> bool:
        """Wait until everything that came before this call is on disk, or was refused by it."""
        until = monotonic() + timeout
        with self._turn:
            wanted = self._submitted
            while self._settled < wanted:
                left = until - monotonic()
                if left <= 0:
                    return False
                self._turn.wait(left)
        return True

    def _deliver(self, group: list[tuple[Waiting | int, Outcome]]) -> None:
        for token, outcome in group:
            if not isinstance(token, int):
                token.settled(outcome)
                if isinstance(outcome, Receipt):
                    self.kept += outcome.rows
                    self.acknowledged += outcome.rows + len(outcome.repeated)
            elif isinstance(outcome, Receipt):
                self.kept += outcome.rows
            else:
                self._lost(token, _reason(outcome), outcome)
        with self._turn:
            self._settled += len(group)
            self._turn.notify_all()
        self.on_group()

    def close(self) -> None:
        """Commit what has come, write the index down, and let others have the directory."""
        self._committer.close()
        self._thread.join()
        with contextlib.suppress(StoreError, Congested):  # the next start goes on with them
            self.go_on_with_updates()
        self.log.close()


class _Told:
    """Samples on their way to the log, and who wants to know (`Waiting`)."""

    __slots__ = ("_done",)

    def __init__(self, done: Callable[[Exception | None], None]) -> None:
        self._done = done

    def settled(self, outcome: Outcome) -> None:
        self._done(None if isinstance(outcome, Receipt) else outcome)


class _Disk(Gate):
    """Closed while too much waits for the disk; after `BLOCKED_SECONDS` nobody waits until it has caught up."""

    def __init__(self, committer: Committer[Waiting | int]) -> None:
        self._committer = committer
        self._closed_at = 0.0

    def is_worth_waiting(self) -> bool:
        """Whether who has something that must not be lost is to wait."""
        if not self._closed_at:
            self._closed_at = monotonic()
        return monotonic() - self._closed_at <= BLOCKED_SECONDS

    def is_open(self) -> bool:
        if self._committer.has_room():
            self._closed_at = 0.0
            return True
        return monotonic() - self._closed_at > BLOCKED_SECONDS


class _Guarded:
    """A log whose every failure is one that the committer knows: its thread must not die of a fault in it."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def append(self, records: Sequence[Record]) -> Receipt:
        try:
            return self._log.append(records)
        except StoreError:
            raise
        except Exception as error:
            _log.exception("commit failed")
            raise StoreError(f"the broker has failed, an internal {type(error).__name__}; see its log") from error


def _open(settings: StorageSettings) -> Log:
    if settings.directory is None:
        return memory_log()
    sync = Sync.RELAXED if settings.relaxed else Sync.DURABLE
    return open_log(settings.directory, sync=sync, strip_prefix=settings.strip_prefix)


def _reason(error: Exception) -> str:
    return {"Congested": "slow", "StoreFull": "full", "StoreReadOnly": "read-only"}.get(type(error).__name__, "refused")
