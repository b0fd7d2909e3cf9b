"""All rows, in the order of the printed matrix."""

from __future__ import annotations

from tests.interop.rows import samples, queries, standing, links, nodes  # noqa: F401, I001 -- the order of the matrix
from tests.interop.rows.registry import NOT_YET, ROWS, Row

__all__ = ["NOT_YET", "ROWS", "Row"]
