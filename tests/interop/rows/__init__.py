"""All rows, in the order of the printed matrix."""

from __future__ import annotations

from tests.interop.rows import links, nodes, queries, samples, standing
from tests.interop.rows.registry import NOT_YET, ROWS, Row

__all__ = ["NOT_YET", "ROWS", "Row"]

_ORDER = [module.__name__ for module in (samples, queries, standing, links, nodes)]
_SORTED = sorted(ROWS.values(), key=lambda row: _ORDER.index(row.play.__module__))
ROWS.clear()
ROWS.update((row.name, row) for row in _SORTED)
