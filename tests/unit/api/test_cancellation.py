"""`CancellationToken`: every action once, and nobody returns before all are done."""

from __future__ import annotations

import threading

from elea.api.cancellation import CancellationToken


def test_cancelling_runs_every_action_once() -> None:
    token, done = CancellationToken(), list[str]()
    token._add(lambda: done.append("a"))
    removed = token._add(lambda: done.append("b"))
    token._add(lambda: done.append("c"))
    token._remove(removed)

    assert not token.is_cancelled
    token.cancel()
    token.cancel()

    assert done == ["a", "c"]
    assert token.is_cancelled
    assert repr(token) == "CancellationToken(is_cancelled=True)"


def test_an_action_added_later_runs_at_once() -> None:
    token, done = CancellationToken(), list[str]()
    token.cancel()

    number = token._add(lambda: done.append("late"))
    token._remove(number)

    assert done == ["late"]


def test_an_action_may_look_at_and_cancel_its_token() -> None:
    token, seen = CancellationToken(), list[bool]()

    def action() -> None:
        token.cancel()
        seen.append(token.is_cancelled)

    token._add(action)
    token.cancel()

    assert seen == [True]


def test_another_thread_waits_until_all_actions_are_done() -> None:
    token = CancellationToken()
    started, go, returned = threading.Event(), threading.Event(), threading.Event()

    def action() -> None:
        started.set()
        go.wait(10)

    def second() -> None:
        token.cancel()
        returned.set()

    token._add(action)
    first = threading.Thread(target=token.cancel)
    first.start()
    started.wait(10)
    other = threading.Thread(target=second)
    other.start()

    assert not returned.wait(0.02)
    go.set()
    first.join(10)
    other.join(10)
    assert returned.is_set()
