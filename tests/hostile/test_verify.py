"""What `elea store verify` says of files that were cut after an orderly stop: as many are lost as the log had."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import elea
from tests.robust.hostile import Victim, configuration

SAMPLES = 500

CUTS: dict[str, Callable[[int], int]] = {
    "to the half": lambda size: size // 2,
    "within the header": lambda size: 100,
    "to nothing": lambda size: 0,
}


@pytest.mark.parametrize("cut", CUTS)
def test_verify_counts_what_the_log_had(tmp_path: Path, cut: str) -> None:
    victim = Victim(options=("--store", str(tmp_path), "--persist", "log/**"))
    with elea.open(configuration("client", connect=[victim.tcp])) as session:
        for start in range(0, SAMPLES, 50):
            session.put_batch([(f"log/{number}", bytes(100)) for number in range(start, start + 50)])
    victim.close()
    (segment,) = tmp_path.rglob("0*.arrows")
    with open(segment, "r+b") as file:
        file.truncate(CUTS[cut](segment.stat().st_size))

    verify = [sys.executable, "-m", "elea", "store", "verify", "--json", str(segment.parent)]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)

    report = json.loads(done.stdout.splitlines()[0])
    assert done.returncode == 5
    assert report["sound"] is False
    assert report["lost"] + report["samples"] == SAMPLES
    assert report["lost"] >= SAMPLES // 3
