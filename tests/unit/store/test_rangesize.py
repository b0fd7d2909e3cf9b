"""How far so many octets reach."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from elea.store.rangesize import measured

SIZES = [(0, 100, 1000, 0), (100, 200, 10_000, 0), (200, 200, 0, 0), (200, 210, 10, 0)]


def test_octets_are_counted_segment_by_segment() -> None:
    assert measured(SIZES, 0, 210, 500) == 50
    assert measured(SIZES, 0, 210, 1000 + 5000) == 150
    assert measured(SIZES, 50, 210, 500 + 1000) == 110
    assert measured(SIZES, 0, 210, 10**9) == 210
    assert measured(SIZES, 0, 120, 10**9) == 120


@given(st.integers(0, 210), st.integers(0, 210), st.integers(0, 20_000))
def test_a_reader_gets_on_and_not_beyond_the_end(start: int, end: int, octets: int) -> None:
    found = measured(SIZES, start, end, octets)

    assert found <= max(start, end)
    assert found > start or start >= end
