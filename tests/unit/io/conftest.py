"""What every test of the links starts from."""

from __future__ import annotations

import threading

import pytest

from tests.unit.io import ends


@pytest.fixture(autouse=True)
def only_threads_of_this_test_count() -> None:
    ends.EARLIER.clear()
    ends.EARLIER.update(threading.enumerate())
