"""What every test of the links starts from."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from elea.io.loop import Loop
from tests.unit.io import ends


@pytest.fixture(autouse=True)
def only_threads_of_this_test_count() -> None:
    ends.EARLIER.clear()
    ends.EARLIER.update(threading.enumerate())


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A loop that is closed with the test."""
    made = Loop("test")
    yield made
    made.close()
