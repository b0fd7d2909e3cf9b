"""`elea put`: one sample on a key."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from elea.cli import connection
from elea.cli.output import Output, safe, size_text
from elea.cli.style import CliError
from elea.model.errors import EleaError, NotStored, OperationTimeout, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from elea.api.receipt import Receipt

__all__ = [
    "add_arguments",
    "add_store_arguments",
    "qos_of",
    "receipt_form",
    "receipt_text",
    "run",
    "sent",
    "stored",
]

EPILOG: Final = """\
examples:
  elea put home/1/temp 21.5 -e tcp/127.0.0.1:7447
  elea put home/1/photo - --encoding image/png < photo.png
  elea put home/1/temp 21.5 --durability persistent --ack"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea put`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("key", metavar="KEY", type=connection.check_key, help="where to put it, such as home/1/temp")
    parser.add_argument("value", metavar="VALUE", help="the value; - reads it from standard input")
    parser.add_argument("--encoding", help="what the value is, such as text/plain or application/json")
    parser.add_argument("--attach", metavar="TEXT", help="send this along with the value")
    add_store_arguments(parser)
    connection.add_qos_arguments(parser)
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Puts the sample."""
    value = sys.stdin.buffer.read() if args.value == "-" else os.fsencode(args.value)
    attachment = None if args.attach is None else os.fsencode(args.attach)
    out = Output(args)
    with connection.open_session(connection.session_config(args)) as session:
        connection.need_neighbours(session)
        receipt = stored(
            lambda **options: session.put(
                args.key, value, encoding=args.encoding, attachment=attachment, **qos_of(args), **options
            ),
            args,
        )
        sent(session)
    out.form({"key": args.key, "kind": "put", "size": len(value), **receipt_form(receipt)})
    out.line(f"{out.style.paint('put', 'green')}  {safe(args.key)}  {size_text(len(value))}{receipt_text(receipt)}")
    return 0


def add_store_arguments(parser: argparse.ArgumentParser) -> None:
    """The options by which a broker keeps what is put or deleted."""
    kinds = ("persistent", "transient", "volatile")
    parser.add_argument("--durability", choices=kinds, help="have a broker keep it, on disk or in memory")
    parser.add_argument("--ack", action="store_true", help="end when the broker has it safe; say where it is")


def stored(put: Callable[..., Receipt | None], args: argparse.Namespace) -> Receipt | None:
    """Puts with the options for stores; ends the command if the sample was not acknowledged."""
    try:
        return put(durability=args.durability, ack=args.ack)
    except ValueError as error:
        if isinstance(error, EleaError):
            raise
        raise CliError(str(error), "--durability persistent --ack", 2) from error
    except NotStored as error:
        raise CliError(str(error), "elea broker --store DIR --persist KEYEXPR", connection.AT_RISK) from error
    except (StoreError, OperationTimeout) as error:
        raise CliError(
            f"not acknowledged: {error}", "look at the broker's log, then again", connection.AT_RISK
        ) from error


def receipt_form(receipt: Receipt | None) -> dict[str, object]:
    """What JSON says of a receipt."""
    if receipt is None:
        return {}
    return {"log": receipt.log, "epoch": receipt.epoch, "position": receipt.position}


def receipt_text(receipt: Receipt | None) -> str:
    """What people read of it."""
    return "" if receipt is None else f"  acknowledged, position {receipt.position} of log {safe(receipt.log)}"


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
