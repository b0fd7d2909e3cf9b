"""A point between a sink's commit and Spark's, at which a driver can be stopped to be killed.

Whoever has committed a batch while the file `park` lies in the directory of the run says so and goes no further. The
directory is named by the environment, which the processes of Spark hand on to each other.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from elea.spark.sink import StreamSink
from elea.spark.source import ZenohDataSource

__all__ = ["PLACE", "ParkingSource", "is_parked", "park"]

PLACE = "ELEA_KILLS_PLACE"
PARKED_SECONDS = 300.0


def park(target: str) -> None:
    """Stay here if asked to. The process is killed, or has nobody any more who waits for it."""
    named = os.environ.get(PLACE)  # a process that is not to be killed has none
    if named is None or not (Path(named) / "park").exists():
        return
    place = Path(named)
    (place / f"at-{target}").touch()
    end, parent = time.monotonic() + PARKED_SECONDS, os.getppid()
    while time.monotonic() < end and os.getppid() == parent:
        time.sleep(0.05)
    os._exit(9)


def is_parked(target: str) -> bool:
    """Whether it stays there."""
    named = os.environ.get(PLACE)
    return named is not None and Path(named, f"at-{target}").exists()


class _ParkingSink(StreamSink):
    target = ""

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
        super().commit(messages, batchId)
        park(self.target)


class ParkingSource(ZenohDataSource):
    """The same, with the point; the option `parkedAs` names it."""

    @classmethod
    def name(cls) -> str:
        return "zenoh.parking"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
        from elea.spark.options import WriteOptions

        options = {name.lower(): value for name, value in self.options.items()}
        target = options.pop("parkedas")
        made = _ParkingSink(schema, WriteOptions.parse(options), overwrite)
        made.target = target
        return made
