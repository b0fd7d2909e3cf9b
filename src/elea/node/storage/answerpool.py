"""Threads that answer requests to stores: those that write have their own, and slow readers do not keep all others.

An answer is made as fast as its reader takes it, so a reader that takes nothing keeps a thread. Of one neighbour some
requests are answered at a time, and its next ones wait for those. When all threads are busy all the same and somebody
waits, a reader that takes nothing is told `Congested`, and its thread does the work of others.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

__all__ = ["READERS", "SHARE", "WRITERS", "AnswerPool"]

READERS: Final = 64
"""Queries answered at the same time, which is to say: readers that may be slow; the next ones wait."""

WRITERS: Final = 16
"""Batches, commits and cursors at the same time: they wait for the disk, and for nobody else."""

SHARE: Final = 8
"""Requests of one neighbour that are answered at the same time."""

_log: Final = logging.getLogger("elea.node")

Work = Callable[[], None]


class AnswerPool:
    """The threads of one broker."""

    def __init__(self, threads: int, name: str) -> None:
        self.running = 0
        """Requests that are being answered."""
        self._threads = threads
        self._submitted = 0  # and not ended: they run, or wait for a thread
        self._of_each: dict[object, int] = {}
        self._waiting: dict[object, deque[Work]] = {}
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)

    def is_crowded(self) -> bool:
        """Whether somebody waits because all threads are busy."""
        return self._submitted > self._threads

    def submit(self, asker: object, work: Work) -> None:
        """Have something done for a neighbour by one of the threads.

        Raises:
            RuntimeError: they have ended.
        """
        with self._lock:
            if self._of_each.get(asker, 0) >= SHARE:
                self._waiting.setdefault(asker, deque()).append(work)
                return
            self._of_each[asker] = self._of_each.get(asker, 0) + 1
            self._submitted += 1
        try:
            self._executor.submit(self._run, asker, work)
        except RuntimeError:
            self._ended(asker)
            raise

    def close(self) -> None:
        """Forget what waits, and return when what runs has ended."""
        with self._lock:
            self._waiting.clear()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _run(self, asker: object, work: Work | None) -> None:
        while work is not None:
            with self._lock:
                self.running += 1
            try:
                work()
            except Exception:  # noqa: BLE001 - the next one must be answered
                _log.exception("answering failed")
            work = self._next(asker)
            if work is None:
                self._ended(asker)

    def _next(self, asker: object) -> Work | None:
        """What the same neighbour waits for, if nobody else waits for a thread; else that queues behind the others."""
        with self._lock:
            self.running -= 1
            waiting = self._waiting.get(asker)
            if not waiting:
                return None
            work = waiting.popleft()
            if not waiting:
                del self._waiting[asker]
            if not self.is_crowded():
                return work
            self._submitted += 1
            self._of_each[asker] += 1
        try:
            self._executor.submit(self._run, asker, work)
        except RuntimeError:  # being closed
            self._ended(asker)
        return None

    def _ended(self, asker: object) -> None:
        with self._lock:
            self._submitted -= 1
            self._of_each[asker] -= 1
            if not self._of_each[asker]:
                del self._of_each[asker]
