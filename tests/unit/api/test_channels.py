"""Channels: order, bounds, waiting, stalling, closing; also against a list as model."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.api.apierrors import ChannelClosed
from elea.api.channels import Handler
from elea.model.errors import OperationTimeout


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread to get somewhere; a test never depends on how long that takes."""
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("did not happen")


def test_items_come_in_order() -> None:
    channel: Handler[int] = Handler()

    channel.push(1)
    channel.push_many([2, 3])

    assert (channel.recv(), channel.try_recv(), channel.recv(), channel.try_recv()) == (1, 2, 3, None)


def test_a_closed_channel_gives_what_it_has_and_ends() -> None:
    channel: Handler[int] = Handler()
    channel.push_many([1, 2])
    channel.close()
    channel.push(3)
    channel.push_many([4])

    assert channel.is_closed
    assert list(channel) == [1, 2]
    assert list(channel) == []
    for take in (channel.recv, channel.try_recv):
        with pytest.raises(ChannelClosed, match="channel is empty and closed"):
            take()
    assert channel.dropped == 0


def test_a_waiting_consumer_gets_what_comes() -> None:
    channel: Handler[int] = Handler()
    got: list[int] = []
    thread = started(lambda: got.extend(channel))
    until(lambda: len(channel._takers) == 1)

    channel.push(1)
    channel.push_many([2, 3])
    channel.close()
    thread.join(10)

    assert got == [1, 2, 3]


def test_closing_wakes_every_waiting_consumer() -> None:
    channel: Handler[int] = Handler()
    threads = [started(lambda: list(channel)) for _ in range(3)]
    until(lambda: len(channel._takers) == 3)

    channel.close()

    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_a_wait_may_have_a_timeout() -> None:
    with pytest.raises(OperationTimeout):
        Handler[int]().recv(timeout=0.01)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals")
def test_a_signal_interrupts_a_wait() -> None:
    channel: Handler[int] = Handler()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            channel.recv()
    finally:
        signal.signal(signal.SIGALRM, before)
    channel.push(1)
    assert channel.recv() == 1


def test_a_ring_forgets_the_oldest() -> None:
    ring: Handler[int] = Handler(2, ring=True)

    for item in range(5):
        ring.push(item)

    assert (ring.try_recv(), ring.try_recv(), ring.try_recv()) == (3, 4, None)
    assert ring.dropped == 3


def test_a_capacity_of_nothing_still_passes_items_on() -> None:
    ring: Handler[int] = Handler(0, ring=True)
    fifo: Handler[int] = Handler(0)

    ring.push(1)
    fifo.push(1)

    assert (ring.recv(), fifo.recv()) == (1, 1)


def test_a_full_fifo_makes_the_producer_wait() -> None:
    fifo: Handler[int] = Handler(2)
    fifo.push_many([1, 2])
    thread = started(lambda: fifo.push(3))
    until(lambda: fifo._waiting == 1)

    assert len(fifo) == 2
    assert fifo.recv() == 1
    thread.join(10)

    assert (fifo.recv(), fifo.recv(), fifo.dropped) == (2, 3, 0)


def test_a_long_run_goes_through_a_short_fifo_in_order() -> None:
    fifo: Handler[int] = Handler(3)

    def produce() -> None:
        fifo.push_many(range(1000))
        fifo.close()

    thread = started(produce)

    assert list(fifo) == list(range(1000))
    thread.join(10)
    assert fifo.dropped == 0


def test_a_stopped_consumer_costs_one_patience_and_then_nothing() -> None:
    fifo: Handler[int] = Handler(1, patience=0.02)
    fifo.push(1)

    fifo.push(2)
    fifo.patience = 1000.0
    fifo.push(3)
    fifo.push_many([4, 5])

    assert fifo.dropped == 4
    assert fifo.recv() == 1
    fifo.push(6)
    assert fifo.recv() == 6


def test_all_producers_of_a_stalled_consumer_give_up_together() -> None:
    fifo: Handler[int] = Handler(1, patience=1000.0)
    fifo.push(1)
    patient = started(lambda: fifo.push(2))
    until(lambda: fifo._waiting == 1)

    fifo.patience = 0.01
    fifo.push(3)
    patient.join(10)

    assert not patient.is_alive()
    assert fifo.dropped == 2


def test_closing_wakes_a_waiting_producer() -> None:
    fifo: Handler[int] = Handler(1)
    fifo.push(1)
    threads = [started(lambda: fifo.push(2)), started(lambda: fifo.push_many([3, 4]))]
    until(lambda: fifo._waiting == 2)

    fifo.close()

    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert (list(fifo), fifo.dropped) == ([1], 0)


def test_an_offer_takes_what_fits_and_tells_when_there_is_room() -> None:
    fifo: Handler[int] = Handler(2)
    told: list[int] = []
    fifo.on_room = lambda: told.append(len(fifo))
    items = [1, 2, 3, 4, 5]

    at = fifo.offer(items)
    assert (at, told) == (2, [])
    assert fifo.recv() == 1
    assert told == [1]
    assert fifo.recv() == 2
    assert told == [1]
    at = fifo.offer(items, at)
    assert (at, fifo.try_recv(), fifo.drain(10)) == (4, 3, [4])
    assert told == [1, 1]
    assert fifo.offer(items, at) == 5
    fifo.close()
    assert fifo.offer(items) == 5
    assert list(fifo) == [5]


def test_closing_tells_a_producer_whose_offer_was_cut() -> None:
    fifo: Handler[int] = Handler(1)
    told: list[str] = []
    fifo.on_room = lambda: told.append("room")
    fifo.offer([1, 2])

    fifo.close()

    assert told == ["room"]


def test_draining_wakes_waiting_producers() -> None:
    fifo: Handler[int] = Handler(2)
    fifo.push_many([1, 2])
    thread = started(lambda: fifo.push_many([3, 4]))
    until(lambda: fifo._waiting == 1)

    assert fifo.drain(10) == [1, 2]
    thread.join(10)

    assert fifo.drain(10) == [3, 4]
    assert fifo.drain(10) == []


def test_a_handler_is_true_and_names_what_it_holds() -> None:
    assert Handler[int]()
    assert repr(Handler[int](of="Sample")) == "Handler[Sample]"
    assert repr(Handler[int]()) == "Handler"


OPERATIONS = st.lists(
    st.tuples(st.just("push"), st.integers())
    | st.tuples(st.just("many"), st.lists(st.integers(), max_size=9))
    | st.tuples(st.just("take"), st.none())
    | st.tuples(st.just("drain"), st.integers(1, 4))
)


@given(OPERATIONS, st.integers(1, 5))
def test_a_ring_behaves_as_a_bounded_list(operations: list[tuple[str, object]], capacity: int) -> None:
    ring: Handler[int] = Handler(capacity, ring=True)
    model: deque[int] = deque(maxlen=capacity)
    pushed = taken = 0

    for name, argument in operations:
        if name == "push" and isinstance(argument, int):
            ring.push(argument)
            model.append(argument)
            pushed += 1
        elif name == "many" and isinstance(argument, list):
            ring.push_many(argument)
            model.extend(argument)
            pushed += len(argument)
        elif name == "take":
            expected = model.popleft() if model else None
            assert ring.try_recv() == expected
            taken += expected is not None
        elif isinstance(argument, int):
            expected_many = [model.popleft() for _ in range(min(argument, len(model)))]
            assert ring.drain(argument) == expected_many
            taken += len(expected_many)

    assert ring.drain(100) == list(model)
    assert ring.dropped == pushed - taken - len(model)
