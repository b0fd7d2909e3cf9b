"""The example program of a device, over real UDP, under Python and, where it is installed, under MicroPython."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elea.protocol.early.numbered import stream_entry
from tests.unit.tiny.broker import Broker

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "examples" / "device.py"
MICROPYTHON = os.environ.get("ELEA_MICROPYTHON") or shutil.which("micropython") or ""
"""MicroPython's Unix port: Debian 13 has it as `micropython`."""


def served(command: list[str], path: Path) -> tuple[Broker, str]:
    """What a program has told a broker, and printed."""
    broker = Broker(mtu=64)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(0.05)
        environment = {**os.environ, "PYTHONPATH": str(path), "MICROPYPATH": f"{path}:.frozen"}
        program = subprocess.Popen(
            [*command, str(PROGRAM), "127.0.0.1", str(sock.getsockname()[1])],
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        source = None
        told = False
        end = time.monotonic() + 30
        while program.poll() is None and time.monotonic() < end:
            try:
                packet, source = sock.recvfrom(2000)
                broker.receive(packet, time.monotonic())
            except TimeoutError:
                broker.session.on_deadline(time.monotonic())
            if not told and any(change.kind == "subscriber" for change in broker.changes):
                told = True
                broker.session.send(stream_entry(4, b"on", reliable=True))
            for packet in broker.session.to_send(time.monotonic()):
                assert source is not None
                sock.sendto(packet, source)
        if program.poll() is None:
            program.kill()
        output, _ = program.communicate()
    return broker, output


def test_the_device_speaks_with_a_broker() -> None:
    broker, output = served([sys.executable], ROOT / "src")

    assert broker.payloads() == [b"0", b"1", b"2", b"3", b"4"]
    assert output.splitlines() == ["told: 4 on", "closed: 0"]


@pytest.mark.skipif(not MICROPYTHON, reason="MicroPython is not installed")
def test_the_device_runs_under_micropython(tmp_path: Path) -> None:
    """With the files of `elea.tiny` and nothing else, as on a board."""
    shutil.copytree(ROOT / "src" / "elea" / "tiny", tmp_path / "elea" / "tiny")

    broker, output = served([MICROPYTHON], tmp_path)

    assert broker.payloads() == [b"0", b"1", b"2", b"3", b"4"]
    memory, *rest = output.splitlines()
    assert rest == ["told: 4 on", "closed: 0"]
    assert int(memory.rpartition(" ")[2]) < 8192
