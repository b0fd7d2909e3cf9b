"""From figures to tables: what was measured, by number of clients, and which targets are met."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from bench.node.table import Row as Cell
from bench.node.table import lost, short, spread
from bench.scale.rows import FANS, ORDER, Row

__all__ = ["Figures", "Target", "target_lines", "targets"]

LIBRARIES: Final = ("zenoh", "elea")
MANY: Final = 1_000  # clients; with fewer, what a router needs once weighs more than what they need
CROWD: Final = 10_000
FEW: Final = 100


class Figures:
    """Everything measured: a cell for each row and number of clients, with both libraries in it."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, int], Cell] = {}
        self.notes: list[str] = []
        self.incomplete = False

    def add(self, lib: str, clients: int, *, row: str, value: float, lost: int | None) -> None:
        cell = self.cells.setdefault((row, clients), Cell(row))
        cell.values.setdefault(lib, []).append(value)
        if lost is not None:
            cell.lost[lib] = cell.lost.get(lib, 0) + lost

    def missing(self, note: str) -> None:
        """Something could not be measured."""
        self.incomplete = True
        self.notes.append(note)

    @property
    def counts(self) -> list[int]:
        """The numbers of clients for which Elea has figures."""
        return sorted({clients for (_, clients), cell in self.cells.items() if cell.values.get("elea")})

    def median(self, row: str, clients: int, lib: str = "elea") -> float | None:
        cell = self.cells.get((row, clients))
        return statistics.median(cell.values[lib]) if cell and cell.values.get(lib) else None

    def ratio(self, row: str, clients: int) -> float | None:
        """Elea's median by the other's."""
        cell = self.cells.get((row, clients))
        return cell.ratio("zenoh") if cell else None

    def lines(self) -> list[str]:
        """A Markdown table, aligned."""
        cells = [["", "clients", "eclipse-zenoh", "elea", "ratio", "lost"]]
        for row in ORDER:
            for clients in sorted(clients for name, clients in self.cells if name == row):
                cell, ratio = self.cells[row, clients], self.ratio(row, clients)
                medians = [spread(cell.values[lib]) if cell.values.get(lib) else "" for lib in LIBRARIES]
                by = "" if ratio is None else f"{ratio:.2f}×"
                cells.append([str(row), str(clients), *medians, by, lost(cell)])
        return markdown(cells, right=range(1, 5))

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "row": str(row),
                "clients": clients,
                "rounds": cell.values,
                "median": {lib: statistics.median(values) for lib, values in cell.values.items()},
                "ratio": cell.ratio("zenoh"),
                "lost": cell.lost,
            }
            for (row, clients), cell in self.cells.items()
        ]
        return {"rows": rows, "notes": self.notes, "complete": not self.incomplete}


@dataclass(frozen=True, slots=True)
class Target:
    """Something wanted of Elea: a figure that is at most `limit`. None is a figure that was not taken."""

    name: str
    limit: float
    value: float | None
    unit: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.value is None else self.value <= self.limit

    def as_json(self) -> dict[str, Any]:
        return {"target": self.name, "at most": self.limit, "unit": self.unit, "value": self.value, "met": self.met}

    def cells(self) -> list[str]:
        value = "not measured" if self.value is None else short(self.value) + self.unit
        return [self.name, f"≤ {self.limit:g}{self.unit}", value, {True: "✓", False: "✗", None: "?"}[self.met]]


def targets(figures: Figures) -> list[Target]:
    """All of them, judged by what was measured."""
    return [*resources(figures), *beside_the_other(figures), *growth(figures)]


def resources(figures: Figures) -> Iterator[Target]:
    counts = figures.counts
    yield threads(figures, counts)
    many = [clients for clients in counts if clients >= MANY] or counts
    yield Target("memory per idle client", 24, worst(figures, Row.MEMORY, many), " kB")
    yield Target("opening a session, CPU", 0.4, worst(figures, Row.OPEN_CPU, many), " ms")
    yield Target(f"{CROWD} clients at rest, CPU", 10, figures.median(Row.REST, CROWD), " %")


def threads(figures: Figures, counts: list[int]) -> Target:
    """As many with the most clients as with the fewest."""
    few, most = (figures.median(Row.THREADS, clients) for clients in (counts[:1] + counts[-1:] or [0, 0]))
    if few is None or len(counts) < 2:
        return Target("threads with the most clients, as with the fewest", 0, None)
    return Target(f"threads with {counts[-1]} clients, as with {counts[0]}", few, most)


def beside_the_other(figures: Figures) -> Iterator[Target]:
    for fan in FANS:
        for clients in (FEW, MANY):
            name = f"{fan.name}, {clients} clients, CPU per delivery beside eclipse-zenoh"
            yield Target(name, fan.limit, figures.ratio(fan.cost, clients), "×")


def growth(figures: Figures) -> Iterator[Target]:
    for fan in FANS:
        crowd, few = figures.median(fan.cost, CROWD), figures.median(fan.cost, FEW)
        yield Target(f"{fan.name}, CPU per delivery with {CROWD} clients, by {FEW}", 1.5, by(crowd, few), "×")
    idle, alone = figures.median(Row.IDLE_P99, CROWD), figures.median(Row.ALONE_P99, CROWD)
    yield Target(f"p99 of the probe with {CROWD} idle clients, by that with none", 1.5, by(idle, alone), "×")


def worst(figures: Figures, row: str, counts: Iterable[int]) -> float | None:
    return max((value for clients in counts if (value := figures.median(row, clients)) is not None), default=None)


def by(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def target_lines(found: Iterable[Target]) -> list[str]:
    return markdown([["target", "wanted", "measured", ""], *(target.cells() for target in found)], right=range(1, 3))


def markdown(cells: list[list[str]], right: range) -> list[str]:
    """A table with some columns flush right."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    done = [
        "| "
        + " | ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in cells
    ]
    rule = "".join(f"|{'-' * (width + 1)}{':' if column in right else '-'}" for column, width in enumerate(widths))
    return [done[0], rule + "|", *done[1:]]
