"""Puts that want to know: published when they are stored, and acknowledged when they are safe.

They are published behind the commit, so that a retry reaches subscribers once and nobody sees what was refused. A
thread of its own does it, so that the disk does not wait; and it waits for no subscriber (`Republisher`).
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from elea.model.errors import EleaError
from elea.node.storage.storequery import StoreQuery
from elea.store import Receipt, Record

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.node.storage.putsrequest import Group
    from elea.node.storage.republisher import Republisher
    from elea.node.storage.storage import Storage
    from elea.store import Outcome

__all__ = ["Acknowledger", "PutRequest"]

_log: Final = logging.getLogger("elea.node")


class PutRequest:
    """A put, or a group of them, on its way to the log (`Waiting`)."""

    __slots__ = ("_queue", "asking", "group", "outcome", "records", "restamped")

    def __init__(
        self,
        queue: deque[PutRequest],
        asking: StoreQuery,
        records: Sequence[Record],
        group: Group | None,
        restamped: bool,
    ) -> None:
        self._queue = queue
        self.asking = asking
        self.records = records
        self.group = group
        self.restamped = restamped
        self.outcome: Outcome | None = None

    def settled(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._queue.append(self)


class Acknowledger:
    """The thread that publishes and acknowledges what one storage has stored."""

    def __init__(self, node: Node, storage: Storage, publishing: Republisher) -> None:
        self._node = node
        self._storage = storage
        self._publishing = publishing
        self._queue: deque[PutRequest] = deque()
        self._work = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._keys = json.dumps(storage.key_expr)
        storage.on_group = self._work.set

    def submit(
        self,
        asking: StoreQuery,
        records: list[Record],
        wait: float,
        group: Group | None = None,
        *,
        restamped: bool = False,
    ) -> None:
        """Store records, then publish them and answer: for the one sample they stand for, or for those of a group.

        Args:
            restamped: whether the one sample has another timestamp than it came with.

        Raises:
            Congested, StoreReadOnly: they are not stored.
        """
        if self._thread is None:
            name = f"elea-acknowledge-{self._storage.name}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
        self._storage.submit(records, PutRequest(self._queue, asking, records, group, restamped), wait=wait)

    def close(self) -> None:
        """Acknowledge what has been stored, and end; the storage must take no more."""
        self._closing = True
        self._work.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._work.wait()
            self._work.clear()
            ending = self._closing
            while self._queue:
                self._acknowledge([self._queue.popleft() for _ in range(len(self._queue))])
            if ending:
                return

    def _acknowledge(self, requests: list[PutRequest]) -> None:
        fresh = [record for request in requests for record in _fresh(request)]
        try:
            self._publishing.publish(fresh, self._storage)
        except EleaError as error:  # they are stored all the same
            _log.warning("stored samples not published: storage=%s problem=%s", self._storage.name, error)
        # As a reader does: answers are held until all have been given and leave in one write. A write for each, under
        # the lock of the node, would let the other threads in every time: 2,000 acknowledgements/s instead of 20,000.
        me = threading.get_ident()
        self._node.collecting.add(me)
        try:
            self._answer(requests)
        finally:
            self._node.collecting.discard(me)
            self._node.deliver_soon()

    def _answer(self, requests: list[PutRequest]) -> None:
        for request in requests:
            outcome = request.outcome
            if isinstance(outcome, Receipt):
                request.asking.reply_text(self.form(outcome, request.group, restamped=request.restamped))
                request.asking.done()
            elif outcome is not None:
                request.asking.fail(outcome)

    def form(self, receipt: Receipt, group: Group | None, *, restamped: bool = False) -> str:
        """The answer to who put one sample, or a group."""
        # `keys` says that samples of all these keys may come together, as `@store/puts`.
        head = f'{{"log":"{self._storage.name}","epoch":"{self._storage.log.epoch}","keys":{self._keys}'
        if group is not None:
            return f"{head},{group.form(receipt)}}}"
        if restamped:
            head += ',"restamped":1'
        if receipt.rows:
            return f'{head},"position":{receipt.first},"repeated":false}}'
        position = next(iter(receipt.repeated.values()), None)
        return f'{head},"position":{"null" if position is None else position},"repeated":true}}'


def _fresh(request: PutRequest) -> Sequence[Record]:
    outcome = request.outcome
    if not isinstance(outcome, Receipt):
        return []
    if not outcome.repeated:
        return request.records
    return [record for index, record in enumerate(request.records) if index not in outcome.repeated]
