"""From figures to a table that explains itself when it is pasted somewhere."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.node.cases import OTHERS, Figure, Goal

__all__ = ["Row", "Table"]


@dataclass(slots=True)
class Row:
    """One figure over all rounds, by library."""

    name: str
    goal: Goal | None = None
    values: dict[str, list[float]] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)

    def add(self, lib: str, figure: Figure) -> None:
        self.goal = self.goal or figure.goal
        self.values.setdefault(lib, []).append(figure.value)
        if figure.lost is not None:
            self.lost[lib] = self.lost.get(lib, 0) + figure.lost

    def ratio(self, other: str) -> float | None:
        """Elea's median by the other's."""
        if not self.values.get("elea") or not self.values.get(other):
            return None
        base = statistics.median(self.values[other])
        return statistics.median(self.values["elea"]) / base if base else None

    def met(self) -> bool | None:
        """Is the goal reached? None if there is none, or nothing to judge by."""
        if self.goal is None or not self.values.get("elea"):
            return None
        value = statistics.median(self.values["elea"]) if self.goal.absolute else self.ratio("zenoh")
        return None if value is None else self.goal.met(value)


class Table:
    """All rows, in the order they were first seen."""

    def __init__(self, absent: Iterable[str] = ()) -> None:
        self.rows: dict[str, Row] = {}
        self.notes: list[str] = []
        self.incomplete = False
        self.absent = set(absent)

    def add(self, lib: str, figure: Figure) -> None:
        self.rows.setdefault(figure.row, Row(figure.row)).add(lib, figure)

    def failed(self, error: Exception, where: str, *, again: bool) -> None:
        """A measurement failed; `again` if it is tried once more."""
        self.incomplete |= not again
        self.notes.append(f"{where}: {'tried again, as' if again else 'failed,'} {error}")

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "row": row.name,
                "rounds": row.values,
                "median": {lib: statistics.median(values) for lib, values in row.values.items()},
                "ratio": {lib: row.ratio(lib) for lib in row.values if lib != "elea"},
                "lost": row.lost,
                "target": None if row.goal is None else str(row.goal),
                "met": row.met(),
            }
            for row in self.rows.values()
        ]
        return {
            "rows": rows,
            "notes": self.notes,
            "complete": not self.incomplete,
            "not installed": sorted(self.absent),
        }

    def lines(self) -> list[str]:
        """A Markdown table, aligned."""
        cells = [["", "eclipse-zenoh", "elea", "ratio", "target", "lost"]]
        for row in self.rows.values():
            cells.append([row.name, *self._compared(row, "zenoh"), target(row), lost(row)])
            cells += [
                [f"{row.name}, beside {name}", *self._compared(row, lib), "", lost(row, lib)]
                for lib, name in OTHERS.items()
                if lib in row.values or (lib in self.absent and shares(row.name, lib))
            ]
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        done = ["| " + " | ".join(padded(line, widths)) + " |" for line in cells]
        rule = [f"|{'-' * (width + 1)}{':' if 1 <= column <= 3 else '-'}" for column, width in enumerate(widths)]
        return [done[0], "".join(rule) + "|", *done[1:]]

    def _compared(self, row: Row, other: str) -> list[str]:
        ratio = row.ratio(other)
        beside = "not installed" if other in self.absent else spread(row.values.get(other))
        return [beside, spread(row.values.get("elea")), "" if ratio is None else f"{ratio:.2f}×"]


def shares(row: str, lib: str) -> bool:
    """Would `lib` have a figure in this row, if it were there?"""
    return row.startswith("round trip") and row.endswith("through the broker" if lib == "redis" else ", direct")


def target(row: Row) -> str:
    if row.goal is None:
        return ""
    return f"{ {True: '✓', False: '✗', None: '?'}[row.met()] } {row.goal}"


def lost(row: Row, other: str = "zenoh") -> str:
    """What got lost in all rounds together, the other library first."""
    if not row.lost:
        return ""
    return " / ".join(str(row.lost.get(lib, "?")) for lib in (other, "elea"))


def spread(values: list[float] | None) -> str:
    if not values:
        return "failed"
    middle = short(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({short(min(values))}–{short(max(values))})"


def short(value: float) -> str:
    """Three digits, with k or M."""
    for least, unit, letter in ((1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= least:
            return short(value / unit) + letter
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


def padded(line: list[str], widths: list[int]) -> list[str]:
    return [
        cell.rjust(width) if 1 <= column <= 3 else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
