"""Stores from a loop: range reads and cursors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from elea.aio.workers import in_thread
from elea.api import cursor as threaded_cursor
from elea.api import rangereader as threaded_reading

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.aio.storeclient import StoreClient

__all__ = ["Cursor", "Reading"]


class Reading:
    """The samples of a range, as an asynchronous iterator of record batches; see `elea.Session.read`."""

    def __init__(self, begin: Callable[[], threaded_reading.Reading]) -> None:
        self._begin = begin  # it may have to wait for room on a link, so not here
        self._inner: threaded_reading.Reading | None = None

    @property
    def log(self) -> str | None:
        """The log that is read, known from the first batch on."""
        return None if self._inner is None else self._inner.log

    @property
    def epoch(self) -> str | None:
        """The identity of its positions."""
        return None if self._inner is None else self._inner.epoch

    @property
    def first(self) -> int | None:
        """The position of its oldest sample."""
        return None if self._inner is None else self._inner.first

    @property
    def end(self) -> int | None:
        """The position behind its newest sample."""
        return None if self._inner is None else self._inner.end

    @property
    def next(self) -> int | None:
        """Where to go on, after the end."""
        return None if self._inner is None else self._inner.next

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the batches."""
        return None if self._inner is None else self._inner.schema

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        inner = await self._begun()
        while (batch := inner.ready()) is None:
            try:
                if not await in_thread(inner.fetch):
                    raise StopAsyncIteration
            except asyncio.CancelledError:
                inner.close()
                raise
        return batch

    async def read_all(self) -> pa.Table:
        """Everything that is left, as one table."""
        return await in_thread((await self._begun()).read_all)

    async def _begun(self) -> threaded_reading.Reading:
        if self._inner is None:
            self._inner = await in_thread(self._begin, unwanted=threaded_reading.Reading.close)
        return self._inner

    def close(self) -> None:
        """Read no more."""
        if self._inner is not None:
            self._inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        self.close()


class Cursor:
    """A named position in the log of a key expression; see `elea.Session.cursor`."""

    def __init__(self, storing: StoreClient, inner: threaded_cursor.Cursor) -> None:
        self._storing = storing
        self._inner = inner

    @property
    def name(self) -> str:
        """Its name, by which any session finds it."""
        return self._inner.name

    async def position(self) -> int | None:
        """The position the store has for it now; None if there is no such cursor."""
        position: int | None = (await self.facts())["position"]
        return position

    async def facts(self) -> dict[str, Any]:
        """`log`, `epoch`, `first` and `end` of the log, and `position` of the cursor."""
        return self._inner._said(await self._storing.run(self._inner.prepare()))

    async def move(self, position: int) -> None:
        """Put it there; it is made if there is none."""
        await self._storing.run(self._inner.prepare(f";move={position}"))

    async def drop(self) -> None:
        """Forget it."""
        await self._storing.run(self._inner.prepare(";drop"))
