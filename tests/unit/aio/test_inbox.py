"""The hand-over from threads to a loop: overflow rules, batches, waiting, functions."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from elea.aio.inbox import TURN, Caller, Inbox, Overflow, into_inbox
from elea.api.apierrors import ChannelClosed
from elea.api.callbacks import Callback
from elea.api.sinks import FifoChannel, RingChannel
from elea.model.errors import OperationTimeout


def in_other_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def pushing(inbox: Inbox[int], count: int) -> threading.Thread:
    """Push the first `count` numbers from another thread."""

    def push() -> None:
        for number in range(count):
            inbox.push(number)

    return in_other_thread(push)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(10):
            await main()

    asyncio.run(limited())


@pytest.mark.parametrize(
    ("overflow", "kept"), [("drop_oldest", [7, 8, 9]), ("drop_newest", [0, 1, 2])], ids=["oldest", "newest"]
)
def test_full_inbox_forgets_by_its_rule(overflow: Overflow, kept: list[int]) -> None:
    async def main() -> None:
        inbox: Inbox[int] = Inbox(capacity=3, overflow=overflow)
        pushing(inbox, 10).join()
        inbox.close()

        assert [await inbox.recv() for _ in range(3)] == kept
        assert inbox.dropped == 7
        with pytest.raises(ChannelClosed):
            await inbox.recv()

    run(main)


def test_full_inbox_that_blocks_loses_nothing() -> None:
    async def main() -> None:
        inbox: Inbox[int] = Inbox(capacity=3)
        thread = pushing(inbox, 1000)

        assert [await inbox.recv() for _ in range(1000)] == list(range(1000))
        thread.join()
        assert inbox.dropped == 0

    run(main)


def test_unknown_overflow_rule_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="drop_oldest"):
            Inbox(overflow="explode")  # type: ignore[arg-type]

    run(main)


def test_a_burst_is_one_hand_over() -> None:
    async def main() -> None:
        inbox: Inbox[int] = Inbox(capacity=1000)
        pushing(inbox, 1000).join()

        for number in range(1000):
            assert await inbox.recv() == number
        assert inbox.handovers == 1

    run(main)


def test_other_tasks_run_while_items_are_taken() -> None:
    async def main() -> None:
        inbox: Inbox[int] = Inbox(capacity=10 * TURN)
        pushing(inbox, 10 * TURN).join()
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(10 * TURN):
            await inbox.recv()
        task.cancel()
        assert turns >= 9

    run(main)


def test_every_waiter_gets_one_item() -> None:
    async def main() -> None:
        inbox: Inbox[int] = Inbox()
        waiting = [asyncio.create_task(inbox.recv()) for _ in range(5)]
        await asyncio.sleep(0)
        pushing(inbox, 5)

        assert sorted(await asyncio.gather(*waiting)) == [0, 1, 2, 3, 4]

    run(main)


def test_cancelled_waiter_passes_its_wake_up_on() -> None:
    async def main() -> None:
        inbox: Inbox[int] = Inbox()
        first, second = asyncio.create_task(inbox.recv()), asyncio.create_task(inbox.recv())
        await asyncio.sleep(0)
        inbox.push(1)
        inbox._wake()  # the first is woken, and cancelled before it runs
        first.cancel()

        assert await second == 1
        assert first.cancelled()

    run(main)


def test_waiting_ends_in_time() -> None:
    async def main() -> None:
        inbox: Inbox[int] = Inbox()
        with pytest.raises(OperationTimeout):
            await inbox.recv(timeout=0.01)
        inbox.push(1)
        assert await inbox.recv(timeout=1) == 1

    run(main)


def test_close_wakes_every_waiter() -> None:
    async def main() -> None:
        inbox: Inbox[int] = Inbox()
        waiting = [asyncio.create_task(inbox.recv()) for _ in range(3)]
        await asyncio.sleep(0)
        in_other_thread(inbox.close)

        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(outcome, ChannelClosed) for outcome in outcomes)

    run(main)


def test_push_after_the_loop_was_closed_is_forgotten() -> None:
    async def main() -> Inbox[int]:
        return Inbox(capacity=1)

    inbox = asyncio.run(main())
    inbox.push(1)
    inbox.push(2)  # would wait for room if somebody could make it

    assert inbox.abandoned
    inbox.close()


def test_functions_are_called_one_after_the_other() -> None:
    async def main() -> None:
        running, most, got, dropped = 0, 0, [], []

        async def function(item: int) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            got.append(item)

        inbox: Inbox[int] = Inbox(capacity=100)
        caller = Caller(inbox, function, lambda: dropped.append(True))
        pushing(inbox, 100).join()
        in_other_thread(inbox.close).join()
        await caller.settle()

        assert got == list(range(100))
        assert most == 1
        assert dropped == [True]

    run(main)


def test_a_failing_function_is_logged_and_called_on(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        got: list[int] = []

        def function(item: int) -> None:
            if item == 0:
                raise RuntimeError("user's mistake")
            got.append(item)

        inbox: Inbox[int] = Inbox()
        caller = Caller(inbox, function)
        inbox.push(0)
        inbox.push(1)
        await caller.settle()

        assert got == [1]

    with caplog.at_level(logging.ERROR, "elea.aio"):
        run(main)
    assert "user's mistake" in caplog.text


def test_idle_function_leaves_no_task_behind() -> None:
    async def main() -> None:
        inbox: Inbox[int] = Inbox()
        caller = Caller(inbox, lambda item: None)
        inbox.push(0)
        await caller.settle()

        assert asyncio.all_tasks() == {asyncio.current_task()} | {t for t in asyncio.all_tasks() if t.done()}

    run(main)


def test_what_may_be_a_handler() -> None:
    async def main() -> None:
        def function(item: int) -> None: ...

        inbox: Inbox[int]
        caller: Caller[int] | None
        inbox, caller, user = into_inbox(RingChannel(2), "", capacity=9, overflow="block")
        assert caller is None
        for number in range(5):
            inbox.push(number)
        assert len(inbox) == 2
        inbox, caller, _ = into_inbox(FifoChannel(2), "", capacity=9, overflow="drop_newest")
        assert caller is None
        _, caller, user = into_inbox((function, "mine"), "", capacity=9, overflow="block")
        assert user == "mine"
        _, caller, user = into_inbox(Callback(function, lambda: None), "", capacity=9, overflow="block")
        assert caller is not None
        assert user is None
        with pytest.raises(ValueError, match="invalid handler"):
            into_inbox(3, "", capacity=9, overflow="block")

    run(main)
