"""The checksum is the one of every store that was ever written, whoever computes it."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from elea.store.checksum import crc32


@given(st.binary(max_size=5_000), st.integers(0, 0xFFFFFFFF))
def test_it_is_that_of_zlib(octets: bytes, salt: int) -> None:
    assert crc32(octets, salt) == zlib.crc32(octets, salt)
    assert crc32(memoryview(octets)[1:], salt) == zlib.crc32(octets[1:], salt)
