"""Where the logs of these tests lie."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.conftest import elea
from tests.unit.store.samples import memory_directory

__all__ = ["elea", "memory_path"]


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A directory, in memory if possible."""
    with tempfile.TemporaryDirectory(dir=memory_directory()) as path:
        yield Path(path)
