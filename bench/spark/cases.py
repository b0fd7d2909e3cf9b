"""What is measured, and which figure is set beside which."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import columnar
from bench.node.cases import Goal
from bench.node.table import short
from bench.spark import cpu, less
from bench.spark.latency import latencies
from bench.spark.naive import naive
from bench.spark.stage import FLEET, Stage

__all__ = ["CASES", "CPU", "Case", "Plan", "Row", "Way"]

Figures = dict[str, float]
CPU = ", CPU"
"""Behind the name of a rate: microseconds of CPU for a row, of all processes that take part."""

NAIVE_GOALS = {"noop": ((1_000_000, 10.0), (0, 6.0)), "table": ((1_000_000, 8.0), (0, 5.0))}
"""Rows of a micro-batch from which on so many times the naive rate is wanted."""

NAIVE_ROWS = 1_000_000
"""Enough for the naive code: its time runs from the first sample on, and it gets no faster with more of them."""

BESIDE = {"noop": "noop", "table": "parquet"}

LIVE_SIZES = (64, 1024)
LIVE_PUBLISHERS = ("batch", "zenoh")
SHARE_OF_SINK = 2  # a half of the rows will do


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything."""

    rows: int
    sizes: tuple[int, ...]
    """Rows of a micro-batch."""
    puts: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Way:
    """Something that is run once a round, and yields figures by their names."""

    name: str
    run: Callable[[Stage], Figures]


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of ours, and the one it is compared with."""

    name: str
    ours: str
    beside: str = ""
    theirs: str = ""
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Case:
    about: str
    ways: Callable[[Plan], Iterator[Way]]
    rows: Callable[[Plan], Iterator[Row]]


# -- streams -----------------------------------------------------------------------------------------------------------


def options(on: Stage, size: int) -> dict[str, Any]:
    """The whole log, in micro-batches of so many positions."""
    start = {"connect": on.locator, "startingOffsets": "earliest"}
    return {**start, "maxOffsetsPerTrigger": size, "sourceId": on.place().name}


def source(on: Stage, size: int, format: str = "zenoh") -> Any:
    return on.spark.readStream.format(format).options(**options(on, size)).load(FLEET)


def to_noop(frame: Any, place: Path) -> Any:
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(place / "checkpoint"))
    return writer.trigger(availableNow=True).start()


def to_table(frame: Any, place: Path) -> Any:
    from elea.spark import delta

    return delta.write(frame, place / "table", checkpoint=place / "checkpoint", trigger={"availableNow": True})


def landed(on: Stage, size: int, place: Path) -> Any:
    import elea.spark

    here: dict[str, Any] = {"checkpoint": place / "checkpoint", "trigger": {"availableNow": True}}
    return elea.spark.ingest(on.spark, FLEET, place / "table", options=options(on, size), **here)


def timed(on: Stage, name: str, start: Callable[[Path], Any], rows: int) -> Figures:
    """Rows a second from the start of a query to its end, and by its own count of micro-batches alone; CPU of a row."""
    import elea.spark

    with on.table() as place:
        begin, used = time.perf_counter(), cpu.seconds()
        query = start(place)
        query.awaitTermination()
        took, used = time.perf_counter() - begin, cpu.seconds() - used
        reports = query.recentProgress
        done = sum(figures.rows for figures in elea.spark.progress(query).figures)
        if done != rows:
            raise RuntimeError(f"{name}: {done} rows came, not {rows}")
        if (place / "table").exists():
            counted(place / "table", rows)
    busy = sum(report["durationMs"]["triggerExecution"] for report in reports if report["numInputRows"]) / 1000
    return {name: rows / took, f"{name}, batches": rows / busy, name + CPU: used / rows * 1e6}


def counted(table: Path, rows: int) -> None:
    from deltalake import DeltaTable

    found = DeltaTable(table).count()
    if found != rows:
        raise RuntimeError(f"the table has {found} rows, not {rows}")


def naive_noop(on: Stage, size: int) -> Figures:
    def write(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    return naive_figures(f"naive noop {size}", naive(on.spark, min(on.rows, NAIVE_ROWS), size, write))


def naive_table(on: Stage, size: int) -> Figures:
    with on.table() as place:
        found = naive(
            on.spark, min(on.rows, NAIVE_ROWS), size, lambda frame: frame.write.mode("append").parquet(str(place))
        )
    return naive_figures(f"naive table {size}", found)


def naive_figures(name: str, found: tuple[float, float]) -> Figures:
    rate, used = found
    return {name: rate, name + CPU: used}


def stream_noop(on: Stage, size: int) -> Figures:
    return timed(on, f"stream noop {size}", lambda place: to_noop(source(on, size), place), on.rows)


def stream_table(on: Stage, size: int) -> Figures:
    return timed(on, f"stream table {size}", lambda place: to_table(source(on, size), place), on.rows)


def stream_ingest(on: Stage, size: int) -> Figures:
    return timed(on, f"stream ingest {size}", lambda place: landed(on, size, place), on.rows)


def stream_ways(plan: Plan) -> Iterator[Way]:
    for size in plan.sizes:
        yield Way(f"stream noop {size}", partial(stream_noop, size=size))
        yield Way(f"naive noop {size}", partial(naive_noop, size=size))
        yield Way(f"stream table {size}", partial(stream_table, size=size))
        yield Way(f"naive table {size}", partial(naive_table, size=size))
        yield Way(f"stream ingest {size}", partial(stream_ingest, size=size))


def stream_rows(plan: Plan) -> Iterator[Row]:
    for size in plan.sizes:
        for ours, theirs, what in (
            ("noop", "noop", "stream → noop"),
            ("table", "table", "stream → Delta table"),
            ("ingest", "table", "ingest → Delta table"),
        ):
            goal = next(Goal(at_least=ratio) for least, ratio in NAIVE_GOALS[theirs] if size >= least)
            name, beside = f"{what}, {short(size)} rows a batch", f"createDataFrame → {BESIDE[theirs]}"
            yield Row(name, f"stream {ours} {size}", beside, f"naive {theirs} {size}", goal)
            yield Row(f"{name}, without the start", f"stream {ours} {size}, batches", beside, f"naive {theirs} {size}")


# -- tuples, batches, sink ---------------------------------------------------------------------------------------------


def tuple_ways(plan: Plan) -> Iterator[Way]:
    size = max(plan.sizes)

    def run(on: Stage, format: str, name: str) -> Figures:
        if format != "zenoh":
            from bench.spark.tuples import TupleSource

            on.spark.dataSource.register(TupleSource)
        return timed(on, name, lambda at: to_noop(source(on, size, format), at), on.rows)

    yield Way("as Arrow", lambda on: run(on, "zenoh", "as Arrow"))
    yield Way("as tuples", lambda on: run(on, "zenoh.tuples", "as tuples"))


def tuple_rows(plan: Plan) -> Iterator[Row]:
    name = f"stream → noop, {short(max(plan.sizes))} rows a batch"
    yield Row(name, "as Arrow", "the same source, as tuples", "as tuples")


def batch_ways(plan: Plan) -> Iterator[Way]:
    def timed_noop(on: Stage, name: str, frame: Any) -> Figures:
        begin, used = time.perf_counter(), cpu.seconds()
        frame.write.format("noop").mode("overwrite").save()
        took, used = time.perf_counter() - begin, cpu.seconds() - used
        return {name: on.rows / took, name + CPU: used / on.rows * 1e6}

    def log(on: Stage) -> Any:
        return on.spark.read.format("zenoh").option("connect", on.locator).load(FLEET)

    yield Way("batch", lambda on: timed_noop(on, "batch", log(on)))

    def ready(on: Stage) -> Figures:
        from bench.spark.ready import ReadySource

        on.spark.dataSource.register(ReadySource)
        return timed_noop(on, "ready", on.spark.read.format("ready").option("rows", on.rows).load())

    yield Way("ready", ready)
    yield Way("parquet", lambda on: timed_noop(on, "parquet", on.spark.read.parquet(on.parquet())))


def batch_rows(plan: Plan) -> Iterator[Row]:
    yield Row("batch → noop", "batch", "spark.read.parquet → noop", "parquet", Goal(at_least=0.8))
    yield Row("batch → noop", "batch", "a Python source with one batch, again and again", "ready")


def less_ways(plan: Plan) -> Iterator[Way]:
    for name, run in less.runs():
        yield Way(name, run)


def less_rows(plan: Plan) -> Iterator[Row]:
    for name, (ours, beside, theirs) in less.RATES.items():
        yield Row(name, ours, beside, theirs)


def sink_ways(plan: Plan) -> Iterator[Way]:
    def start(on: Stage, place: Path) -> Any:
        rows = source(on, max(plan.sizes)).where(f"crc32(payload) % {SHARE_OF_SINK} = 0")
        frame = rows.selectExpr("concat('sink/', key) AS key", "payload")
        writer = frame.writeStream.format("zenoh").option("connect", on.locator)
        return writer.option("checkpointLocation", str(place)).trigger(availableNow=True).start()

    def run(on: Stage) -> Figures:
        found = timed(on, "sink", lambda place: start(on, place), on.rows)
        rates = {name: value / SHARE_OF_SINK for name, value in found.items()}
        return {**rates, "sink" + CPU: found["sink" + CPU] * SHARE_OF_SINK}

    yield Way("sink", run)


def sink_rows(plan: Plan) -> Iterator[Row]:
    name = f"log → zenoh sink, {short(max(plan.sizes) / SHARE_OF_SINK)} rows a batch"
    yield Row(name, "sink")
    yield Row(f"{name}, without the start", "sink, batches")


# -- live --------------------------------------------------------------------------------------------------------------


def live(on: Stage, publisher: str, subscriber: str, size: int, seconds: float) -> Figures:
    found = columnar.measure(publisher, subscriber, size, seconds)
    name = f"live {publisher} {size} {subscriber}"
    if not found.get("rate"):
        raise RuntimeError(f"{name}: no figure in {seconds:g} s, {found}")
    return {name: found["rate"], name + CPU: found["cpu"], f"{name}, lost": found["lost"]}


def live_ways(plan: Plan) -> Iterator[Way]:
    for publisher in LIVE_PUBLISHERS:
        for size in LIVE_SIZES:
            for subscriber in ("elea", "zenoh"):
                run = partial(live, publisher=publisher, subscriber=subscriber, size=size, seconds=plan.seconds)
                yield Way(f"live {publisher} {size} {subscriber}", run)


def live_rows(plan: Plan) -> Iterator[Row]:
    told = {"batch": "put_batch", "zenoh": "eclipse-zenoh", "elea": "Elea"}
    for publisher in LIVE_PUBLISHERS:
        for size in LIVE_SIZES:
            yield Row(
                f"live wire → Arrow, {size} B, publisher {told[publisher]}",
                f"live {publisher} {size} elea",
                "eclipse-zenoh callback → Arrow",
                f"live {publisher} {size} zenoh",
                Goal(at_least=columnar.GOALS[size]),
            )


def latency_ways(plan: Plan) -> Iterator[Way]:
    def run(on: Stage) -> Figures:
        found = [1000 * one for one in sorted(latencies(on, plan.puts))]
        return {"latency p50": statistics.median(found), "latency p99": found[len(found) * 99 // 100]}

    yield Way("latency", run)


def latency_rows(plan: Plan) -> Iterator[Row]:
    for part in ("p50", "p99"):
        yield Row(f"ms from acknowledged to visible in the table, {part}", f"latency {part}")


CASES = {
    "stream": Case("streaming read → noop and → Delta, beside createDataFrame", stream_ways, stream_rows),
    "tuples": Case("the same source yielding tuples", tuple_ways, tuple_rows),
    "batch": Case("batch read → noop, beside spark.read.parquet", batch_ways, batch_rows),
    "less": Case("one column, a count, one key, beside spark.read.parquet", less_ways, less_rows),
    "sink": Case("log → writeStream to the broker, stored once", sink_ways, sink_rows),
    "live": Case("bench.columnar: wire → Arrow, beside an eclipse-zenoh callback", live_ways, live_rows),
    "latency": Case("acknowledged put → visible in a Delta table", latency_ways, latency_rows),
}
