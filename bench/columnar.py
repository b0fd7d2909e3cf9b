"""How fast do samples off the wire become Arrow batches, beside a callback of eclipse-zenoh that collects columns?

`python -m bench.columnar --help`. Both subscribers get the same publisher, on the same machine, in turns: an Elea
publisher, Elea's `put_batch`, or an eclipse-zenoh publisher. A rate is taken from the first sample to the last batch
that was full; CPU is that of the subscriber's process, divided by its samples. Elea fills all 13 columns,
eclipse-zenoh's callback key, payload, timestamp and kind.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, cast

KEY = "bench/columnar/samples"
END = "bench/columnar/end"
WARM = "bench/columnar/warm"
ROWS = 16_384
LARGE = 3_500_000  # octets of a batch that is full, though it has fewer rows
GOALS = {64: 8.0, 1024: 3.0}


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def config(lib: Any, entries: dict[str, Any]) -> Any:
    found = lib.Config()
    settings = {"mode": "peer", "scouting/multicast/enabled": False, "listen/endpoints": [], **entries}
    for path, value in settings.items():
        found.insert_json5(
            path.replace("_", "/") if path.startswith(("listen_", "connect_")) else path, json.dumps(value)
        )
    return found


def library(name: str) -> Any:
    import importlib

    return importlib.import_module({"elea": "elea", "batch": "elea", "zenoh": "zenoh"}[name])


# -- the ends, each a process -----------------------------------------------------------------------------------------


class Meter:
    """When the samples came, and what they cost."""

    def __init__(self) -> None:
        self.rows = 0
        self.first = 0.0
        self.last = 0.0
        self.full = 0
        self.cpu = 0.0
        self.used = 0.0

    def begin(self) -> None:
        if not self.first:
            self.first, self.cpu = time.monotonic(), cpu()

    def batch(self, batch: Any) -> None:
        self.rows += batch.num_rows
        if batch.num_rows >= ROWS or batch.nbytes >= LARGE:
            self.last, self.full, self.used = time.monotonic(), self.rows, cpu() - self.cpu

    def say(self, sent: int) -> None:
        took = max(self.last - self.first, 1e-9)
        answer = {"rate": self.full / took, "cpu": self.used / max(self.full, 1) * 1e6, "lost": sent - self.rows}
        print(json.dumps(answer), flush=True)


def subscribe_elea(locator: str) -> None:
    import elea

    meter = Meter()
    session = elea.open(config(elea, {"listen/endpoints": [locator]}))
    subscriber = session.declare_subscriber(KEY, elea.handlers.Arrow(rows=ROWS, seconds=0.5))
    ended = session.declare_subscriber(END)
    warmed = session.declare_subscriber(WARM)
    # The meter starts with the first sample, not with the first batch.
    inner = subscriber._box.deliver

    def begin(item: Any) -> None:
        meter.begin()
        subscriber._box.deliver = inner
        inner(item)

    subscriber._box.deliver = begin
    print("ready", flush=True)
    sent, patience = -1, 0.0
    while sent < 0 or meter.rows < sent:
        try:
            meter.batch(subscriber.handler.recv(timeout=1.0))
        except TimeoutError:
            if sent >= 0 and time.monotonic() > patience:
                break
        if sent < 0 and (sample := ended.try_recv()) is not None:
            sent, patience = int(sample.payload.to_string()), time.monotonic() + 10.0
    meter.say(sent)
    warmed.undeclare()
    session.close()


def subscribe_zenoh(locator: str) -> None:
    import pyarrow as pa
    import zenoh

    meter = Meter()
    keys: list[str] = []
    payloads: list[bytes] = []
    times: list[str | None] = []
    kinds: list[int] = []
    put = zenoh.SampleKind.PUT
    pa.array([""])  # loads pandas, where it is installed
    octets = 0

    def collect(sample: Any) -> None:
        nonlocal octets
        meter.begin()
        keys.append(str(sample.key_expr))
        payload = sample.payload.to_bytes()
        payloads.append(payload)
        octets += len(payload)
        stamp = sample.timestamp
        times.append(None if stamp is None else str(stamp))
        kinds.append(0 if sample.kind == put else 1)
        if len(keys) >= ROWS or octets >= LARGE:
            hand_over()

    def hand_over() -> None:
        nonlocal octets
        octets = 0
        batch = pa.record_batch(
            [
                pa.array(keys),
                pa.array(payloads, pa.binary()),
                pa.array(times, pa.string()),
                pa.array(kinds, pa.uint8()),
            ],
            ["key", "payload", "timestamp", "kind"],
        )
        for column in (keys, payloads, times, kinds):
            cast(list[Any], column).clear()
        meter.batch(batch)

    session: Any = zenoh.open(config(zenoh, {"listen/endpoints": [locator]}))
    subscriber = session.declare_subscriber(KEY, collect)
    ended = session.declare_subscriber(END)
    warmed = session.declare_subscriber(WARM)
    print("ready", flush=True)
    sent = int(ended.recv().payload.to_string())
    patience = time.monotonic() + 10.0
    while meter.rows + len(keys) < sent and time.monotonic() < patience:
        time.sleep(0.01)
    meter.rows += len(keys)
    meter.say(sent)
    for each in (subscriber, ended, warmed):
        each.undeclare()
    session.close()


def publish(lib_name: str, locator: str, size: int, seconds: float) -> None:
    lib = library(lib_name)
    session = lib.open(config(lib, {"connect/endpoints": [locator]}))
    publisher = session.declare_publisher(KEY, congestion_control=lib.CongestionControl.BLOCK)
    while not publisher.matching_status.matching:
        time.sleep(0.01)
    time.sleep(0.3)
    payload, sent = bytes(size), 0
    if lib_name == "batch":
        import pyarrow as pa

        rows = 8192 if size <= 1024 else 1024
        payloads = pa.array([payload] * rows, pa.binary())
        batch = pa.record_batch([pa.array([KEY] * rows), payloads], ["key", "payload"])
        session.put_batch([(WARM, payload)], durability="volatile")  # loads the compiled loop: there is a subscriber
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            session.put_batch(batch, durability="volatile")
            sent += rows
    else:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(256):
                publisher.put(payload)
            sent += 256
    session.put(END, str(sent), congestion_control=lib.CongestionControl.BLOCK)
    print(sent, flush=True)
    sys.stdin.readline()
    session.close()


# -- the run ----------------------------------------------------------------------------------------------------------


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.columnar", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def measure(publisher: str, subscriber: str, size: int, seconds: float) -> dict[str, float]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        locator = f"tcp/127.0.0.1:{probe.getsockname()[1]}"
    receiving = start("--as", f"sub-{subscriber}", "--locator", locator)
    assert receiving.stdout is not None
    receiving.stdout.readline()
    sending = start("--as", f"pub-{publisher}", "--locator", locator, "--sizes", str(size), "--seconds", str(seconds))
    try:
        found: dict[str, float] = json.loads(receiving.stdout.readline() or "{}")
    finally:
        for process in (sending, receiving):
            try:
                process.communicate("\n", timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
    return found


def cases(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    for publisher in options.publishers.split(","):
        for size in map(int, options.sizes.split(",")):
            yield publisher, size


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.columnar", description=__doc__)
    parser.add_argument("--sizes", default="64,1024", help="payloads in octets (64,1024)")
    parser.add_argument("--publishers", default="elea,batch,zenoh", help="elea, batch (put_batch), zenoh")
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured (5)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of putting, each time (1.5)")
    parser.add_argument("--as", dest="end", default="", help=argparse.SUPPRESS)
    parser.add_argument("--locator", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.end.startswith("pub-"):
        publish(options.end[4:], options.locator, int(options.sizes), options.seconds)
        return 0
    if options.end:
        (subscribe_elea if options.end == "sub-elea" else subscribe_zenoh)(options.locator)
        return 0
    found: dict[tuple[str, int, str], list[dict[str, float]]] = {}
    for number in range(-1, options.rounds):  # the first round is not counted: it fills caches
        for publisher, size in cases(options):
            for subscriber in ("elea", "zenoh") if number % 2 else ("zenoh", "elea"):
                figures = measure(publisher, subscriber, size, 0.3 if number < 0 else options.seconds)
                if number >= 0 and not figures.get("rate"):
                    print(f"no figure: {publisher} to {subscriber}, {size} octets: {figures}", file=sys.stderr)
                    return 1
                if number >= 0:
                    found.setdefault((publisher, size, subscriber), []).append(figures)
    print(f"load average {os.getloadavg()[0]:.1f}; {options.rounds} rounds, medians (least to greatest)")
    print("publisher  size  Elea Arrow rows/s, CPU µs  eclipse-zenoh rows/s, CPU µs  ratio  CPU ratio  lost  goal")
    for publisher, size in cases(options):
        ours, theirs = (found[publisher, size, name] for name in ("elea", "zenoh"))
        pairs = list(zip(ours, theirs, strict=True))
        ratio = statistics.median(one["rate"] / other["rate"] for one, other in pairs)
        saved = statistics.median(other["cpu"] / one["cpu"] for one, other in pairs)
        lost = f"{sum(each['lost'] for each in ours):.0f}/{sum(each['lost'] for each in theirs):.0f}"
        goal = f"≥ {GOALS[size]:g}×" if size in GOALS else ""
        print(
            f"{publisher:9} {size:5}  {shown(ours):27} {shown(theirs):29} {ratio:4.1f}×  {saved:7.1f}×  {lost:5} {goal}"
        )
    return 0


def shown(figures: list[dict[str, float]]) -> str:
    rates = sorted(each["rate"] / 1e3 for each in figures)
    used = statistics.median(each["cpu"] for each in figures)
    return f"{statistics.median(rates):.0f} k ({rates[0]:.0f}–{rates[-1]:.0f}), {used:.2f}"


if __name__ == "__main__":
    sys.exit(main())
