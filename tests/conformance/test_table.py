"""The page on conformance is up to date, and tells the truth about what is not shown."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from elea.conformance.runner import checks_of
from tests.conformance.requirements import ELSEWHERE, OPEN, REQUIREMENTS
from tests.conformance.table import PAGE, page, requirements_in, shown


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.conformance.table --write"


def test_what_has_no_test_is_known_and_nothing_else() -> None:
    assert {one for one, tests in shown().items() if not tests} == set(OPEN)


def test_checks_are_about_requirements_that_exist() -> None:
    assert {one for check in checks_of() for one in check.requirements} <= set(REQUIREMENTS)
    assert len({check.name for check in checks_of()}) == len(checks_of())


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_tests_that_are_named_exist(name: str) -> None:
    path, _, function = name.partition("::")
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))

    assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_requirements_are_found_in_texts() -> None:
    assert list(requirements_in("Z18-REL-03/04, and Z18-BEC-01.")) == ["Z18-REL-03", "Z18-REL-04", "Z18-BEC-01"]
