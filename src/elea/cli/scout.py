"""`elea scout`: which nodes answer in the local network, by multicast and without a session."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, safe
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.api.info import Hello

__all__ = ["add_arguments", "run"]

EPILOG: Final = """\
Prints each node once: what it is, its id, and where to connect to. The exit code is 1 if none answered.
example: elea scout --timeout 1 --what router"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea scout`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "--timeout", type=connection.seconds, default=3.0, metavar="S", help="seconds to listen for (default: 3)"
    )
    parser.add_argument(
        "--what", type=_matcher, default="router|peer", help="whom to look for (default: 'router|peer')"
    )
    parser.add_argument("-n", "--count", type=connection.positive, metavar="N", help="end after N nodes")
    parser.add_argument("-c", "--config", metavar="FILE", help="configuration, for its entries in scouting/multicast")
    parser.add_argument(
        "--cfg",
        action="append",
        type=connection.entry,
        default=[],
        metavar="KEY:VALUE",
        help="set one entry, such as scouting/multicast/interface:'\"eth0\"'; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    """Prints who answers; 1 if nobody does."""
    from elea.api import channels
    from elea.api.scout import scout
    from elea.model.errors import EleaError, OperationTimeout

    out = Output(args)
    config = connection.base_config(args)
    with connection.config_errors():
        for key, value in args.cfg:
            config.insert_json5(key, value)
    found: channels.Handler[Hello] = channels.Handler(1024)
    seen: set[str] = set()
    until = time.monotonic() + args.timeout
    with connection.stoppable():
        try:
            with scout(found.push, what=args.what, config=config):
                while (left := until - time.monotonic()) > 0 and len(seen) != args.count:
                    _show(found.recv(timeout=left), seen, out)
        except OperationTimeout:
            pass  # Time is up, which is how this ends.
        except EleaError as error:
            hint = "--cfg scouting/multicast/interface:'\"lo\"'   or another network interface"
            raise CliError(str(error), hint, connection.UNREACHABLE) from error
    if not seen:
        raise CliError(f"no node answered within {args.timeout:g} s", "elea broker   somewhere in this network", 1)
    return 0


def _show(hello: Hello, seen: set[str], out: Output) -> None:
    id = str(hello.zid)
    if id in seen:
        return
    seen.add(id)
    role = str(hello.whatami)
    out.form({"id": id, "role": role, "locators": list(hello.locators)})
    where = safe("  ".join(hello.locators))
    out.line(f"{out.style.paint(role.ljust(6), 'green')}  {id.ljust(32)}  {out.style.paint(where, 'cyan')}")


def _matcher(text: str) -> str:
    if not text or not set(text.split("|")) <= {"router", "peer", "client"}:
        raise argparse.ArgumentTypeError(f"{text!r} is not made of router, peer and client, parted by |")
    return text
