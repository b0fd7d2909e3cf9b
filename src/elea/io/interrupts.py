"""Signals of the main thread, which may raise an exception between any two steps of it (Ctrl-C).

The main thread may lead the loop, or write to a link. Meanwhile an interrupt is held back, so that nothing is taken or
written by half; it is raised when all is done, or while the thread sleeps. Handlers of other signals cannot be told
from those that raise: where there are any, the main thread does not lead.
"""

from __future__ import annotations

import _signal  # the functions behind `signal`, which take 3 µs for their enumerations
import signal
import threading
from typing import Final

__all__ = ["Shield", "is_main_thread", "may_be_interrupted"]

_INTERRUPT: Final = int(signal.SIGINT)
_OTHERS: Final = tuple(
    int(getattr(signal, name))
    for name in ("SIGALRM", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGCHLD", "SIGVTALRM", "SIGPROF")
    if hasattr(signal, name)
)


def may_be_interrupted() -> bool:
    """Whether a signal other than Ctrl-C has a handler in Python."""
    for number in _OTHERS:  # noqa: SIM110 - a generator costs more than all of this
        if callable(_signal.getsignal(number)):
            return True
    return False


def is_main_thread() -> bool:
    """Whether this is the thread in which signals are handled."""
    return threading.get_ident() == threading.main_thread().ident


class Shield:
    """Holds back Ctrl-C while it is up; for the main thread."""

    def __init__(self) -> None:
        self.came = False
        """Whether it holds one back."""
        self._before: object = None

    @property
    def is_up(self) -> bool:
        """Whether it was put up, and a handler is there to hold back."""
        return self._before is not None

    def up(self) -> None:
        """Hold back what comes from now on."""
        if self._before is None:
            before = _signal.getsignal(_INTERRUPT)
            if callable(before):
                _signal.signal(_INTERRUPT, self._note)
                self._before = before

    def down(self) -> None:
        """Let through what was held back, and what comes from now on; nothing where it is not up."""
        before = self._before
        if callable(before):
            self._before = None
            _signal.signal(_INTERRUPT, before)
            if self.came:
                self.came = False
                before(_INTERRUPT, None)

    def __enter__(self) -> None:
        self.up()

    def __exit__(self, *_: object) -> None:
        self.down()

    def _note(self, *_: object) -> None:
        self.came = True
