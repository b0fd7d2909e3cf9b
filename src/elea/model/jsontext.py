"""JSON from outside: one error for everything that is none."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["read_json"]


def read_json(data: bytes | str) -> Any:
    """
    Raises:
        ValueError: it is no JSON, or nested so deep that reading it would take all of the stack.

    >>> read_json(b'{"rows": 2}')
    {'rows': 2}
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("arrays and objects are nested too deep") from None
