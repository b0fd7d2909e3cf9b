"""Callbacks, and what a user may pass as handler."""

from __future__ import annotations

import logging
import queue
import threading

import pytest

from elea import handlers
from elea.api.callbacks import Callback, DirectSink
from elea.api.channels import Handler
from elea.api.sinks import Sink, into_handler

zenoh = pytest.importorskip("zenoh")


def sink_of(argument: object) -> Sink[int]:
    sink: Sink[int]
    sink, _ = into_handler(argument)
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

    with caplog.at_level(logging.ERROR, logger="elea.api"):
        direct = DirectSink(hear, end)
        direct.push(1)
        direct.push_many([1, 2])
        direct.close()

    assert said == [2]
    assert [record.message.split()[0:2] for record in caplog.records] == [["callback", "error"]] * 3
