"""The checksum of the store: CRC-32, which `isal` has twelve times as fast as the standard library where installed."""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32

__all__ = ["crc32"]
