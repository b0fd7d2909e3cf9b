"""Line plots as SVG inside a page: axes with round numbers, nothing fetched, readable in light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["Series", "plot", "short", "ticks"]

COLOURS: Final = ("#3b7dd8", "#d9822b", "#2e9e6b", "#b0519e")
WIDTH: Final = 420
HEIGHT: Final = 210
LEFT: Final = 52
RIGHT: Final = 12
TOP: Final = 30
BOTTOM: Final = 34

MARKED: Final = 40
"""Points of a line above which their marks are small."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one line, by rising x."""

    name: str
    points: tuple[tuple[float, float], ...]


def ticks(most: float, wanted: int = 4, *, least: float = 0.0) -> list[float]:
    """Round numbers from at most `least` to at least `most`: steps of 1, 2 or 5 times a power of ten."""
    if not most > least:
        return [least, least + 1.0]
    rough = (most - least) / wanted
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough * 0.999)
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def plot(
    title: str,
    lines: Sequence[Series],
    *,
    x_unit: str = "s",
    y_unit: str = "",
    x_most: float = 0.0,
    from_zero: bool = True,
) -> str:
    """Lines over time, from zero to the last point, or to `x_most` if that is more; every point is marked.

    Args:
        from_zero: whether values begin at zero, too; if not, at the least of them.
    """
    found = [point for line in lines for point in line.points]
    least = 0.0 if from_zero else min((y for _, y in found), default=0.0)
    xs = ticks(max([x_most, *(x for x, _ in found)]))
    ys = ticks(max((y for _, y in found), default=0), least=least)

    def at(x: float, y: float) -> tuple[float, float]:
        across = LEFT + x / xs[-1] * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - (y - ys[0]) / (ys[-1] - ys[0]) * (HEIGHT - TOP - BOTTOM)

    parts = [f"<text class='title' x='{LEFT}' y='16'>{escape(title)}</text>"]
    for y in ys:
        _, down = at(0, y)
        parts.append(f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{down:.1f}' y2='{down:.1f}' stroke='var(--line)'/>")
        parts.append(f"<text x='{LEFT - 6}' y='{down + 4:.1f}' text-anchor='end'>{short(y)}{escape(y_unit)}</text>")
    for x in xs:
        across, _ = at(x, ys[0])
        parts.append(
            f"<text x='{across:.1f}' y='{HEIGHT - 14}' text-anchor='middle'>{short(x)} {escape(x_unit)}</text>"
        )
    for index, line in enumerate(lines):
        parts.append(_line(line, COLOURS[index % len(COLOURS)], at))
        if len(lines) > 1:
            across = WIDTH - RIGHT - 90 * (len(lines) - index)
            colour = COLOURS[index % len(COLOURS)]
            parts.append(f"<rect x='{across}' y='8' width='10' height='10' fill='{colour}'/>")
            parts.append(f"<text x='{across + 14}' y='17'>{escape(line.name)}</text>")
    return f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{escape(title)}'>{''.join(parts)}</svg>"


def short(value: float) -> str:
    """A number in few characters: 950, 12.5k, 1.25M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"


def _line(line: Series, colour: str, at: Callable[[float, float], tuple[float, float]]) -> str:
    placed = [at(x, y) for x, y in line.points]
    radius = 3.0 if len(placed) <= MARKED else 1.5
    marks = "".join(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius:g}' fill='{colour}'/>" for x, y in placed)
    if len(placed) < 2:
        return marks
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    drawn = f"<polyline points='{drawn}' fill='none' stroke='{colour}' stroke-width='1.8' stroke-linejoin='round'/>"
    return drawn + marks
