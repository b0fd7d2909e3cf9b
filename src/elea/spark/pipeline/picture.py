"""The plan of a pipeline as a picture: boxes and arrows in text, or as SVG."""

from __future__ import annotations

from html import escape
from typing import Final

from elea.spark.pipeline.layout import Box, Layout, layout
from elea.spark.pipeline.spec import Spec

__all__ = ["svg", "text"]

_HEIGHT: Final = 5
"""Lines of text from one box to the next."""

_OUT, _IN = 1, 2
"""Where lines leave a box and enter it, from its upper edge: apart, so that they never run into each other."""

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_SHAPES: Final = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
_WIDEST: Final = 44

_STEP: Final = (236, 84)
_SIZE: Final = (184, 52)
_MARGIN: Final = 16
_STYLE: Final = """\
text{font:13px system-ui,sans-serif;fill:#1f2937}.detail{font-size:11px;fill:#6b7280}
rect{stroke-width:1.5;rx:6px}path{fill:none;stroke:#9ca3af;stroke-width:1.5}
.source{fill:#eff6ff;stroke:#3b82f6}.step{fill:#fff;stroke:#9ca3af}
.table{fill:#f0fdf4;stroke:#22c55e}.publish{fill:#fdf4ff;stroke:#c026d3}"""


def text(spec: Spec) -> str:
    """Boxes and arrows, from what is read on the left to what is written on the right."""
    made = layout(spec)
    canvas = _Canvas(made)
    for box in made.boxes:
        canvas.box(box)
    for start, end, owner in made.lines:
        canvas.line(start, end, owner)
    return canvas.text()


class _Canvas:
    """A page of characters; lines know whose they are, so that two that cross do not look joined."""

    def __init__(self, made: Layout) -> None:
        self._columns = made.columns
        self._written: dict[tuple[int, int], str] = {}
        self._drawn: dict[tuple[int, int], dict[str, int]] = {}
        self._lefts: list[int] = []
        self._widths: list[int] = []
        self._trunks: dict[tuple[int, int], int] = {}
        left = 0
        for column in self._columns:
            self._lefts.append(left)
            self._widths.append(max(max(map(len, self._labels(box))) for box in column) + 4)
            left += self._widths[-1]
            starts = {id(start): start for start, _, _ in made.lines if start in column}
            for at, start in enumerate(sorted(starts.values(), key=lambda one: -one.row)):
                self._trunks[start.column, start.row] = left + 1 + 2 * at
            left += 2 * len(starts) + 3

    @staticmethod
    def _labels(box: Box) -> tuple[str, str]:
        if not box.kind:
            return "", ""
        detail = box.detail if len(box.detail) <= _WIDEST else f"{box.detail[: _WIDEST - 1]}…"
        return f"{box.kind} {box.name}", detail

    def box(self, box: Box) -> None:
        left, top = self._lefts[box.column], box.row * _HEIGHT
        width = self._widths[box.column]
        if not box.kind:  # a line passes
            self._run(left, top + _IN, left + 1, top + _IN, box.name)
            self._run(left + 1, top + _IN, left + 1, top + _OUT, box.name)
            self._run(left + 1, top + _OUT, left + width, top + _OUT, box.name)
            return
        self._write(left, top, f"┌{'─' * (width - 2)}┐")
        for at, label in enumerate(self._labels(box)):
            self._write(left, top + 1 + at, f"│ {label.ljust(width - 4)} │")
        self._write(left, top + 3, f"└{'─' * (width - 2)}┘")

    def line(self, start: Box, end: Box, owner: str) -> None:
        out, into = start.row * _HEIGHT + _OUT, end.row * _HEIGHT + _IN
        left = self._lefts[start.column] + self._widths[start.column]
        trunk, right = self._trunks[start.column, start.row], self._lefts[end.column]
        self._run(left - 1, out, trunk, out, owner)
        self._run(trunk, out, trunk, into, owner)
        self._run(trunk, into, right if not end.kind else right - 1, into, owner)
        if start.kind:
            self._written[left - 1, out] = "├"
        if end.kind:
            self._written[right - 1, into] = "▶"

    def _run(self, x: int, y: int, to_x: int, to_y: int, owner: str) -> None:
        """A straight line between two points."""
        while (x, y) != (to_x, to_y):
            step_x, step_y = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
            forth = _RIGHT if step_x > 0 else _LEFT if step_x < 0 else _DOWN if step_y > 0 else _UP
            back = {_RIGHT: _LEFT, _LEFT: _RIGHT, _DOWN: _UP, _UP: _DOWN}[forth]
            self._mark(x, y, forth, owner)
            x, y = x + step_x, y + step_y
            self._mark(x, y, back, owner)

    def _mark(self, x: int, y: int, way: int, owner: str) -> None:
        cell = self._drawn.setdefault((x, y), {})
        cell[owner] = cell.get(owner, 0) | way

    def _write(self, x: int, y: int, label: str) -> None:
        for at, character in enumerate(label):
            self._written[x + at, y] = character

    def text(self) -> str:
        for place, cell in self._drawn.items():
            ways = list(cell.values())
            crosses = len(ways) > 1 and all(one in (_UP | _DOWN, _LEFT | _RIGHT) for one in ways)
            together = 0
            for one in ways:
                together |= one
            self._written.setdefault(place, "│" if crosses and together == 15 else _SHAPES[together])
        bottom = max((y for _, y in self._written), default=-1)
        rows = []
        for y in range(bottom + 1):
            found = {x: character for (x, at), character in self._written.items() if at == y}
            rows.append("".join(found.get(x, " ") for x in range(max(found, default=-1) + 1)).rstrip())
        return "\n".join(rows)


