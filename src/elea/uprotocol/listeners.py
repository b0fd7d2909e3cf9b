"""Listeners of a transport: one subscriber for each key expression, and any number of functions behind it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from elea.model.logger import logger
from elea.uprotocol.message import UMessage
from elea.uprotocol.received import SampleReader
from elea.uprotocol.transport import ListenerFunction

if TYPE_CHECKING:
    from elea.api.sample import Sample
    from elea.api.subscriber import Subscriber

__all__ = ["Listening"]

_log = logger("elea.uprotocol")

LEAVING_SECONDS: Final = 5.0
"""How long whoever ends a listener waits for a call of it that is under way; who waits for us would wait for ever."""


class _Entry:
    """One listener: called until it is ended, and by nobody once `end` has returned."""

    __slots__ = ("_busy", "_call", "_gone")

    def __init__(self, call: ListenerFunction) -> None:
        self._call = call
        self._busy = threading.RLock()
        self._gone = False

    def call(self, message: UMessage) -> None:
        with self._busy:
            if self._gone:
                return
            try:
                self._call(message)
            except Exception:  # noqa: BLE001 - whatever a listener raises must not stop the others
                _log.exception("listener error listener=%r", self._call)

    def end(self) -> None:
        self._gone = True
        if self._busy.acquire(timeout=LEAVING_SECONDS):
            self._busy.release()


class Listening:
    """What listens with one pair of filters."""

    def __init__(self, reader: SampleReader, *, has_sink_filter: bool) -> None:
        self._reader = reader
        self._has_sink_filter = has_sink_filter
        self._entries: dict[object, _Entry] = {}
        self._calls: tuple[_Entry, ...] = ()
        self.subscriber: Subscriber[None] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, listener: object) -> bool:
        return listener in self._entries

    def add(self, listener: object, call: ListenerFunction) -> None:
        """Tell one more."""
        self._entries[listener] = _Entry(call)
        self._calls = tuple(self._entries.values())

    def remove(self, listener: object) -> _Entry:
        """Tell it no more; `end` what this returns, without holding a lock."""
        entry = self._entries.pop(listener)
        self._calls = tuple(self._entries.values())
        return entry

    def arrived(self, sample: Sample) -> None:
        """A sample has come."""
        message = self._reader.read(sample, has_sink_filter=self._has_sink_filter)
        if message is not None:
            for entry in self._calls:
                entry.call(message)

    def end(self) -> None:
        """Tell nobody any more."""
        entries, self._calls = self._calls, ()
        self._entries.clear()
        if self.subscriber is not None:
            self.subscriber._finish()
        for entry in entries:
            entry.end()
