"""`elea ping`: how long a sample takes there and back, to a node that runs `elea ping --pong`.

The keys are those of eclipse-zenoh's z_ping and z_pong, which do for either side.
"""

from __future__ import annotations

import argparse
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, size_text
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.api.publisher import Publisher
    from elea.api.sample import Sample
    from elea.api.session import Session

__all__ = ["add_arguments", "histogram", "quantile", "run"]

PING: Final = "test/ping"
PONG: Final = "test/pong"

NUMBER: Final = 8
"""Octets of the number by which a pong is known; the least size."""

BUCKETS: Final = 10
BAR: Final = 40
KNOCK_EVERY: Final = 0.2

Pongs = SimpleQueue[tuple[int, int]]

EPILOG: Final = """\
examples:
  elea ping --pong -l tcp/127.0.0.1:7448 -m peer       on one side
  elea ping -e tcp/127.0.0.1:7448 --count 1000         on the other
Through a broker, both sides connect to it with -e."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea ping`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--pong", action="store_true", help="answer pings until Ctrl-C")
    parser.add_argument(
        "-n", "--count", type=connection.positive, default=100, metavar="N", help="pings (default: 100)"
    )
    parser.add_argument("--size", type=_size, default=64, metavar="BYTES", help="octets of each (default: 64)")
    parser.add_argument(
        "--timeout", type=connection.seconds, default=5.0, metavar="S", help="seconds to wait for a pong (default: 5)"
    )
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Pings, or answers pings."""
    out = Output(args)
    return _pong(args, out) if args.pong else _ping(args, out)


# -- the far side ------------------------------------------------------------------------------------------------------


def _pong(args: argparse.Namespace, out: Output) -> int:
    with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
        publisher = _publisher(session, PONG)
        with session.declare_subscriber(PING, lambda sample: publisher.put(sample.payload)):
            out.form({"event": "answering", "key": PING})
            out.note(f"answering {PING}; Ctrl-C ends")
            with stop.waiting():
                threading.Event().wait()
    return 0


def _publisher(session: Session, key: str) -> Publisher:
    from elea.model.qos import CongestionControl

    return session.declare_publisher(key, congestion_control=CongestionControl.BLOCK, express=True)


# -- the near side -----------------------------------------------------------------------------------------------------


def _ping(args: argparse.Namespace, out: Output) -> int:
    pongs: Pongs = SimpleQueue()

    def arrived(sample: Sample) -> None:
        now = time.perf_counter_ns()
        pongs.put((int.from_bytes(sample.payload.to_bytes()[:NUMBER], "little"), now))

    with connection.open_session(connection.session_config(args)) as session:
        publisher = _publisher(session, PING)
        with session.declare_subscriber(PONG, arrived):
            _knock(publisher, pongs, args)
            times = [_once(publisher, pongs, number, args) for number in range(1, args.count + 1)]
    found = sorted(took for took in times if took is not None)
    if not found:
        raise _nobody(args)
    _report(found, len(times) - len(found), args, out)
    return 0


def _knock(publisher: Publisher, pongs: Pongs, args: argparse.Namespace) -> None:
    """Waits until the other side answers: it may be about to start, or not know yet that we listen."""
    until = time.monotonic() + args.timeout
    while time.monotonic() < until:
        publisher.put(bytes(args.size))
        try:
            pongs.get(timeout=KNOCK_EVERY)
        except Empty:
            continue
        return
    raise _nobody(args)


def _once(publisher: Publisher, pongs: Pongs, number: int, args: argparse.Namespace) -> int | None:
    """Nanoseconds there and back; None if the pong was lost."""
    payload = number.to_bytes(NUMBER, "little") + bytes(args.size - NUMBER)
    began = time.perf_counter_ns()
    publisher.put(payload)
    while True:
        try:
            answered, now = pongs.get(timeout=args.timeout)
        except Empty:
            return None
        if answered == number:  # else a late one
            return now - began


def _nobody(args: argparse.Namespace) -> CliError:
    hint = "elea ping --pong   on the other side, connected to the same nodes"
    return CliError(f"no pong came within {args.timeout:g} s", hint, connection.NO)


# -- what came of it ---------------------------------------------------------------------------------------------------


def quantile(ordered: list[int], part: float) -> int:
    """The value below which `part` of the ordered values are.

    >>> quantile(list(range(1, 101)), 0.99)
    99
    """
    return ordered[min(len(ordered) - 1, max(0, round(part * len(ordered)) - 1))]


def histogram(ordered: list[int], buckets: int = BUCKETS) -> list[tuple[int, int, int]]:
    """(from, to, count) of ranges that grow by a constant factor, because delays have long tails.

    >>> histogram([1, 2, 4, 8], 3)
    [(1, 2, 1), (2, 4, 1), (4, 8, 2)]
    """
    low, high = max(1, ordered[0]), max(1, ordered[-1])
    if low == high:
        return [(low, high, len(ordered))]
    factor = (high / low) ** (1 / buckets)
    edges = [round(low * factor**i) for i in range(buckets)] + [high]
    counts = [0] * buckets
    at = 0
    for value in ordered:
        while at < buckets - 1 and value >= edges[at + 1]:
            at += 1
        counts[at] += 1
    return list(zip(edges, edges[1:], counts, strict=False))


def _report(times: list[int], lost: int, args: argparse.Namespace, out: Output) -> None:
    marks = {name: quantile(times, part) for name, part in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))}
    values = {"min": times[0], **marks, "max": times[-1]}
    bars = histogram(times)
    out.form(
        {
            "count": len(times),
            "lost": lost,
            "size": args.size,
            **{f"{name}_us": took / 1000 for name, took in values.items()},
            "histogram": [{"from_us": low / 1000, "to_us": high / 1000, "count": n} for low, high, n in bars],
        }
    )
    paint = out.style.paint
    gone = paint(f"  {lost} lost", "red") if lost else ""
    out.line(f"{len(times)} round trips of {size_text(args.size)}{gone}")
    out.line("  ".join(f"{paint(name, 'cyan')} {took / 1000:.0f} µs" for name, took in values.items()))
    most = max(n for _, _, n in bars)
    for low, high, n in bars:
        bar = paint("█" * max(round(BAR * n / most), 1 if n else 0), "green")
        out.line(f"{low / 1000:>9.0f} – {high / 1000:<8.0f} µs  {n:>6}  {bar}".rstrip())


def _size(text: str) -> int:
    if not text.isdecimal() or not NUMBER <= int(text) <= 1 << 30:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of octets from {NUMBER} to {1 << 30}")
    return int(text)
