"""A slow reader of everything: a small run of `tests.robust.everything`."""

from __future__ import annotations

import pytest

from tests.robust.everything import run

pytest.importorskip("pyarrow")

KEYS, OCTETS = 20_000, 3_000
"""60 MB of values."""


@pytest.mark.slow
def test_reader_of_everything_costs_little_however_slow_and_is_forgotten_at_once() -> None:
    found = run(KEYS, rate=256 * 1024, seconds=1.0, octets=OCTETS)

    assert found.slow_replies < KEYS / 2
    assert found.slow_peak - found.before < 45_000  # kB, of which 16,000 are blocks that were read last
    assert found.freed_seconds < 5.0  # on a loaded machine
    assert found.fast_replies == KEYS
