"""What does recording and replaying cost, by format, beside the writer and the reader of the `mcap` library?

`python -m bench.recorder --help`. *write* and *read* are files alone: batches in memory to a file, and back. *record*
is a recorder whose peer puts batches as fast as the recorder takes them; *replay* puts a capture as fast as possible
to a peer that collects batches. A rate is samples a second; CPU is that of the process that records or replays,
divided by its samples. The library does the same one message at a time.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from mcap.reader import make_reader
from mcap.writer import Writer

import elea
from elea.columnar.compiled import writer
from elea.recorder import Recorder, Replayer, open_capture
from elea.recorder.rotation import CaptureFiles, Rotation
from elea.recorder.samplebatch import arrivals_of, sample_batch

ROWS = 16_384
KEYS = 50
PATIENCE = 600.0
NOON = 1_700_000_000_000_000_000


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def batch_of(size: int) -> pa.RecordBatch:
    """Samples on some keys, with timestamps, whose payloads zstd can make something of."""
    rng = np.random.default_rng(20)
    payloads = [b'{"n": %d, "at": "%s"}' % (n, rng.bytes(size).hex().encode()) for n in range(ROWS)]
    columns = {
        "key": pa.array([f"bench/recorder/{n % KEYS}" for n in range(ROWS)]),
        "payload": pa.array([payload[:size] for payload in payloads], pa.binary()),
        "arrival": arrivals_of(NOON + 1000 * np.arange(ROWS)),
        "ntp64": pa.array((np.uint64(NOON // 10**9) << np.uint64(32)) + np.arange(ROWS, dtype=np.uint64)),
        "stamp_id": pa.repeat(pa.scalar(b"\x07", pa.binary()), ROWS),
        "encoding": pa.array(np.full(ROWS, elea.Encoding.APPLICATION_JSON.id, np.uint32)),
    }
    return sample_batch(columns, ROWS)


def timed(samples: int, act: Callable[[], object]) -> tuple[float, float]:
    """Samples a second, and µs of CPU for each."""
    began, used = time.perf_counter(), cpu()
    act()
    return samples / (time.perf_counter() - began), 1e6 * (cpu() - used) / samples


# -- files alone


def write_ours(path: Path, batch: pa.RecordBatch, batches: int) -> None:
    files = CaptureFiles(path, {}, Rotation(), now=0.0, overwrite=True)
    for _ in range(batches):
        files.write(batch, 0.0)
    files.finish({})


def write_library(path: Path, batch: pa.RecordBatch, batches: int) -> None:
    names = ("key", "payload")
    rows = list(zip(*(batch.column(name).to_pylist() for name in names), strict=True))
    with path.open("wb") as file:
        library: Any = Writer(file)
        library.start()
        channels = {key: library.register_channel(key, "json", 0) for key in {key for key, _ in rows}}
        for _ in range(batches):
            for key, payload in rows:
                library.add_message(channels[key], NOON, payload, NOON)
        library.finish()


def read_ours(path: Path) -> None:
    for _ in open_capture(path):
        pass


def read_library(path: Path) -> None:
    with path.open("rb") as file:
        for _ in make_reader(file).iter_messages(log_time_order=False):
            pass


# -- over a link


def peer(**entries: Any) -> Any:
    config = elea.Config()
    settings = {"mode": "peer", "scouting/multicast/enabled": False, "listen/endpoints": [], **entries}
    for path, value in settings.items():
        config.insert_json5(path, json.dumps(value))
    return elea.open(config)


def child(role: str, locator: str, samples: int, size: int) -> Any:
    words = ["--role", role, "--locator", locator, "--samples", str(samples), "--sizes", str(size)]
    return subprocess.Popen(
        [sys.executable, "-m", "bench.recorder", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def publish(locator: str, samples: int, size: int) -> None:
    batch = batch_of(size)
    with peer(**{"connect/endpoints": [locator]}) as session:
        check = session.declare_publisher("bench/recorder/0")
        wait(lambda: check.matching_status.matching)
        session.put_batch(batch, durability="volatile")  # what is loaded once is loaded before
        sys.stdin.readline()
        for _ in range(samples // ROWS):
            session.put_batch(batch, durability="volatile")


def collect(locator: str, samples: int) -> None:
    count = 0
    with (
        peer(**{"connect/endpoints": [locator]}) as session,
        session.declare_subscriber("bench/**", elea.handlers.Arrow(seconds=0.1)) as subscriber,
    ):
        while count < samples:
            count += subscriber.recv().num_rows
    print(count, flush=True)


def wait(condition: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("the other process does not come")
        time.sleep(0.005)


def record(path: Path, samples: int, size: int) -> tuple[float, float]:
    with peer(**{"listen/endpoints": ["tcp/127.0.0.1:0"]}) as session:
        recorder = Recorder(session, "bench/**", path, overflow="block", flush=0.1, overwrite=True)
        process = child("publisher", str(session.info.locators()[0]), samples, size)
        wait(lambda: recorder.figures().samples == ROWS)

        def act() -> None:
            process.stdin.write(b"go\n")
            process.stdin.close()
            wait(lambda: recorder.figures().samples >= ROWS + samples)

        found = timed(samples, act)
        process.wait()
        recorder.close()
    return found


def replay(path: Path, samples: int, size: int) -> tuple[float, float]:
    with peer(**{"listen/endpoints": ["tcp/127.0.0.1:0"]}) as session:
        process = child("receiver", str(session.info.locators()[0]), samples, size)
        check = session.declare_publisher("bench/recorder/0")
        wait(lambda: check.matching_status.matching)
        writer()  # what is loaded once is loaded before

        def act() -> None:
            Replayer(session, [path], pace=None).run()
            assert int(process.stdout.readline()) == samples

        found = timed(samples, act)
        process.wait()
    return found


def main() -> int:
    """Measures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--sizes", default="64,1024", help="bytes of a payload (default: 64,1024)")
    parser.add_argument("--formats", default="mcap,parquet,arrows")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--role", choices=("publisher", "receiver"), help=argparse.SUPPRESS)
    parser.add_argument("--locator", help=argparse.SUPPRESS)
    args = parser.parse_args()
    samples = max(args.samples // ROWS, 1) * ROWS
    sizes = [int(size) for size in args.sizes.split(",")]
    if args.role == "publisher":
        publish(args.locator, samples, sizes[0])
    elif args.role == "receiver":
        collect(args.locator, samples)
    else:
        with tempfile.TemporaryDirectory() as directory:
            for size in sizes:
                for suffix in args.formats.split(","):
                    measure(Path(directory) / f"a.{suffix}", samples, size, as_json=args.json)
                measure_library(
                    Path(directory) / "b.mcap", samples // 10 // ROWS * ROWS or ROWS, size, as_json=args.json
                )
    return 0


def measure(path: Path, samples: int, size: int, *, as_json: bool) -> None:
    batch = batch_of(size)
    write_ours(path, batch, 1)  # what is loaded once is loaded before
    tell("write", path.suffix, size, timed(samples, lambda: write_ours(path, batch, samples // ROWS)), as_json)
    tell("read", path.suffix, size, timed(samples, lambda: read_ours(path)), as_json)
    tell("replay", path.suffix, size, replay(path, samples, size), as_json)
    tell("record", path.suffix, size, record(path, samples, size), as_json)


def measure_library(path: Path, samples: int, size: int, *, as_json: bool) -> None:
    batch = batch_of(size)
    found = timed(samples, lambda: write_library(path, batch, samples // ROWS))
    tell("write", "mcap library", size, found, as_json)
    tell("read", "mcap library", size, timed(samples, lambda: read_library(path)), as_json)


def tell(what: str, format_: str, size: int, found: tuple[float, float], as_json: bool) -> None:
    rate, used = found
    form = {"what": what, "format": format_, "bytes": size, "rate": round(rate), "cpu_us": round(used, 3)}
    text = f"{what:8}{format_:14}{size:6} B  {rate:12,.0f}/s  {used:8.3f} µs CPU"
    print(json.dumps(form) if as_json else text, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
