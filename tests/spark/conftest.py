"""One Spark session for all tests, and a broker with a store for each that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
import elea.spark
from tests.interop.storing import StoringBroker
from tests.spark.objectstore import prepare

__all__ = ["broker", "client", "session", "spark"]

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    # A session that lives for minutes does not earn back what the better compiler costs.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A classic session on two cores; it takes some ten seconds to start, so everybody shares it."""
    prepare()
    made = elea.spark.session("elea-tests", master="local[2]", settings=SETTINGS)
    yield made
    made.stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[StoringBroker]:
    """`elea broker --store` that keeps everything on disk; `broker.locator` is where, `kill()` and `restart()` work."""
    with StoringBroker("--store", str(tmp_path / "store"), "--persist", "**") as made:
        yield made


@pytest.fixture
def session(broker: StoringBroker) -> Iterator[elea.Session]:
    """A client of `broker`."""
    with client(broker.locator) as opened:
        yield opened


def client(locator: str) -> elea.Session:
    """A session of a client."""
    return elea.open(elea.Config.from_json5(f'{{mode: "client", connect: {{endpoints: ["{locator}"]}}}}'))
