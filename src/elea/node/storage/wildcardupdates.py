"""Updates of many keys at once: a put or deletion on an expression counts for samples that are older and come later.

They are remembered with the log, so that they count after a restart too: the newest of each expression, for a day. Each
is written down before it is applied to the keys that are there, and as pending until that is known to be done, so that
a broker that is killed between the two goes on with it. Spec: zenoh-1 section 20.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from elea.model.pattern import Pattern
from elea.model.timestamp import believed_time, ntp64_from_ns
from elea.store import Log, Record

__all__ = ["WildcardUpdates", "stamp_of"]

_log: Final = logging.getLogger("elea.node")

REMEMBERED: Final = 1_000
REMEMBERED_BYTES: Final = 16 << 20
"""Updates remembered, and bytes of them; the oldest give way, and are counted."""

LIFESPAN_NS: Final = 24 * 3600 * 1_000_000_000
"""How long one is remembered: as long as the deletion of a single key."""

NOTE: Final = "update:"


def stamp_of(record: Record) -> tuple[int, bytes]:
    """Since when a sample counts, as the log sees it."""
    return believed_time(record.ntp64, record.arrival_ns), record.stamp_id


class Update(NamedTuple):
    """A remembered update, with the expression it is for as its key."""

    pattern: Pattern
    record: Record

    @property
    def stamp(self) -> tuple[int, bytes]:
        return stamp_of(self.record)


class WildcardUpdates:
    """The updates of one storage."""

    def __init__(self, log: Log) -> None:
        self.forgotten = 0
        """Updates that gave way, though they might still have counted for something."""
        self.pending: dict[str, Record] = {}
        """Those that may not have been applied to every key that was there."""
        self._storage_log = log
        self._changing = threading.Lock()
        self._updates: dict[str, Update] = {}  # replaced as a whole, so that it can be looked at without a lock
        self._newest: tuple[int, bytes] = (-1, b"")
        for name, text in log.notes().items():
            if name.startswith(NOTE):
                record, is_pending = _parsed(name.removeprefix(NOTE), text)
                self._updates[record.key] = Update(Pattern.of(record.key), record)
                if is_pending:
                    self.pending[record.key] = record
        self._look()

    def __len__(self) -> int:
        return len(self._updates)

    def take_in(self, record: Record, turn: AbstractContextManager[object]) -> bool:
        """Have an update safe, and let it count from then on; False if a newer one of its expression is known already.

        Args:
            turn: held while it begins to count, by whoever asks for what is `late`, too: then no sample slips through.

        Raises:
            StoreError: it cannot be written down.
        """
        with self._changing:
            known = self._updates.get(record.key)
            if known is not None and known.stamp >= stamp_of(record):
                return False
            self._storage_log.put_note(f"{NOTE}{record.key}", _text(record, is_pending=True))
            with turn:
                self._updates = {**self._updates, record.key: Update(Pattern.of(record.key), record)}
                self.pending[record.key] = record
                self._look()
            return True

    @property
    def newest_time(self) -> int:
        """The time of the newest, 0 without any."""
        return max(self._newest[0], 0)

    def late(self, records: Iterable[Record]) -> list[Record]:
        """What newer updates make of the keys of records that come now."""
        if not self._updates:
            return []
        found: list[Record] = []
        for record in records:
            if (record.ntp64, record.stamp_id) < self._newest:  # hardly ever: most samples are newer than any update
                update = self.newest(record.key, (record.ntp64, record.stamp_id))
                if update is not None:
                    found.append(update)
        return found

    def newest(self, key: str, after: tuple[int, bytes]) -> Record | None:
        """The newest update of a key, if it is newer than a stamp: as a record of the key."""
        matching = (one for one in self._updates.values() if after < one.stamp and one.pattern.matches(key))
        update = max(matching, key=lambda one: one.stamp, default=None)
        return None if update is None else update.record._replace(key=key)

    def is_newer(self, ntp64: int) -> bool:
        """Whether any update may be newer than a time."""
        return ntp64 <= self._newest[0]

    def done(self, key: str) -> None:
        """An update has been applied to every key that was there."""
        with self._changing:
            record = self.pending.pop(key, None)
            if record is not None:
                self._storage_log.put_note(f"{NOTE}{key}", _text(record, is_pending=False))

    def shorten(self, now_ns: int) -> None:
        """Forget those that are too old or too many."""
        with self._changing:
            self._shorten(now_ns)

    def _shorten(self, now_ns: int) -> None:
        oldest = ntp64_from_ns(max(now_ns - LIFESPAN_NS, 0))
        by_age = sorted(self._updates.items(), key=lambda item: item[1].stamp)
        old = [key for key, update in by_age if update.stamp[0] < oldest]
        left = by_age[len(old) :]
        octets = sum(_size(update.record) for _, update in left)
        many: list[str] = []
        while left and (len(left) > REMEMBERED or octets > REMEMBERED_BYTES):
            key, update = left.pop(0)
            octets -= _size(update.record)
            many.append(key)
        if old or many:
            self._forget([*old, *many])
        if many:
            self.forgotten += len(many)
            _log.warning(
                "updates of many keys forgotten: forgotten=%d; they do not count for samples that are older than them "
                "and come from now on; at most %d of %d octets are remembered",
                self.forgotten, REMEMBERED, REMEMBERED_BYTES,
            )  # fmt: skip

    def is_crowded(self) -> bool:
        """Whether some have to be forgotten."""
        updates = self._updates
        return len(updates) > REMEMBERED or sum(_size(one.record) for one in updates.values()) > REMEMBERED_BYTES

    def _forget(self, keys: list[str]) -> None:
        for key in keys:
            self._storage_log.drop_note(f"{NOTE}{key}")
            self.pending.pop(key, None)
        self._updates = {key: update for key, update in self._updates.items() if key not in keys}
        self._look()

    def _look(self) -> None:
        self._newest = max((update.stamp for update in self._updates.values()), default=(-1, b""))


def _size(record: Record) -> int:
    return len(record.payload) + len(record.attachment or b"") + len(record.key) + 200


def _text(record: Record, *, is_pending: bool) -> str:
    fields = {name: _coded(value) for name, value in record._asdict().items() if value is not None and name != "key"}
    return json.dumps({**fields, "pending": is_pending}, separators=(",", ":"))


def _parsed(key: str, text: str) -> tuple[Record, bool]:
    form = json.loads(text)
    is_pending: bool = form.pop("pending")
    fields: dict[str, Any] = {
        name: base64.b64decode(value) if isinstance(value, str) else value for name, value in form.items()
    }
    return Record(key, **fields), is_pending


def _coded(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
