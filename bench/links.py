"""How fast do links move octets? Putting, reading and ping-pong over loopback, beside plain sockets.

    python -m bench.links [--seconds 0.5] [--rounds 5] [--json]

Every far end is a process of its own. Cases are interleaved round by round; a figure is the median (lowest to
highest). CPU is process time, all threads, of the measured end. A put that does not arrive stops the program.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from elea.io.batchreader import BatchReader
from elea.io.dial import connect
from elea.io.link import Link
from elea.io.listener import listen
from elea.io.loop import IN, OUT, Loop, Pollable
from elea.io.outbox import Frame, Outbox

HEADER = bytes.fromhex("3d0140")
ROOM = 65_000
SIZES = (8, 64, 1_024, 8_192, 60_000)
SMALL = 64


@dataclass
class Case:
    """One row of the table: `run` answers the rate and the CPU µs, or the round trip's p50 and p99."""

    name: str
    unit: str
    run: Callable[[float], tuple[float, float]]
    figures: list[tuple[float, float]] = field(default_factory=list)


class Framer:
    """The smallest framing that a Zenoh 1.x link has: prefix, FRAME header, serial number, messages."""

    def __init__(self) -> None:
        self.sn = 0

    def __call__(self, key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[bytes]], int, int]:
        self.sn = (self.sn + 1) & 0x0FFF_FFFF
        sn = bytes(
            (self.sn & 0x7F | 0x80, self.sn >> 7 & 0x7F | 0x80, self.sn >> 14 & 0x7F | 0x80, self.sn >> 21 & 0x7F)
        )
        message = len(queue[0]) + len(queue[1])  # all have one size
        count = min(len(queue), max(ROOM // message, 1) * 2)
        size = message * count >> 1
        head = ((size + 5) & 0xFFFF).to_bytes(2, "little") + b"\x25" + sn
        return [[head, *queue[:count]] if message > 4096 else [b"".join((head, *queue[:count]))]], count, size


class Served(Pollable):
    """A link that a loop reads and writes, as it does that of a session; `on_batch` gets what comes, if it is read."""

    def __init__(
        self, link: Link, loop: Loop, frame: Frame, *, room: int, on_batch: Callable[[bytes], None] | None = None
    ) -> None:
        super().__init__()
        self.outbox = Outbox(link, frame, loop, room=room, on_blocked=self._on_blocked)
        self.ended = threading.Event()
        self._loop = loop
        self._on_batch = on_batch
        self._reader = BatchReader(link)
        self._least = 0 if on_batch is None else IN
        loop.add(self, link.fileno(), self._least)

    def on_ready(self, mask: int) -> None:
        if mask & OUT:
            self.outbox.on_writable()
        if mask & ~OUT and self._on_batch is not None:
            self._read(self._on_batch)

    def _read(self, on_batch: Callable[[bytes], None]) -> None:
        reader, loop = self._reader, self._loop
        came = reader.receive(loop.buffer, loop.view)
        if not came:
            self._loop.remove(self)
            self.ended.set()
        elif came > 0:
            while (batch := reader.cut()) is not None:
                on_batch(bytes(batch))
            reader.keep()

    def _on_blocked(self, blocked: bool) -> None:
        self._loop.change(self, self._least | OUT if blocked else self._least)


# -- far ends, each in a process of its own -----------------------------------------------------------------------


def sink(port: int) -> None:
    """Count octets and tell the number when the other side is done sending."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        buffer = bytearray(1 << 20)
        total = 0
        while count := sock.recv_into(buffer):
            total += count
        sock.sendall(total.to_bytes(8, "little"))


def source(port: int, batch: int, seconds: float) -> None:
    """Send batches of one size, many at a time."""
    one = batch.to_bytes(2, "little") + bytes(batch)
    many = one * max(1, 262_144 // len(one))
    with socket.create_connection(("127.0.0.1", port)) as sock:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sock.sendall(many)


def echo(port: int, raw: int) -> None:
    """Send every batch back: by plain sockets in one thread, or through an outbox in a turn of a loop."""
    if raw:
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := sock.recv(65_536):
                sock.sendall(data)
        return
    link, loop = connect(f"tcp/127.0.0.1:{port}"), Loop("echo")

    def answer(batch: bytes) -> None:
        served.outbox.put(0, (b"", batch), len(batch), False)

    served = Served(link, loop, alone, room=0, on_batch=answer)
    served.ended.wait()
    loop.close()


def alone(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[bytes]], int, int]:
    """A batch of one message, whose first part is empty."""
    data = queue[1]
    return [[len(data).to_bytes(2, "little") + data]], 2, len(data)


@contextmanager
def far_end(role: str, *arguments: object) -> Iterator[socket.socket]:
    """The accepted socket of a far end that is running."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = [sys.executable, "-m", "bench.links", "--role", role, str(port), *map(str, arguments)]
        process = subprocess.Popen(words)
        sock, _ = server.accept()
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield sock
        finally:
            sock.close()
            process.wait(10)


def answered(sock: socket.socket, expected: int) -> None:
    sock.shutdown(socket.SHUT_WR)
    got = int.from_bytes(sock.recv(8, socket.MSG_WAITALL), "little")
    if got != expected:
        raise SystemExit(f"sent {expected} octets, {got} arrived")


# -- cases --------------------------------------------------------------------------------------------------------


def raw_small(seconds: float) -> tuple[float, float]:
    return _raw(bytes(SMALL + len(HEADER)), seconds, 1)


def raw_batches(seconds: float) -> tuple[float, float]:
    """The ceiling: batches made beforehand; counted as the messages they would hold."""
    message = SMALL + len(HEADER)
    return _raw(bytes(ROOM // message * message), seconds, ROOM // message)


def _raw(data: bytes, seconds: float, messages: int) -> tuple[float, float]:
    with far_end("sink") as sock:
        count = 0
        cpu, start = time.process_time(), time.perf_counter()
        end = start + seconds
        while time.perf_counter() < end:
            for _ in range(10):
                sock.sendall(data)
            count += 10
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
        answered(sock, count * len(data))
    return count * messages / took, cpu / count / messages * 1e6


def putting(size: int, threads: int = 1) -> Callable[[float], tuple[float, float]]:
    def run(seconds: float) -> tuple[float, float]:
        with linked_sink() as (link, sock, loop):
            outbox = Served(link, loop, Framer(), room=ROOM).outbox
            payload = bytes(size)
            counts = [0] * threads
            cpu, start = time.process_time(), time.perf_counter()
            end = start + seconds

            def publish(index: int) -> None:
                put, total, block = outbox.put, size + len(HEADER), 1_000 if size < 4_096 else 100
                while time.perf_counter() < end:
                    for _ in range(block):
                        put(10, (HEADER, payload), total, False)
                    counts[index] += block

            if threads == 1:
                publish(0)
            else:
                workers = [threading.Thread(target=publish, args=(index,)) for index in range(threads)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
            if not outbox.flush(10):
                raise SystemExit("flush failed")
            took, cpu = time.perf_counter() - start, time.process_time() - cpu
            count = sum(counts)
            if outbox.messages != count:
                raise SystemExit(f"put {count} messages, sent {outbox.messages}")
            answered(sock, outbox.octets)
            outbox.close()
        return count / took, cpu / count * 1e6

    return run


@contextmanager
def linked(role: str, *arguments: object) -> Iterator[tuple[Link, Loop]]:
    """The accepted link of a far end that is running, and a loop for it."""
    links: list[Link] = []
    arrived = threading.Event()

    def accept(link: Link) -> None:
        links.append(link)
        arrived.set()

    loop = Loop("bench")
    listener = listen("tcp/127.0.0.1:0", on_link=accept, loop=loop)
    port = listener.locators()[0].rpartition(":")[2]
    words = [sys.executable, "-m", "bench.links", "--role", role, port, *map(str, arguments)]
    process = subprocess.Popen(words)
    arrived.wait(10)
    try:
        yield links[0], loop
    finally:
        links[0].close()
        listener.close()
        loop.close()
        process.wait(10)


@contextmanager
def linked_sink() -> Iterator[tuple[Link, socket.socket, Loop]]:
    """A link to a sink, its socket to ask the sink for its count, and a loop."""
    with linked("sink") as (link, loop):
        yield link, link._socket, loop  # type: ignore[attr-defined]


def reading(batch: int, *, octets: bool) -> Callable[[float], tuple[float, float]]:
    def run(seconds: float) -> tuple[float, float]:
        with linked("source", batch, seconds) as (link, loop):
            got: list[int] = []
            cpu, start = time.process_time(), time.perf_counter()
            Served(link, loop, alone, room=ROOM, on_batch=lambda data: got.append(len(data))).ended.wait()
            took, cpu = time.perf_counter() - start, time.process_time() - cpu
        return (sum(got) if octets else len(got)) / took, cpu / len(got) * 1e6

    return run


def ping_raw(seconds: float) -> tuple[float, float]:
    with far_end("echo", 1) as sock:
        data = bytes(SMALL)
        times: list[float] = []
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            sock.sendall(data)
            sock.recv(65_536)
            times.append(time.perf_counter() - start)
    return percentiles(times)


def ping_links(seconds: float) -> tuple[float, float]:
    """Outbox, loop, waiting thread; the far end answers in a turn of its loop."""
    with linked("echo", 0) as (link, loop):
        answer = threading.Lock()
        answer.acquire()
        outbox = Served(link, loop, alone, room=ROOM, on_batch=lambda _: answer.release()).outbox
        data = (b"", bytes(SMALL))
        times: list[float] = []
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            outbox.put(10, data, SMALL, False)
            answer.acquire()
            times.append(time.perf_counter() - start)
        outbox.close()
    return percentiles(times)


def percentiles(times: list[float]) -> tuple[float, float]:
    ordered = sorted(times[len(times) // 10 :])
    return ordered[len(ordered) // 2] * 1e6, ordered[len(ordered) * 99 // 100] * 1e6


CASES = [
    Case(f"raw sendall, one per {SMALL} B message", "put/s", raw_small),
    Case(f"raw sendall, ready batches of {SMALL} B messages", "put/s", raw_batches),
    *[Case(f"outbox put {size} B", "put/s", putting(size)) for size in SIZES],
    Case(f"outbox put {SMALL} B, 4 threads", "put/s", putting(SMALL, 4)),
    Case("read in a loop, 65000 B batches", "B/s", reading(65_000, octets=True)),
    Case(f"read in a loop, {SMALL} B batches", "batch/s", reading(SMALL, octets=False)),
    Case(f"round trip {SMALL} B, raw sockets, one thread", "µs", ping_raw),
    Case(f"round trip {SMALL} B, links, loop", "µs", ping_links),
]


def show(case: Case) -> str:
    first = sorted(figure[0] for figure in case.figures)
    second = statistics.median(figure[1] for figure in case.figures)
    middle = statistics.median(first)
    if case.unit == "µs":
        return f"{case.name:48} p50 {middle:7.1f} µs ({first[0]:.0f}–{first[-1]:.0f}), p99 {second:.0f} µs"
    scale, letter = (1e9, "G") if middle >= 1e9 else (1e6, "M") if middle >= 1e6 else (1e3, "k")
    spread = f"({first[0] / scale:.2f}–{first[-1] / scale:.2f})"
    return f"{case.name:48} {middle / scale:7.2f} {letter}{case.unit} {spread}, CPU {second:.2f} µs each"


def main() -> None:
    """Run the cases, or one far end of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="run the cases whose name contains this text")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        role, port, *rest = options.role
        if role == "sink":
            sink(int(port))
        elif role == "source":
            source(int(port), int(rest[0]), float(rest[1]))
        else:
            echo(int(port), int(rest[0]))
        return
    cases = [case for case in CASES if options.only in case.name]
    for _ in range(options.rounds):
        for case in cases:
            case.figures.append(case.run(options.seconds))
    for case in cases:
        if options.json:
            print(json.dumps({"case": case.name, "unit": case.unit, "figures": case.figures}))
        else:
            print(show(case))


if __name__ == "__main__":
    main()
