"""Laws of serial numbers, masks, windows and commit modes of the early dialects."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from elea.protocol.early import (
    acknack,
    distance,
    may_send,
    next_opening,
    requested,
    serial_less,
    successor,
    synch_available,
    tolerates_commit,
    window_limit,
    window_open,
)

snsizes = st.integers(4, 63)
masks = st.integers(0, (1 << 64) - 1)


@st.composite
def circles(draw: st.DrawFn, numbers: int) -> tuple[int, ...]:
    """A width and some serial numbers of that width."""
    snsize = draw(snsizes)
    return snsize, *(draw(st.integers(0, (1 << snsize) - 1)) for _ in range(numbers))


@given(circles(2))
def test_order_is_antisymmetric(given_: tuple[int, ...]) -> None:
    snsize, a, b = given_
    forth, back = serial_less(a, b, snsize), serial_less(b, a, snsize)

    if a == b:
        assert forth is back is False
    elif forth is None:
        assert back is None
    else:
        assert forth is not back


@given(circles(2), st.data())
def test_order_is_transitive_inside_a_window(given_: tuple[int, ...], data: st.DataObject) -> None:
    snsize, a, _ = given_
    i = data.draw(st.integers(1, window_limit(snsize)))
    j = data.draw(st.integers(0, window_limit(snsize)))
    b, c = successor(a, snsize, steps=i), successor(a, snsize, steps=j)

    assert serial_less(a, b, snsize) is True
    assert serial_less(b, c, snsize) is (i < j)


@given(circles(3))
def test_order_does_not_depend_on_where_the_circle_starts(given_: tuple[int, ...]) -> None:
    snsize, a, b, turn = given_

    moved = serial_less(successor(a, snsize, steps=turn), successor(b, snsize, steps=turn), snsize)
    assert moved is serial_less(a, b, snsize)


@given(circles(1), masks)
def test_acknack_undoes_requested(given_: tuple[int, ...], mask: int) -> None:
    snsize, sn = given_
    asked = requested(sn, mask, snsize)
    again = acknack(sn, asked, snsize)

    assert asked[0] == sn
    assert len(set(asked)) == len(asked)
    assert requested(again.sn, again.mask, snsize) == asked
    if snsize > 7:
        assert again == (sn, mask)


@given(circles(1), st.sets(st.integers(1, 300)))
def test_requested_undoes_acknack_as_far_as_a_mask_reaches(given_: tuple[int, ...], later: set[int]) -> None:
    snsize, expected = given_
    within = sorted(step for step in later | {0} if step <= window_limit(snsize))
    missing = [successor(expected, snsize, steps=step) for step in within]

    made = acknack(expected, missing, snsize)

    reach = [sn for step, sn in zip(within, missing, strict=True) if step <= 64]
    assert requested(made.sn, made.mask, snsize) == reach
    assert made.mask is not None
    assert made.mask < 1 << 64


@given(circles(1), st.integers(0, 200))
def test_synch_lists_the_numbers_just_before_its_own(given_: tuple[int, ...], count: int) -> None:
    snsize, sn = given_
    numbers = list(synch_available(sn, count, snsize))

    assert len(numbers) == count
    assert [distance(number, sn, snsize) for number in numbers] == [
        step % (1 << snsize) for step in range(count, 0, -1)
    ]


@given(st.integers(0, 10**6), st.integers(2, 20_000), st.data())
def test_next_opening_is_the_first_moment_in_a_window(origin: int, period: int, data: st.DataObject) -> None:
    duration = data.draw(st.integers(1, period - 1))
    t = data.draw(st.integers(0, 2 * 10**6))
    opening = next_opening(origin, period, duration, t)

    assert opening >= t
    assert window_open(origin, period, duration, opening)
    if opening > t:
        assert not window_open(origin, period, duration, t)
        assert not window_open(origin, period, duration, opening - 1)


@given(st.integers(0, 300), st.integers(0, 300))
def test_receiver_copes_with_every_sender(mode: int, unanswered: int) -> None:
    if may_send(mode, unanswered).commit:
        assert may_send(mode, unanswered).declaration
        assert tolerates_commit(mode, unanswered)
