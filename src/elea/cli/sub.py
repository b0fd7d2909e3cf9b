"""`elea sub`: prints the samples put to keys, as they come."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.explain import where
from elea.cli.output import Output, safe
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.api.channels import Handler
    from elea.api.sample import Sample
    from elea.api.session import Session

__all__ = ["CAPACITY", "add_arguments", "run", "show_samples", "since"]

CAPACITY: Final = 4096
"""Samples waiting to be printed; then the sender has to wait, and after a while they are lost and counted."""

BATCH: Final = 256

EPILOG: Final = """\
Prints time, key, kind, encoding and value until Ctrl-C. The time is the sample's timestamp if it has one, else that
of its arrival. --history, --since and --cursor begin with what a broker has kept (elea broker --store DIR --persist
KEY), and go on with what comes, without a gap. A cursor remembers where this command was. examples:
  elea sub 'home/**' -e tcp/127.0.0.1:7447
  elea sub 'home/**' --since 10m
  elea sub 'home/**' --where "value > 20 AND key LIKE '%/temp'"
  elea sub 'home/**' --cursor nightly"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea sub`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "keys", nargs="+", metavar="KEY", type=connection.check_key, help="key expressions, such as 'home/*/temp'"
    )
    parser.add_argument("-n", "--count", type=connection.positive, metavar="N", help="end after N samples")
    parser.add_argument("--raw", action="store_true", help="write the octets of the values and nothing else")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--history", type=connection.positive, metavar="N", help="begin with the last N samples")
    when.add_argument(
        "--since",
        type=since,
        metavar="WHEN",
        help="begin there: 10m (ago; or s, h, d), 2024-01-31T12:00:00Z, or a position such as 0, the oldest",
    )
    parser.add_argument("--cursor", metavar="NAME", help="go on where NAME was, and move it with what is printed")
    parser.add_argument(
        "--where", type=where, metavar="PREDICATE", help='only samples for which this holds: "speed > 2"'
    )
    parser.add_argument("--fields", action="store_true", help="print what payloads say, by their (declared) types")
    parser.add_argument("--pull", action="store_true", help="print what has come whenever a line is entered")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints samples until there are enough of them."""
    from elea.api import channels

    if args.raw and args.json:
        raise CliError("--raw and --json contradict each other", "one of them", connection.USAGE)
    follows = args.history is not None or args.since is not None or args.cursor is not None
    if follows and len(args.keys) > 1:
        raise CliError(
            f"{len(args.keys)} keys may be kept in several logs", "one KEY, such as 'home/**'", connection.USAGE
        )
    out = Output(args)
    if follows or args.pull:
        with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
            out.contents = session._node.schemas.contents if args.fields else None
            (_pull if args.pull else _follow)(session, args, out, stop)
        return 0
    channel: Handler[Sample] = channels.Handler(CAPACITY)
    with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
        out.contents = session._node.schemas.contents if args.fields else None
        subscribers = [session.declare_subscriber(key, channel.push, where=args.where) for key in args.keys]
        if not connection.neighbours(session):
            out.note("no other node yet; waiting for one")
        out.note(f"subscribed to {', '.join(safe(str(one.key_expr)) for one in subscribers)}; Ctrl-C ends")
        show_samples(channel, out, args.count, stop, raw=args.raw)
    if channel.dropped:
        problem = f"{channel.dropped} samples were lost because they came faster than they could be printed"
        raise CliError(problem, "--raw into a file, or a narrower key expression", connection.AT_RISK)
    return 0


def _follow(session: Session, args: argparse.Namespace, out: Output, stop: connection.Stop) -> None:
    """Prints what was kept and what comes."""
    from elea.api.apierrors import ChannelClosed
    from elea.api.sinks import FifoChannel

    with session.declare_subscriber(
        args.keys[0],
        FifoChannel(CAPACITY),
        history=args.history,
        since=args.since,
        cursor=args.cursor,
        auto_commit=False,
        where=args.where,
    ) as subscriber:
        out.note(f"following {safe(str(subscriber.key_expr))}; Ctrl-C ends")
        printed = subscriber.commit if args.cursor is not None else None
        try:
            show_samples(subscriber.handler, out, args.count, stop, raw=args.raw, printed=printed)
        except ChannelClosed:
            subscriber.recv()  # which says why


def _pull(session: Session, args: argparse.Namespace, out: Output, stop: connection.Stop) -> None:
    """Prints what has come, or was kept, when told to, until the input ends."""
    from elea.api.pacedsubscriber import Pull

    kept = {"history": args.history, "since": args.since, "cursor": args.cursor, "auto_commit": False}
    kept["where"] = args.where
    subscribers = [session.declare_subscriber(key, mode=Pull(), **kept) for key in args.keys]
    out.note(f"subscribed to {', '.join(safe(str(one.key_expr)) for one in subscribers)}; Enter pulls, Ctrl-D ends")
    left = args.count
    while left is None or left > 0:
        with stop.waiting():
            if not sys.stdin.readline():
                break
        for subscriber in subscribers:
            samples = subscriber.pull(left) if left != 0 else []
            _show(samples, out, raw=args.raw)
            if args.cursor is not None:
                subscriber.commit()
            left = None if left is None else left - len(samples)
    dropped = sum(one.dropped for one in subscribers)
    if dropped:
        problem = f"{dropped} samples were lost because more than 10,000 waited"
        raise CliError(problem, "pull more often", connection.AT_RISK)


def show_samples(
    channel: Handler[Sample],
    out: Output,
    count: int | None,
    stop: connection.Stop,
    *,
    raw: bool = False,
    printed: Callable[[], object] | None = None,
) -> None:
    """Prints what comes through the channel, `count` samples or for ever; `printed` is called after each few."""
    left = count
    while left is None or left > 0:
        with stop.waiting():
            first = channel.recv()
        samples = [first, *channel.drain(BATCH if left is None else min(BATCH, left - 1))]
        _show(samples, out, raw=raw)
        if printed is not None:
            printed()
        if left is not None:
            left -= len(samples)


def _show(samples: list[Sample], out: Output, *, raw: bool) -> None:
    for sample in samples:
        if raw:
            sys.stdout.buffer.write(sample.payload.to_bytes())
        else:
            out.sample(sample)
    if raw:
        sys.stdout.buffer.flush()


def since(text: str) -> datetime | timedelta | int:
    """For argparse: a position, a time, or a duration before now."""
    from elea.model.errors import InvalidSelector
    from elea.model.timerange import TimeExpr

    if text.isdecimal():
        return int(text)
    try:
        ago = text[:1].isdecimal() and "T" not in text
        found = TimeExpr.parse(f"now({text})" if ago else text)
    except InvalidSelector as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a position, nor a duration, nor a time in UTC"
        ) from error
    span = timedelta(microseconds=found.ns // 1000)
    return span if ago else datetime(1970, 1, 1, tzinfo=UTC) + span
