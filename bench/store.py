"""How fast is the store, alone and through a broker, beside plain SQLite? Every figure is of the same run and disk.

    python -m bench.store [--cases append,puts,scan,latest,history,open,session] [--dir DIR] [--seconds 0.7]
                          [--rounds 3] [--largest 1000000] [--path DIR] [--json]

A sample has a key of 39 octets out of 10,000 and a random payload of 100. Everything acknowledged is synced before; the
raw rate of append + fdatasync is measured between the rounds, for no figure can be judged without it.
`append`: one writer, batches. `puts`: single acknowledged puts in flight, group commit, from one asyncio loop and from
threads. `scan`: a range to Arrow. `history`: the ten samples of one key among 1,000 to `--largest`, in blocks as single
puts leave them (from 100,000 on of ten samples each) and in compacted ones; the first time, and again.
`session`: the same through a broker process, over loopback, with the CPU that client
and broker spend on a sample. SQLite: write-ahead log, synchronous=FULL, a log table and a table of newest samples.
`--path`: an installation of elea to measure, such as `.build/compiled`; without it, whatever `import elea` finds.
Targets stand behind the figures; the exit code does not depend on them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.inflight import KEYS, asyncio_puts, samples, threaded_puts
from bench.plainsqlite import Sqlite, SqliteLog
from bench.sessions import batch_of, broker, put_batches, puts_from_threads, puts_in_flight, scans
from elea.store import Range, Sync, memory_log, open_log
from elea.wire.zenoh1 import codec

BATCHES = (1, 64, 1000, 10_000)
Targets = dict[str, float]
"""Figure → what it is to be at least; for CPU (`…_us`) at most."""

ROWS: Targets = {"arrow": 500_000}
PUT_BATCH: Targets = {"elea": 250_000}
IN_FLIGHT: Targets = {"elea": 20_000, "client_us": 25, "broker_us": 25}


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

    def say(self, case: str, what: str, unit: str, targets: Targets | None = None, /, **figures: float) -> None:
        targets = targets or {}
        if self.args.json:
            told = {"case": case, "what": what, "unit": unit, **figures}
            print(json.dumps({**told, "targets": targets} if targets else told), flush=True)
            return
        text = "  ".join(f"{name} {_short(value):>8}" for name, value in figures.items())
        wanted = ", ".join(_judged(name, figures[name], target) for name, target in targets.items())
        print(f"{case:8} {what:38} {text}  {unit}{'; target ' if wanted else ''}{wanted}", flush=True)

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
            targets = ROWS if size == max(BATCHES) else None
            self.say("append", f"batches of {size}", "samples/s (syncs of as much: /s)", targets, **self.rates(works))
            for log in logs:
                log.close()
            plain.close()

    def puts(self) -> None:
        for count in (1, 16, 64, 256):
            self._puts(f"{count} in flight, one asyncio loop", count, asyncio_puts)
        for count in (4, 64):
            self._puts(f"{count} threads, one put each", count, threaded_puts)

    def _puts(self, what: str, count: int, run: Callable[[Any, int, float], tuple[float, list[float]]]) -> None:
        figures = {}
        for name in ("elea", "sqlite"):
            log: Any = open_log(self.place()) if name == "elea" else SqliteLog(self.place())
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
        batch = batch_of(KEYS, 400_000)
        with broker(self.place()) as at:
            syncs = self.rate(self.sync(160 * 16_384))
            figures = put_batches(at, batch, self.args.rounds)
            unit = "acked/s (syncs of 16,384: /s; CPU: µs a sample)"
            self.say("session", "put_batch of 400,000", unit, PUT_BATCH, **figures, syncs=syncs)
            self.say("session", "read everything", "rows/s to Arrow", **scans(at, self.args.rounds))
        for count in (1, 64, 256):
            self._session_puts(f"{count} put(ack=True) in flight, one loop", puts_in_flight, count)
        for count in (1, 4, 64):
            self._session_puts(f"{count} threads, put(ack=True) each", puts_from_threads, count)

    def _session_puts(self, what: str, puts: Callable[..., dict[str, float]], count: int) -> None:
        with broker(self.place()) as at:
            syncs = self.sync(160 * count)
            before = self.rate(syncs)
            figures = puts(at, KEYS, count, self.args.seconds * self.args.rounds)
            figures["syncs"] = (before + self.rate(syncs)) / 2
            targets = IN_FLIGHT if puts is puts_in_flight and count == 64 else None
            self.say("session", what, "acked/s (syncs of as much: /s; CPU: µs a put)", targets, **figures)

    def history(self) -> None:
        count = 1_000
        while count <= self.args.largest:
            path = self.place()
            log = open_log(path, sync=Sync.RELAXED)
            each = 1 if count < 100_000 else 10
            for start in range(0, count, each):
                some = samples(each, start)
                if start % (count // 10) < each:
                    some[0] = some[0]._replace(key="asked/for")
                log.append(some)
            self._history(log, f"{count} samples, open")
            log.close()
            log = open_log(path)  # nothing is known of its keys any more
            log.shelf.roll()
            log.compact()
            self._history(log, f"{count} samples, compacted")
            log.close()
            shutil.rmtree(path)
            count *= 10

    def _history(self, log: Any, what: str) -> None:
        begin = time.perf_counter()
        found = len(list(log.read(Range(keys="asked/for"))))
        first = time.perf_counter() - begin
        rate = self.rate(lambda _: len(list(log.read(Range(keys="asked/for")))) // 10)
        self.say("history", what, f"ms for {found} samples", first_ms=1000 * first, again_ms=1000 / rate)

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


def _judged(name: str, figure: float, target: float) -> str:
    """A target, and whether it was met."""
    most = name.endswith("_us")
    met = figure <= target if most else figure >= target
    return f"{name} {'≤' if most else '≥'} {_short(target)}: {'met' if met else 'missed'}"


def _short(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def cases(names: str) -> Iterator[str]:
    known = ("append", "puts", "scan", "latest", "history", "open", "session")
    for name in names.split(","):
        if name not in known:
            raise SystemExit(f"unknown case {name!r}; there are {', '.join(known)}")
        yield name


def run_with(path: Path) -> None:
    """See to it that this process, and so those it starts, use the installation in a directory."""
    if path in Path(codec.__file__).resolve().parents:
        return
    if os.environ.get("PYTHONPATH") == str(path):
        raise SystemExit(f"elea is not installed in {path}; `make compiled` makes such a directory")
    os.environ["PYTHONPATH"] = str(path)
    os.execv(sys.executable, [sys.executable, "-m", "bench.store", *sys.argv[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast is the store, beside plain SQLite?")
    parser.add_argument("--cases", default="append,puts,scan,latest,history,open,session")
    parser.add_argument("--dir", help="a directory on the disk to measure (default: that of temporary files)")
    parser.add_argument("--seconds", type=float, default=0.7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--largest", type=int, default=1_000_000, help="samples of the largest log of `history`")
    parser.add_argument("--path", type=Path, help="an installation of elea to measure")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    chosen = list(cases(args.cases))
    if args.path is not None:
        run_with(args.path.resolve())
    if not args.json:
        kind = "plain Python" if codec.__file__.endswith(".py") else "compiled"
        load = " ".join(f"{one:.1f}" for one in os.getloadavg())
        where = args.dir or tempfile.gettempdir()
        print(f"elea {kind}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {load}, disk of {where}")
    bench = Bench(args)
    try:
        for name in chosen:
            getattr(bench, name)()
    finally:
        shutil.rmtree(bench.root)


if __name__ == "__main__":
    main()
