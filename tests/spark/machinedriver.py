"""The driver of `tests.spark.machines`, a process on a machine of its own: it is told what to do line by line.

    python -m tests.spark.machinedriver MASTER ADDRESS LOCATOR PLACE

Each line is a JSON list, the name of a command and what it needs; each is answered by one line.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import traceback
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import elea
import elea.spark
from tests.robust.children import config
from tests.spark.kills import LATE

__all__: list[str] = []

ROBOTS = 1000
TIMEOUT_MS = 10_000
"""How long a task waits for the broker that it does not reach."""

SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.driver.memory": "768m",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # An executor that cannot reach the broker gets no tasks for a while; else Spark gives it the same one again.
    "spark.excludeOnFailure.enabled": "true",
    "spark.excludeOnFailure.timeout": "30s",
}


class Driving:
    """The commands: each method that is public."""

    def __init__(self, master: str, address: str, locator: str, place: str) -> None:
        self._locator = locator
        self._place = Path(place)
        self._session = elea.open(config("client", "connect", locator))
        mine = {"spark.driver.host": address, "spark.driver.bindAddress": address}
        self._spark: Any = elea.spark.session("machines", master=master, settings={**SETTINGS, **mine}, log_level="OFF")
        self._queries: dict[str, tuple[Any, list[Any]]] = {}

    def feed(self, rows: int) -> int:
        """Put numbers, acknowledged."""
        for begin in range(0, rows, 10_000):
            numbers = range(begin, min(begin + 10_000, rows))
            self._session.put_batch([(f"in/{n % 7}", _payload(n)) for n in numbers], "in/*", timeout=300)
        return rows

    def bucket(self, address: str) -> int:
        """Make one in an object store."""
        with urllib.request.urlopen(urllib.request.Request(address, method="PUT"), timeout=60) as made:
            return int(made.status)

    def batch(self) -> dict[str, Any]:
        """Read everything once; how many tasks, and how many rows on which machine."""
        source = self._spark.read.format("zenoh").option("connect", self._locator).option("minPartitions", "4")
        frame = source.schema("key string, payload binary").load("in/**")
        shown = frame.mapInArrow(_where, "machine string, n bigint").groupBy("machine").sum("n").collect()
        return {"tasks": frame.rdd.getNumPartitions(), "rows": dict(sorted((one[0], one[1]) for one in shown))}

    def start(self, target: str, name: str, limit: int) -> str:
        """Start a stream of what is there into a target; `name` is that of its table and checkpoint."""
        self._queries[name] = (self._started(target, name, limit), [target, limit])
        return name

    def progress(self, name: str) -> dict[str, Any]:
        """The last batch, and whether it goes on; a process that was too late for Spark is no failure here."""
        query, asked = self._queries[name]
        problem = query.exception()
        if problem is not None and LATE in str(problem):
            print("started again:", name, file=sys.stderr, flush=True)
            self.start(asked[0], name, asked[1])
            problem = None
        is_active = problem is None and self._queries[name][0].isActive
        batch = (query.lastProgress or {}).get("batchId", -1)
        return {"batch": batch, "active": is_active, "problem": None if problem is None else str(problem)}

    def tasks(self, name: str) -> int:
        """How many tasks read for the widest job of a query."""
        tracker = self._spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(one) for one in tracker.getJobIdsForGroup(str(self._queries[name][0].runId))]
        stages = [tracker.getStageInfo(one) for job in jobs if job is not None for one in job.stageIds]
        return max((one.numTasks for one in stages if one is not None), default=0)

    def found(self, target: str, name: str) -> dict[str, int]:
        """Rows of a table or of the log, and how many are different; of a merge also those that are wrong."""
        import pyarrow as pa
        from deltalake import DeltaTable

        if target == "sink":
            payloads = self._session.read(f"{name}/**", timeout=300).read_all()["payload"].to_pylist()
            return {"rows": len(payloads), "different": len(set(payloads))}
        table = pa.table(DeltaTable(self._table(target, name)).scan())
        if target == "merge":
            numbers, ends = table["n"].to_pylist(), table["valid_to"].to_pylist()
            most = max(numbers)
            right = [None if n + ROBOTS > most else n + ROBOTS for n in numbers]
            wrong = sum(one != other for one, other in zip(ends, right, strict=True))
            return {"rows": len(numbers), "different": len(set(numbers)), "wrong": wrong}
        payloads = table["payload"].to_pylist()
        return {"rows": len(payloads), "different": len(set(payloads))}

    # -- queries ---------------------------------------------------------------------------------------------------

    def _table(self, target: str, name: str) -> str:
        return f"s3://lake/{name}" if target.startswith("s3") else str(self._place / "shared" / name)

    def _started(self, target: str, name: str, limit: int) -> Any:
        checkpoint = self._place / "checkpoints" / name
        options = {
            "connect": self._locator, "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(limit),
            "requestTimeoutMs": str(TIMEOUT_MS),
            "minPartitions": "2",  # a task for each executor: no batch goes past the one that is in trouble
        }  # fmt: skip
        now = {"availableNow": True}
        path = self._table(target, name)
        if target.endswith("ingest"):
            return elea.spark.ingest(
                self._spark, "in/**", path, checkpoint=checkpoint, options=options, columns=["key", "payload"],
                trigger=now,
            )  # fmt: skip
        stream = self._spark.readStream.format("zenoh").options(**options).schema("key string, payload binary")
        rows = stream.load("in/**")
        if target == "merge":
            rows = rows.selectExpr("cast(substring(cast(payload AS string), 1, 10) AS bigint) AS n").selectExpr(
                f"n % {ROBOTS} AS k", "n"
            )
            return elea.spark.delta.write(
                rows, path, checkpoint=checkpoint, trigger=now, mode="merge", keys=["k"], sequence_by=["n"], scd=2,
            )  # fmt: skip
        if target != "sink":
            return elea.spark.delta.write(rows, path, checkpoint=checkpoint, trigger=now)
        back = rows.selectExpr(f"concat('{name}/', key) AS key", "payload").writeStream.format("zenoh")
        back = back.option("connect", self._locator).option("idempotent", "true")
        back = back.option("requestTimeoutMs", str(TIMEOUT_MS))
        return back.option("checkpointLocation", str(checkpoint)).trigger(**now).start()


def _payload(n: int) -> str:
    """A number in a hundred characters, most of which nobody can compress."""
    return f"{n:010d}" + (hashlib.sha256(str(n).encode()).hexdigest() * 2)[:90]


def _where(batches: Iterator[Any]) -> Iterator[Any]:
    import socket

    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"machine": [socket.gethostname()], "n": [batch.num_rows]})


def main() -> int:
    driving = Driving(*sys.argv[1:])
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, *given = json.loads(line)
        begun = time.monotonic()
        try:
            told = {"told": getattr(driving, name)(*given), "seconds": round(time.monotonic() - begun, 2)}
        except Exception:  # noqa: BLE001 - whoever asked decides
            told = {"failed": traceback.format_exc()}
        print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
