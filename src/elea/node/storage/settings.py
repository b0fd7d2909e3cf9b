"""What a configuration says of storages. Nothing here imports the store, since every session reads its settings."""

from __future__ import annotations

import re
import zlib
from typing import Final

from elea.model.values import value_class

__all__ = ["DEFAULT_LOG", "StorageSettings", "StoreSettings", "name_of"]

DEFAULT_LOG: Final = "default"
"""The log of a store directory for keys that no storage was declared for."""

UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@value_class
class StorageSettings:
    """One storage: which keys, where, how much of them."""

    name: str
    key_expr: str
    directory: str | None
    """None keeps in memory."""

    complete: bool = True
    relaxed: bool = False
    """Whether samples are only as safe as the operating system, until it writes them."""

    max_age: float | None = None
    max_bytes: int | None = None
    max_samples: int | None = None
    past_cursors: bool = False
    strip_prefix: str = ""
    """What its keys begin with and the files leave out."""

    align_with: tuple[str, ...] = ()
    """Locators of brokers whose log of the same key expression it is aligned with."""

    align_interval: float = 10.0
    align_delay: float = 0.25
    """Seconds between two rounds; seconds a sample is left to arrive by itself."""

    @property
    def durability(self) -> str:
        """How long its samples outlive their writers."""
        return "transient" if self.directory is None else "persistent"


@value_class
class StoreSettings:
    """All storages of a broker, and the directory of its default log."""

    storages: tuple[StorageSettings, ...] = ()
    default: StorageSettings | None = None


def name_of(key_expr: str) -> str:
    """A name for the storage of a key expression, which is also the name of its directory: the same at every start.

    >>> name_of("home/**")
    'home-all-360cd09d'
    """
    words = ["all" if chunk == "**" else "any" if chunk == "*" else chunk for chunk in key_expr.split("/")]
    short = UNSAFE.sub("_", "-".join(words))[:64].strip(".-_") or "keys"
    return f"{short}-{zlib.crc32(key_expr.encode()):08x}"
