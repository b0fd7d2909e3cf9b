"""Storages that catch up with those of other brokers: a thread for each broker, a round for each storage.

A round is made when the broker is reached, also again, and then from time to time. It brings what the other log has and
ours lacks (`elea.store.alignment`); the other broker does the same in its own rounds if it is told to.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from elea.io.systemrandom import SystemRandom
from elea.model import keyexpr
from elea.model.errors import AlignmentFailed, EleaError, InvalidKeyExpr
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.timestamp import Timestamp, ntp64_from_ns
from elea.node.runtime import Runtime
from elea.node.storage.aligner_answers import own_scope
from elea.node.storage.aligner_calls import Calls
from elea.node.storage.aligner_facts import Alignment
from elea.node.storage.settings import DEFAULT_LOG
from elea.store.alignment import Aligned, align

if TYPE_CHECKING:
    from elea.node.connection import Connection
    from elea.node.links import LinkSettings
    from elea.node.node import Node
    from elea.node.storage.storage import Storage
    from elea.store import Record

__all__ = ["Aligner"]

_log: Final = logging.getLogger("elea.node")

CONNECT_SECONDS: Final = 1.0
"""Between two attempts to reach a broker; never longer than the interval."""

ENDING_SECONDS: Final = 5.0
"""How long an end waits for what is under way: reaching a broker that does not answer may take longer."""

JITTER: Final = 0.2
"""By so much of an interval, at most, a round is earlier or later: brokers shall not go in step."""


class Aligner:
    """All alignments of a broker."""

    def __init__(self, node: Node, links: LinkSettings, storages: Sequence[Storage], id: str) -> None:
        self._partners: list[_Partner] = []
        for locator in sorted({locator for storage in storages for locator in storage.settings.align_with}):
            chosen = [storage for storage in storages if locator in storage.settings.align_with]
            self._partners.append(_Partner(node, links, locator, chosen, id))

    def start(self) -> None:
        """Begin."""
        for partner in self._partners:
            partner.thread.start()

    def close(self) -> None:
        """End; what is under way is given up."""
        for partner in self._partners:
            partner.stop()
        for partner in self._partners:
            partner.thread.join(ENDING_SECONDS)


class _Partner:
    """Another broker, and the storages that are aligned with it."""

    def __init__(self, node: Node, links: LinkSettings, locator: str, storages: Sequence[Storage], id: str) -> None:
        self._node = node
        self._links = links
        self._locator = locator
        self._id = id
        self._chance = SystemRandom()
        self._interval = min(storage.settings.align_interval for storage in storages)
        self._alignments = {storage: Alignment(storage.name, locator) for storage in storages}
        for storage, alignment in self._alignments.items():
            storage.alignments.append(alignment)
        self._runtime: Runtime | None = None
        self._sessions = 0
        self._bell = threading.Event()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"elea-align-{locator}", daemon=True)

    def stop(self) -> None:
        """Begin to end: nobody waits for the other broker any more."""
        self.stopping.set()
        self._bell.set()
        runtime = self._runtime
        if runtime is not None:
            runtime.close()

    def _run(self) -> None:
        try:
            while not self.stopping.is_set():
                self._bell.clear()
                pause = self._visit()
                if not self.stopping.is_set():
                    self._bell.wait(pause)
        finally:
            if self._runtime is not None:
                self._runtime.close()

    def _changed(self, connection: Connection, is_open: bool) -> None:
        """A session with the other broker has come or gone; if it has come again, a round is due."""
        if is_open:
            self._sessions += 1
            if self._sessions > 1:
                self._bell.set()

    def _is_there(self) -> bool:
        return self._runtime is not None and any(one.face is not None for one in self._runtime.links.connections)

    def _visit(self) -> float:
        """A round for each storage; seconds until the next."""
        try:
            runtime = self._reached()
        except EleaError as error:
            for alignment in self._alignments.values() if not self.stopping.is_set() else ():
                alignment.failed_with(f"it cannot be reached: {error}")
            return min(CONNECT_SECONDS, self._interval)
        for storage, alignment in self._alignments.items():
            if self.stopping.is_set():
                break
            try:
                alignment.done(self._round(runtime, storage, alignment), self._node.loop.wall_ns())
            except EleaError as error:
                if not self.stopping.is_set():
                    alignment.failed_with(str(error))
            except Exception as error:  # noqa: BLE001 - the others shall be aligned all the same
                alignment.failed_with(f"an internal {type(error).__name__}; see the log of this broker")
                _log.exception("alignment failed: storage=%s", storage.name)
        jitter = self._chance.randrange(-1000, 1001) / 1000 * JITTER
        return self._interval * (1 + jitter)

    def _reached(self) -> Runtime:
        """The node that asks, with a session.

        Raises:
            EleaError: there is none at present.
        """
        if self._runtime is None:
            node_id = NodeId.random(self._chance)
            self._runtime = Runtime(node_id.data, Role.CLIENT, self._links, timestamping=False)
            self._runtime.links.link_listeners.append(self._changed)
        if self.stopping.is_set():  # whoever stops has not seen the new node
            raise AlignmentFailed("this broker is being closed")
        if not self._runtime.is_configured:
            self._runtime.connect([self._locator], timeout=0.0, must=True)
        elif not self._is_there():
            raise AlignmentFailed("the link is lost; it is tried again")
        return self._runtime

    def _round(self, runtime: Runtime, storage: Storage, alignment: Alignment) -> Aligned:
        log = DEFAULT_LOG if storage.name == DEFAULT_LOG else None
        calls = Calls(runtime, storage.key_expr, log, self.stopping.is_set)

        def bring(records: list[Record]) -> None:
            if calls.far == self._id:
                raise AlignmentFailed("it is this broker itself; name another")
            _check_keys(storage, {record.key for record in records})
            now_ns = self._node.loop.wall_ns()
            storage.bring([record._replace(arrival_ns=now_ns) for record in records])
            alignment.brought += len(records)
            # What is put here from now on is later than what was brought.
            newest = max(record.ntp64 for record in records)
            self._node.clock.update(Timestamp(newest, NodeId(self._node.node_id)), now_ns)

        storage.wait_settled()
        now_ns = self._node.loop.wall_ns()
        until = ntp64_from_ns(max(now_ns - int(storage.settings.align_delay * 1e9), 0))
        ahead = self._node.clock.limit(now_ns) + 1
        found = align(storage.log, storage.digest, calls, own_scope(storage, now_ns), bring, until=until, ahead=ahead)
        alignment.node = calls.far
        if calls.far == self._id:
            raise AlignmentFailed("it is this broker itself; name another")
        return found


def _check_keys(storage: Storage, keys: set[str]) -> None:
    for key in keys:
        try:
            keyexpr.check(key)
        except InvalidKeyExpr as error:
            raise AlignmentFailed(f"it has a sample on {key!r}: {error}") from error
        if "*" in key or not storage.has(key):
            raise AlignmentFailed(f"it has a sample on {key!r}, which does not belong to {storage.key_expr}")
