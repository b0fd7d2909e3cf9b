"""Every way to run Spark, one after the other, against one broker: read as a batch and as streams, and written back.

Each stream (into Parquet, Delta, the broker) is started twice; in between Spark forgets that it has committed the last
batch, which comes again and must not be there twice.

    python -m tests.spark.clusters                  # all
    python -m tests.spark.clusters connect          # local | local-cluster | standalone | connect

Each way is a process of its own with its own JVMs. Printed are rows, and how many executors read them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

import elea.spark
from elea.spark import java
from tests.interop.inbox import free_port
from tests.interop.storing import StoringBroker
from tests.spark.conftest import client
from tests.spark.kills import LATE

WAYS = ("local", "local-cluster", "standalone", "connect")
STREAMS = ("parquet", "delta", "sink")
ROWS = 100_000
PATIENCE = 180.0
LIMIT = 3600.0


def main() -> int:
    """Run the ways that are asked for; 0 if all rows came once in each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=" | ".join(WAYS))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--child", nargs=3, metavar=("WAY", "LOCATOR", "DIRECTORY"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(use(*given.child, rows=given.rows)))
        return 0
    return max([run(way, given.rows) for way in given.ways or WAYS])


def run(way: str, rows: int) -> int:
    """One way, in a process of its own."""
    directory = tempfile.mkdtemp()
    begun = time.monotonic()
    try:
        with StoringBroker("--store", f"{directory}/store", "--persist", "**") as broker:
            with client(broker.locator) as session:
                session.put_batch([(f"fleet/{at % 7}", str(at)) for at in range(rows)], timeout=60)
            words = [sys.executable, "-m", "tests.spark.clusters", "--rows", str(rows)]
            child = subprocess.Popen(
                [*words, "--child", way, broker.locator, directory],
                stdout=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
            try:
                told = child.communicate(timeout=LIMIT)[0].splitlines()
            finally:
                with suppress(ProcessLookupError):  # whatever it has left behind
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    found = json.loads(told[-1]) if child.returncode == 0 and told else {}
    executors = found.pop("executors", 0)
    is_right = set(found) == {"batch", *STREAMS} and all(one in (rows, [rows, rows]) for one in found.values())
    is_right = is_right and (way in ("local", "connect") or executors == 2)
    seconds = time.monotonic() - begun
    print(
        f"{way:14} {'ok' if is_right else 'FAILED':7} {seconds:6.1f} s  {executors} executors  {json.dumps(found)}",
        flush=True,
    )
    return 0 if is_right else 1


def use(way: str, locator: str, directory: str, *, rows: int) -> dict[str, Any]:
    """Read everything, and write it in every way; rows of each, and different ones among them."""
    with started(way, directory) as spark:
        source = spark.read.format("zenoh").option("connect", locator).option("minPartitions", "4")
        frame = source.load("fleet/**")
        found: dict[str, Any] = {"executors": frame.mapInArrow(_whose, "daemon bigint").distinct().count()}
        found["batch"] = frame.count()
        for name in STREAMS:
            for is_again in (False, True):
                if is_again:
                    forget_last_commit(Path(directory, f"checkpoint-{name}"))
                stream = (
                    spark.readStream.format("zenoh")
                    .schema("key string, payload binary, offset bigint")
                    .option("connect", locator)
                    .option("sourceId", name)
                    .option("startingOffsets", "earliest")
                    .option("maxOffsetsPerTrigger", rows // 2 + 1)
                    .load("fleet/**")
                )
                finish(partial(writing, stream, name, locator, directory))
        tables = {
            "parquet": spark.read.parquet(f"{directory}/parquet").select("payload").toArrow(),
            "delta": DeltaTable(f"{directory}/delta").to_pyarrow_table(columns=["payload"]),
            "sink": source.load("back/**").select("payload").toArrow(),
        }
        for name, table in tables.items():
            payloads = table.column("payload").to_pylist()
            found[name] = [len(payloads), len(set(payloads))]
        return found


def finish(start: Callable[[], Any]) -> None:
    """Wait for a query; again if Spark's ten seconds for a new process were too few, on a machine under load."""
    while True:
        try:
            start().awaitTermination()
        except Exception as error:  # Spark has a class for each way
            if LATE not in str(error):
                raise
            print("started again", file=sys.stderr, flush=True)
        else:
            return


def writing(stream: Any, name: str, locator: str, directory: str) -> Any:
    """A query into one of the targets, up to what is there now."""
    checkpoint = f"{directory}/checkpoint-{name}"
    now = {"availableNow": True}
    if name == "delta":
        return elea.spark.delta.write(stream, f"{directory}/delta", checkpoint=checkpoint, trigger=now)
    if name == "parquet":
        writer = stream.writeStream.format("parquet").option("path", f"{directory}/parquet")
    else:
        back = stream.selectExpr("concat('back/', key) AS key", "payload")
        writer = back.writeStream.format("zenoh").option("connect", locator).option("idempotent", "true")
    return writer.option("checkpointLocation", checkpoint).trigger(**now).start()


def forget_last_commit(checkpoint: Path) -> None:
    """As if the driver had died between the commit of its target and Spark's."""
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)


def _whose(batches: Iterator[Any]) -> Iterator[Any]:
    """The process that forks the workers of this executor."""
    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"daemon": pa.array([os.getppid()], pa.int64())})


@contextmanager
def started(way: str, directory: str) -> Iterator[Any]:
    """A session of one way."""
    settings = {"spark.executor.memory": "512m", "spark.driver.memory": "768m", "spark.sql.shuffle.partitions": "2"}
    if way == "standalone":
        with cluster(directory) as master:
            made = elea.spark.session(master=master, settings={**settings, **HERE})
            yield made
            made.stop()
        return
    if way == "connect":
        made = elea.spark.session(remote="local[2]", settings=settings)
    else:
        master = "local[2]" if way == "local" else "local-cluster[2,1,768]"
        made = elea.spark.session(master=master, settings=settings)
    yield made
    made.stop()


HERE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@contextmanager
def cluster(directory: str) -> Iterator[str]:
    """A standalone master and two workers on this machine."""
    import pyspark

    java.ensure()
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(Path.cwd()),
    }  # fmt: skip
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    place = ["--host", "127.0.0.1"]
    master_words = ["master.Master", *place, "--port", str(port), "--webui-port", str(free_port())]
    worker_words = [
        "worker.Worker",
        *place,
        "--cores",
        "1",
        "--memory",
        "768m",
        "--work-dir",
        f"{directory}/worker",
        master,
    ]
    processes = []
    try:
        for number, words in enumerate((master_words, worker_words, worker_words)):
            log = Path(directory, f"{number}.log")
            program = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{words[0]}", *words[1:]]
            if number:
                program[2:2] = ["--webui-port", str(free_port())]
            with log.open("wb") as file:
                processes.append(subprocess.Popen(program, stdout=file, stderr=file, env=environment))
            _await(log, "successfully registered" if number else "Starting Spark master")
        yield master
    finally:
        for process in processes:
            process.terminate()
            process.wait(PATIENCE)


def _await(log: Path, text: str) -> None:
    end = time.monotonic() + PATIENCE
    while text.lower() not in log.read_text(errors="replace").lower():
        if time.monotonic() > end:
            raise RuntimeError(f"{log.read_text(errors='replace')[-2000:]}\n{text!r} never came")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
