"""The driver of the demo's pipeline: `python -m elea.demo.driver FILE`, in a process that may be killed at any time.

It prints a line of JSON when Spark is there (`ready`), for each micro-batch (`batch`), and if it fails (`failed`). The
line `drain` on standard input is answered by `drained` once everything that was in the log is in the tables; the end of
the input ends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from elea.spark.progress import Progress

__all__ = ["main"]

AGAIN_SECONDS: Final = 0.5
FAILED: Final = 3


def main(arguments: list[str] | None = None) -> int:
    """For the command line."""
    (file,) = sys.argv[1:] if arguments is None else arguments
    drain = threading.Event()
    threading.Thread(target=_listen, args=(drain,), daemon=True).start()
    try:
        import elea.spark
        from elea.spark.pipeline import runner, specreader

        spec = specreader.read(file)
        spark = elea.spark.session("elea demo", log_level="OFF", settings={"spark.driver.memory": "1g"})
        say("ready")
        threading.Thread(target=_drain, args=(spark, drain, len(spec.sinks)), daemon=True).start()
        runner.run(spec, spark, progress=tell)
        return 0
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent is told, and starts another driver
        say("failed", text=f"{type(error).__name__}: {error}".splitlines()[0][:500])
        return FAILED


def say(event: str, **more: Any) -> None:
    """One line for the parent, whole: there are several threads."""
    sys.stdout.write(json.dumps({"event": event, "time": time.time(), **more}) + "\n")
    sys.stdout.flush()


def tell(progress: Progress) -> None:
    """A micro-batch."""
    for one in progress.figures:
        if one.rows or one.batch_ms:
            say("batch", query=progress.name, batch=one.batch, rows=one.rows, ms=one.batch_ms, lag=one.lag)


def _listen(drain: threading.Event) -> None:
    for line in iter(sys.stdin.readline, ""):
        if line.strip() == "drain":
            drain.set()
    # Nobody is there any more. Spark and its workers are of the same group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(0, signal.SIGKILL)


def _drain(spark: SparkSession, wanted: threading.Event, count: int) -> None:
    """When asked, wait until every query has done what there is."""
    from pyspark.errors import PySparkException

    while wanted.wait():
        # A query that a busy machine has ended is started again meanwhile: then there is one more to wait for.
        queries = spark.streams.active
        try:
            for query in queries:
                query.processAllAvailable()
        except PySparkException:
            queries = []
        if len(queries) < count:
            time.sleep(AGAIN_SECONDS)
            continue
        wanted.clear()
        say("drained")


if __name__ == "__main__":
    sys.exit(main())
