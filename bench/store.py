"""How fast is the store, beside plain SQLite? Every figure is taken in the same run, on the same disk.

    python -m bench.store [--cases append,puts,scan,latest,open,session] [--dir DIR] [--seconds 0.7] [--rounds 3]
                          [--json]

A sample has a key of 39 octets out of 10,000 and a random payload of 100. Everything acknowledged is synced before; the
raw rate of append + fdatasync is measured between the rounds, for no figure can be judged without it.
`append`: one writer, batches. `puts`: single acknowledged puts in flight, group commit, from one asyncio loop and from
threads. `scan`: a range to Arrow. `session`: the same through a broker process, over loopback. SQLite: write-ahead log,
synchronous=FULL, a log table and a table of newest samples.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.sessions import batch_of, broker, put_batches, puts_in_flight, scans
from elea.model.errors import StoreError
from elea.store import Committer, Outcome, Range, Record, memory_log, open_log

KEYS = [f"fleet/robot/{number:05}/sensors/temperature" for number in range(10_000)]
BATCHES = (1, 64, 1000, 10_000)
START = 1_700_000_000


def samples(count: int, start: int = 0) -> list[Record]:
    noise = os.urandom(count * 100)
    return [
        Record(
            KEYS[number % len(KEYS)],
            noise[(number - start) * 100 : (number - start + 1) * 100],
            (START << 32) + number * 5000,
            b"\x01",
            START * 10**9 + number * 1000,
        )
        for number in range(start, start + count)
    ]


class Sqlite:
    """The plain alternative: one row a sample."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path / "plain.sqlite", isolation_level=None, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        columns = (
            "key TEXT, payload BLOB, ntp64 INTEGER, stamp_id BLOB, arrival INTEGER, kind INTEGER, encoding INTEGER"
        )
        self.db.execute(f"CREATE TABLE IF NOT EXISTS log (position INTEGER PRIMARY KEY, {columns})")
        self.db.execute("CREATE TABLE IF NOT EXISTS latest (key TEXT PRIMARY KEY, position INTEGER) WITHOUT ROWID")
        self.end = int(self.db.execute("SELECT coalesce(max(position) + 1, 0) FROM log").fetchone()[0])

    def append(self, records: list[Record]) -> None:
        first, self.end = self.end, self.end + len(records)
        rows = [(first + at, *record[:7]) for at, record in enumerate(records)]
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self.db.executemany("INSERT OR REPLACE INTO latest VALUES (?, ?)", [(row[1], row[0]) for row in rows])
        self.db.execute("COMMIT")

    def latest(self, key: str) -> Any:
        sql = "SELECT log.* FROM latest JOIN log USING (position) WHERE latest.key = ?"
        return self.db.execute(sql, (key,)).fetchone()

    def scan(self) -> int:
        rows = 0
        cursor = self.db.execute("SELECT * FROM log ORDER BY position")
        while found := cursor.fetchmany(10_000):
            rows += pa.table([list(column) for column in zip(*found, strict=True)], names=list("abcdefgh")).num_rows
        return rows

    def close(self) -> None:
        self.db.close()


# -- the cases -------------------------------------------------------------------------------------------------


