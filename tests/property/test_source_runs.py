"""Runs of numbers in a batch: what they say is what a look at each number says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from elea.store.sources import Run, Sources, runs_of

SAMPLES = st.lists(st.tuples(st.sampled_from([b"\1", b"\2"]), st.integers(1, 2), st.integers(0, 12)), min_size=1)


def runs(samples: list[tuple[bytes, int, int]]) -> list[Run] | None:
    ids, entities, numbers = (tuple(column) for column in zip(*samples, strict=True))
    return runs_of(ids, entities, numbers, (True,) * len(samples))


@given(SAMPLES)
def test_runs_have_every_number_once_and_where_it_is(samples: list[tuple[bytes, int, int]]) -> None:
    found = runs(samples)
    if found is None:
        return
    listed = [(id, entity, first + at) for id, entity, first, last, _ in found for at in range(last - first + 1)]
    assert listed == samples
    assert len(set(listed)) == len(listed)
    assert [start for *_, start in found] == [listed.index((id, entity, first)) for id, entity, first, _, _ in found]


@given(st.integers(0, 5), st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_numbers_that_only_go_up_are_runs(start: int, steps: list[int]) -> None:
    numbers = [start + sum(steps[:at]) for at in range(len(steps) + 1)]
    found = runs([(b"\1", 1, number) for number in numbers])

    assert found is not None
    assert len(found) == 1 + sum(step > 1 for step in steps)


@given(SAMPLES, SAMPLES)
def test_a_log_remembers_the_same_by_runs_and_by_numbers(
    before: list[tuple[bytes, int, int]], samples: list[tuple[bytes, int, int]]
) -> None:
    by_number, by_run = Sources(), Sources()
    for sources in (by_number, by_run):
        for position, one in enumerate(before):
            sources.add(*one, position)
    found, end = runs(samples), 1_000
    if found is None or not by_run.has_no_run(found):
        return
    assert all(by_number.find(*one) == -1 for one in samples)
    for position, one in enumerate(samples, end):
        by_number.add(*one, position)
    for id, entity, first, last, at in found:
        by_run.add_run(id, entity, first, last, end + at)

    everything = [(id, entity, number) for id in (b"\1", b"\2") for entity in (1, 2) for number in range(14)]
    assert [by_run.find(*one) for one in everything] == [by_number.find(*one) for one in everything]


def test_batches_with_samples_that_may_come_twice_have_no_runs() -> None:
    assert runs_of((b"\1", b"\1"), (1, 1), (0, 1), (True, False)) is None
    assert runs_of((b"\1", None), (1, None), (0, None), (True, True)) is None
    assert runs_of((b"\1", b"\1"), (1, 1), (3, 3), (True, True)) is None
