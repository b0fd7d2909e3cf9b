"""`bench.scale` with a handful of clients at real routers, of both libraries, over tcp and tls."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench.node.processes import ROOT, EndFailed, environment
from bench.scale.__main__ import Options, run
from bench.scale.crowd import Client, Crowd, CrowdFailed, in_turn
from bench.scale.measurement import greet
from bench.scale.meter import Meter
from bench.scale.routers import SPARE_SESSIONS, Router
from bench.scale.rows import ORDER, Row
from bench.scale.table import Figures
from bench.scale.tls import make_certificate

from tests.interop.test_bench import is_gone

pytestmark = pytest.mark.interop

CLIENTS = 12
MAY_BE_NOTHING = {Row.MEMORY, Row.REST}  # in half a second, with so few


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return environment(None, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("lib", "tls"), [("zenoh", True), ("elea", False)])
def test_run_yields_every_figure_and_loses_nothing(
    lib: str, tls: bool, variables: dict[str, str], tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path) if tls else None
    figures = Figures()

    run(Options(0.5, 0.5, CLIENTS, variables, certificate), lib, CLIENTS, figures)

    assert {row for row, _ in figures.cells} == set(ORDER)
    nothing = {row for (row, _), cell in figures.cells.items() if cell.values[lib][0] <= 0}
    assert nothing <= MAY_BE_NOTHING
    assert sum(cell.lost.get(lib, 0) for cell in figures.cells.values()) == 0


@pytest.mark.parametrize("lib", ["zenoh", "elea"])
def test_crowd_that_finds_no_room_says_how_far_it_came(lib: str, variables: dict[str, str]) -> None:
    async def crowd(port: int) -> None:
        async with Crowd(port) as crowd:
            await crowd.open(100, greet)
            crowd.check()

    few = 60 - SPARE_SESSIONS
    with Router(lib, few, variables=variables) as router, pytest.raises(CrowdFailed) as failed:
        asyncio.run(crowd(router.port))

    assert str(failed.value).startswith("60 of 100 clients were open, then: ")


def test_crowd_notices_that_its_router_is_gone(variables: dict[str, str]) -> None:
    async def crowd(router: Router) -> None:
        async with Crowd(router.port) as crowd:
            await crowd.open(CLIENTS, greet)
            os.kill(router.pid, signal.SIGKILL)
            await asyncio.sleep(0.5)
            crowd.check()

    with Router("elea", CLIENTS, variables=variables) as router:
        with pytest.raises(CrowdFailed, match=f"{CLIENTS} of {CLIENTS} sessions ended"):
            asyncio.run(crowd(router))
        with pytest.raises(EndFailed, match="elea router: ended with -9"):
            router.check()


def test_everyone_has_a_turn_in_a_period_and_few_are_spread_over_it() -> None:
    seen: list[tuple[int, float]] = []

    async def turns() -> None:
        loop = asyncio.get_running_loop()
        clients = [Client(Crowd(0), number) for number in range(4)]
        task = asyncio.create_task(in_turn(clients, 1.0, lambda client: seen.append((client.number, loop.time()))))
        while len(seen) < 4:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(turns())

    assert sorted(number for number, _ in seen) == [0, 1, 2, 3]
    assert seen[-1][1] - seen[0][1] > 0.2


def test_router_that_cannot_start_says_why(variables: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(EndFailed, match="elea router: ended with"):
        Router("elea", CLIENTS, variables=variables, certificate=(tmp_path / "no", tmp_path / "none")).__enter__()


ORPHAN = """
import os, sys
from pathlib import Path
from bench.node.processes import environment
from bench.scale.routers import Router
print(Router("elea", 9, variables=environment(None, Path(sys.argv[1]))).__enter__().pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_router_leaves_when_the_measuring_process_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHAN, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())

    for _ in range(500):
        if is_gone(pid):
            break
        signal.sigtimedwait([], 0.02)
    assert is_gone(pid)


def test_meter_sees_the_work_of_all_threads_of_another_process() -> None:
    program = (
        "import threading, time\n"
        "rest, all = threading.Event(), threading.Barrier(3)\n"
        "def work():\n    while time.thread_time() < 0.2: pass\n    all.wait(); rest.wait()\n"
        "for thread in [threading.Thread(target=work) for _ in range(2)]: thread.start()\n"
        "all.wait(); print(1, flush=True); input(); rest.set()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        meter = Meter(process.pid)
        found = meter.cpu(), meter.memory(), meter.threads()
        process.communicate("\n")

    assert 0.4 <= found[0] < 5
    assert 2_000 < found[1] < 200_000
    assert found[2] == 3
