"""`elea put`: one sample on a key."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Final

from elea.cli import connection
from elea.cli.output import Output, safe, size_text
from elea.cli.style import CliError

__all__ = ["add_arguments", "qos_of", "run", "sent"]

EPILOG: Final = """\
examples:
  elea put home/1/temp 21.5 -e tcp/127.0.0.1:7447
  elea put home/1/photo - --encoding image/png < photo.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea put`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("key", metavar="KEY", type=connection.check_key, help="where to put it, such as home/1/temp")
    parser.add_argument("value", metavar="VALUE", help="the value; - reads it from standard input")
    parser.add_argument("--encoding", help="what the value is, such as text/plain or application/json")
    parser.add_argument("--attach", metavar="TEXT", help="send this along with the value")
    connection.add_qos_arguments(parser)
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Puts the sample."""
    value = sys.stdin.buffer.read() if args.value == "-" else os.fsencode(args.value)
    attachment = None if args.attach is None else os.fsencode(args.attach)
    out = Output(args)
    with connection.open_session(connection.session_config(args)) as session:
        connection.need_neighbours(session)
        session.put(args.key, value, encoding=args.encoding, attachment=attachment, **qos_of(args))
        sent(session)
    out.form({"key": args.key, "kind": "put", "size": len(value)})
    out.line(f"{out.style.paint('put', 'green')}  {safe(args.key)}  {size_text(len(value))}")
    return 0


def qos_of(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments that say how a sample travels."""
    from elea.model.qos import CongestionControl, Priority

    return {
        "priority": connection.member(Priority, args.priority),
        "congestion_control": connection.member(CongestionControl, args.congestion),
        "express": args.express,
    }


def sent(session: Any) -> None:
    """Ends the command if what was sent last was lost."""
    if connection.lost(session):
        problem = "the sample was dropped before it left this node"
        raise CliError(problem, "--congestion block, or a faster link", connection.AT_RISK)
