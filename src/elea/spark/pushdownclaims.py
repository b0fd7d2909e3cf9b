"""Which scan may read what Spark's filters have narrowed: the first one only.

Spark 4.3 keeps what a Python source was told of a query's filters with the `load()`, and uses it for every other query
and branch of that `load()`, which then has too few rows. Nobody asks the source again. So what was narrowed is claimed:
once by the query that is planned, then each range by the task of one scan. Whoever comes second is refused.

Claims are files in the directory for temporary files, so they hold on one machine: elsewhere pushed filters are
refused, too.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from elea.model.errors import ConfigError

__all__ = ["Claims"]

KEPT_SECONDS: Final = 86400.0
"""How long a claim is kept: nobody begins with a DataFrame that was planned a day ago."""

_HINT: Final = (
    "give each query, each action and each branch of a union or join a load() of its own; "
    "or leave pushdown out and narrow with the options keyexpr, kind, startingTimestamp and endingTimestamp"
)


@dataclass(frozen=True)
class Claims:
    """The claims on one `load()`; goes with the reader to the tasks."""

    load: str
    host: str = field(default_factory=socket.gethostname)

    def plan(self) -> None:
        """Say that the filters of a query are taken over.

        Raises:
            ConfigError: those of another query were.
        """
        _tidy()
        if not _claimed(self._file("plan"), ""):
            problem = "another query of this load() has pushed its filters, and Spark would mix them up"
            raise ConfigError("option pushdown", problem, _HINT)

    def read(self, piece: str) -> None:
        """Say that the task that runs here reads a range.

        Raises:
            ConfigError: it belongs to another scan, or was narrowed on another machine.
        """
        from pyspark import TaskContext

        if self.host != socket.gethostname():
            problem = f"filters were pushed on {self.host}, and this task is on {socket.gethostname()}"
            hint = "push filters with a local master only; elsewhere use the options keyexpr, kind, startingTimestamp"
            raise ConfigError("option pushdown", problem, hint)
        context = TaskContext.get()
        # A task that is tried again has the same place in the same stage; a second scan has not.
        scan = "" if context is None else f"{context.stageId()} {context.partitionId()}"
        if not _claimed(self._file(piece), scan):
            problem = "rows that were narrowed by the filters of one query are read once more"
            raise ConfigError("option pushdown", problem, _HINT)

    def _file(self, what: str) -> Path:
        return _directory() / f"{self.load}-{what}"


def _directory() -> Path:
    place = Path(tempfile.gettempdir(), f"elea-pushdown-{os.getuid()}")
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def _claimed(file: Path, claim: str) -> bool:
    """Whether this claim is the first, or the same as the first."""
    beside = file.with_name(f"{file.name}.{os.getpid()}")
    beside.write_text(claim, encoding="ascii")
    try:
        os.link(beside, file)  # at once with what is in it, for one of several only
    except FileExistsError:
        return claim != "" and file.read_text(encoding="ascii") == claim
    finally:
        beside.unlink()
    return True


def _tidy() -> None:
    oldest = time.time() - KEPT_SECONDS
    for file in _directory().iterdir():
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_mtime < oldest:
                file.unlink()
