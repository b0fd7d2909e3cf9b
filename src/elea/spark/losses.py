"""What tasks could not read although the driver had planned it: told to the driver, which counts it in the offset.

Retention that may pass cursors (`past_cursors`) can remove positions between the plan of a batch and its tasks, most of
all where a batch is read again after a crash. Spark has no way from a task back to the source. So the driver's process
answers questions on a key of its own; a task asks, with what is gone, and goes on when the driver has noted it.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import EleaError
from elea.spark.sessions import session_of

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.spark.options import ReadOptions

__all__ = ["Losses", "tell"]

_log: Final = logging.getLogger("elea.spark")


class Losses:
    """The driver's side: stretches of positions that tasks have passed over. Tasks that are tried again count once."""

    def __init__(self, session: Session) -> None:
        self.key: Final = f"@elea/spark/lost/{uuid.uuid4().hex}"
        self._lock: Final = threading.Lock()
        self._gone: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._counted: dict[tuple[str, str], int] = {}
        self._queryable: Final = session.declare_queryable(self.key, self._note)

    def _note(self, query: Any) -> None:
        told = json.loads(query.payload.to_bytes())
        self.note(told["log"], told["epoch"], told["first"], told["end"])
        query.reply(self.key, b"")

    def note(self, log: str, epoch: str, first: int, end: int) -> None:
        """Positions from `first` to before `end` are gone."""
        with self._lock:
            stretches = sorted([*self._gone.get((log, epoch), []), (first, end)])
            merged = stretches[:1]
            for low, high in stretches[1:]:
                if low <= merged[-1][1]:
                    merged[-1] = merged[-1][0], max(merged[-1][1], high)
                else:
                    merged.append((low, high))
            self._gone[log, epoch] = merged

    def waiting(self, log: str, epoch: str) -> int:
        """Positions of a log that are in no offset yet."""
        with self._lock:
            gone = sum(end - first for first, end in self._gone.get((log, epoch), ()))
            return gone - self._counted.get((log, epoch), 0)

    def take(self, log: str, epoch: str) -> int:
        """The same; from now on they are in one."""
        count = self.waiting(log, epoch)
        with self._lock:
            self._counted[log, epoch] = self._counted.get((log, epoch), 0) + count
        return count

    def close(self) -> None:
        """Answer no more."""
        self._queryable.undeclare()


def tell(options: ReadOptions, key: str, log: str, epoch: str, first: int, end: int) -> None:
    """A task's side: have the driver note positions that are gone; a driver that does not answer is only logged."""
    said = json.dumps({"log": log, "epoch": epoch, "first": first, "end": end})
    try:
        replies = session_of(options).get(key, payload=said, timeout=options.request_timeout_ms / 1000)
        is_noted = any(reply.ok is not None for reply in replies)
    except EleaError as error:
        _log.debug("driver not asked: key=%s problem=%s", key, error)
        is_noted = False
    if not is_noted:
        _log.warning("samples lost, and not counted: log=%s first=%d last=%d reason=trimmed", log, first, end - 1)
