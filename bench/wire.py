"""How fast are the codecs? Decode and encode, plain Python and compiled, beside the costs nothing can go below.

    python -m bench.wire [--compiled DIR] [--rounds 7] [--json]

Each figure is the median of some rounds of CPU time; plain and compiled rounds are interleaved, each in a process of
its own. `spike` compares with the experiment the design rests on (its figures were taken on another machine, so they
are scaled by what a call and a slice cost there and here).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BATCH = 65_000
MIN_SECONDS = 0.05

# Messages a second of the design's experiment: plain decoder and the same compiled, by case.
SPIKE = {
    "1 key, 8 B": (2.30, 9.72),
    "1 key, 64 B": (2.62, 18.42),
    "1 key, 1024 B": (1.88, 8.65),
    "1000 keys, 8 B": (1.88, 13.16),
    "1000 keys, 64 B": (1.96, 14.00),
    "1000 keys, 1024 B": (1.50, 7.90),
    "1000 ids, 64 B": (1.98, 14.58),
    "1 key, 64 B, timestamp": (0.76, 5.42),
    "1 key, 64 B, timestamp, attachment": (0.66, 4.85),
}
SPIKE_CALL_NS, SPIKE_SLICE_NS = 30.0, 52.0


# -- one process: measure ---------------------------------------------------------------------------------------------


def cpu_ns(work: Callable[[], int]) -> float:
    """CPU nanoseconds per message of `work`, which returns how many it did."""
    done, start = 0, time.process_time()
    while True:
        done += work()
        spent = time.process_time() - start
        if spent >= MIN_SECONDS:
            return spent / done * 1e9


def baselines() -> dict[str, float]:
    """What the interpreter itself costs, in nanoseconds."""
    data = bytes(100)

    def nothing(x: int) -> int:
        return x

    def empty() -> int:
        for _ in range(10_000):
            pass
        return 10_000

    def slices() -> int:
        for _ in range(10_000):
            data[3:67]
        return 10_000

    def calls() -> int:
        for _ in range(10_000):
            nothing(1)
        return 10_000

    loop = cpu_ns(empty)
    return {"call": cpu_ns(calls) - loop, "slice 64 B": cpu_ns(slices) - loop}


def cases() -> Iterator[tuple[str, list[Any]]]:
    """Name of a case and its messages, as many as fill a batch."""
    from elea.wire.zenoh1 import messages as m

    stamp = m.Timestamp(7_708_462_131_668_505_296, bytes.fromhex("c1c2c3c4c5c6c7c8"))
    for name in SPIKE:
        size = int(name.split(" B")[0].rsplit(" ", 1)[1])
        put = m.Put(
            bytes(size),
            timestamp=stamp if "timestamp" in name else None,
            attachment=bytes(16) if "attachment" in name else None,
        )
        count = max(1, BATCH // (size + 30))
        if "keys" in name:
            exprs = [m.WireExpr(1, True, f"/robot/{number % 1000:04}") for number in range(count)]
        elif "ids" in name:
            exprs = [m.WireExpr(1 + number % 1000, True) for number in range(count)]
        else:
            exprs = [m.WireExpr(1, True)] * count
        yield name, [m.Push(expr, put) for expr in exprs]


def measure() -> dict[str, dict[str, float]]:
    """Nanoseconds per message by case and column."""
    from elea.wire.zenoh1 import codec, samples

    result: dict[str, dict[str, float]] = {}
    for name, messages in cases():
        out = bytearray()
        for message in messages:
            codec.write_network_message(out, message)
        frame = bytes(out)
        templates = [samples.PutTemplate(message.wire_expr) for message in messages]
        payloads = [message.body.payload for message in messages]

        def run(frame: bytes = frame) -> int:
            found: list[samples.Pushed] = []
            samples.read_pushes(frame, 0, found)
            return len(found)

        def generic(frame: bytes = frame) -> int:
            at = count = 0
            while at < len(frame):
                _, at = codec.read_network_message(frame, at)
                count += 1
            return count

        def encode(messages: list[Any] = messages) -> int:
            out = bytearray()
            for message in messages:
                codec.write_network_message(out, message)
            return len(messages)

        def template(templates: Any = templates, payloads: Any = payloads) -> int:
            parts: list[bytes] = []
            for made, payload in zip(templates, payloads, strict=True):
                parts += (made.header(len(payload)), payload)
            b"".join(parts)
            return len(payloads)

        result[name] = {"decode run": cpu_ns(run), "decode": cpu_ns(generic), "encode": cpu_ns(encode)}
        if "timestamp" not in name:
            result[name]["encode put"] = cpu_ns(template)
    result |= early()
    return result


def early() -> dict[str, dict[str, float]]:
    """The early dialects, on the messages their devices send most."""
    from elea.wire.zenoh2018 import codec
    from elea.wire.zenoh2018 import messages as m

    result: dict[str, dict[str, float]] = {}
    single = m.StreamData(sn=5, id=2, payload=bytes(64), reliable=True)
    batched = m.BatchedData(sn=5, id=2, payload=(bytes(8),) * 100, reliable=True)
    for name, message, worth in (
        ("2018 StreamData, 64 B", single, 1),
        ("2018 BatchedData, 100 × 8 B", batched, 100),
    ):
        out = bytearray()
        codec.write_message(out, message)
        packet = bytes(out)

        def decode(packet: bytes = packet, worth: int = worth) -> int:
            for _ in range(100):
                codec.read_message(packet, 0)
            return 100 * worth

        def encode(message: Any = message, worth: int = worth) -> int:
            for _ in range(100):
                codec.write_message(bytearray(), message)
            return 100 * worth

        result[name] = {"decode": cpu_ns(decode), "encode": cpu_ns(encode)}
    return result


def worker() -> None:
    from elea.wire import compiled

    sys.stdout.write(json.dumps({"compiled": compiled(), "baselines": baselines(), "cases": measure()}))


# -- the run ----------------------------------------------------------------------------------------------------------


def child(path: Path | None) -> dict[str, Any]:
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    command = [sys.executable, "-m", "bench.wire", "--worker"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def merged(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Medians over rounds."""
    return {
        case: {column: statistics.median(run["cases"][case][column] for run in runs) for column in columns}
        for case, columns in runs[0]["cases"].items()
    }