# -- SVG ---------------------------------------------------------------------------------------------------------------


def svg(spec: Spec) -> str:
    """The same as a drawing that needs nothing else."""
    made = layout(spec)
    width = (max((box.column for box in made.boxes), default=0) + 1) * _STEP[0] - (_STEP[0] - _SIZE[0]) + 2 * _MARGIN
    height = (max((box.row for box in made.boxes), default=0) + 1) * _STEP[1] - (_STEP[1] - _SIZE[1]) + 2 * _MARGIN
    arrow = '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<title>{escape(spec.name)}</title><style>{_STYLE}</style>",
        f'<defs>{arrow}<path d="M0 0L8 4L0 8z" style="fill:#9ca3af;stroke:none"/></marker></defs>',
        *(_curve(start, end) for start, end, _ in made.lines),
        *(_drawn(box) for box in made.boxes),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _corner(box: Box) -> tuple[int, int]:
    return _MARGIN + box.column * _STEP[0], _MARGIN + box.row * _STEP[1]


def _curve(start: Box, end: Box) -> str:
    (x, y), (to_x, to_y) = _corner(start), _corner(end)
    x, y, to_y = x + _SIZE[0], y + _SIZE[1] // 2, to_y + _SIZE[1] // 2
    middle = (x + to_x) // 2
    tail = f" H{to_x + _SIZE[0]}" if not end.kind else ""
    head = ' marker-end="url(#arrow)"' if end.kind else ""
    return f'<path d="M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}{tail}"{head}/>'


def _drawn(box: Box) -> str:
    if not box.kind:
        return ""
    x, y = _corner(box)
    detail = box.detail if len(box.detail) <= 30 else f"{box.detail[:29]}…"
    return (
        f"<g><title>{escape(f'{box.kind} {box.name}: {box.detail}')}</title>"
        f'<rect class="{box.kind}" x="{x}" y="{y}" width="{_SIZE[0]}" height="{_SIZE[1]}"/>'
        f'<text x="{x + 12}" y="{y + 22}">{escape(box.name)}</text>'
        f'<text class="detail" x="{x + 12}" y="{y + 40}">{escape(detail)}</text></g>'
    )
