"""A reading thread that goes to the core of another: real threads, real cores."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from elea.io.nearness import LEAST, MOST, Nearness, core_of

ALLOWED = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
several = pytest.mark.skipif(len(ALLOWED) < 2 or not os.path.exists("/proc/self/stat"), reason="needs two cores")


@contextmanager
def thread_on(core: int) -> Iterator[int]:
    """A thread that sleeps, having run on this core; its number in the system."""
    ready, done = threading.Event(), threading.Event()
    numbers: list[int] = []

    def run() -> None:
        os.sched_setaffinity(0, {core})
        numbers.append(threading.get_native_id())
        ready.set()
        done.wait(60)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        yield numbers[0]
    finally:
        done.set()
        thread.join(60)


@several
@pytest.mark.parametrize("core", ALLOWED[:2])
def test_it_goes_where_the_other_ran_and_may_be_moved_as_before(core: int) -> None:
    other_core = next(each for each in ALLOWED if each != core)
    nearness, seen = Nearness(), []
    with thread_on(core) as other:

        def run() -> None:
            os.sched_setaffinity(0, {other_core})  # there it is, and free to go the moment after
            os.sched_setaffinity(0, ALLOWED)
            nearness.seek(other, 0.0)
            seen.append(os.sched_getaffinity(0))

        for _ in range(20):  # the kernel may have moved it itself
            thread = threading.Thread(target=run)
            thread.start()
            thread.join(60)
            if nearness.moves:
                break

    assert nearness.moves >= 1
    assert seen[-1] == set(ALLOWED)


@several
def test_it_leaves_what_its_user_has_allowed() -> None:
    """The user keeps this process off the core of the other: it is not gone to."""
    here, there = ALLOWED[:2]
    nearness, seen = Nearness(), []
    with thread_on(there) as other:

        def run() -> None:
            os.sched_setaffinity(0, {here})
            nearness.seek(other, 0.0)
            seen.append((os.sched_getaffinity(0), core_of(threading.get_native_id())))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(60)

    assert seen == [({here}, here)]
    assert nearness.looks == 1
    assert nearness.moves == 0


@several
def test_who_is_moved_apart_again_and_again_looks_less_often() -> None:
    here, there = ALLOWED[:2]
    nearness, pauses, now = Nearness(), [], 0.0
    with thread_on(there) as other, thread_on(here) as neighbour:

        def run() -> None:
            nonlocal now
            os.sched_setaffinity(0, {here})  # it can never get there
            for _ in range(10):
                nearness.seek(other, now)
                begun = now
                while not nearness.is_due(now):
                    now += LEAST / 4
                pauses.append(now - begun)
            nearness.seek(neighbour, now)
            assert not nearness.is_due(now + LEAST * 0.9)
            assert nearness.is_due(now + LEAST * 1.1)  # together: as at first

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(60)

    assert len(pauses) == 10
    assert pauses[:3] == pytest.approx([LEAST, 2 * LEAST, 4 * LEAST], rel=0.3)
    assert pauses[-1] == pytest.approx(MOST, rel=0.1)


def test_a_thread_that_sends_for_itself_has_nobody_to_go_to() -> None:
    nearness = Nearness()
    nearness.seek(threading.get_native_id(), 0.0)
    nearness.seek(0, 1.0)
    assert nearness.looks == 0
    assert nearness.is_due(0.5 + 1.0)


def test_a_thread_that_has_ended_is_not_looked_for_soon() -> None:
    gone = threading.Thread(target=lambda: None)
    gone.start()
    gone.join()
    assert gone.native_id is not None
    end = time.monotonic() + 60
    while core_of(gone.native_id) >= 0:  # Python is done with it a moment before the system is
        assert time.monotonic() < end
        time.sleep(0.001)
    nearness = Nearness()
    nearness.seek(gone.native_id, 0.0)
    assert nearness.moves == 0
    assert not nearness.is_due(MOST / 2)
