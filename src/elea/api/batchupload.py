"""A batch on its way to a store in pieces: two at a time, stored in their order or not at all.

While a store syncs one piece the next one is made, sent and decoded. The store takes it only if the one before it is
there (`after`), so that what is stored of a batch always is its beginning. The first answer says whether a store knows
that; without it pieces go one by one.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from elea.api.outgoingquery import seconds
from elea.api.receipt import Receipt
from elea.api.storecall import TIMEOUT
from elea.model.errors import EleaError, NotStored, StoreError

if TYPE_CHECKING:
    from elea.api.batches import Piece
    from elea.api.samplenumbers import Taken
    from elea.api.storecall import Call
    from elea.api.storeclient import StoreClient

__all__ = ["BatchUpload"]

IN_FLIGHT: Final = 2
"""Pieces on their way at once: more would wait in the broker, for the disk."""


class BatchUpload:
    """The pieces that are on their way, and the sum of those that have arrived. Whoever waits for them drives it."""

    def __init__(self, storing: StoreClient, durability: str | None, timeout: float | None) -> None:
        storing.wants(durability, ack=True)
        self.total = Sum()
        self._storing = storing
        self._durability = durability
        self._timeout = TIMEOUT if timeout is None else seconds(timeout)
        self._last: str | None = None
        self._waiting: deque[tuple[Piece, int, Call]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether the oldest piece must have arrived before another may be sent."""
        return len(self._waiting) >= (IN_FLIGHT if self.total.is_in_turn else 1)

    @property
    def oldest(self) -> Call:
        """The piece to wait for."""
        return self._waiting[0][2]

    def add(self, piece: Piece, taken: Taken) -> Call:
        """The request for the next piece, to be sent now."""
        serial, entity, number = taken
        storing, node = self._storing, self._storing.node
        before = self._last if self.total.is_in_turn else None
        # The one behind another has the time of both, and its own when it is waited for.
        timeout = self._timeout * (1 + len(self._waiting))
        call = storing.prepare_batch(piece, f"{node}.{entity}.{number}", before, self._durability, timeout)
        self._last = f"{node}.{entity}.{number + piece.rows - 1}"
        self._waiting.append((piece, serial, call))
        return call

    def settle(self, answer: dict[str, Any]) -> None:
        """The oldest piece has been answered.

        Raises:
            NotStored, StoreError: not for all of it, or by another log.
        """
        piece, serial, call = self._waiting.popleft()
        self._storing.numbers.release(serial)
        self.total.add(piece.rows, answer, call)
        if self._waiting:
            self.oldest.renew(self._timeout)

    def end(self) -> None:
        """Nobody waits any more, for whatever reason."""
        while self._waiting:
            _, serial, call = self._waiting.popleft()
            call.cancel()
            self._storing.numbers.release(serial)


class Sum:
    """The receipts of the pieces of a batch, as one."""

    def __init__(self) -> None:
        self.is_in_turn = False
        """Whether the store keeps pieces in their order by itself."""
        self._first: dict[str, Any] | None = None
        self._rows = 0
        self._repeated = 0
        self._restamped = 0

    def add(self, rows: int, answer: dict[str, Any], call: Call) -> None:
        """A piece of `rows` samples was acknowledged."""
        try:
            kept = answer["rows"] + answer["repeated"]
            answer["log"], answer["epoch"], answer["first"]
        except KeyError as missing:
            raise StoreError(f"the answer of a store has no {missing}: {answer}") from None
        if kept != rows:
            raise NotStored(call.name)
        self.is_in_turn = bool(answer.get("in_turn"))
        if self._first is None:
            self._first = answer
        elif (self._first["log"], self._first["epoch"]) != (answer["log"], answer["epoch"]):
            raise StoreError(f"log {self._first['log']} was replaced by {answer['log']} between two parts of a batch")
        self._rows += rows
        self._repeated += answer["repeated"]
        self._restamped += answer.get("restamped", 0)

    def note(self, error: EleaError) -> None:
        """Say with an error what had been stored before it."""
        if self._rows:
            error.add_note(f"{self._rows} samples of the batch had been acknowledged before")

    def receipt(self) -> Receipt:
        """All of it."""
        if self._first is None:
            raise ValueError("a batch without samples has nothing to acknowledge")
        where = self._first["log"], self._first["epoch"], self._first["first"]
        return Receipt(*where, self._rows, self._repeated, self._restamped)
