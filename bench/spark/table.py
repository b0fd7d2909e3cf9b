"""From figures to a table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from bench.node.table import padded, short, spread
from bench.spark.cases import CPU, Row

__all__ = ["Table"]


class Table:
    """The figures of all rounds, by name."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)
        self.values: dict[str, list[float]] = {}
        self.notes: list[str] = []
        self.incomplete = False

    def add(self, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self.values.setdefault(name, []).append(value)

    def failed(self, error: Exception, where: str, *, again: bool) -> None:
        """A measurement failed; `again` if it is tried once more."""
        self.incomplete |= not again
        self.notes.append(f"{where}: {'tried again, as' if again else 'failed,'} {type(error).__name__}: {error}")

    def interrupted(self) -> None:
        """Somebody had no patience."""
        self.incomplete = True
        self.notes.append("interrupted: figures are missing")

    def ratio(self, row: Row) -> float | None:
        ours, theirs = self.values.get(row.ours), self.values.get(row.theirs)
        return statistics.median(ours) / statistics.median(theirs) if ours and theirs else None

    def met(self, row: Row) -> bool | None:
        """Is the goal reached? None if there is none, or nothing to judge by."""
        ratio = self.ratio(row)
        return None if row.goal is None or ratio is None else row.goal.met(ratio)

    def as_json(self) -> dict[str, Any]:
        """All there is."""
        rows = [
            {
                "row": row.name,
                "rounds": self.values.get(row.ours),
                "beside": row.beside or None,
                "rounds there": self.values.get(row.theirs),
                "ratio": self.ratio(row),
                "target": None if row.goal is None else str(row.goal),
                "met": self.met(row),
            }
            for row in self.rows
        ]
        return {"rows": rows, "figures": self.values, "notes": self.notes, "complete": not self.incomplete}

    def _cpu(self, name: str) -> str:
        values = self.values.get(name + CPU)
        return short(statistics.median(values)) if values else ""

    def lines(self) -> list[str]:
        """A Markdown table, aligned."""
        cells = [["", "elea, rows/s", "beside it, rows/s", "ratio", "target", "CPU µs a row", "beside it"]]
        for row in self.rows:
            ratio = self.ratio(row)
            cells.append(
                [
                    row.name,
                    spread(self.values.get(row.ours)),
                    spread(self.values.get(row.theirs)) if row.theirs else "",
                    "" if ratio is None else f"{ratio:.2f}×",
                    "" if row.goal is None else f"{ {True: '✓', False: '✗', None: '?'}[self.met(row)] } {row.goal}",
                    " / ".join(self._cpu(name) for name in (row.ours, row.theirs) if name),
                    row.beside,
                ]
            )
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        done = ["| " + " | ".join(padded(line, widths)) + " |" for line in cells]
        rule = [f"|{'-' * (width + 1)}{':' if 1 <= column <= 3 else '-'}" for column, width in enumerate(widths)]
        return [done[0], "".join(rule) + "|", *done[1:]]
