"""From what a user passes as `handler` to where a session pushes items."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from elea.api.arrowhandler import Arrow
from elea.api.callbacks import Callback, DirectSink
from elea.api.channels import DEFAULT_CAPACITY, Handler

__all__ = ["DefaultHandler", "FifoChannel", "RingChannel", "Sink", "into_handler"]

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """Where a session pushes what it receives for one entity."""

    @property
    def dropped(self) -> int:
        """Items lost because the sink was full."""

    def push(self, item: T_contra, /) -> None:
        """Deliver one item."""

    def push_many(self, items: Sequence[T_contra], /) -> None:
        """Deliver several items, which is cheaper than one by one."""

    def close(self) -> None:
        """Nothing more will come."""


class DefaultHandler(Generic[T]):
    """Asks for the handler used when none is given: a fifo channel of 256 items."""

    __slots__ = ()


class FifoChannel(Generic[T]):
    """Asks for a channel that makes the producer wait when it is full.

    A consumer that takes nothing for 5 seconds loses what comes until it takes again; see `elea.api.channels`.
    """

    __slots__ = ("_capacity",)

    def __init__(self, capacity: int) -> None:
        self._capacity = _checked(capacity)

    @property
    def capacity(self) -> int:
        """How many items wait at most."""
        return self._capacity


class RingChannel(Generic[T]):
    """Asks for a channel that forgets the oldest item when it is full."""

    __slots__ = ("_capacity",)

    def __init__(self, capacity: int) -> None:
        self._capacity = _checked(capacity)

    @property
    def capacity(self) -> int:
        """How many items are kept."""
        return self._capacity


def into_handler(argument: object, of: str = "") -> tuple[Sink[T], object]:
    """Where to push, and what the user gets as `handler`, for what they passed.

    ==============================  ============================  =========================
    passed                          pushed to                     `handler`
    ==============================  ============================  =========================
    None, `DefaultHandler()`        a fifo channel of 256         the channel
    `FifoChannel`, `RingChannel`    a new channel of that rule    the channel
    a function, a `Callback`        the function                  None
    (function, anything)            the function                  the second of the pair
    ==============================  ============================  =========================

    Raises:
        ValueError: it is none of these.
    """
    if argument is None or isinstance(argument, DefaultHandler):
        return _channel(DEFAULT_CAPACITY, False, of)
    if isinstance(argument, Arrow):
        raise ValueError(
            "an Arrow handler is for subscribers of live samples; leave out mode, history, since and cursor"
        )
    if isinstance(argument, FifoChannel | RingChannel):
        return _channel(argument.capacity, isinstance(argument, RingChannel), of)
    if callable(argument):
        return _calling(argument), None
    if isinstance(argument, tuple) and len(argument) == 2 and callable(argument[0]):
        return _calling(argument[0]), argument[1]
    raise ValueError(
        f"invalid handler type {type(argument).__name__}: pass None, a channel, a function, "
        "or a pair of a function and what `handler` shall be"
    )


def _channel(capacity: int, ring: bool, of: str) -> tuple[Handler[T], Handler[T]]:
    channel: Handler[T] = Handler(capacity, ring=ring, of=of)
    return channel, channel


def _calling(function: Callable[..., object]) -> Sink[T]:
    if not isinstance(function, Callback):
        return DirectSink(function)
    return DirectSink(function.callback, function.drop)


def _checked(capacity: int) -> int:
    number = operator.index(capacity)
    if number < 0:
        raise OverflowError(f"a capacity is not negative, {number} is")
    return number
