"""What the verbs of a session share: where an interrupt takes effect, and which mode the options mean."""

from __future__ import annotations

import argparse
import os
import signal

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
