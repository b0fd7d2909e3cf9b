"""How long is a broker away? From its start as a process to the first answer, with a large log.

    python -m bench.restart [--bytes 1073741824] [--keys 10000,1000000] [--tail 100000] [--singles 5000] [--rounds 5]
                            [--dir DIR] [--json]

The log is written by a process that ends without a word: batches of 1,000 samples of 100 octets, the index written down
as the upkeep of a broker does, then `tail` samples that came after it, and `singles` that were put one by one.
`killed`: the process before was killed, so all that must be read again. `stopped`: it was told to end, and wrote the
index down. `imports` is an interpreter that only imports what a broker with a store does, `opening` the log alone in
such a process, with the newest sample of one key; both are parts of `serving`. `cpu` is the processor time of the
broker up to its first answer: the figure to look at where others use the machine, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import elea
from bench.sessions import batch_of
from elea.store import Record, open_log

__all__ = ["measure", "write_log"]

ROWS = 1000
CHECKPOINT = 100_000
PATIENCE = 120.0
KEYS = "fleet/**"
WRITER = bytes(range(1, 17))

IMPORTS = "import elea.cli.broker, elea.api.session, elea.node.storage.service"
OPENING = f"""
{IMPORTS}
import os, sys, time
from elea.store import open_log
begin = time.perf_counter()
log = open_log(sys.argv[1])
assert log.latest(sys.argv[2]) is not None
print(time.perf_counter() - begin, flush=True)
os._exit(0)  # without a close, so that the next one finds the log as this one did
"""


# -- the log -----------------------------------------------------------------------------------------------------------


def key_of(number: int) -> str:
    """A key of 41 octets."""
    return f"fleet/robot/{number:07}/sensors/temperature"


def write_log(directory: Path, octets: int, keys: int, tail: int, singles: int) -> None:
    """Fill a log, and leave it open."""
    log = open_log(directory)
    second = time.time_ns() // 10**9
    number = 0

    def append(rows: int) -> None:
        nonlocal number
        batch = batch_of([key_of(each % keys) for each in range(number, number + rows)], rows)
        log.append_arrow(_numbered(batch, second, number))
        number += rows

    while number < keys or sum(size for _, _, size, _ in log.shelf.sizes()) < octets:
        append(ROWS)
        if number % CHECKPOINT == 0:
            log.checkpoint()
    log.checkpoint()
    for _ in range(tail // ROWS):
        append(ROWS)
    for each in range(number, number + singles):
        stamp, source = (second << 32) + each, (WRITER, 1, each)
        log.append(
            [
                Record(
                    key_of(each % keys), os.urandom(100), stamp, WRITER, second * 10**9, 0, 0, None, None, *source, True
                )
            ]
        )


def _numbered(batch: pa.RecordBatch, second: int, first: int) -> pa.RecordBatch:
    """The other columns, as a batch of a client has them."""
    rows = batch.num_rows
    same = {"stamp_id": WRITER, "kind": 0, "encoding": 0, "source_id": WRITER, "source_eid": 1, "once": True, "qos": 0}
    columns = {name: pa.array([value] * rows) for name, value in same.items()}
    columns["arrival"] = pa.array([second * 10**9] * rows, pa.int64()).cast(pa.timestamp("ns", "UTC"))
    columns["ntp64"] = pa.array(range((second << 32) + first, (second << 32) + first + rows), pa.uint64())
    columns["source_sn"] = pa.array(range(first, first + rows), pa.uint64())
    return pa.RecordBatch.from_arrays([*batch.columns, *columns.values()], [*batch.schema.names, *columns])


# -- the measurement ---------------------------------------------------------------------------------------------------


def imports() -> float:
    """Seconds of an interpreter that has imported everything."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)
    return time.perf_counter() - begin


def opening(directory: Path, key: str) -> float:
    """Seconds until the newest sample of a key is known."""
    done = subprocess.run([sys.executable, "-c", OPENING, directory, key], check=True, stdout=subprocess.PIPE)
    return float(done.stdout)


def serving(root: Path, name: str, key: str, end: signal.Signals) -> tuple[float, float]:
    """Seconds from the start of a broker to its first answer, and those of a processor; it is ended as told."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = elea.Config()
    entries = {"mode": "client", "scouting/multicast/enabled": False, "connect/endpoints": [f"tcp/127.0.0.1:{port}"]}
    for path, value in entries.items():
        config.insert_json5(path, json.dumps(value))
    storage = {"key_expr": KEYS, "volume": "log", "complete": True}
    options = ["--cfg", f"plugins/storage_manager/storages/{name}:{json.dumps(storage)}", "--store", str(root)]
    listen = ["--listen", f"tcp/127.0.0.1:{port}", "--no-multicast-scouting", "--quiet"]
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "elea", "broker", *listen, *options], stdout=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            assert process.poll() is None, "the broker has ended"
            time.sleep(0.001)
        with elea.open(config) as session:
            replies = [reply.ok.payload.to_bytes() for reply in session.get(key, timeout=PATIENCE) if reply.ok]
            spent = time.perf_counter() - begin
            used = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        assert len(replies) == 1, f"{len(replies)} answers"
        assert len(replies[0]) == 100, f"an answer of {len(replies[0])} octets"
        return spent, sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    finally:
        process.send_signal(end)
        process.wait(PATIENCE)


def measure(root: Path, keys: int, rounds: int, **log: int) -> dict[str, dict[str, float]]:
    """Medians, for a broker that was killed and for one that was stopped."""
    directory = root / "robots"
    child = os.fork()
    if child == 0:
        write_log(directory, keys=keys, **log)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("the log could not be written")
    key = key_of(keys // 3)
    octets = sum(path.stat().st_size for path in directory.iterdir())
    found = {}
    for name, end in (("killed", signal.SIGKILL), ("stopped", signal.SIGTERM)):
        if name == "stopped":
            serving(root, directory.name, key, end)
        rows = [(imports(), opening(directory, key), *serving(root, directory.name, key, end)) for _ in range(rounds)]
        medians = [statistics.median(column) for column in zip(*rows, strict=True)]
        found[name] = dict(zip(("imports", "opening", "serving", "cpu"), medians, strict=True), bytes=octets)
    return found


def main() -> None:
    """For the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--keys", default="10000,1000000")
    parser.add_argument("--tail", type=int, default=100_000)
    parser.add_argument("--singles", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for keys in map(int, args.keys.split(",")):
        with tempfile.TemporaryDirectory(dir=args.dir) as root:
            log = {"octets": args.bytes, "tail": args.tail, "singles": args.singles}
            for state, figures in measure(Path(root), keys, args.rounds, **log).items():
                if args.json:
                    print(json.dumps({"keys": keys, "state": state, **figures}), flush=True)
                    continue
                octets = figures.pop("bytes") / (1 << 30)
                text = "  ".join(f"{name} {value:6.3f} s" for name, value in figures.items())
                print(f"{keys:>9,} keys  {octets:.2f} GiB  {state:8} {text}", flush=True)


if __name__ == "__main__":
    main()
