"""What a Python user writes today: an eclipse-zenoh callback that fills a list, and createDataFrame.

The publisher is the fastest there is (`put_batch`, a process of its own, straight to the subscriber), so that only what
the user wrote is measured. Rows are received while others are written; time runs from the first sample on.

`python -m bench.spark.naive LOCATOR ROWS` is the publisher.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from bench.node.processes import free_port
from bench.spark import cpu
from bench.spark.stage import FLEET, PATIENCE, batch_of

__all__ = ["SCHEMA", "naive"]

SCHEMA = (
    "key string, payload binary, encoding string, timestamp timestamp, kind string, "
    "attachment binary, source_id binary, sn bigint"
)
PART = 100_000


def naive(spark: Any, rows: int, size: int, write: Callable[[Any], None]) -> tuple[float, float]:
    """Rows a second, received, made a DataFrame in batches of `size`, and written; microseconds of CPU for a row."""
    import zenoh

    found: list[tuple[Any, ...]] = []
    begun = 0.0
    came = threading.Event()

    def collect(sample: Any) -> None:
        nonlocal begun
        if not begun:
            begun = time.perf_counter()
        stamp, attachment, source = sample.timestamp, sample.attachment, sample.source_info
        found.append(
            (
                str(sample.key_expr),
                sample.payload.to_bytes(),
                str(sample.encoding),
                datetime.now(UTC) if stamp is None else stamp.get_time(),
                "PUT" if sample.kind == zenoh.SampleKind.PUT else "DELETE",
                None if attachment is None else attachment.to_bytes(),
                None if source is None else str(source.source_id.zid).encode(),
                None if source is None else source.source_sn,
            )
        )
        if len(found) >= size:
            came.set()

    config = zenoh.Config()
    locator = f"tcp/127.0.0.1:{free_port()}"
    for path, value in {"listen/endpoints": [locator], "scouting/multicast/enabled": False}.items():
        config.insert_json5(path, json.dumps(value))
    with zenoh.open(config) as session, session.declare_subscriber(FLEET, collect):
        command = [sys.executable, "-m", "bench.spark.naive", locator, str(rows)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as publisher:
            used = cpu.seconds(without=publisher.pid)
            done, until = 0, time.monotonic() + PATIENCE
            while done < rows:
                if len(found) < min(size, rows - done):
                    came.wait(0.02)
                    came.clear()
                    if time.monotonic() > until or publisher.poll():
                        raise RuntimeError(f"{done + len(found)} of {rows} samples came; {publisher.poll()=}")
                    continue
                batch = found[:size]
                del found[:size]
                write(spark.createDataFrame(batch, SCHEMA))
                done += len(batch)
            took = time.perf_counter() - begun
            used = cpu.seconds(without=publisher.pid) - used
            with contextlib.suppress(BrokenPipeError):
                publisher.communicate(b"\n", timeout=PATIENCE)
    return rows / took, used / rows * 1e6


def publish(locator: str, rows: int) -> None:
    """Put random samples to whoever listens there; leave when told."""
    import elea

    batch = batch_of(min(rows, PART))
    config = elea.Config()
    for path, value in {
        "mode": "client",
        "connect/endpoints": [locator],
        "scouting/multicast/enabled": False,
        # The subscriber may be busy with createDataFrame for long: nothing is given up meanwhile.
        "transport/link/tx/queue/congestion_control/block/wait_before_close": int(PATIENCE * 1e6),
    }.items():
        config.insert_json5(path, json.dumps(value))
    with elea.open(config) as session:
        with session.declare_publisher(batch.column("key")[0].as_py()) as publisher:
            while not publisher.matching_status.matching:
                time.sleep(0.01)
        for begin in range(0, rows, PART):
            session.put_batch(batch.slice(0, min(PART, rows - begin)), durability="volatile")
        sys.stdin.readline()


if __name__ == "__main__":
    publish(sys.argv[1], int(sys.argv[2]))
