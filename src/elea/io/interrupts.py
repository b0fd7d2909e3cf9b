"""Signals of the main thread, which may raise an exception between any two steps of it (Ctrl-C).

The main thread may lead the loop. While it takes what has come, an interrupt is held back, so that nothing is taken by
half; it is raised when all is done. Handlers of other signals cannot be told from those that raise: where there are
any, the main thread does not lead.
"""

from __future__ import annotations

import _signal  # the functions behind `signal`, which take 3 µs for their enumerations
import signal
from typing import Final

__all__ = ["Shield", "may_be_interrupted"]

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


class Shield:
    """Holds back Ctrl-C; for the main thread."""

    def __init__(self) -> None:
        self._came = False
        self._before: object = None

    def __enter__(self) -> None:
        self._before = _signal.getsignal(_INTERRUPT)
        if callable(self._before):
            _signal.signal(_INTERRUPT, self._note)

    def __exit__(self, *_: object) -> None:
        before = self._before
        if callable(before):
            _signal.signal(_INTERRUPT, before)
            if self._came:
                self._came = False
                before(_INTERRUPT, None)

    def _note(self, *_: object) -> None:
        self._came = True
