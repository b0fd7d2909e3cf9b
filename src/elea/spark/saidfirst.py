"""Errors that begin with the sentence that helps.

Spark shows what goes wrong in a source as the text of a Python traceback, and what there is to do stands in its last
line, behind the insides of Elea. Those are left out: our errors say all there is. Where Spark shows causes (it does in
streams), these come before their effects, and one that was never raised has no frames: so the sentence is made the
cause of its error, and stands first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from inspect import isgeneratorfunction
from typing import Any, TypeVar

from elea.model.errors import EleaError

__all__ = ["Problem", "says_first"]

C = TypeVar("C", bound=type)

CALLED = (
    "schema reader streamReader writer streamWriter pushFilters partitions read initialOffset latestOffset "
    "reportLatestOffset commit write"
).split()
"""What Spark calls, and reports errors of."""


class Problem(Exception):
    """What is wrong, and what to do about it."""

    __module__ = "elea"


def says_first(cls: C) -> C:
    """A class that Spark calls, whose errors begin with their text."""
    for name in CALLED:
        method = cls.__dict__.get(name)
        if callable(method):
            setattr(cls, name, _streaming(method) if isgeneratorfunction(method) else _saying(method))
    return cls


def _saying(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return method(*args, **options)
        except EleaError as error:
            raise error.with_traceback(None) from Problem(str(error))

    return called


def _streaming(method: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @functools.wraps(method)
    def called(*args: Any, **options: Any) -> Iterator[Any]:
        try:
            yield from method(*args, **options)
        except EleaError as error:
            raise error.with_traceback(None) from Problem(str(error))

    return called
