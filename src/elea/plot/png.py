"""Lines over time as a PNG file, drawn by matplotlib. Needs the extra `plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elea.plot.svg import COLOURS, Series

__all__ = ["write_png"]


def write_png(path: Path, title: str, lines: Sequence[Series], *, x_unit: str = "s") -> None:
    """Draw lines into a file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for number, line in enumerate(lines):
        xs, ys = [x for x, _ in line.points], [y for _, y in line.points]
        axes.plot(xs, ys, color=COLOURS[number % len(COLOURS)], linewidth=1.2, label=line.name)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x_unit)
    axes.grid(alpha=0.3)
    if len(lines) > 1:
        axes.legend(fontsize=8)
    figure.savefig(path, format="png", dpi=110)
