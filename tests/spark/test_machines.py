"""A cluster on machines of its own, small; `python -m tests.spark.machines` has all targets, and figures."""

from __future__ import annotations

import pytest

from tests.spark.machines import is_right, run
from tests.spark.namespaces import lacking

ROWS = 70_000


@pytest.mark.long
def test_rows_come_once_from_machine_to_machine_while_executors_and_networks_fail() -> None:
    problem = lacking()
    if problem is not None:
        pytest.skip(f"no namespaces can be made here: {problem}")

    found = list(run(["delta", "sink"], ROWS))

    assert [one["run"] for one in found if not is_right(one, ROWS)] == []
    assert len(found) == 6
    driver = found[1]["kilobytes"]["driver"]
    assert driver["received"] < 1000, "rows of files have passed through the driver"
