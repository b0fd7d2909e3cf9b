"""What `bench.scale` makes of its figures, and what this machine can hold."""

from __future__ import annotations

import asyncio
import resource
import time

import pytest
from bench.scale import limits
from bench.scale.crowd import in_turn
from bench.scale.rows import FANS, ORDER, Fan, Row
from bench.scale.table import Figures, Target, target_lines, targets


def figures_of(*cells: tuple[str, int, dict[str, float]]) -> Figures:
    figures = Figures()
    for row, clients, values in cells:
        for lib, value in values.items():
            figures.add(lib, clients, row=row, value=value, lost=None)
    return figures


def target_of(figures: Figures, name: str) -> Target:
    [found] = [target for target in targets(figures) if target.name.startswith(name)]
    return found


def test_nothing_measured_meets_and_misses_nothing() -> None:
    assert {target.met for target in targets(Figures())} == {None}


@pytest.mark.parametrize(("threads", "met"), [(4, True), (1004, False)])
def test_threads_must_not_grow_with_clients(threads: int, met: bool) -> None:
    figures = figures_of((Row.THREADS, 100, {"elea": 4}), (Row.THREADS, 1000, {"elea": threads}))

    assert target_of(figures, "threads with 1000 clients, as with 100").met is met


def test_threads_of_one_number_of_clients_prove_nothing() -> None:
    figures = figures_of((Row.THREADS, 100, {"elea": 4}))

    assert target_of(figures, "threads").met is None


def test_memory_is_judged_by_the_worst_of_many_clients() -> None:
    cells = [(Row.MEMORY, clients, {"elea": kilobytes}) for clients, kilobytes in ((100, 90.0), (1000, 24), (5000, 25))]

    assert target_of(figures_of(*cells[:2]), "memory").met is True
    assert target_of(figures_of(*cells), "memory").value == 25
    assert target_of(figures_of(*cells), "memory").met is False


def test_cost_is_judged_beside_the_other_library() -> None:
    figures = figures_of(
        (Fan.IN.cost, 100, {"zenoh": 10.0, "elea": 8.0}), (Fan.IN.cost, 1000, {"zenoh": 10, "elea": 9})
    )

    assert target_of(figures, "fan-in, 100 clients").met is True
    assert target_of(figures, "fan-in, 1000 clients").met is False


def test_cost_is_open_where_the_other_library_has_none() -> None:
    figures = figures_of((Fan.IN.cost, 100, {"elea": 8.0}))

    assert target_of(figures, "fan-in, 100 clients").met is None


@pytest.mark.parametrize("fan", FANS)
def test_cost_may_grow_by_half(fan: Fan) -> None:
    cheap, dear = ([(fan.cost, 100, {"elea": 2.0}), (fan.cost, 10_000, {"elea": cost})] for cost in (3.0, 3.1))

    assert target_of(figures_of(*cheap), f"{fan.name}, CPU per delivery with 10000").met is True
    assert target_of(figures_of(*dear), f"{fan.name}, CPU per delivery with 10000").met is False


def test_latency_is_judged_by_the_same_router_without_clients() -> None:
    figures = figures_of(
        (Row.ALONE_P99, 100, {"elea": 900.0}),
        (Row.ALONE_P99, 10_000, {"elea": 100}),
        (Row.IDLE_P99, 10_000, {"elea": 200}),
    )

    assert target_of(figures, "p99 of the probe").value == 2.0
    assert target_of(figures, "p99 of the probe").met is False


def test_table_has_a_line_for_each_number_of_clients() -> None:
    figures = figures_of((Row.REST, 1000, {"zenoh": 2.0, "elea": 1.0}), (Row.REST, 10_000, {"elea": 3.0}))
    figures.add("elea", 1000, row=Fan.IN.cost, value=9.0, lost=2)

    lines = [[cell.strip() for cell in line.split("|")][1:-1] for line in figures.lines()[2:]]

    assert lines == [
        ["at rest, CPU %", "1000", "2.00", "1.00", "0.50×", ""],
        ["at rest, CPU %", "10000", "", "3.00", "", ""],
        ["fan-in, CPU µs per delivery", "1000", "", "9.00", "", "? / 2"],
    ]


def test_table_knows_every_row() -> None:
    assert set(Row) <= set(ORDER)
    assert len(set(ORDER)) == len(ORDER) == len(Row) + 2 * len(FANS)


def test_line_of_a_target_says_what_was_wanted_and_what_came() -> None:
    lines = target_lines([Target("memory", 24, 25.0, " kB"), Target("rest", 10, None, " %")])

    cells = [[cell.strip() for cell in line.split("|")][1:-1] for line in lines[2:]]

    assert cells == [["memory", "≤ 24 kB", "25.0 kB", "✗"], ["rest", "≤ 10 %", "not measured", "?"]]


# -- limits ------------------------------------------------------------------------------------------------------------


def test_machine_says_which_limit_forbids_so_many_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "open_files", lambda: 2000)

    assert limits.obstacle(2000 - limits.SPARE) is None
    assert "2001 open files are needed in one process" in (limits.obstacle(2001 - limits.SPARE) or "")


def test_clients_come_from_further_addresses_when_ports_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "local_ports", lambda: limits.SPARE + 100)

    found = [limits.source_address(number) for number in (0, 99, 100, 199, 200)]

    assert found == [None, None, "127.0.0.2", "127.0.0.2", "127.0.0.3"]


def test_what_was_due_while_the_loop_was_busy_is_done_at_once() -> None:
    """Else clients lose their leases where one round of the loop takes longer than a slot."""
    kept: list[int] = []

    async def busy() -> None:
        task = asyncio.create_task(in_turn(range(100), 0.05, kept.append))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        time.sleep(0.06)
        await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)
        task.cancel()

    asyncio.run(busy())

    assert set(kept) == set(range(100))


def test_limit_of_open_files_is_raised_only_as_far_as_needed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = min(before[0], limits.SPARE + 100)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (low, before[1]))
        limits.raise_open_files(50)
        unchanged = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        limits.raise_open_files(low + 1 - limits.SPARE)
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert (unchanged, raised) == (low, low + 1)
