"""Chance from the operating system: in range, over all of it, and not twice the same."""

from __future__ import annotations

import pytest

from elea.io.systemrandom import SystemRandom


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (-3, 4), (7, 8), (0, 256), (1 << 120, (1 << 120) + 5)])
def test_numbers_are_in_their_range(start: int, stop: int) -> None:
    chance = SystemRandom()

    assert all(start <= chance.randrange(start, stop) < stop for _ in range(1000))


def test_every_number_of_a_small_range_comes() -> None:
    chance = SystemRandom()

    assert {chance.randrange(5, 9) for _ in range(1000)} == {5, 6, 7, 8}  # one missing: once in 10^124


def test_large_numbers_and_octets_differ() -> None:
    chance = SystemRandom()

    assert len({chance.randrange(0, 1 << 128) for _ in range(100)}) == 100
    assert len({chance.randbytes(16) for _ in range(100)}) == 100
    assert len(chance.randbytes(32)) == 32


def test_empty_range_is_refused() -> None:
    with pytest.raises(ValueError, match="no number from 4 below 4"):
        SystemRandom().randrange(4, 4)
