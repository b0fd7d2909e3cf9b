"""What the verbs of a session share: where an interrupt takes effect, and which mode the options mean."""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time

import pytest

from elea.cli import connection


def test_interrupt_takes_effect_where_the_block_waits() -> None:
    reached = []
    with connection.stoppable() as stop:
        stop.free = False
        os.kill(os.getpid(), signal.SIGTERM)
        reached.append("declared whole")
        with stop.waiting():
            reached.append("waited")

    assert reached == ["declared whole"]
    assert stop.requested


def test_interrupt_is_taken_at_once_while_free() -> None:
    before = signal.getsignal(signal.SIGTERM)
    reached = []
    with connection.stoppable():
        os.kill(os.getpid(), signal.SIGTERM)
        reached.append("went on")

    assert reached == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_interrupt_that_ended_no_wait_is_sent_again() -> None:
    stuck, since = threading.Lock(), time.monotonic()
    with connection.stoppable() as stop:
        # To another thread: the main thread goes on waiting, as it does if it has not quite begun to.
        other = threading.Timer(0.05, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT))
        other.start()
        with stop.waiting(), stuck:
            stuck.acquire(timeout=20)

    assert stop.requested
    assert time.monotonic() - since < 10
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ([], "null"),
        (["-e", "tcp/a:1"], '"client"'),
        (["-e", "tcp/a:1", "-l", "tcp/a:2"], "null"),
        (["-e", "tcp/a:1", "-m", "peer"], '"peer"'),
        (["-m", "client"], '"client"'),
        (["-e", "tcp/a:1", "--cfg", "mode:'peer'"], '"peer"'),
    ],
)
def test_mode_follows_from_the_options(words: list[str], mode: str) -> None:
    parser = argparse.ArgumentParser()
    connection.add_arguments(parser)

    assert connection.session_config(parser.parse_args([*words, "--no-multicast-scouting"])).get_json("mode") == mode
