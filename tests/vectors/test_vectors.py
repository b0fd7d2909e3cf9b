"""Every committed vector, one test per record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vectors.cases import Case, files_below
from tests.vectors.kinds import cases_of

HERE = Path(__file__).parent


def _parameters() -> Iterator[Any]:
    for path in files_below([HERE]):
        for case in cases_of(path):
            marks = [] if case.check else [pytest.mark.skip(reason=case.reason)]
            yield pytest.param(case, id=f"{path.parent.name}/{path.name}:{case.name}", marks=marks)


@pytest.mark.parametrize("case", list(_parameters()))
def test_vector(case: Case) -> None:
    assert case.check is not None
    case.check()
