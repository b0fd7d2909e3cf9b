"""`elea delete`: says that a key has no value any more."""

from __future__ import annotations

import argparse
import os
from typing import Final

from elea.cli import connection
from elea.cli.output import Output, safe
from elea.cli.put import add_store_arguments, qos_of, receipt_form, receipt_text, sent, stored

__all__ = ["add_arguments", "run"]

EPILOG: Final = "Subscribers get a sample of kind delete. example: elea delete home/1/temp -e tcp/127.0.0.1:7447"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea delete`."""
    parser.epilog = EPILOG
    parser.add_argument("key", metavar="KEY", type=connection.check_key, help="the key, or keys such as home/1/**")
    parser.add_argument("--attach", metavar="TEXT", help="send this along")
    add_store_arguments(parser)
    connection.add_qos_arguments(parser)
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Deletes the key."""
    attachment = None if args.attach is None else os.fsencode(args.attach)
    out = Output(args)
    with connection.open_session(connection.session_config(args)) as session:
        connection.need_neighbours(session)
        receipt = stored(
            lambda **options: session.delete(args.key, attachment=attachment, **qos_of(args), **options), args
        )
        sent(session)
    out.form({"key": args.key, "kind": "delete", **receipt_form(receipt)})
    out.line(f"{out.style.paint('deleted', 'red')}  {safe(args.key)}{receipt_text(receipt)}")
    return 0
