"""What storages need from time to time: retention, checkpoints of the index, compaction. One thread for all."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from elea.io.allocator import KeptMemory
from elea.io.timers import monotonic
from elea.model.errors import StoreError
from elea.store import State

if TYPE_CHECKING:
    from elea.node.storage.storage import Storage

__all__ = ["Upkeep"]

_log: Final = logging.getLogger("elea.node")

LOOK_SECONDS: Final = 5.0
MEMORY_SECONDS: Final = 0.25
"""How often it is looked whether the allocator keeps much that others have freed: 50 µs."""

CHECKPOINT_SAMPLES: Final = 100_000
"""Samples after which the index is written down: so many are read again at most when a killed broker starts."""

CHECKPOINT_GROUPS: Final = 5000
"""Groups after which it is: each is a block of its own, and costs 35 µs to read again, as 50 samples of a batch do."""

CHECKPOINT_PAUSE: Final = 4
"""So many times as long as it took it is not written down again: a million keys take a second."""

CHECKPOINT_LOOKS: Final = 12
"""Looks after which it is written down however few samples have come, and small blocks are joined."""


class Upkeep:
    """Looks after storages."""

    def __init__(self, storages: Sequence[Storage], wall_ns: Callable[[], int]) -> None:
        self._storages = storages
        self._wall_ns = wall_ns
        self._groups = dict.fromkeys(storages, 0)
        self._not_before = dict.fromkeys(storages, 0.0)
        self._states = {storage: storage.log.state for storage in storages}
        self._looks = 0
        self._stopping = threading.Event()
        # Two threads: a checkpoint or a compaction takes seconds, in which a gigabyte may come and go.
        self._threads = [
            threading.Thread(target=self._run, name="elea-upkeep", daemon=True),
            threading.Thread(target=self._return_memory, name="elea-memory", daemon=True),
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End; waits for what is under way."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _return_memory(self) -> None:
        kept = KeptMemory()
        while not self._stopping.wait(MEMORY_SECONDS):
            kept.look()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            self._looks += 1
            for storage in self._storages:
                try:
                    self.look(storage, thorough=not self._looks % CHECKPOINT_LOOKS)
                except StoreError as error:
                    _log.error("upkeep failed: storage=%s problem=%s", storage.name, error)
                except Exception:  # noqa: BLE001 - the next storage needs its upkeep all the same
                    _log.exception("upkeep failed: storage=%s", storage.name)

    def look(self, storage: Storage, *, thorough: bool) -> None:
        """Do what is due."""
        log = storage.log
        self._tell_state(storage)
        if log.state is not State.OPEN:
            return
        storage.go_on_with_updates()
        if thorough:
            storage.wild.shorten(self._wall_ns())
        retention = storage.retention
        if retention is not None:
            trimmed = log.retain(retention, self._wall_ns(), past_cursors=storage.settings.past_cursors)
            if trimmed.samples:
                _log.info("retention: storage=%s removed=%d first=%d", storage.name, trimmed.samples, trimmed.first)
        log.load_index()
        groups = storage.groups - self._groups[storage]
        due = log.fresh >= CHECKPOINT_SAMPLES or groups >= CHECKPOINT_GROUPS or (log.fresh and thorough)
        if due and monotonic() >= self._not_before[storage]:
            self._checkpoint(storage)
        if thorough:
            log.compact()

    def _checkpoint(self, storage: Storage) -> None:
        begun = monotonic()
        self._groups[storage] = storage.groups
        storage.log.checkpoint()
        ended = monotonic()
        self._not_before[storage] = ended + CHECKPOINT_PAUSE * (ended - begun)

    def _tell_state(self, storage: Storage) -> None:
        before, now = self._states[storage], storage.log.state
        if now is not before:
            self._states[storage] = now
            level = logging.INFO if now is State.OPEN else logging.ERROR
            _log.log(level, "storage changed: storage=%s state=%s before=%s", storage.name, now.value, before.value)