class Bench:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.root = Path(tempfile.mkdtemp(dir=args.dir))
        self.number = 0

    def place(self) -> Path:
        self.number += 1
        path = self.root / str(self.number)
        path.mkdir()
        return path

    def rates(self, works: dict[str, Callable[[int], int]]) -> dict[str, float]:
        """What each work does a second, called with the number of the call: medians of interleaved rounds."""
        found: dict[str, list[float]] = {name: [] for name in works}
        calls = dict.fromkeys(works, 0)
        for _ in range(self.args.rounds):
            for name, work in works.items():
                done, begin = 0, time.perf_counter()
                while (spent := time.perf_counter() - begin) < self.args.seconds:
                    done += work(calls[name])
                    calls[name] += 1
                found[name].append(done / spent)
        return {name: statistics.median(values) for name, values in found.items()}

    def rate(self, work: Callable[[int], int]) -> float:
        return self.rates({"work": work})["work"]

    def say(self, case: str, what: str, unit: str, **figures: float) -> None:
        if self.args.json:
            print(json.dumps({"case": case, "what": what, "unit": unit, **figures}), flush=True)
            return
        text = "  ".join(f"{name} {_short(value):>8}" for name, value in figures.items())
        print(f"{case:8} {what:38} {text}  {unit}", flush=True)

    def sync(self, size: int) -> Callable[[int], int]:
        """Raw appends of `size` octets, each with a sync: what the disk can do at that moment."""
        file = (self.place() / "raw").open("wb", buffering=0)
        octets = bytes(size)

        def write(_: int) -> int:
            file.write(octets)
            os.fdatasync(file.fileno())
            return 1

        return write

    def append(self) -> None:
        pool = samples(200_000)
        with memory_log() as other:
            other.append(pool)
            arrow = pa.concat_batches(list(other.read_arrow()))
        for size in BATCHES:
            logs = [open_log(self.place()), open_log(self.place())]
            plain = Sqlite(self.place())
            starts = range(0, len(pool) - size, size)
            rows = [pool[at : at + size] for at in starts]
            batches = [arrow.slice(at, size) for at in starts]
            works: dict[str, Callable[[int], int]] = {
                "elea": partial(_append, logs[0].append, rows),
                "arrow": partial(_append, logs[1].append_arrow, batches),
                "sqlite": partial(_append, plain.append, rows),
                "syncs": self.sync(160 * size),
            }
            self.say("append", f"batches of {size}", "samples/s (syncs of as much: /s)", **self.rates(works))
            for log in logs:
                log.close()
            plain.close()

    def puts(self) -> None:
        for count in (1, 16, 64, 256):
            self._puts(f"{count} in flight, one asyncio loop", count, _asyncio_puts)
        for count in (4, 64):
            self._puts(f"{count} threads, one put each", count, _threaded_puts)

    def _puts(self, what: str, count: int, run: Callable[[Any, int, float], tuple[float, list[float]]]) -> None:
        figures = {}
        for name in ("elea", "sqlite"):
            log: Any = open_log(self.place()) if name == "elea" else _SqliteLog(self.place())
            rate, waits = run(log, count, self.args.seconds)
            figures[name] = rate
            figures["syncs"] = self.rate(self.sync(160 * count))
            if name == "elea":
                waits.sort()
                figures["p50_ms"] = 1000 * waits[len(waits) // 2]
                figures["p99_ms"] = 1000 * waits[len(waits) * 99 // 100]
            log.close()
        self.say("puts", what, "acked/s (syncs of as much: /s)", **figures)

    def scan(self) -> None:
        plain = Sqlite(self.place())
        pool = samples(200_000)
        for start in range(0, len(pool), 1000):
            plain.append(pool[start : start + 1000])
        sqlite = self.rate(lambda _: plain.scan())
        plain.close()
        for block in (1, 64, 1000):
            path = self.place()
            count = len(pool) if block > 1 else 20_000
            with open_log(path) as log:
                for start in range(0, count, block):
                    log.append(pool[start : start + block])
            with open_log(path, read_only=True) as log:
                self._scan(log, f"blocks of {block}", sqlite)
            if block < 1000:
                with open_log(path) as log:
                    log.shelf.roll()
                    begin = time.perf_counter()
                    log.compact()
                    spent = time.perf_counter() - begin
                    self._scan(log, f"the same, compacted in {spent:.2f} s", sqlite)

    def _scan(self, log: Any, what: str, sqlite: float) -> None:
        arrow = self.rate(lambda _: sum(batch.num_rows for batch in log.read_arrow()))
        octets = self.rate(lambda _: sum(map(len, log.read_ipc()))) / 1e6
        hundredth = Range(keys="fleet/robot/000$*/**")
        some = self.rate(lambda _: log.end if list(log.read_arrow(hundredth)) else 0)
        self.say("scan", what, "rows/s to Arrow (ipc: MB/s)", elea=arrow, filtered=some, ipc=octets, sqlite=sqlite)

    def latest(self) -> None:
        plain, pool = Sqlite(self.place()), samples(200_000)
        with open_log(self.place()) as log:
            for start in range(0, len(pool), 1000):
                log.append(pool[start : start + 1000])
                plain.append(pool[start : start + 1000])
            figures = {
                "elea": self.rate(lambda call: log.latest(KEYS[call * 7919 % len(KEYS)]) is not None),
                "sqlite": self.rate(lambda call: plain.latest(KEYS[call * 7919 % len(KEYS)]) is not None),
            }
            self.say("latest", "one key of 10,000", "gets/s", **figures)
            every = self.rate(lambda _: sum(batch.num_rows for batch in log.latest_arrow("**")))
            self.say("latest", "all keys, to Arrow", "rows/s", elea=every)
        plain.close()

    def session(self) -> None:
        batch = batch_of(KEYS, 200_000)
        with broker(self.place()) as config:
            syncs = self.rate(self.sync(160 * 16_384))
            rate = put_batches(config, batch, self.args.rounds)
            self.say("session", "put_batch of 200,000", "acked/s (syncs of 16,384: /s)", elea=rate, syncs=syncs)
            rate = scans(config, self.args.rounds)
            self.say("session", "read everything", "rows/s to Arrow", elea=rate)
        for count in (1, 64, 256):
            with broker(self.place()) as config:
                figures = puts_in_flight(config, KEYS, count, self.args.seconds * self.args.rounds)
                figures["syncs"] = self.rate(self.sync(160 * count))
                what = f"{count} put(ack=True) in flight, one loop"
                self.say("session", what, "acked/s (syncs of as much: /s)", **figures)

    def open(self) -> None:
        path = self.place()
        with open_log(path) as log:
            for start in range(0, 1_000_000, 10_000):
                log.append(samples(10_000, start))
        size = sum(file.stat().st_size for file in path.iterdir()) / 1e6
        for what in ("closed", "index deleted"):
            if what == "index deleted":
                (path / "index").unlink()
            begin = time.perf_counter()
            log = open_log(path)
            spent = time.perf_counter() - begin
            log.close()
            self.say("open", f"1M samples, {size:.0f} MB, {what}", "s", elea=spent)


def _append(append: Callable[[Any], object], batches: list[Any], call: int) -> int:
    batch = batches[call % len(batches)]
    append(batch)
    return len(batch)


class _SqliteLog:
    """SQLite behind the interface of a log, so that the same group commit drives it."""

    def __init__(self, path: Path) -> None:
        self.plain = Sqlite(path)

    def append(self, records: list[Record]) -> Any:
        from elea.store import Receipt

        first = self.plain.end
        self.plain.append(records)
        return Receipt(first, len(records), {})

    def close(self) -> None:
        self.plain.close()


def _asyncio_puts(log: Any, count: int, seconds: float) -> tuple[float, list[float]]:
    """`count` coroutines, each of which puts and waits for the acknowledgement, again and again."""
    pool = samples(10_000)
    waits: list[float] = []

    async def main() -> float:
        loop = asyncio.get_running_loop()

        def resolve(outcomes: list[tuple[asyncio.Future[Outcome], Outcome]]) -> None:
            for future, outcome in outcomes:
                if not future.done():
                    future.set_result(outcome)

        def deliver(outcomes: list[tuple[asyncio.Future[Outcome], Outcome]]) -> None:
            loop.call_soon_threadsafe(resolve, outcomes)

        committer = Committer[asyncio.Future[Outcome]](log, deliver)
        thread = threading.Thread(target=committer.run)
        thread.start()
        until = time.perf_counter() + seconds

        async def put(number: int) -> None:
            while (begin := time.perf_counter()) < until:
                future: asyncio.Future[Outcome] = loop.create_future()
                committer.submit([pool[(number := number + 1) % len(pool)]], future)
                if isinstance(await future, StoreError):
                    raise SystemExit("the store refused a sample")
                waits.append(time.perf_counter() - begin)

        begin = time.perf_counter()
        await asyncio.gather(*(put(number * 97) for number in range(count)))
        spent = time.perf_counter() - begin
        committer.close()
        thread.join()
        return spent

    spent = asyncio.run(main())
    return len(waits) / spent, waits


def _threaded_puts(log: Any, count: int, seconds: float) -> tuple[float, list[float]]:
    pool = samples(10_000)
    waits: list[float] = []

    def answer(outcomes: list[tuple[threading.Event, Outcome]]) -> None:
        for event, _ in outcomes:
            event.set()

    committer: Committer[threading.Event] = Committer(log, answer)
    runner = threading.Thread(target=committer.run)
    runner.start()
    until = time.perf_counter() + seconds

    def put(number: int) -> None:
        while (begin := time.perf_counter()) < until:
            event = threading.Event()
            number += 1
            committer.submit([pool[number % len(pool)]], event)
            event.wait()
            waits.append(time.perf_counter() - begin)

    begin = time.perf_counter()
    threads = [threading.Thread(target=put, args=(number * 97,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = time.perf_counter() - begin
    committer.close()
    runner.join()
    return len(waits) / spent, waits


def _short(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def cases(names: str) -> Iterator[str]:
    known = ("append", "puts", "scan", "latest", "open", "session")
    for name in names.split(","):
        if name not in known:
            raise SystemExit(f"unknown case {name!r}; there are {', '.join(known)}")
        yield name


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast is the store, beside plain SQLite?")
    parser.add_argument("--cases", default="append,puts,scan,latest,open,session")
    parser.add_argument("--dir", help="a directory on the disk to measure (default: that of temporary files)")
    parser.add_argument("--seconds", type=float, default=0.7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    chosen = list(cases(args.cases))
    bench = Bench(args)
    try:
        for name in chosen:
            getattr(bench, name)()
    finally:
        shutil.rmtree(bench.root)


if __name__ == "__main__":
    main()
