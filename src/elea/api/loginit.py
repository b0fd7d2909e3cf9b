"""Logs on request: the two functions by which programs written for eclipse-zenoh switch them on.

Levels come from the environment variable `RUST_LOG`, as there: `debug`, or `warn,elea.io=trace`. They apply to the
loggers of this library only, and their output goes to stdout. Nothing else in this library configures logging.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Final

__all__ = ["init_log_from_env_or", "try_init_log_from_env"]

VARIABLE: Final = "RUST_LOG"
ROOT: Final = "elea"
TRACE: Final = 5
OFF: Final = logging.CRITICAL + 10
LEVELS: Final = {
    "off": OFF,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE,
}
NUMBERS: Final = {str(number): level for number, level in enumerate(LEVELS.values())}
FORMAT: Final = "%(asctime)s %(levelname)5s %(threadName)s %(name)s: %(message)s"


def try_init_log_from_env() -> None:
    """Write logs to stdout if the environment variable `RUST_LOG` is set, at the levels it names."""
    wanted = os.environ.get(VARIABLE)
    if wanted is not None:
        _start(wanted)


def init_log_from_env_or(level: str) -> None:
    """Write logs to stdout at the levels `RUST_LOG` names, or at `level` if it is not set."""
    _start(os.environ.get(VARIABLE, level))


def _start(text: str) -> None:
    logger = logging.getLogger(ROOT)
    if any(isinstance(handler, _Stdout) for handler in logger.handlers):
        return  # the first call counts, as in eclipse-zenoh
    levels = _levels(text)
    handler = _Stdout()
    handler.setFormatter(logging.Formatter(FORMAT))
    logger.addHandler(handler)
    # A program that also has a handler at the root would get every line twice.
    logger.propagate = False
    logger.setLevel(levels.pop(ROOT, OFF if levels else logging.ERROR))
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def _levels(text: str) -> dict[str, int]:
    """Logger names to levels; what is no directive is named on stderr and passed over."""
    found: dict[str, int] = {}
    for directive in filter(None, map(str.strip, text.split(","))):
        target, equals, name = directive.rpartition("=")
        level = LEVELS.get(name.lower(), NUMBERS.get(name))
        if level is None and not equals:
            # A target alone means everything of it.
            target, level = name, TRACE
        if level is None:
            sys.stderr.write(f"ignoring `{directive}`: levels are {', '.join(LEVELS)}, or a number 0-5\n")
            continue
        logger = _logger(target)
        if logger is not None:
            found[logger] = level
    return found


def _logger(target: str) -> str | None:
    """The logger a target means; None for other libraries' targets. All of eclipse-zenoh's stand for all of ours."""
    if not target or target.startswith("zenoh"):
        return ROOT
    name = target.replace("::", ".")
    return name if name == ROOT or name.startswith(f"{ROOT}.") else None


class _Stdout(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to stdout; a type of its own so that it is found again."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)
