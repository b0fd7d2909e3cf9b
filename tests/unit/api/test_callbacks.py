"""Callbacks, and what a user may pass as handler."""

from __future__ import annotations

import logging
import queue
import threading

import pytest

from elea import handlers
from elea.api.callbacks import Callback, Courier, DirectSink, IndirectSink
from elea.api.channels import Handler
from elea.api.sinks import Sink, into_handler

zenoh = pytest.importorskip("zenoh")


def sink_of(argument: object, courier: Courier | None = None) -> Sink[int]:
    sink: Sink[int]
    sink, _ = into_handler(argument, courier=courier)
    return sink


@pytest.mark.parametrize(
    ("argument", "capacity", "ring"),
    [
        (None, 256, False),
        (handlers.DefaultHandler[int](), 256, False),
        (handlers.FifoChannel[int](3), 3, False),
        (handlers.RingChannel[int](capacity=2), 2, True),
        (handlers.FifoChannel[int](0), 1, False),
    ],
)
def test_a_channel_is_its_own_handler(argument: object, capacity: int, ring: bool) -> None:
    sink: Sink[int]
    sink, handler = into_handler(argument, "Sample")

    assert sink is handler
    assert isinstance(handler, Handler)
    assert (handler._capacity, handler._ring, repr(handler)) == (capacity, ring, "Handler[Sample]")


def test_one_channel_given_twice_makes_two() -> None:
    channel = handlers.FifoChannel[int](4)

    assert into_handler(channel)[1] is not into_handler(channel)[1]


def test_a_function_has_no_handler() -> None:
    for function in (print, Callback(print), Callback(print, indirect=False), Handler):
        assert into_handler(function)[1] is None


def test_a_pair_has_the_second_as_handler() -> None:
    inbox: queue.Queue[int] = queue.Queue()
    sink: Sink[int]
    sink, handler = into_handler((Callback(inbox.put, indirect=False), inbox))

    sink.push(1)

    assert handler is inbox
    assert inbox.get_nowait() == 1
    assert into_handler((print, 7))[1] == 7


BAD = [5, "x", (1, 2), (print,), (print, 1, 2), [print, 1], queue.Queue(), object()]


@pytest.mark.parametrize("argument", BAD, ids=lambda argument: type(argument).__name__)
def test_anything_else_is_refused_as_by_the_real_one(argument: object) -> None:
    with pytest.raises(ValueError, match=f"nvalid handler type {type(argument).__name__}"):
        into_handler(argument)


@pytest.mark.parametrize("module", [handlers, zenoh.handlers])
def test_a_capacity_is_a_number_that_is_not_negative(module: object) -> None:
    for name in ("FifoChannel", "RingChannel"):
        make = getattr(module, name)
        with pytest.raises(OverflowError):
            make(-1)
        with pytest.raises(TypeError):
            make("a")
        with pytest.raises(TypeError):
            make()


def test_a_callback_has_its_parts() -> None:
    def end() -> None: ...

    callback = Callback(len, end)

    assert (callback.callback, callback.drop, callback.indirect) == (len, end, True)
    assert callback("abc") == 3
    assert "indirect=True" in repr(callback)
    with pytest.raises(TypeError):
        Callback(len, end, False)  # type: ignore[call-arg]


def test_a_direct_callback_runs_in_the_pushing_thread() -> None:
    threads: list[int] = []
    sink = sink_of(
        Callback(
            lambda _: threads.append(threading.get_ident()),
            lambda: threads.append(-threading.get_ident()),
            indirect=False,
        )
    )

    sink.push(1)
    sink.push_many([2, 3])
    sink.close()
    sink.close()

    me = threading.get_ident()
    assert threads == [me, me, me, -me]
    assert sink.dropped == 0


def test_an_indirect_callback_runs_elsewhere_in_order_and_ends_with_drop() -> None:
    said: list[object] = []
    threads: set[int] = set()

    def hear(item: int) -> None:
        threads.add(threading.get_ident())
        said.append(item)

    sink: IndirectSink[int] = IndirectSink(hear, lambda: said.append("end"), courier=Courier(idle=0.01))
    sink.push(0)
    sink.push_many(range(1, 1000))
    sink.close()
    sink.close()
    sink.push(5)

    assert sink.join(10)
    assert said == [*range(1000), "end"]
    assert threading.get_ident() not in threads
    assert sink.dropped == 0


def test_drop_runs_also_if_nothing_came() -> None:
    ended = threading.Event()
    sink = sink_of(Callback(print, ended.set))

    sink.close()

    assert ended.wait(10)


def test_a_callback_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    said: list[int] = []

    def hear(item: int) -> None:
        if item == 1:
            raise ValueError("boom")
        said.append(item)

    def end() -> None:
        raise RuntimeError("also")

    indirect = IndirectSink(hear, end)
    with caplog.at_level(logging.ERROR, logger="elea.api"):
        direct = DirectSink(hear, end)
        direct.push(1)
        direct.push_many([1, 2])
        direct.close()
        indirect.push_many([1, 2])
        indirect.close()
        assert indirect.join(10)

    assert said == [2, 2]
    assert [record.message.split()[0:2] for record in caplog.records] == [["callback", "error"]] * 5


def test_a_slow_callback_stops_no_other() -> None:
    courier = Courier()
    blocked, go, heard = threading.Event(), threading.Event(), threading.Event()

    def slow(_: int) -> None:
        blocked.set()
        go.wait(10)

    first: IndirectSink[int] = IndirectSink(slow, courier=courier)
    second: IndirectSink[int] = IndirectSink(lambda _: heard.set(), courier=courier)
    first.push(1)
    assert blocked.wait(10)
    second.push(1)

    assert heard.wait(10)
    go.set()


def test_more_callbacks_than_workers_all_get_their_turn() -> None:
    courier = Courier(workers=2, idle=0.01)
    heard: list[int] = []
    sinks = [IndirectSink(heard.append, courier=courier) for _ in range(50)]

    for number, sink in enumerate(sinks):
        sink.push_many([number] * 20)
    for sink in sinks:
        sink.close()

    assert all(sink.join(10) for sink in sinks)
    assert sorted(heard) == [number for number in range(50) for _ in range(20)]


def test_workers_end_when_there_is_nothing_to_do() -> None:
    courier = Courier(idle=0.01)
    sink: IndirectSink[int] = IndirectSink(lambda _: None, courier=courier)
    sink.push(1)
    sink.close()
    assert sink.join(10)

    pause = threading.Event()
    for _ in range(1000):
        if courier.workers == 0:
            break
        pause.wait(0.01)

    assert courier.workers == 0


def test_a_callback_may_close_and_join_its_own_sink() -> None:
    joined: list[bool] = []

    def hear(_: int) -> None:
        sink.close()
        joined.append(sink.join(10))

    sink: IndirectSink[int] = IndirectSink(hear)
    sink.push(1)

    assert sink.join(10)
    assert joined == [True]


def test_many_producers_lose_and_mix_up_nothing() -> None:
    said: list[tuple[int, int]] = []
    sink: IndirectSink[tuple[int, int]] = IndirectSink(said.append, capacity=8)

    def produce(me: int) -> None:
        for number in range(500):
            sink.push((me, number))

    threads = [threading.Thread(target=produce, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    sink.close()

    assert sink.join(30)
    assert len(said) == 2000
    for me in range(4):
        assert [number for who, number in said if who == me] == list(range(500))
