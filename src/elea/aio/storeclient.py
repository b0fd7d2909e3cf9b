"""Stores from a loop: acknowledged puts without a thread each, and batches.

Acknowledgements come from the threads that read links, many at a time, as a store commits many at a time: the loop is
woken once for all that have come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from elea.aio.putgroups import Together
from elea.aio.workers import in_thread, in_thread_soon
from elea.api.batches import pieces_of
from elea.api.batchupload import BatchUpload
from elea.api.putgroups import Lane, Outcome
from elea.api.receipt import Receipt
from elea.api.samplenumbers import Numbers, Taken
from elea.api.storecall import Call
from elea.api.zbytes import IntoZBytes
from elea.io.dispatch import Mailbox
from elea.model.errors import EleaError
from elea.model.keyexpr import KeyExpr
from elea.wire.puts import Given

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.api import session as threaded
    from elea.io.outbox import Outbox

__all__ = ["StoreClient"]


class StoreClient:
    """What a session of a loop has to do with stores."""

    def __init__(self, session: threaded.Session) -> None:
        self._session = session
        self._inner = session._storing
        self._loop = asyncio.get_running_loop()
        self._told: deque[Callable[[], object]] = deque()
        self._waking = False
        self._box = Mailbox(self._rouse)
        self._due: list[tuple[Call, Callable[[], None]] | Together] = []
        self._groups: dict[tuple[str, int], Together] = {}
        self.handovers = 0
        """How often the loop was woken."""

    # -- threads

    def _tell(self, go_on: Callable[[], object]) -> None:
        # Order matters: it is in, then the flag is looked at; the loop clears the flag, then looks what is there.
        self._told.append(go_on)
        if self._inner.closing.is_set():  # nobody brings anything any more
            self._rouse(None)
        elif not self._waking:
            self._waking = True
            # Behind all that this thread is to bring now: a loop that is woken by the first acknowledgement of many
            # takes the interpreter away before the others are in.
            node = self._session._node
            node.dispatch.add(self._box, None)
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
            told.popleft()()

    async def put(self, *, ack: bool, numbers: Numbers | None = None, **options: Any) -> Receipt | None:
        """Put or delete a sample; options as in `elea.api.storeclient.StoreClient.prepare`."""
        inner = self._inner
        numbers = inner.numbers if numbers is None else numbers
        serial, entity, number = numbers.take() or await self._room(numbers, 1)
        released = False
        try:
            if not ack:
                call = inner.prepare(entity, number, **options)
                released = True  # by who is told of the outcome
                await self._send(call, lambda: inner.send_only(call, numbers, serial))
                return None
            durability = options["durability"]
            found = inner.in_group(entity, number, options)
            outcome = None if found is None else await self._join(*found)
            if isinstance(outcome, Receipt):
                return outcome
            if isinstance(outcome, EleaError):
                raise outcome
            call = inner.prepare(entity, number, **options)
            if outcome is not None and outcome.deadline is not None:
                call.resume(outcome.deadline)
            return inner.receipt(call, await self.run(call), durability)
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
        sending, numbers = BatchUpload(self._inner, durability, timeout), self._inner.numbers
        arriving: deque[asyncio.Task[dict[str, Any]]] = deque()
        try:
            for piece in pieces_of(batch, key_expr):
                call = sending.add(piece, numbers.take(piece.rows) or await self._room(numbers, piece.rows))
                arriving.append(self._loop.create_task(self.run(call)))
                while sending.is_full:
                    sending.settle(await arriving.popleft())
            while sending:
                sending.settle(await arriving.popleft())
        except EleaError as error:
            sending.total.note(error)
            raise
        finally:
            sending.end()
            for task in arriving:
                task.cancel()
            await asyncio.gather(*arriving, return_exceptions=True)
        return sending.total.receipt()

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
                self._add((call, self._teller(partial(_wake, future))))
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

    def _join(self, lane: Lane, given: Given) -> Awaitable[Outcome]:
        """Let a sample go with those of its lane that are due."""
        group = self._groups.get((lane.keys, lane.qos))
        if group is None or not group.takes(lane):
            group = self._groups[lane.keys, lane.qos] = Together(self._session, self._inner.kept, lane)
            self._add(group)
        return group.join(given, self._loop.create_future())

    def _add(self, due: tuple[Call, Callable[[], None]] | Together) -> None:
        self._due.append(due)
        if len(self._due) == 1:
            self._loop.call_soon(self._send_due)

    def _send_due(self) -> None:
        """Send what all tasks that have had their turn have left here: acknowledged together, they go on together."""
        due, self._due = self._due, []
        self._groups.clear()
        ready = [one for each in due if (one := self._ready(each)) is not None]
        if ready and self._is_full(ready[0][0]):
            in_thread_soon(lambda: self._send_all(ready))
        else:
            self._send_all(ready)

    def _ready(self, due: tuple[Call, Callable[[], None]] | Together) -> tuple[Call, Callable[[], None]] | None:
        if not isinstance(due, Together):
            return due
        call = due.ready()
        if call is None:
            return None
        self._inner.calls.add(call)
        return call, self._teller(partial(self._settle, due, call))

    def _settle(self, group: Together, call: Call) -> None:
        """A group has been answered, or not."""
        self._inner.calls.discard(call)
        found = group.judge()
        if isinstance(found, float):
            self._loop.call_later(found, self._add, group)
        else:
            group.settle(found)

    def _send_all(self, due: list[tuple[Call, Callable[[], None]]]) -> None:
        held = [(outbox, outbox.hold()) for outbox in self._outboxes()] if len(due) > 1 else []
        try:
            for call, done in due:
                try:
                    call.send(done)
                except EleaError as error:
                    call.fail(error)
        finally:
            for outbox, was in held:
                outbox.let_go(was)

    def _outboxes(self) -> list[Outbox]:
        found = [connection.machine.outbox for connection in tuple(self._session._runtime.links.connections)]
        return [outbox for outbox in found if outbox is not None]

    def _teller(self, go_on: Callable[[], object]) -> Callable[[], None]:
        return partial(self._tell, go_on)

    async def _send(self, call: Call, send: Callable[[], None]) -> None:
        if self._is_full(call):
            await in_thread(send)
        else:
            send()

    async def _room(self, numbers: Numbers, count: int) -> Taken:
        """A place among the unacknowledged numbers, waiting for it."""
        while (found := numbers.take(count)) is None:
            future = self._loop.create_future()
            numbers.when_room(self._teller(partial(_wake, future)))
            await future
        return found

    def _is_full(self, call: Call) -> bool:
        """Whether sending would have to wait for room on some link."""
        return any(outbox.is_full(call.conduit) for outbox in self._outboxes())


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
