"""`elea up sub`: prints messages as they come."""

from __future__ import annotations

import argparse
from typing import Final

from elea.api.channels import Handler
from elea.cli import connection, up_entity
from elea.cli.output import Output, safe
from elea.cli.style import CliError
from elea.cli.sub import CAPACITY
from elea.cli.up_form import show_message
from elea.uprotocol import ANY_UURI, UMessage

__all__ = ["add_arguments", "run"]

EPILOG: Final = """\
Prints time, type, source → sink, format and payload until Ctrl-C. Samples that are no valid message are counted by
reason at the end. examples:
  elea up sub -e tcp/127.0.0.1:7447                              what everybody publishes
  elea up sub //vcu.my_vin/10AB/3/8001                           one topic
  elea up sub --to //phone/1/1/0                                 notifications and answers for one entity
  elea up sub --all --json                                       messages of all types"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea up sub`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "source", nargs="?", type=up_entity.uri, default=ANY_UURI, metavar="SOURCE", help="whose (default: everybody's)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--to", type=up_entity.uri, metavar="SINK", help="what is sent to it, instead of published")
    which.add_argument("--all", action="store_true", help="published or sent to anybody")
    parser.add_argument("-n", "--count", type=connection.positive, metavar="N", help="end after N messages")
    up_entity.add_entity(parser)
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints messages until there are enough of them."""
    out = Output(args)
    channel: Handler[UMessage] = Handler(CAPACITY)
    dropped: dict[str, int] = {}
    with connection.stoppable() as stop, up_entity.entity(args, args.entity, stop) as transport:
        for sink in (None, ANY_UURI) if args.all else (args.to,):
            transport.register_listener(args.source, sink, channel.push)
        if not connection.neighbours(transport.session):
            out.note("no other node yet; waiting for one")
        out.note(f"listening to {safe(str(args.source))}; Ctrl-C ends")
        try:
            left = args.count
            while left is None or left > 0:
                with stop.waiting():
                    message = channel.recv()
                show_message(out, message)
                left = None if left is None else left - 1
        finally:
            dropped = {reason: count for reason, count in transport.dropped.items() if count}
    if dropped:
        out.form({"dropped": dropped})
        out.note(f"no valid messages: {', '.join(f'{count} {reason}' for reason, count in dropped.items())}")
    if channel.dropped:
        problem = f"{channel.dropped} messages were lost because they came faster than they could be printed"
        raise CliError(problem, "a narrower SOURCE", connection.AT_RISK)
    return 0
