"""The checksum of the store: CRC-32, which `isal` has twelve times as fast as the standard library where installed."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

try:
    from isal.isal_zlib import crc32 as _crc32
except ImportError:
    _crc32 = zlib.crc32

__all__ = ["crc32"]

crc32: Final[Callable[..., int]] = _crc32
"""As `zlib.crc32`."""
