"""Push, pull and their windows: the examples of the spec, the bound, and any history against a simple model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elea.model.limits import PACED_SAMPLES
from elea.protocol.pacing import PULL, PUSH, Mode, Pacer, Windows

VECTORS = Path(__file__).parents[2] / "vectors"
WINDOW_VECTORS = [
    vector
    for dialect in ("zenoh2018", "xrce2017")
    for vector in json.loads((VECTORS / dialect / "semantics.json").read_text(encoding="utf-8"))
    if vector["category"] == "window-open"
]

SHORT = Windows(0, 1000, 100)


@pytest.mark.parametrize("vector", WINDOW_VECTORS, ids=lambda vector: f"{vector['dialect']}-{vector['name']}")
def test_windows_are_those_of_the_vectors(vector: dict[str, Any]) -> None:
    given = vector["input"]
    windows = Windows(given["temporalOrigin"], given["period"], given["duration"])

    assert windows.open_at(given["t"]) is vector["expected"]


def test_there_are_vectors_of_windows() -> None:
    assert len(WINDOW_VECTORS) == 22


@pytest.mark.parametrize("duration", [-1, 0, 1000, 1001])
def test_a_window_must_be_shorter_than_its_period_and_longer_than_nothing(duration: int) -> None:
    with pytest.raises(ValueError, match="less than its period of 1000"):
        Windows(0, 1000, duration)


@given(st.integers(0, 50), st.integers(2, 40), st.data())
def test_the_opening_is_the_first_open_time(origin: int, period: int, data: st.DataObject) -> None:
    windows = Windows(origin, period, data.draw(st.integers(1, period - 1)))
    now = data.draw(st.integers(0, 200))

    opening = windows.opening(now)

    assert opening == next(t for t in range(now, now + origin + period + 1) if windows.open_at(t))


# -- push


def test_push_gives_everything_at_once_in_order() -> None:
    pacer: Pacer[int] = Pacer(PUSH)

    pacer.add_many([1, 2, 3], 7)

    assert (pacer.next_deadline(7), pacer.due(7), pacer.due(7), pacer.next_deadline(7)) == (7, [1, 2, 3], [], None)


def test_a_run_longer_than_the_bound_is_pushed_whole() -> None:
    pacer: Pacer[int] = Pacer(PUSH, limit=2)

    pacer.add_many(range(5), 0)

    assert (pacer.due(0), pacer.dropped) == ([0, 1, 2, 3, 4], 0)


def test_a_pushed_subscription_cannot_pull() -> None:
    with pytest.raises(ValueError, match="cannot pull"):
        Pacer(PUSH).pull()


# -- periodic push


def test_periodic_push_holds_samples_until_the_window_opens() -> None:
    pacer: Pacer[str] = Pacer(Mode(windows=SHORT))
    pacer.add_many(["a"], 100)
    pacer.add_many(["b"], 999)

    assert (pacer.due(999), pacer.next_deadline(999)) == ([], 1000)
    assert (pacer.due(1000), pacer.next_deadline(1000)) == (["a", "b"], None)


def test_periodic_push_gives_what_comes_inside_a_window_at_once() -> None:
    pacer: Pacer[str] = Pacer(Mode(windows=SHORT))

    pacer.add_many(["a"], 1099)

    assert pacer.due(1099) == ["a"]


def test_what_does_not_fit_in_a_window_waits_for_the_next() -> None:
    pacer: Pacer[int] = Pacer(Mode(windows=SHORT))
    pacer.add_many(range(5), 500)

    assert (pacer.due(1000, most=3), pacer.next_deadline(1001)) == ([0, 1, 2], 1001)
    assert (pacer.due(1100), pacer.next_deadline(1100), pacer.due(2000)) == ([], 2000, [3, 4])


def test_the_oldest_give_way_beyond_the_bound_and_are_counted() -> None:
    pacer: Pacer[int] = Pacer(Mode(windows=SHORT))

    pacer.add_many(range(PACED_SAMPLES), 500)
    assert pacer.dropped == 0
    pacer.add_many(range(PACED_SAMPLES, PACED_SAMPLES + 7), 501)

    assert (len(pacer), pacer.dropped) == (PACED_SAMPLES, 7)
    assert pacer.due(1000) == list(range(7, PACED_SAMPLES + 7))


# -- pull: zenoh-2018 section 7.6 has a queue of five, pulled by two and by five


def test_a_pull_gives_at_most_what_it_asks_for_and_is_over() -> None:
    pacer: Pacer[int] = Pacer(PULL)
    pacer.add_many(range(5), 0)
    assert pacer.due(0) == []

    pacer.pull(2)

    assert (pacer.due(0), pacer.is_asking, pacer.due(0)) == ([0, 1], False, [])
    pacer.pull(5)
    assert (pacer.due(0), pacer.is_asking, len(pacer)) == ([2, 3, 4], False, 0)


def test_a_pull_without_a_number_gives_everything_there_is() -> None:
    pacer: Pacer[int] = Pacer(PULL)
    pacer.add_many(range(5), 0)

    pacer.pull()

    assert (pacer.due(0), pacer.is_asking) == ([0, 1, 2, 3, 4], False)


def test_a_pull_of_nothing_is_over_and_does_not_wait_for_later_samples() -> None:
    pacer: Pacer[int] = Pacer(PULL)
    pacer.pull(3)
    assert (pacer.next_deadline(0), pacer.due(0)) == (0, [])

    pacer.add_many([1], 1)

    assert (pacer.due(1), pacer.next_deadline(1), len(pacer)) == ([], None, 1)


@pytest.mark.parametrize("most", [0, -1])
def test_a_pull_asks_for_one_at_least(most: int) -> None:
    with pytest.raises(ValueError, match="one sample at least"):
        Pacer(PULL).pull(most)


def test_a_pull_that_the_caller_answers_in_pieces_stays() -> None:
    pacer: Pacer[int] = Pacer(PULL)
    pacer.add_many(range(9), 0)
    pacer.pull(5)

    assert (pacer.due(0, most=3), pacer.is_asking, pacer.due(0), pacer.is_asking) == ([0, 1, 2], True, [3, 4], False)


def test_a_cancelled_pull_gives_nothing_and_leaves_the_samples() -> None:
    pacer: Pacer[int] = Pacer(PULL)
    pacer.add_many(range(3), 0)
    pacer.pull()

    pacer.cancel()

    assert (pacer.due(0), len(pacer)) == ([], 3)


# -- periodic pull


def test_a_pull_outside_a_window_is_answered_when_it_opens() -> None:
    pacer: Pacer[int] = Pacer(Mode(pull=True, windows=SHORT))
    pacer.add_many(range(3), 200)
    pacer.pull()

    assert (pacer.due(500), pacer.is_asking, pacer.next_deadline(500)) == ([], True, 1000)
    pacer.add_many([3], 600)
    assert (pacer.due(1000), pacer.is_asking, pacer.next_deadline(1000)) == ([0, 1, 2, 3], False, None)


def test_pulls_before_a_window_add_up() -> None:
    pacer: Pacer[int] = Pacer(Mode(pull=True, windows=SHORT))
    pacer.add_many(range(9), 200)

    pacer.pull(2)
    pacer.pull(3)

    assert (pacer.due(1000), len(pacer)) == ([0, 1, 2, 3, 4], 4)


# -- any history

WINDOWS = st.one_of(st.none(), st.builds(Windows, st.integers(0, 20), st.integers(10, 20), st.integers(1, 9)))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 6)),
        st.tuples(st.just("pull"), st.one_of(st.none(), st.integers(1, 6))),
        st.tuples(st.just("due"), st.one_of(st.none(), st.integers(0, 4))),
        st.tuples(st.just("wait"), st.integers(1, 25)),
        st.tuples(st.just("cancel"), st.none()),
    ),
    max_size=40,
)
LIMIT = 8


@settings(max_examples=300)
@given(st.booleans(), WINDOWS, STEPS)
def test_any_history_is_that_of_a_plain_list(pull: bool, windows: Windows | None, steps: list[tuple[str, Any]]) -> None:
    """The model: a list, one number for what may go out, and windows by looking at every time."""
    pacer: Pacer[int] = Pacer(Mode(pull, windows), limit=LIMIT)
    waiting: list[int] = []
    dropped, allowed, now, serial = 0, 0.0, 0, 0

    def is_open(t: int) -> bool:
        return windows is None or any(
            windows.origin + n * windows.period <= t < windows.origin + n * windows.period + windows.duration
            for n in range(t // windows.period + 1)
        )

    for name, value in steps:
        if name == "add":
            fresh = list(range(serial, serial + value))
            serial += value
            pacer.add_many(fresh, now)
            waiting += fresh
            if pull or not is_open(now):
                dropped += max(0, len(waiting) - LIMIT)
                waiting = waiting[-LIMIT:]
        elif name == "pull" and pull:
            pacer.pull(value)
            allowed += float("inf") if value is None else value
        elif name == "cancel":
            pacer.cancel()
            allowed = 0
        elif name == "wait":
            now += value
        elif name == "due":
            most = len(waiting) if value is None else value
            if pull:
                most = int(min(most, allowed))
            expected = waiting[:most] if is_open(now) else []
            waiting = waiting[len(expected) :]
            allowed -= len(expected)
            if is_open(now) and not waiting:
                allowed = 0
            assert pacer.due(now, value) == expected
        deadline = pacer.next_deadline(now)
        wanted = allowed > 0 if pull else bool(waiting)
        assert deadline == (next(t for t in range(now, now + 60) if is_open(t)) if wanted else None)
        assert (len(pacer), pacer.dropped) == (len(waiting), dropped)
        assert pacer.is_asking is (pull and allowed > 0)


def test_what_did_not_arrive_is_the_oldest_again() -> None:
    pacer: Pacer[int] = Pacer(PULL)
    pacer.add_many([1, 2, 3, 4], 0)
    pacer.pull(3)
    given = pacer.due(0)
    pacer.put_back(given[1:])
    pacer.pull()

    assert (given, pacer.due(0)) == ([1, 2, 3], [2, 3, 4])
