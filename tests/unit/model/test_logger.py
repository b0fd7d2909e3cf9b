"""Loggers that come without `logging` until there is something to say."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from elea.model.logger import logger

PROGRAM = """
import sys
from elea.model.logger import logger
log = logger("elea.test")
log.info("info: size=%d", 1)
log.debug("debug")
print("logging" in sys.modules)
log.warning("warning: size=%d", 2)
print("logging" in sys.modules)
"""


def test_it_is_the_logger_of_that_name(caplog: pytest.LogCaptureFixture) -> None:
    log = logger("elea.test")

    with caplog.at_level(logging.DEBUG, "elea.test"):
        log.debug("one: size=%d", 1)
        log.error("two", exc_info=ValueError("three"))

    assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == [
        ("elea.test", "DEBUG", "one: size=1"),
        ("elea.test", "ERROR", "two"),
    ]
    assert caplog.records[0].filename == "test_logger.py"  # and not that of the logger
    assert "three" in caplog.text


def test_its_level_is_that_of_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "elea.test"):
        logger("elea.test").warning("not said")

    assert caplog.records == []


def test_only_what_somebody_would_see_brings_logging() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True"]
    assert done.stderr == "warning: size=2\n"
