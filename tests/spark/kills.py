"""Exactly once, counted: a broker's log through Spark into Delta and back into the broker, while everything is killed.

    python -m tests.spark.kills --driver 5 --points 3 --worker 2 --broker 3
    python -m tests.spark.kills --master 'local-cluster[2,1,1024]' --executor 2 --driver 1
    python -m tests.spark.kills --targets spool-delta spool-sink --driver 5 --points 2

A feeder stores numbers, acknowledged. A driver in a process group of its own runs several queries at once: numbers
into a Delta table, by `delta.write` and (`landing`) by `ingest`, and back into the broker. Kills are SIGKILL: of the
driver's group in mid stream, and at a point where every query has committed a batch of which Spark does not know yet;
of a Python worker; of an executor; of the broker.
In the end table and log must have every number once. With --control the first query writes its batches without any
protection as well (append, plain puts), and there must be numbers twice: the test can see them. Targets that begin with
`spool` read a plain router of eclipse-zenoh through a spool instead: what counts there are the positions of the spool,
all that it has in the end, and no number may be at two of them. One JSON object is printed for each target.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import elea
from elea.store import open_log
from tests.interop.storing import StoringBroker
from tests.robust.children import config
from tests.spark.feeding import Feeder, PlainFeeder
from tests.spark.parking import ParkingSource, is_parked, park
from tests.spark.trouble import PATIENCE, ROOT, Driver, Trouble

__all__ = ["CONTROLS", "SPOOLED", "TARGETS", "Outcome", "run"]

LANDING = "landing"
TARGETS = ("delta", LANDING, "sink")
CONTROLS = ("naive-delta", "naive-sink")
SPOOLED = ("spool-delta", "spool-sink")
LATE = "Python worker failed to connect back"
"""Spark gives a new process ten seconds, however busy the machine is."""


class Outcome(NamedTuple):
    """What one target has in the end."""

    target: str
    expected: int
    found: int
    lost: int
    duplicated: int
    kills: dict[str, int]
    starts: int
    seconds: float


# -- the driver --------------------------------------------------------------------------------------------------------


def drive(
    place: Path, locators: Sequence[str], master: str, targets: Sequence[str], rows: int, drain: bool, spark: Any = None
) -> int:
    """Run the queries until killed, or until everything is done; a line of batch numbers for each change.

    Args:
        spark: the session to run in; without it one is made.
    """
    import elea.spark

    settings = {
        "spark.executorEnv.PYTHONPATH": str(ROOT), "spark.executor.memory": "768m", "spark.driver.memory": "1g",
        # A driver that lives for seconds does not earn back what the better compiler costs.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }  # fmt: skip
    if spark is None:
        spark = elea.spark.session("kills", master=master, settings=settings, log_level="OFF")
    spark.dataSource.register(ParkingSource)
    start = partial(_start, spark, place, locators, rows, drain, is_controlled=bool(set(targets) & set(CONTROLS)))
    queries: dict[str, Any] = {}
    for target in (one for one in targets if one not in CONTROLS):  # one after the other: each starts several processes
        queries[target] = start(target)
        while queries[target].isActive and not queries[target].recentProgress and not is_parked(target):
            time.sleep(0.05)
    before: list[int] = []
    while True:
        now = [int((query.lastProgress or {}).get("batchId", -1)) for query in queries.values()]
        if now != before:
            print(json.dumps(now), flush=True)
            before = now
        for target, query in queries.items():
            problem = query.exception()
            if problem is not None and LATE in str(problem):  # a machine under load, not what is tried here
                print("started again:", target, file=sys.stderr, flush=True)
                queries[target] = start(target)
            elif problem is not None:
                print(problem, file=sys.stderr, flush=True)
                return 3
        if not any(query.isActive for query in queries.values()):
            return 0
        time.sleep(0.05)


def _start(
    spark: Any, place: Path, locators: Sequence[str], rows: int, drain: bool, target: str, *, is_controlled: bool
) -> Any:
    broker, router = locators
    source = spark.readStream.format("zenoh").schema("key string, payload binary, timestamp timestamp, offset bigint")
    source = source.option("startingOffsets", "earliest").option("sourceId", target)
    # The offsets of the batch that was cut off are written down: that one comes again as it was.
    source = source.option("maxOffsetsPerTrigger", rows * 50 if drain else rows)
    is_spooled = target in SPOOLED
    if is_spooled:
        source = source.option("ingest", "spool").option("spoolDir", str(place / f"spool-of-{target}"))
    numbers = source.option("connect", router if is_spooled else broker).load("in/**")
    if target == LANDING:
        from elea.spark.deltaingest import landing

        options = {"connect": broker, "startingOffsets": "earliest", "includeMetadata": True}
        options["maxOffsetsPerTrigger"] = rows * 50 if drain else rows
        files, append = landing(spark, "in/**", place / target, options=options, name="kills", compact_every=7)

        def commit(frame: Any, batch: int) -> None:
            append(frame, batch)
            park(target)

        writer = files.writeStream.foreachBatch(commit)
    elif target.endswith("delta"):
        frame = numbers.selectExpr("cast(cast(payload AS string) AS bigint) AS n", "key", "timestamp", "offset")
        writer = frame.writeStream.foreachBatch(_appending(place, target, broker if is_controlled else None))
    else:
        frame = numbers.selectExpr(
            f"concat('{target}/', key) AS key", "payload", "cast(offset AS string) AS attachment"
        )
        writer = frame.writeStream.format("zenoh.parking").option("connect", broker).option("parkedAs", target)
        writer = writer.option("idempotent", "true")
    writer = writer.option("checkpointLocation", str(place / f"checkpoint-{target}"))
    return (writer.trigger(availableNow=True) if drain else writer).start()


def _appending(place: Path, target: str, control: str | None) -> Any:
    from deltalake import write_deltalake

    from elea.spark import delta

    append = delta.writer(place / target, name="kills", compact_every=7)

    def write(frame: Any, batch: int) -> None:
        append(frame, batch)
        if control is not None:
            write_deltalake(place / "naive-delta", frame.toArrow(), mode="append")
            puts = frame.selectExpr(
                "concat('naive-sink/', key) AS key", "cast(n AS string) AS payload", "string(offset) AS attachment"
            )
            puts.write.format("zenoh").mode("append").options(connect=control, idempotent="false").save()
        park(target)

    return write


# -- the parent --------------------------------------------------------------------------------------------------------


def run(
    troubles: Sequence[str], *, targets: Sequence[str] = TARGETS, master: str = "local[2,4]", rows: int = 2000,
    seed: int | None = None, settle: int = 2, spark: Any = None,
) -> list[Outcome]:  # fmt: skip
    """See the module; `settle` is how many batches pass between two troubles.

    Args:
        spark: a session for what is left to do in the end; without it that is one more driver.

    Raises:
        AssertionError: no progress any more.
    """
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}", file=sys.stderr)
    chance = random.Random(seed)
    events = list(troubles)
    chance.shuffle(events)
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        broker = stack.enter_context(StoringBroker("--store", str(place / "store"), "--persist", "**"))
        feeder = Feeder(broker.locator)
        router = stack.enter_context(PlainFeeder())
        arguments = [
            "--connect",
            broker.locator,
            router.locator,
            "--master",
            master,
            "--rows",
            str(rows),
            "--targets",
            *targets,
        ]
        driver = Driver(place, arguments)
        stack.callback(driver.end)
        trouble = Trouble(place, broker, driver, [target for target in targets if target not in CONTROLS])
        for event in events:
            driver.progress(settle)
            print(f"{time.monotonic() - begun:.0f} s: {event}, {feeder.count} numbers", file=sys.stderr, flush=True)
            trouble.happen(event, chance)
        if driver.is_running:  # the last trouble was another one
            driver.progress(settle)
            trouble.happen("driver", chance)
        expected = feeder.stop()
        router.stop()
        ended = None
        while ended != 0:
            if spark is not None:
                ended = drive(place, (broker.locator, router.locator), master, targets, rows, True, spark)
                assert ended == 0, "a query has failed; its problem is on the error stream"
                break
            ended = driver.start("--drain").process.wait(PATIENCE)
            assert driver.starts < 10 + 3 * len(events), "the driver does not come to an end"
        told = Outcome("", expected, 0, 0, 0, dict(trouble.kills), driver.starts, round(time.monotonic() - begun, 1))
        return [_outcome(place, broker.locator, target, told) for target in targets]


def _outcome(place: Path, locator: str, target: str, told: Outcome) -> Outcome:
    numbers, positions = _found(place, locator, target)
    counted, expected = numbers, told.expected
    if target in SPOOLED:
        with open_log(place / f"spool-of-{target}") as log:
            counted, expected = positions, log.end
    return told._replace(
        target=target,
        expected=expected,
        found=len(numbers),
        lost=len(set(range(expected)) - set(counted)),
        duplicated=len(numbers) - min(len(set(numbers)), len(set(positions))),
    )


def _found(place: Path, locator: str, target: str) -> tuple[list[int], list[int]]:
    """The numbers that a target has, and the positions at which they were read."""
    if target.endswith("delta"):
        from deltalake import DeltaTable

        table = DeltaTable(place / target).to_pyarrow_table(columns=["n", "offset"])
        return table.column("n").to_pylist(), table.column("offset").to_pylist()
    if target == LANDING:
        from deltalake import DeltaTable

        table = DeltaTable(place / target).to_pyarrow_table(columns=["payload", "offset"])
        return [int(text) for text in table.column("payload").to_pylist()], table.column("offset").to_pylist()
    with elea.open(config("client", "connect", locator)) as session:
        table = session.read(f"{target}/**", timeout=PATIENCE).read_all()
        numbers, positions = (table.column(name).to_pylist() for name in ("payload", "attachment"))
        return [int(text) for text in numbers], [int(text) for text in positions]


def main() -> int:
    """For the command line; 1 if something was lost or came twice, or a control shows nothing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for what, count in {"driver": 2, "points": 2, "worker": 1, "executor": 0, "broker": 1}.items():
        parser.add_argument(f"--{what}", type=int, default=count)
    parser.add_argument("--control", action="store_true", help="with unprotected queries, which must show duplicates")
    parser.add_argument("--master", default="local[2,4]")
    parser.add_argument("--rows", type=int, default=1000, help="of a micro-batch")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--connect", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--drain", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.drive is not None:
        return drive(args.drive, args.connect, args.master, args.targets, args.rows, args.drain)
    events = ["driver"] * args.driver + ["point"] * args.points + ["worker"] * args.worker
    events += ["executor"] * args.executor + ["broker"] * args.broker
    targets = [*args.targets, *(CONTROLS if args.control else ())]
    bad = 0
    for outcome in run(events, targets=targets, master=args.master, rows=args.rows, seed=args.seed):
        print(json.dumps(outcome._asdict()), flush=True)
        is_control = outcome.target in CONTROLS
        bad += (outcome.duplicated == 0) if is_control else bool(outcome.lost or outcome.duplicated)
    return 1 if bad else 0


if __name__ == "__main__":
    # What is pickled must be found by its name in processes that did not start here.
    from tests.spark.kills import main as run_main

    sys.exit(run_main())
