"""Lines over time, drawn: as SVG for pages, with characters for terminals, as PNG. Knows numbers and names only."""

from __future__ import annotations

from elea.plot.svg import Series

__all__ = ["Series"]
