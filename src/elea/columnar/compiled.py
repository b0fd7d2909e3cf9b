"""The kernels, where they can be had."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

__all__ = ["Kernels", "kernels", "writer"]

_log = logging.getLogger("elea.columnar")


class Kernels(NamedTuple):
    """The compiled loops; see `elea.columnar.kernels`."""

    scan: Callable[..., int]
    gather: Callable[..., int]


@cache
def kernels() -> Kernels | None:
    """The compiled loops; None where there is no Numba, and the slower way through flat tuples is taken."""
    try:
        from elea.columnar.kernels import gather, scan
    except ImportError:
        return None
    except RuntimeError as error:  # Numba finds no directory to keep compiled loops in
        _log.warning("columns are made without Numba: problem=%s hint=set NUMBA_CACHE_DIR", error)
        return None
    return Kernels(scan, gather)


@cache
def writer() -> Callable[..., int] | None:
    """The compiled loop that writes messages; None as for `kernels`."""
    if kernels() is None:
        return None
    from elea.columnar.writekernel import write

    return write
