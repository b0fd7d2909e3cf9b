"""`elea queryable`: answers every question about a key with one value."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, clock_text, payload_form, safe, value_text

if TYPE_CHECKING:
    from elea.api.query import Query

__all__ = ["add_arguments", "run"]

EPILOG: Final = """\
Answers until Ctrl-C and prints the questions. example: elea queryable home/1/temp 21.5 -e tcp/127.0.0.1:7447"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea queryable`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "key", metavar="KEY", type=connection.check_key, help="the keys to answer for, such as home/1/temp or 'home/**'"
    )
    parser.add_argument("value", metavar="VALUE", help="the answer")
    parser.add_argument("--complete", action="store_true", help="say that nobody else need be asked about these keys")
    parser.add_argument("--encoding", help="what the value is, such as text/plain")
    parser.add_argument("-n", "--count", type=connection.positive, metavar="N", help="end after N questions")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Answers until it is enough."""
    out = Output(args)
    value = os.fsencode(args.value)
    answered = 0
    with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
        queryable = session.declare_queryable(args.key, complete=args.complete)
        if not connection.neighbours(session):
            out.note("no other node yet; waiting for one")
        out.note(f"answering {safe(args.key)}; Ctrl-C ends")
        while args.count is None or answered < args.count:
            with stop.waiting():
                query = queryable.recv()
            with query:
                _show(query, out)
                # Of several keys only the one asked about is sure to be among those the asker accepts.
                key = query.key_expr if "*" in args.key else args.key
                query.reply(key, value, encoding=args.encoding)
            answered += 1
    return 0


def _show(query: Query, out: Output) -> None:
    payload = None if query.payload is None else query.payload.to_bytes()
    form: dict[str, object] = {"event": "query", "selector": str(query.selector), "key": str(query.key_expr)}
    if payload is not None:
        form["payload"] = payload_form(payload)
    if query.attachment is not None:
        form["attachment"] = payload_form(query.attachment.to_bytes())
    out.form(form)
    paint = out.style.paint
    more = "" if payload is None else f"  {value_text(payload)}"
    out.line(f"{paint(clock_text(), 'dim')}  {paint(safe(str(query.selector)), 'cyan')}{more}")
