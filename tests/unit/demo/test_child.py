"""Processes of the demo hear and speak, and do not outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elea.demo.child import Child

PATIENCE = 60.0
BROKER = ["elea.demo.child", "elea", "broker", "--json", "--quiet", "--no-multicast-scouting", "-l", "tcp/127.0.0.1:0"]

PARENT = f"""
import sys, time
from pathlib import Path
from elea.demo.child import Child
child = Child({BROKER!r}, Path(sys.argv[1]), lambda form: form and print(child.process.pid, flush=True))
time.sleep(600)
"""


def eventually(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_gone(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"  # nobody has asked for its exit code yet


def test_child_is_heard_and_told_and_ends_in_order(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    child = Child(BROKER, tmp_path / "broker.log", heard.append)

    eventually(lambda: any(form.get("event") == "listening" for form in heard))
    child.end()

    assert not child.is_running
    assert [form["event"] for form in heard if form] == ["listening", "stopped"]
    assert heard[-1] == {}


def test_child_can_be_killed_without_a_word(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    child = Child(BROKER, tmp_path / "broker.log", heard.append)
    eventually(lambda: bool(heard))

    child.kill()

    assert child.process.returncode == -signal.SIGKILL
    assert [form["event"] for form in heard if form] == ["listening"]


def test_child_goes_when_its_parent_is_killed(tmp_path: Path) -> None:
    called = [sys.executable, "-c", PARENT, str(tmp_path / "broker.log")]
    with subprocess.Popen(called, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        broker = int(parent.stdout.readline())
        assert not is_gone(broker)

        os.kill(parent.pid, signal.SIGKILL)

        eventually(lambda: is_gone(broker))
