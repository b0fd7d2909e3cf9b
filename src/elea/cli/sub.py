"""`elea sub`: prints the samples put to keys, as they come."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, safe
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.api.channels import Handler
    from elea.api.sample import Sample

__all__ = ["CAPACITY", "add_arguments", "run", "show_samples"]

CAPACITY: Final = 4096
"""Samples waiting to be printed; then the sender has to wait, and after a while they are lost and counted."""

BATCH: Final = 256

EPILOG: Final = """\
Prints time, key, kind, encoding and value until Ctrl-C. The time is the sample's timestamp if it has one, else that
of its arrival. example: elea sub 'home/**' -e tcp/127.0.0.1:7447"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea sub`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "keys", nargs="+", metavar="KEY", type=connection.check_key, help="key expressions, such as 'home/*/temp'"
    )
    parser.add_argument("-n", "--count", type=connection.positive, metavar="N", help="end after N samples")
    parser.add_argument("--raw", action="store_true", help="write the octets of the values and nothing else")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints samples until there are enough of them."""
    from elea.api import channels

    if args.raw and args.json:
        raise CliError("--raw and --json contradict each other", "one of them", connection.USAGE)
    out = Output(args)
    channel: Handler[Sample] = channels.Handler(CAPACITY)
    with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
        subscribers = [session.declare_subscriber(key, channel.push) for key in args.keys]
        if not connection.neighbours(session):
            out.note("no other node yet; waiting for one")
        out.note(f"subscribed to {', '.join(safe(str(one.key_expr)) for one in subscribers)}; Ctrl-C ends")
        show_samples(channel, out, args.count, stop, raw=args.raw)
    if channel.dropped:
        problem = f"{channel.dropped} samples were lost because they came faster than they could be printed"
        raise CliError(problem, "--raw into a file, or a narrower key expression", connection.AT_RISK)
    return 0


def show_samples(
    channel: Handler[Sample], out: Output, count: int | None, stop: connection.Stop, *, raw: bool = False
) -> None:
    """Prints what comes through the channel, `count` samples or for ever."""
    left = count
    while left is None or left > 0:
        with stop.waiting():
            samples = [channel.recv(), *channel.drain(BATCH)]
        for sample in samples[:left]:
            if raw:
                sys.stdout.buffer.write(sample.payload.to_bytes())
            else:
                out.sample(sample)
        if raw:
            sys.stdout.buffer.flush()
        if left is not None:
            left -= len(samples)
