"""The table of `bench.node`: medians, ratios, targets, losses."""

from __future__ import annotations

from bench.node.cases import Figure, Goal
from bench.node.table import Row, Table, short


def row_of(zenoh: list[float], elea: list[float], goal: Goal | None = None) -> Row:
    row = Row("row", goal)
    row.values = {"zenoh": zenoh, "elea": elea}
    return row


def test_ratio_is_that_of_the_medians() -> None:
    row = row_of([10.0, 20.0, 90.0], [30.0, 40.0, 50.0])

    assert row.ratio("zenoh") == 2.0


def test_ratio_is_unknown_without_the_other_library() -> None:
    row = row_of([], [30.0])

    assert row.ratio("zenoh") is None
    assert row.ratio("redis") is None


def test_goal_of_a_rate_is_a_least_ratio() -> None:
    assert row_of([10.0], [30.0], Goal(at_least=3)).met() is True
    assert row_of([10.0], [29.0], Goal(at_least=3)).met() is False


def test_goal_of_a_cost_is_a_highest_ratio() -> None:
    assert row_of([10.0], [5.0], Goal(at_most=0.5)).met() is True
    assert row_of([10.0], [5.1], Goal(at_most=0.5)).met() is False


def test_absolute_goal_looks_at_elea_alone() -> None:
    assert row_of([5.0], [20.0], Goal(at_most=20, absolute=True)).met() is True
    assert row_of([50.0], [20.1], Goal(at_most=20, absolute=True)).met() is False


def test_goal_is_open_when_a_library_failed() -> None:
    assert row_of([], [30.0], Goal(at_least=3)).met() is None


def test_losses_of_all_rounds_add_up() -> None:
    table = Table()
    for lost in (0, 2, 3):
        table.add("zenoh", Figure("samples/s", 10.0, 0))
        table.add("elea", Figure("samples/s", 10.0, lost))

    assert "| 0 / 5 |" in table.lines()[-1]


def test_line_shows_median_spread_ratio_and_target() -> None:
    table = Table()
    for value in (1_000_000.0, 2_000_000.0, 1_500_000.0):
        table.add("zenoh", Figure("put/s", value))
        table.add("elea", Figure("put/s", 3 * value, goal=Goal(at_least=3)))

    cells = [cell.strip() for cell in table.lines()[-1].split("|")]

    assert cells[1:-1] == ["put/s", "1.50 M (1.00 M–2.00 M)", "4.50 M (3.00 M–6.00 M)", "3.00×", "✓ ≥ 3×", ""]


def test_library_that_is_absent_is_named_beside_the_row_it_shares() -> None:
    table = Table(absent=["zmq", "redis"])
    for row in ("round trip µs p50, direct", "round trip µs p50, direct, indirect=False", "put/s"):
        table.add("elea", Figure(row, 1.0))

    absent = [line for line in table.lines() if "not installed" in line]

    assert [line.split("|")[1].strip() for line in absent] == ["round trip µs p50, direct, beside pyzmq"]


def test_row_without_figures_of_a_library_says_failed() -> None:
    table = Table()
    table.add("elea", Figure("put/s", 1.0, goal=Goal(at_least=3)))

    assert [cell.strip() for cell in table.lines()[-1].split("|")][2:6] == ["failed", "1.00", "", "? ≥ 3×"]


def test_short_numbers_keep_three_digits() -> None:
    assert [short(value) for value in (0.456, 12.34, 123.4, 9_999.0, 12_345.0, 1_234_567.0)] == [
        "0.46",
        "12.3",
        "123",
        "9999",
        "12.3 k",
        "1.23 M",
    ]
