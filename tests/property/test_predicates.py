"""Random predicates over random rows: the closure and Arrow agree. As a program: `tests.property.predicates`."""

from __future__ import annotations

import pytest

from tests.property.predicates import differences


@pytest.mark.parametrize("seed", range(4))
def test_closure_and_arrow_agree(seed: int) -> None:
    assert differences(seed, predicates=50, rows=100) == []
