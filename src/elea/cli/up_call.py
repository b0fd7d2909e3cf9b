"""`elea up call`: calls a method and prints its answer."""

from __future__ import annotations

import argparse
import time
from typing import Final

from elea.cli import connection, up_entity
from elea.cli.output import Output, option_name, payload_form, safe, value_text
from elea.cli.up_entity import FORMATS
from elea.uprotocol import CallOptions, RpcClient, UCode, UPayload, UStatusError, UUri

__all__ = ["add_arguments", "run"]

PATIENCE: Final = 1.0
"""Seconds in which a server may become known: a session that was just opened has not been told of all servers yet."""

AGAIN: Final = 0.02

EPILOG: Final = """\
Prints the payload of the answer. The exit code is 1 if it is an error or did not come in time, 3 if nobody serves the
method. examples:
  elea up call //vcu.my_vin/CD/4/B open -e tcp/127.0.0.1:7447
  elea up call //vcu.my_vin/CD/4/B '{"door": 1}' --format json --ttl 500 --as //phone/1/1/0"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea up call`."""
    parser.epilog = EPILOG
    parser.add_argument("method", type=up_entity.uri, metavar="METHOD", help="such as //vcu.my_vin/CD/4/B")
    up_entity.add_message(parser)
    parser.add_argument("--token", help="what the server may ask for")
    up_entity.add_entity(parser)
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Calls, and prints the answer; 1 if it is an error."""
    payload, out = up_entity.payload_of(args), Output(args)
    given = up_entity.call_options(args)
    options = CallOptions(ttl=given.ttl, priority=given.priority, token=args.token)
    with up_entity.entity(args, args.entity) as transport, RpcClient(transport) as client:
        connection.need_neighbours(transport.session)
        try:
            answer, milliseconds = _call(client, args.method, payload, options)
        except UStatusError as error:
            out.form({"method": str(args.method), "code": option_name(error.code.name), "problem": str(error)})
            raise
    form = {} if answer is None else {"format": _format_name(answer.format), **payload_form(answer.data)}
    out.form({"method": str(args.method), "code": "ok", "milliseconds": round(milliseconds, 3), **form})
    out.line("(no payload)" if answer is None else value_text(answer.data))
    out.note(f"{safe(str(args.method))} answered in {milliseconds:.1f} ms")
    return 0


def _call(
    client: RpcClient, method: UUri, payload: UPayload | None, options: CallOptions
) -> tuple[UPayload | None, float]:
    """The answer and the milliseconds it took."""
    until = time.monotonic() + PATIENCE
    while True:
        began = time.monotonic()
        try:
            pending = client.start(method, payload, options)
        except UStatusError as error:
            # Nothing was sent yet, so asking again cannot call twice.
            if error.code is not UCode.UNAVAILABLE or began > until:
                raise
            time.sleep(AGAIN)
        else:
            return pending.result(), (time.monotonic() - began) * 1000


def _format_name(value: int) -> str | int:
    return next((name for name, form in FORMATS.items() if form == value), value)
