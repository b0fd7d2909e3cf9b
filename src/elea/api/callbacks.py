"""Callbacks: user functions called with what was received, one item after the other, never under a lock.

They run in the thread that read the item off its link; when one takes its time, another thread goes on with the reading
(`elea.io.dispatch`). So ten thousand subscribers need no ten thousand threads, a quick callback costs no hand-over,
and a slow one stops no other. `indirect` is kept for programs written for eclipse-zenoh and makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from elea.model.logger import logger

__all__ = ["Callback", "DirectSink"]

T = TypeVar("T")

_log = logger("elea.api")


class Callback(Generic[T]):
    """A function for received items, one for the end, and which thread they run in.

    >>> said = []
    >>> callback = Callback(said.append, lambda: said.append("end"), indirect=False)
    >>> callback("item"), callback.indirect, said
    (None, False, ['item'])
    """

    __slots__ = ("_callback", "_drop", "_indirect")

    def __init__(
        self, callback: Callable[[T], object], drop: Callable[[], object] | None = None, *, indirect: bool = True
    ) -> None:
        self._callback = callback
        self._drop = drop
        self._indirect = indirect

    def __call__(self, arg: T, /) -> object:
        """Call the function."""
        return self._callback(arg)

    @property
    def callback(self) -> Callable[[T], object]:
        """The function called with every item."""
        return self._callback

    @property
    def drop(self) -> Callable[[], object] | None:
        """The function called when no more items will come."""
        return self._drop

    @property
    def indirect(self) -> bool:
        """Whether the functions run in a thread of their own, and not in the one that receives."""
        return self._indirect

    def __repr__(self) -> str:
        return f"Callback({self._callback!r}, {self._drop!r}, indirect={self._indirect})"


class DirectSink(Generic[T]):
    """Calls at once, in the thread that pushes; the pusher holds no lock that a callback could want."""

    __slots__ = ("_call", "_closed", "_drop", "dropped")

    def __init__(self, call: Callable[[T], object], drop: Callable[[], object] | None = None) -> None:
        self._call = call
        self._drop = drop
        self._closed = False
        self.dropped = 0

    def push(self, item: T) -> None:
        """Call with one item; an exception is logged and goes no further."""
        try:
            self._call(item)
        except Exception:  # noqa: BLE001 - whatever a user's function raises must not stop the receiver
            _report("callback", self._call)

    def push_many(self, items: Sequence[T]) -> None:
        """Call with each item in turn."""
        call = self._call
        for item in items:
            try:
                call(item)
            except Exception:  # noqa: BLE001 - as above
                _report("callback", call)

    def close(self) -> None:
        """Call `drop`, once."""
        if self._closed:
            return
        self._closed = True
        _run_drop(self._drop)


def _run_drop(drop: Callable[[], object] | None) -> None:
    if drop is None:
        return
    try:
        drop()
    except Exception:  # noqa: BLE001 - as for the callback
        _report("drop", drop)


def _report(what: str, function: Callable[..., object]) -> None:
    """Log what a user's function raised: as text, since whoever kept the exception would keep what it was called with,
    and a query ends with its last reference.
    """
    import traceback  # for failures only

    _log.error("callback error %s=%r\n%s", what, function, traceback.format_exc().rstrip())
