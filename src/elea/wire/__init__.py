"""Bytes to messages and back, one package per dialect.

Importing a codec costs nothing but the codec: the definitions, the JSON form and the dissection are loaded when
`dialect_named` is first called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elea.wire.dialect import Dialect

__all__ = ["DIALECTS", "compiled", "dialect_named"]

DIALECTS = ("zenoh1", "zenoh2018", "xrce2017")


def dialect_named(name: str) -> Dialect:
    """The dialect called `name`."""
    if name not in DIALECTS:
        raise KeyError(f"no dialect is called {name!r}; there are {', '.join(DIALECTS)}")
    dialect: Dialect = import_module(f"elea.wire.{name}.dialect").DIALECT
    return dialect


def compiled() -> bool:
    """Whether the codecs run as machine code (mypyc) rather than as plain Python."""
    file = import_module("elea.wire.primitives").__file__ or ""
    return not file.endswith((".py", ".pyc"))
