"""Serial numbers, masks, windows and commit modes beyond what the vectors hold."""

from __future__ import annotations

from itertools import islice

import pytest

from elea.protocol.early import (
    acknack,
    distance,
    next_opening,
    requested,
    successor,
    synch_available,
    tolerates_commit,
    window_limit,
)


def test_numbers_go_round() -> None:
    assert successor(15, 4) == 0
    assert successor(0, 4, steps=-1) == 15
    assert distance(15, 1, 4) == 2


@pytest.mark.parametrize(("snsize", "limit"), [(4, 6), (7, 62), (14, 8190)])
def test_window_limit(snsize: int, limit: int) -> None:
    assert window_limit(snsize) == limit


def test_receiver_with_nothing_missing_acknowledges() -> None:
    assert acknack(5, [], 14) == (5, None)


def test_mask_reaches_64_numbers_ahead() -> None:
    assert acknack(5, [5, 69], 14).mask == 1 << 63
    assert acknack(5, [5, 70], 14).mask == 0


def test_everything_missing_fills_the_mask() -> None:
    assert acknack(0, range(1000), 14).mask == (1 << 64) - 1


def test_receiver_missing_a_later_number_only_is_refused() -> None:
    with pytest.raises(ValueError, match="must be among the missing"):
        acknack(5, [6], 14)


def test_short_numbers_are_not_asked_for_twice() -> None:
    assert requested(0, (1 << 64) - 1, 4) == list(range(8))


def test_huge_synch_count_costs_nothing() -> None:
    assert list(islice(synch_available(0, 1 << 61, 63), 2)) == [3 << 61, (3 << 61) + 1]


@pytest.mark.parametrize(("t", "opening"), [(0, 500), (500, 500), (599, 599), (600, 1500), (1499, 1500)])
def test_next_opening(t: int, opening: int) -> None:
    assert next_opening(500, 1000, 100, t) == opening


@pytest.mark.parametrize(("mode", "most"), [(0, 2), (1, 2), (2, 3)])
def test_receiver_takes_one_commit_more_than_a_sender_may_send(mode: int, most: int) -> None:
    assert tolerates_commit(mode, most - 1)
    assert not tolerates_commit(mode, most)
