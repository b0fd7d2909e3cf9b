"""Networks shared by the rows of a column, and the matrix printed at the end of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.columns import COLUMNS, Column
from tests.interop.network import Network
from tests.interop.rows import NOT_YET, ROWS

__all__ = ["Shared", "shared"]

CELL = "interop-cell"


class Shared:
    """One network a column, opened when first needed; given up after a failure, so that no cell fails another."""

    def __init__(self) -> None:
        self._networks: dict[Column, Network] = {}
        self.reference: dict[tuple[str, Column], Any] = {}

    def network(self, column: Column) -> Network:
        """The column's network."""
        if column not in self._networks:
            self._networks[column] = Network(column, third=column.router is not None)
        return self._networks[column]

    def give_up(self, column: Column) -> None:
        """Something went wrong there."""
        network = self._networks.pop(column, None)
        if network is not None:
            network.close()

    def close(self) -> None:
        """End all."""
        for column in list(self._networks):
            self.give_up(column)


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    networks = Shared()
    yield networks
    networks.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print rows × columns, and the reasons under it."""
    cells: dict[tuple[str, str], str] = {}
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            told = dict(getattr(report, "user_properties", ()))
            if CELL not in told or getattr(report, "when", None) != "call":
                continue
            row, column, state, why = told[CELL]
            if report.outcome == "failed":
                state, why = "FAIL", why or _last_line(report)
            cells[row, column] = state
            if why:
                reasons.setdefault((state, row, why), []).append(column)
    if cells:
        _print(terminalreporter, cells, reasons)


def _last_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message).splitlines()[0][:160] if crash is not None else ""


def _print(terminal: Any, cells: dict[tuple[str, str], str], reasons: dict[tuple[str, str, str], list[str]]) -> None:
    width = max(len(name) for name in ROWS) + 1
    terminal.section("interop matrix: E = elea, Z = eclipse-zenoh; router:ab, a>b connects, a<b accepts")
    terminal.write_line(" " * width + " ".join(f"{column.name:>4}" for column in COLUMNS))
    for name in ROWS:
        states = [cells.get((name, column.name), "") for column in COLUMNS]
        if any(states):
            terminal.write_line(name.ljust(width) + " ".join(f"{MARKS.get(state, state):>4}" for state in states))
    counts = {state: sum(found == state for found in cells.values()) for state in MARKS}
    terminal.write_line(", ".join(f"{number} {state}" for state, number in counts.items()))
    for (state, row, why), columns in sorted(reasons.items()):
        terminal.write_line(f"{state:7} {row} [{' '.join(columns)}]: {why}")
    for name, why in NOT_YET.items():
        terminal.write_line(f"not yet {name}: {why}")


MARKS = {"ok": "ok", "FAIL": "FAIL", "n.a.": "n.a.", "not yet": "nyet", "now ok": "ok!"}
