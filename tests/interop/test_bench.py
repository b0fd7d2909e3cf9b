"""The ends of `bench.node` are real processes here: dead, silent, orphaned, or late to a port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.node import processes
from bench.node.cases import CASES, Options
from bench.node.processes import EndFailed, Stage, environment

pytestmark = pytest.mark.interop


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return environment(None, tmp_path)


@pytest.fixture
def stage(variables: dict[str, str]) -> Iterator[Stage]:
    with Stage("elea", 0.1, variables) as stage:
        yield stage


def test_dead_end_fails_with_its_last_words(variables: dict[str, str]) -> None:
    with Stage("no_such_library", 0.1, variables) as stage:
        end = stage.end("idle")

        with pytest.raises(EndFailed, match="ended with 1 before `open`: ModuleNotFoundError"):
            end.hear("open")


def test_end_that_dies_unasked_fails_the_measurement(stage: Stage) -> None:
    end = stage.listener("idle", "router")
    end.process.kill()
    end.process.wait()

    with pytest.raises(EndFailed, match="ended with -9 during the run"):
        stage.check()


def test_end_killed_while_it_is_asked_fails(stage: Stage) -> None:
    end = stage.listener("idle", "router")
    end.process.kill()
    end.process.wait()

    with pytest.raises(EndFailed, match="ended with -9"):
        end.ask("cpu", do="tell")


def test_silent_end_is_not_waited_for(stage: Stage) -> None:
    end = stage.listener("idle", "router")

    with pytest.raises(EndFailed, match="no `never` within 0 s"):
        end.hear("never", 0.1)


def test_stage_leaves_no_process_behind(variables: dict[str, str]) -> None:
    with Stage("elea", 0.1, variables) as stage:
        end = stage.listener("idle", "router")

    assert end.process.returncode is not None


def test_end_that_does_not_leave_is_killed(stage: Stage) -> None:
    end = stage.listener("idle", "router")
    os.kill(end.process.pid, signal.SIGSTOP)

    end.close(grace=0.1)

    assert end.process.returncode == -signal.SIGKILL


def test_listener_takes_another_port_when_somebody_was_quicker(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        taken, free = occupied.getsockname()[1], processes.free_port()
        ports = iter([taken, free])
        monkeypatch.setattr(processes, "free_port", lambda: next(ports))

        stage.listener("idle", "router")

    assert stage.port == free


ORPHAN = """
import os, sys
from pathlib import Path
from bench.node.processes import Stage, environment
end = Stage("elea", 0.1, environment(None, Path(sys.argv[1]))).listener("idle", "router")
print(end.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_end_leaves_when_the_measuring_process_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ORPHAN, str(tmp_path)]

    with subprocess.Popen(command, cwd=processes.ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())

    end = time.monotonic() + 60
    while not is_gone(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert is_gone(pid)


def is_gone(pid: int) -> bool:
    """Has the process ended? A zombie that nobody collects has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


@pytest.mark.parametrize("lib", ["zenoh", "elea"])
@pytest.mark.parametrize("case", ["rtt", "query", "rate", "many"])
def test_case_yields_figures(case: str, lib: str, variables: dict[str, str]) -> None:
    options = Options(seconds=0.2, sizes=(64,), subscribers=10, environment=variables, rate_seconds=0.2)

    figures = list(CASES[case].run(options, lib))

    assert figures
    assert all(figure.value > 0 for figure in figures if "RSS KB" not in figure.row)
    assert all(figure.lost is None or figure.lost >= 0 for figure in figures)
