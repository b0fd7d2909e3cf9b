"""`logger`: what `logging.getLogger` gives, without `logging` until there is something to say.

It brings `traceback`, `tokenize`, `string` and more, some 4 ms and 0.7 MB of a client's start, and most clients never
say anything. What is below a warning reaches nobody as long as the program has not imported `logging` itself.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["logger"]

_BELOW_WARNING: Final = frozenset({"debug", "info"})


def logger(name: str) -> Logger:
    """The logger of that name; the same one as others get from `logging`, with the same handlers and levels."""
    return cast("Logger", _Later(name))


class _Later:
    """Looks for the logger whenever one of its methods is asked for, which happens with every line, or never."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute in _BELOW_WARNING and "logging" not in sys.modules:
            return _say_nothing
        from logging import getLogger

        return getattr(getLogger(self._name), attribute)


def _say_nothing(*_: object, **__: object) -> None: ...
