"""Every cell of the matrix: a row played in a column observes what the reference observes."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any

import pytest

from tests.interop.columns import COLUMNS, Column
from tests.interop.conftest import CELL, Shared
from tests.interop.rows import NOT_YET, ROWS, Row

pytestmark = pytest.mark.interop

HANGING = 30.0
"""Seconds after which a cell hangs."""


def play(row: Row, column: Column, shared: Shared) -> Any:
    """Run a row; a hang is a failure that shows where it hangs."""
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["seen"] = row.play(column if row.own else shared.network(column))
        except BaseException as error:  # noqa: BLE001 -- handed over to the test's thread
            outcome["error"] = error

    thread = threading.Thread(target=run, name=f"row {row.name}", daemon=True)
    thread.start()
    thread.join(HANGING)
    if thread.is_alive():
        assert thread.ident is not None
        stack = "".join(traceback.format_stack(sys._current_frames()[thread.ident])[-4:])
        raise AssertionError(f"hangs after {HANGING} s at\n{stack}")
    if "error" in outcome:
        shared.give_up(column)
        raise outcome["error"]
    return outcome["seen"]


def reference(row: Row, column: Column, shared: Shared) -> Any:
    """What eclipse-zenoh alone observes, played once."""
    wanted = (row.name, column.reference)
    if wanted not in shared.reference:
        shared.reference[wanted] = play(row, column.reference, shared)
    return shared.reference[wanted]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name.replace(" ", "_"))
def test_cell(row: Row, column: Column, shared: Shared, record_property: Any) -> None:
    def record(state: str, why: str = "") -> None:
        record_property(CELL, (row.name, column.name, state, why))

    reason = row.inapplicable(column)
    if reason is not None:
        record("n.a.", reason)
        return
    listed = None if column.is_reference else NOT_YET.get(row.name)

    try:
        expected = reference(row, column, shared)
        seen = expected if column.is_reference else play(row, column, shared)
        if seen != expected:
            # Whoever is wrong, the next try hears eclipse-zenoh again: it, too, loses a sample on a busy machine.
            shared.reference.pop((row.name, column.reference), None)
        assert seen == expected
    except BaseException as error:
        if listed is None:
            record("FAIL", "")
            raise
        record("not yet", "")
        pytest.xfail(f"{listed} ({type(error).__name__})")
    record("ok" if listed is None else "now ok")
