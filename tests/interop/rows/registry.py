"""The rows of the matrix: one function a feature, written once against the API both libraries have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.interop.columns import Column

__all__ = ["NOT_YET", "ROWS", "Row", "row"]

NOT_YET: dict[str, str] = {}
"""Rows Elea cannot fill yet, each with the reason; they run all the same and stand in the matrix as "not yet"."""


@dataclass(frozen=True, slots=True)
class Row:
    """A feature; `play` returns what was observed, as plain values."""

    name: str
    play: Callable[[Any], Any]
    own: bool
    """Whether it builds its own network from the column, instead of using the one its column shares."""
    only: str | None
    """"routed" or "peers" when it makes sense only there."""
    reason: str

    def inapplicable(self, column: Column) -> str | None:
        """Why this row has no cell in `column`, if it has none."""
        if self.only is None or (self.only == "routed") == (column.router is not None):
            return None
        return self.reason


ROWS: dict[str, Row] = {}


def row(
    name: str, *, own: bool = False, only: str | None = None, reason: str = ""
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Make a function a row of the matrix."""

    def entered(play: Callable[[Any], Any]) -> Callable[[Any], Any]:
        assert name not in ROWS
        ROWS[name] = Row(name, play, own, only, reason)
        return play

    return entered
