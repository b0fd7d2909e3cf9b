"""What a publisher has tried to put and what was acknowledged, written by itself, line by line, as it happens.

A line is `{"tried": [first, end]}` before the puts and `{"acknowledged": [first, end]}` after them. A line that was cut
off by the end of its process says nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

__all__ = ["Ledger", "Writer", "read"]


class Writer:
    """Writes the ledger of one publisher."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = path.open("a", encoding="utf-8")

    def note(self, what: str, first: int, end: int) -> None:
        """Put down that the numbers from `first` up to `end` were tried, or acknowledged."""
        self._file.write(json.dumps({what: [first, end]}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Nothing more will be noted."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class Ledger:
    """The accounts of one publisher."""

    by: str
    tried: int = 0
    """How many numbers, from 0 on, were tried."""

    acknowledged: frozenset[int] = field(default_factory=frozenset)


def read(path: Path) -> Ledger:
    """The ledger in a file, which is named after its publisher."""
    tried = 0
    acknowledged: set[int] = set()
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        form = json.loads(line)
        if "tried" in form:
            tried = max(tried, form["tried"][1])
        else:
            acknowledged.update(range(*form["acknowledged"]))
    return Ledger(path.stem, tried, frozenset(acknowledged))
