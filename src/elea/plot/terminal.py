"""Lines over time with characters of a terminal: eight points to a character (braille), numbers beside the axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from elea.plot.svg import Series, short, ticks

__all__ = ["COLOURS", "draw"]

COLOURS: Final = ("cyan", "yellow", "green", "magenta", "blue", "red")
"""Of the lines, in their order."""

_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK: Final = 0x2800


def draw(
    lines: Sequence[Series],
    *,
    width: int = 80,
    height: int = 20,
    x_unit: str = "s",
    paint: Callable[[str, str], str] = lambda text, _: text,
) -> list[str]:
    """The rows of a plot; `paint` gives a text its colour.

    >>> print(*draw([Series("a", ((0, 0), (1, 1), (2, 4), (3, 9)))], width=24, height=4), sep="\\n")
     10│                  ⢀⡠
       │              ⢀⡠⠔⠊⠁
      5│          ⣀⡠⠔⠊⠁
      0│⣀⣀⣀⡠⠤⠤⠤⠔⠊⠉
        0 s              3 s
    """
    points = [point for line in lines for point in line.points]
    ys = ticks(max((y for _, y in points), default=0.0), least=min((y for _, y in points), default=0.0))
    most = max((x for x, _ in points), default=0.0)
    labels = {round((height - 1) * (ys[-1] - y) / (ys[-1] - ys[0])): short(y) for y in ys}
    margin = max(map(len, labels.values())) + 1
    canvas = _Canvas(max(width - margin - 1, 8), height)
    across = (2 * canvas.width - 1) / (most or 1.0)
    down = (4 * height - 1) / (ys[-1] - ys[0])
    for number, line in enumerate(lines):
        placed = [(round(x * across), round((ys[-1] - y) * down)) for x, y in line.points]
        canvas.line(placed, number)
    rows = [f"{labels.get(row, ''):>{margin}}│{canvas.text(row, paint)}" for row in range(height)]
    first, last = f"0 {x_unit}", f"{short(most)} {x_unit}"
    rows.append(" " * (margin + 1) + first + last.rjust(canvas.width - len(first)))
    return rows


class _Canvas:
    """Points of several lines; where they meet, the last one gives the colour."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self._dots = [[0] * width for _ in range(height)]
        self._owners = [[0] * width for _ in range(height)]

    def line(self, points: Sequence[tuple[int, int]], owner: int) -> None:
        """Points, and the way from each to the next."""
        before = points[0] if points else (0, 0)
        for point in points:
            steps = max(abs(point[0] - before[0]), abs(point[1] - before[1]), 1)
            for step in range(1, steps + 1):
                x = before[0] + round((point[0] - before[0]) * step / steps)
                y = before[1] + round((point[1] - before[1]) * step / steps)
                self._dots[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
                self._owners[y // 4][x // 2] = owner
            before = point

    def text(self, row: int, paint: Callable[[str, str], str]) -> str:
        """A row; runs of one colour are painted together."""
        found, start = [], 0
        owners = self._owners[row]
        for at in range(1, self.width + 1):
            if at == self.width or owners[at] != owners[start]:
                run = "".join(chr(_BLANK + dots) if dots else " " for dots in self._dots[row][start:at])
                found.append(paint(run, COLOURS[owners[start] % len(COLOURS)]))
                start = at
        return "".join(found).rstrip()
