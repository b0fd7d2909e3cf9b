"""Stores from a loop: acknowledged puts without a thread each, batches, range reads, cursors.

Acknowledgements come from the threads that read links, many at a time, as a store commits many at a time: the loop is
woken once for all that have come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

from elea.aio.calling import in_thread, in_thread_soon
from elea.api import cursor as threaded_cursor
from elea.api import reading as threaded_reading
from elea.api.batches import pieces_of
from elea.api.calling import Call
from elea.api.numbering import Numbers
from elea.api.receipt import Receipt
from elea.api.storing import Sum
from elea.api.zbytes import IntoZBytes
from elea.broker.delivery import Mailbox
from elea.model.errors import EleaError
from elea.model.keyexpr import KeyExpr

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.api import session as threaded
    from elea.io.sending import Outbox

__all__ = ["Cursor", "Reading", "Storing"]


class Storing:
    """What a session of a loop has to do with stores."""

    def __init__(self, session: threaded.Session) -> None:
        self._session = session
        self._inner = session._storing
        self._loop = asyncio.get_running_loop()
        self._told: deque[asyncio.Future[None]] = deque()
        self._waking = False
        self._box = Mailbox(self._rouse)
        self._due: list[tuple[Call, asyncio.Future[None]]] = []
        self.handovers = 0
        """How often the loop was woken."""

    # -- threads

    def _tell(self, future: asyncio.Future[None]) -> None:
        # Order matters: it is in, then the flag is looked at; the loop clears the flag, then looks what is there.
        self._told.append(future)
        if not self._waking:
            self._waking = True
            # Behind all that this thread is to bring now: a loop that is woken by the first acknowledgement of many
            # takes the interpreter away before the others are in.
            node = self._session._node
            node.round.add(self._box, None)
            node.deliver_soon()

    def _rouse(self, _: None) -> None:
        try:
            self._loop.call_soon_threadsafe(self.wake)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._told.clear()

    # -- the loop

    def wake(self) -> None:
        """Let all go on who have been told something."""
        self._waking = False
        self.handovers += 1
        told = self._told
        while told:
            future = told.popleft()
            if not future.done():
                future.set_result(None)

    async def put(self, *, ack: bool, numbers: Numbers | None = None, **options: Any) -> Receipt | None:
        """Put or delete a sample; options as in `elea.api.storing.Storing.prepare`."""
        numbers = self._inner.numbers if numbers is None else numbers
        serial, source = numbers.take() or await self._room(numbers, 1)
        released = False
        try:
            call = self._inner.prepare(source, **options)
            if not ack:
                released = True  # by who is told of the outcome
                await self._send(call, lambda: self._inner.send_only(call, numbers, serial))
                return None
            return self._inner.receipt(call, await self.run(call))
        finally:
            if not released:
                numbers.release(serial)

    async def put_batch(
        self,
        batch: pa.RecordBatch | pa.Table | Iterable[tuple[str, IntoZBytes]],
        key_expr: KeyExpr | str | None,
        durability: str | None = "persistent",
        timeout: float | None = None,
    ) -> Receipt:
        """Store many samples."""
        total, numbers = Sum(), self._inner.numbers
        for piece in pieces_of(batch, key_expr):
            serial, source = numbers.take(piece.rows) or await self._room(numbers, piece.rows)
            try:
                call = self._inner.prepare_batch(piece.key, piece.data, source, durability, timeout)
                total.add(piece.rows, await self.run(call), call)
            except EleaError as error:
                total.note(error)
                raise
            finally:
                numbers.release(serial)
        return total.receipt()

    async def run(self, call: Call) -> dict[str, Any]:
        """Drive a call: the small answer.

        Raises:
            EleaError: why there is none.
        """
        calls = self._inner.calls
        calls.add(call)
        try:
            while True:
                future = self._loop.create_future()
                self._due.append((call, future))
                if len(self._due) == 1:
                    self._loop.call_soon(self._send_due)
                await future
                pause = call.judge()
                if pause is None:
                    return call.answer()
                await asyncio.sleep(pause)
        except asyncio.CancelledError:
            call.cancel()
            raise
        finally:
            calls.discard(call)

    def _send_due(self) -> None:
        """Send what all tasks that have had their turn have left here: acknowledged together, they go on together."""
        due, self._due = self._due, []
        if self._is_full(due[0][0]):
            in_thread_soon(lambda: self._send_all(due))
        else:
            self._send_all(due)

    def _send_all(self, due: list[tuple[Call, asyncio.Future[None]]]) -> None:
        held = [(outbox, outbox.hold()) for outbox in self._outboxes()] if len(due) > 1 else []
        try:
            for call, future in due:
                try:
                    call.send(self._teller(future))
                except EleaError as error:
                    call.fail(error)
        finally:
            for outbox, was in held:
                outbox.let_go(was)

    def _outboxes(self) -> list[Outbox]:
        sessions = [connection.session for connection in tuple(self._session._runtime.links.connections)]
        return [session.outbox for session in sessions if session is not None]

    def _teller(self, future: asyncio.Future[None]) -> Callable[[], None]:
        return lambda: self._tell(future)

    async def _send(self, call: Call, send: Callable[[], None]) -> None:
        if self._is_full(call):
            await in_thread(send)
        else:
            send()

    async def _room(self, numbers: Numbers, count: int) -> tuple[int, str]:
        """A place among the unacknowledged numbers, waiting for it."""
        while (found := numbers.take(count)) is None:
            future = self._loop.create_future()
            numbers.when_room(self._teller(future))
            await future
        return found

    def _is_full(self, call: Call) -> bool:
        """Whether sending would have to wait for room on some link."""
        return any(outbox.is_full(call.conduit) for outbox in self._outboxes())


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

    def __init__(self, storing: Storing, inner: threaded_cursor.Cursor) -> None:
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
