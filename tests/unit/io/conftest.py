"""What every test of the links starts from."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from elea.io.loop import Loop
from tests.unit.io import ends


@pytest.fixture(autouse=True)
def only_threads_of_this_test_count() -> None:
    ends.EARLIER.clear()
    ends.EARLIER.update(threading.enumerate())


@pytest.fixture(autouse=True)
def interrupts_are_not_ignored() -> Iterator[None]:
    """A shell starts background jobs with SIGINT ignored, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A loop that is closed with the test."""
    made = Loop("test")
    yield made
    made.close()
