"""Threads that answer: one neighbour has its share of them, and its next requests are answered all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from elea.node.storage.answerpool import SHARE, AnswerPool


@pytest.fixture
def pool() -> Iterator[AnswerPool]:
    made = AnswerPool(SHARE + 2, "test")
    yield made
    made.close()


def test_one_asker_has_its_share_and_others_go_on(pool: AnswerPool) -> None:
    go_on, done = threading.Event(), threading.Semaphore(0)

    def slow() -> None:
        go_on.wait()
        done.release()

    for _ in range(3 * SHARE):
        pool.submit("slow", slow)
    pool.submit("other", done.release)

    assert done.acquire(timeout=10)
    assert pool.running <= SHARE
    assert not pool.is_crowded()
    go_on.set()
    for _ in range(3 * SHARE):
        assert done.acquire(timeout=10)


def test_pool_is_crowded_when_somebody_waits_for_a_thread(pool: AnswerPool) -> None:
    go_on, done = threading.Event(), threading.Semaphore(0)

    def slow() -> None:
        go_on.wait()
        done.release()

    for asker in ("a", "b"):
        for _ in range(2 * SHARE):
            pool.submit(asker, slow)
    assert pool.is_crowded()
    go_on.set()

    for _ in range(4 * SHARE):
        assert done.acquire(timeout=10)
    pool.submit("a", done.release)
    assert done.acquire(timeout=10)
    assert not pool.is_crowded()


def test_work_that_fails_leaves_its_thread_to_the_next(pool: AnswerPool) -> None:
    go_on, done = threading.Event(), threading.Semaphore(0)

    def failing() -> None:
        go_on.wait()
        done.release()
        raise ValueError("as it happens")

    for _ in range(4 * SHARE):
        pool.submit("a", failing)
    go_on.set()

    for _ in range(4 * SHARE):
        assert done.acquire(timeout=10)


def test_closed_pool_takes_no_more(pool: AnswerPool) -> None:
    pool.close()

    with pytest.raises(RuntimeError):
        pool.submit("a", lambda: None)
