"""Waiting awake in sessions over real sockets: where it happens, where it must not, and what it must not hold up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import elea
from elea.io.vigil import Vigil
from tests.unit.api.logkeeper import config, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no eventfd: nobody waits awake")


@contextmanager
def pair(**entries: Any) -> Iterator[tuple[elea.Session, elea.Session]]:
    """Two peers with one link."""
    with elea.open(config("peer", listen__endpoints=["tcp/127.0.0.1:0"], **entries)) as far:
        locator = far._runtime.links.locators()[0]
        with elea.open(config("peer", connect__endpoints=[locator], **entries)) as near:
            yield near, far


def vigil_of(session: elea.Session) -> Vigil:
    return next(iter(session._runtime.links.connections)).vigil


def counted(session: elea.Session) -> tuple[int, int]:
    vigil = vigil_of(session)
    return vigil.hits, vigil.misses


def ask(session: elea.Session, selector: str = "question") -> int:
    return sum(reply.ok is not None for reply in session.get(selector))


def ask_until(session: elea.Session, done: Callable[[], object]) -> None:
    """Ask one question after the other until something has happened; each is awaited awake, however slow all is."""
    end, vigil = time.monotonic() + 60, vigil_of(session)
    vigil.limit = 1.0
    while not done():
        vigil._last = vigil._rests_until = 0.0
        assert ask(session) == 1
        assert time.monotonic() < end


def in_process(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another process that says when it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


ANSWERER = """
import sys, elea
config = '{mode: "peer", scouting: {multicast: {enabled: false}}, connect: {endpoints: ["%s"]}}' % sys.argv[1]
session = elea.open(elea.Config.from_json5(config))
keep = session.declare_queryable("question", lambda query: query.reply("question", "answer"))
print("ready", flush=True)
sys.stdin.readline()
"""


@contextmanager
def answered(**entries: Any) -> Iterator[tuple[elea.Session, subprocess.Popen[str]]]:
    """A session, and another process that answers its questions."""
    with elea.open(config("peer", listen__endpoints=["tcp/127.0.0.1:0"], **entries)) as session:
        process = in_process(ANSWERER, session._runtime.links.locators()[0])
        try:
            wait_until(lambda: ask(session) == 1, "an answer")
            yield session, process
        finally:
            process.kill()
            process.communicate()


def test_questions_are_awaited_awake_and_all_answered() -> None:
    with answered() as (session, _):
        ask_until(session, lambda: counted(session)[0] > 20)

        assert "elea_link_awake_hits_total" in session_metrics(session)


def session_metrics(session: elea.Session) -> str:
    from elea.broker.admin import metrics

    return metrics(session._node, session._runtime.links)


def test_who_does_not_want_it_never_waits_awake() -> None:
    with answered(transport__link__rx__wait_awake=False) as (session, _):
        for _ in range(500):
            assert ask(session) == 1

        assert counted(session) == (0, 0)


def test_a_stream_is_received_asleep() -> None:
    with pair() as (near, far):
        seen: list[int] = []
        with far.declare_subscriber("stream", lambda sample: seen.append(1)):
            publisher = near.declare_publisher("stream", congestion_control=elea.CongestionControl.BLOCK)
            wait_until(lambda: publisher.matching_status.matching, "a subscriber")
            time.sleep(0.1)  # what declaring said is over
            before = counted(far), counted(near)
            for _ in range(20_000):
                publisher.put(b"sample")
            wait_until(lambda: len(seen) == 20_000, "all samples")

            assert (counted(far), counted(near)) == before


def test_idle_sessions_sleep_and_live_on_keep_alives() -> None:
    with pair(transport__link__tx__lease=1_000) as (near, far):
        time.sleep(0.3)
        before, used = counted(near), time.process_time()
        time.sleep(2.5)

        assert counted(near) == before
        assert time.process_time() - used < 1.0
        assert len(list(near.info.peers_zid())) == len(list(far.info.peers_zid())) == 1


@pytest.mark.parametrize("attempt", range(3))
def test_closing_while_another_thread_waits_awake(attempt: int) -> None:
    with answered() as (session, _):
        ask_until(session, lambda: counted(session)[0] > 3)
        ended = threading.Event()

        def go_on() -> None:
            try:
                while True:
                    ask(session)
            except Exception:  # noqa: BLE001 - the session is closed under it
                ended.set()

        threading.Thread(target=go_on, daemon=True).start()
        time.sleep(0.02)
        session.close()
        assert ended.wait(30)


def test_the_death_of_the_other_is_noticed_by_one_awake() -> None:
    with answered() as (session, process):
        ask_until(session, lambda: counted(session)[0] > 3)
        threading.Timer(0.05, lambda: process.send_signal(signal.SIGKILL)).start()

        end = time.monotonic() + 30
        while ask(session) == 1:
            assert time.monotonic() < end
        wait_until(lambda: not list(session.info.peers_zid()), "the end of the session")


def test_a_thread_that_computes_is_not_starved() -> None:
    with answered() as (session, _):
        turns, stop = 0, False

        def compute() -> None:
            nonlocal turns
            while not stop:
                sum(range(1_000))
                turns += 1

        thread = threading.Thread(target=compute)
        thread.start()
        end, asked = time.monotonic() + 2, 0
        while time.monotonic() < end:
            assert ask(session) == 1
            asked += 1
        stop = True
        thread.join(30)

        start, alone = time.monotonic(), 0
        while time.monotonic() < start + 0.5:
            sum(range(1_000))
            alone += 1
        assert turns > 4 * alone / 20  # a twentieth of what it does alone: how much, is the interpreter's to say
        assert asked > 10
