"""Elea's data pipeline on Spark: `format("zenoh")` to read and write, sessions, tables, progress.

Importing this costs nothing: every name is fetched when it is first used, so that executors import what they need only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elea.spark import delta
    from elea.spark.deltaingest import ingest
    from elea.spark.progress import progress
    from elea.spark.sparksession import session

__all__ = ["delta", "ingest", "progress", "session"]

_FUNCTIONS = {
    "ingest": "elea.spark.deltaingest",
    "session": "elea.spark.sparksession",
    "progress": "elea.spark.progress",
}
_MODULES = {"delta": "elea.spark.delta"}


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        # The import binds the module to the name; the function of that name is what is meant, from now on.
        found = globals()[name] = getattr(import_module(_FUNCTIONS[name]), name)
        return found
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