def report(plain: list[dict[str, Any]], machine: list[dict[str, Any]]) -> dict[str, Any]:
    call = statistics.median(run["baselines"]["call"] for run in plain)
    cut = statistics.median(run["baselines"]["slice 64 B"] for run in plain)
    scale = (call / SPIKE_CALL_NS + cut / SPIKE_SLICE_NS) / 2
    columns = {"plain": merged(plain)}
    if machine and all(run["compiled"] for run in machine):
        columns["compiled"] = merged(machine)
    rows = []
    for case in columns["plain"]:
        row: dict[str, Any] = {"case": case}
        for index, (kind, values) in enumerate(columns.items()):
            row[kind] = {name: round(ns, 1) for name, ns in values[case].items()}
            if case in SPIKE:
                wanted = SPIKE[case][index] / scale
                row[f"{kind} / spike"] = round(1e3 / values[case]["decode run"] / wanted, 2)
        rows.append(row)
    return {
        "call ns": round(call, 1),
        "slice ns": round(cut, 1),
        "machine factor": round(scale, 2),
        "rows": rows,
    }


def show(found: dict[str, Any]) -> None:
    print(
        f"a call costs {found['call ns']} ns, a slice of 64 B {found['slice ns']} ns "
        f"({found['machine factor']} × the machine of the experiment)\n"
    )
    names = ("decode run", "decode", "encode put", "encode")
    kinds = [kind for kind in ("plain", "compiled") if kind in found["rows"][0]]
    print(" " * 34 + "".join(f"{kind:^58}" for kind in kinds))
    heads = "".join(f"{name:>13}" for name in names) + f"{'vs spike':>6}"
    print(f"{'ns per message (M/s)':34}" + heads * len(kinds))
    for row in found["rows"]:
        line = f"{row['case']:34}"
        for kind in kinds:
            for name in names:
                ns = row[kind].get(name)
                line += f"{'':>13}" if ns is None else f"{f'{ns:.0f} ({1e3 / ns:.2f})':>13}"
            ratio = row.get(f"{kind} / spike")
            line += f"{'' if ratio is None else f'{ratio:.2f}×':>6}"
        print(line)
    print(
        "\ndecode run: a frame of samples to flat tuples (the receiver's path); decode, encode: one message object;"
        "\nencode put: header from a publisher's template, joined with the payload."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--compiled", type=Path, help="directory with a compiled installation of elea")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker()
        return
    plain, machine = [], []
    for number in range(options.rounds):
        if sys.stderr.isatty():
            sys.stderr.write(f"\rround {number + 1} of {options.rounds}")
        plain.append(child(None))
        if options.compiled is not None:
            machine.append(child(options.compiled))
    if sys.stderr.isatty():
        sys.stderr.write("\r" + " " * 20 + "\r")
    found = report(plain, machine)
    print(json.dumps(found)) if options.json else show(found)


if __name__ == "__main__":
    main()
