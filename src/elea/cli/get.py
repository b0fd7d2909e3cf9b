"""`elea get`: asks for what a selector names, and prints the replies."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from elea.cli import connection
from elea.cli.explain import where
from elea.cli.output import Output
from elea.cli.style import CliError

__all__ = ["add_arguments", "run"]

TARGETS: Final = ("best-matching", "all", "all-complete")
CONSOLIDATION: Final = ("auto", "none", "monotonic", "latest")

EPILOG: Final = """\
The exit code is 1 if no value came. examples:
  elea get home/1/temp -e tcp/127.0.0.1:7447
  elea get 'home/**?since=yesterday' --target all
  elea get home/1/photo --raw > photo.jpg
  elea get '@/*/router'                        what routers say of themselves"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea get`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "selector",
        metavar="SELECTOR",
        type=_selector,
        help="a key expression, with parameters if need be: 'home/*/temp?unit=C;max=5'",
    )
    parser.add_argument(
        "--target", choices=TARGETS, default="best-matching", help="whom to ask (default: best-matching)"
    )
    parser.add_argument("--timeout", type=connection.seconds, default=10.0, metavar="S", help="seconds (default: 10)")
    parser.add_argument(
        "--where", type=where, metavar="PREDICATE", help='only samples for which this holds: "speed > 2"'
    )
    parser.add_argument("--payload", metavar="TEXT", help="send this along with the question")
    parser.add_argument("--encoding", help="what the payload is, such as text/plain")
    parser.add_argument("--attach", metavar="TEXT", help="attach this to the question")
    parser.add_argument(
        "--consolidation",
        choices=CONSOLIDATION,
        default="auto",
        help="how several replies on one key become one (default: auto)",
    )
    parser.add_argument("--fields", action="store_true", help="print what payloads say, by their (declared) types")
    parser.add_argument("--raw", action="store_true", help="write the bytes of the values and nothing else")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the replies; 1 if none of them is a value."""
    from elea.model.qos import ConsolidationMode, QueryTarget

    if args.raw and args.json:
        raise CliError("--raw and --json contradict each other", "one of them", connection.USAGE)
    out = Output(args)
    values = errors = 0
    with connection.open_session(connection.session_config(args)) as session:
        connection.need_neighbours(session)
        out.contents = session._node.schemas.contents if args.fields else None
        replies = session.get(
            args.selector,
            target=connection.member(QueryTarget, args.target),
            consolidation=connection.member(ConsolidationMode, args.consolidation),
            timeout=args.timeout,
            payload=None if args.payload is None else os.fsencode(args.payload),
            encoding=args.encoding,
            attachment=None if args.attach is None else os.fsencode(args.attach),
            where=args.where,
        )
        for reply in replies:
            if not args.raw:
                out.reply(reply)
            elif reply.ok is not None:
                sys.stdout.buffer.write(reply.ok.payload.to_bytes())
            values += reply.ok is not None
            errors += reply.ok is None
    if values:
        return 0
    if errors:
        hint = "--timeout for more time, or ask whoever answered what is wrong"
        raise CliError(f"no value for {args.selector}, only errors", hint, connection.NO)
    hint = "a wider key expression, or somebody who answers: elea queryable KEY VALUE"
    raise CliError(f"nobody answered {args.selector}", hint, connection.NO)


def _selector(text: str) -> str:
    from elea.model.errors import InvalidKeyExpr, InvalidSelector
    from elea.model.selector import Selector

    try:
        Selector(text)
    except (InvalidKeyExpr, InvalidSelector) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text
