"""Group commit: many writers, one sync. Whatever has come while the disk was busy goes to it as one batch.

The broker gives `run` a thread of its own, so that a slow disk stops nothing but acknowledgements. Outcomes are
handed out once a group: waking a loop or a condition per sample would cost more than the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from elea.model.errors import Congested, StoreError, StoreFull, StoreReadOnly
from elea.model.limits import STORE_BLOCK_BYTES, STORE_PENDING_BYTES
from elea.store.log import Log
from elea.store.record import Receipt, Record

__all__ = ["Committer", "Outcome"]

T = TypeVar("T")

Outcome = Receipt | StoreError


class Committer(Generic[T]):
    """Appends what is submitted, and delivers what became of it as (token, outcome), one list a group."""

    def __init__(
        self, log: Log, deliver: Callable[[list[tuple[T, Outcome]]], None], *, pending_bytes: int = STORE_PENDING_BYTES
    ) -> None:
        self._log = log
        self._deliver = deliver
        self._bound = pending_bytes
        self._waiting: list[tuple[Sequence[Record], T, int]] = []
        self._octets = 0
        self._closing = False
        self._turn = threading.Condition()
        self.groups = 0
        """Groups committed so far."""

    def has_room(self) -> bool:
        """Whether half of what may wait for the disk is free."""
        return self._octets <= self._bound // 2

    def submit(self, records: Sequence[Record], token: T, *, beyond: bool = False) -> None:
        """Queue samples; any thread may. A single submission is stored together, in its order.

        They are taken `beyond` the bound for those who wait for room afterwards.

        Raises:
            Congested: too much is waiting for the disk already.
            StoreReadOnly: the committer is closed.
        """
        octets = sum(len(record.payload) + 200 for record in records)
        with self._turn:
            if self._closing:
                raise StoreReadOnly("it is being closed")
            if self._octets and self._octets + octets > self._bound and not beyond:
                raise Congested(f"{self._octets} octets wait for the disk, the limit is {self._bound}; try again later")
            self._waiting.append((records, token, octets))
            self._octets += octets
            if len(self._waiting) == 1:
                self._turn.notify()

    def run(self) -> None:
        """Commit groups until `close`, and everything submitted before it."""
        while group := self._next_group():
            self._deliver(self._commit(group))
            self.groups += 1

    def close(self) -> None:
        """Take nothing more; `run` ends when everything is committed."""
        with self._turn:
            self._closing = True
            self._turn.notify()

    def _next_group(self) -> list[tuple[Sequence[Record], T]]:
        with self._turn:
            while not self._waiting and not self._closing:
                self._turn.wait()
            octets, count = 0, 0
            for _, _, size in self._waiting:
                octets += size
                count += 1
                if octets >= STORE_BLOCK_BYTES:
                    break
            group = [(records, token) for records, token, _ in self._waiting[:count]]
            del self._waiting[:count]
            self._octets -= octets
            return group

    def _commit(self, group: list[tuple[Sequence[Record], T]]) -> list[tuple[T, Outcome]]:
        try:
            whole = self._log.append([record for records, _ in group for record in records])
        except (StoreFull, StoreReadOnly) as error:
            return [(token, error) for _, token in group]
        except StoreError:
            # One submission has a value that cannot be stored: the others shall not suffer for it.
            return [(token, self._append(records)) for records, token in group]
        found: list[tuple[T, Outcome]] = []
        start, first = 0, whole.first
        for records, token in group:
            receipt = _share(whole, start, len(records), first)
            found.append((token, receipt))
            start += len(records)
            first += receipt.rows
        return found

    def _append(self, records: Sequence[Record]) -> Outcome:
        try:
            return self._log.append(records)
        except StoreError as error:
            return error


def _share(whole: Receipt, start: int, count: int, first: int) -> Receipt:
    """The part of a group's receipt that belongs to the `count` samples from index `start`."""
    if not whole.repeated:
        return Receipt(first, count, {})
    repeated = {at - start: whole.repeated[at] for at in range(start, start + count) if at in whole.repeated}
    return Receipt(first, count - len(repeated), repeated)
