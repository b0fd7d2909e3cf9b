"""A query over `format("zenoh")` that can be started again and again, and a sink that sees whether batches repeat."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import elea
from tests.interop.inbox import eventually

__all__ = ["PATIENCE", "Sink", "Stream", "cursors", "put", "until"]

PATIENCE = 90.0
COLUMNS = "log string, offset bigint, key string, payload binary"


class Sink:
    """Remembers the rows of each batch by its number; a batch that comes again must be the same."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[Any, ...]]] = {}
        self.repeated = 0
        self.fail_at: int | None = None

    def __call__(self, frame: Any, number: int) -> None:
        rows = sorted(tuple(row) for row in frame.collect())
        if number in self.batches:
            self.repeated += 1
            assert self.batches[number] == rows
        self.batches[number] = rows
        if self.fail_at == number:
            raise RuntimeError("the sink fails after it has the rows")

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [row for rows in self.batches.values() for row in rows]

    @property
    def numbers(self) -> list[int]:
        return sorted(int(row[3]) for row in self.rows)


class Stream:
    """A query that can be started again and again from one checkpoint."""

    def __init__(self, spark: Any, locator: str, checkpoint: Path, keys: str = "**", **options: str) -> None:
        self.sink = Sink()
        self._spark = spark
        self._checkpoint = str(checkpoint)
        self._keys = keys
        start = {} if "startingTimestamp" in options else {"startingOffsets": "earliest"}
        self._options = {"connect": locator, **start, **options}

    def start(self, **options: str) -> Any:
        reader = self._spark.readStream.format("zenoh").schema(COLUMNS).options(**{**self._options, **options})
        writer = reader.load(self._keys).writeStream.foreachBatch(self.sink)
        return writer.option("checkpointLocation", self._checkpoint)

    def drain(self, **options: str) -> Any:
        """Read what is there, and end."""
        query = self.start(**options).trigger(availableNow=True).start()
        query.awaitTermination()
        return query


def put(session: elea.Session, key: str, numbers: range) -> None:
    session.put_batch([(key, str(number)) for number in numbers], timeout=60)


def cursors(session: elea.Session) -> dict[str, dict[str, int]]:
    replies = (json.loads(reply.ok.payload.to_bytes()) for reply in session.get("@store/info/**", timeout=60))
    return {facts["name"]: facts["cursors"] for facts in replies}


def until(condition: Callable[[], bool], what: str) -> None:
    eventually(condition, what, PATIENCE)
