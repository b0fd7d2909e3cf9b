"""What the measurements of `bench.spark` share: a Spark session, a broker with a filled log, places for tables."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

import elea
from bench.inflight import KEYS
from bench.node.processes import ROOT
from bench.sessions import Broker, broker

__all__ = ["FLEET", "Stage", "batch_of", "session", "stage"]

FLEET = "fleet/**"
OCTETS = 100  # of a payload
FILL_ROWS = 500_000
PATIENCE = 600.0  # seconds that a busy machine may take for one request


@dataclass
class Stage:
    """Where everything happens."""

    spark: Any
    broker: Broker
    locator: str
    root: Path
    rows: int
    _numbers: Iterator[int] = field(default_factory=count)

    def place(self) -> Path:
        """A path that nobody has used."""
        return self.root / str(next(self._numbers))

    def parquet(self) -> str:
        """The rows of the log as Parquet files, for the limit; made when they are first wanted."""
        path = self.root / "limit"
        if not path.exists():
            rows = self.spark.read.format("zenoh").option("connect", self.locator).load(FLEET)
            rows.write.parquet(str(path))
        return str(path)

    @contextlib.contextmanager
    def table(self) -> Iterator[Path]:
        """A directory for a table and its checkpoint, removed afterwards: rounds must not fill the disk."""
        path = self.place()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def batch_of(rows: int) -> pa.RecordBatch:
    """Samples of random octets: what compresses would flatter whoever compresses."""
    octets = pa.py_buffer(os.urandom(rows * OCTETS))
    payloads = pa.Array.from_buffers(pa.binary(OCTETS), rows, [None, octets]).cast(pa.binary())
    keys = pa.array(KEYS).take(pa.array([row % len(KEYS) for row in range(rows)], pa.int32()))
    return pa.RecordBatch.from_arrays([keys, payloads], ["key", "payload"])


def session() -> Any:
    """A Spark session on all cores of this machine."""
    import elea.spark

    # Workers must find the source that yields tuples.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    settings = {"spark.driver.memory": "3g", "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    return elea.spark.session("bench", settings=settings, log_level="ERROR")


@contextlib.contextmanager
def stage(spark: Any, rows: int, directory: Path | None = None) -> Iterator[Stage]:
    """A broker process whose log of `fleet/**` has so many samples, acknowledged."""
    with contextlib.ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="elea-bench-", dir=directory))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        at = stack.enter_context(broker(root / "store", "live/**", "sink/**"))
        with elea.open(at.config) as opened:
            for begin in range(0, rows, FILL_ROWS):
                opened.put_batch(batch_of(min(FILL_ROWS, rows - begin)), timeout=PATIENCE)
        yield Stage(spark, at, at.locator, root, rows)
