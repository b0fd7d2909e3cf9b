"""Our router beside the real one: the same program, the same clients, the same outcome.

More seeds: `python -m tests.robust.differential --seeds 100`, and the same with `--raw`.
"""

from __future__ import annotations

import dataclasses

import pytest

from tests.robust.differential import compare, compare_raw, run
from tests.robust.programs import Program, Put, Step, program

pytest.importorskip("zenoh")


@pytest.mark.interop
@pytest.mark.parametrize("seed", [1, 2, 3, 51, 1048])
def test_clients_hear_the_same_through_either_router(seed: int) -> None:
    compare(seed)


@pytest.mark.interop
@pytest.mark.parametrize("seed", range(1, 11))
def test_raw_client_is_told_the_same_by_either_router(seed: int) -> None:
    compare_raw(seed)


@pytest.mark.interop
def test_another_program_has_another_outcome() -> None:
    """What is compared depends on what is done: else equal outcomes would mean nothing."""
    made = program(1)
    *rest, last = (step for phase in made.phases for step in phase if step.verb == "subscriber")
    without = [[step for step in phase if step.name != last.name] for phase in made.phases]
    wider = [[dataclasses.replace(step, key="**") if step is last else step for step in phase] for phase in made.phases]

    outcome = run("E:EEE", made)

    assert any(heard for name, heard in outcome.items() if "subscriber" in name)
    assert any(heard for name, heard in outcome.items() if " get" in name)
    assert run("E:EEE", Program(without)) != outcome
    assert run("E:EEE", Program(wider)) != outcome
    assert rest


@pytest.mark.interop
@pytest.mark.parametrize(
    "gone", [Step(1, "subscriber", "subscriber1", "b"), Step(1, "queryable", "queryable1", "b/a/*")]
)
def test_real_client_loses_nothing_after_it_undeclares_something_above_the_key(gone: Step) -> None:
    """eclipse-zenoh forgets numbers below a resource of its own, so it must be given none there."""
    puts = [Step(2, "put", put=Put("b/a/b", n, "put", "DATA", False, "zenoh/bytes", None, False)) for n in (8, 9)]
    heard = [Step(1, "subscriber", "kept2", "*/a/b"), Step(1, "subscriber", "kept3", "**/b/*")]
    steps = Program([[gone, *heard, puts[0]], [Step(1, "undeclare", gone.name), puts[1]]])

    outcome = run("E:ZZZ", steps)

    (samples,) = outcome["1 kept2 */a/b"].values()
    assert [sample[1] for sample in samples] == ["2:8", "2:9"]
