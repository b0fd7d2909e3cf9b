"""`elea liveliness`: tokens that live as long as this command, who has some, and when they come and go."""

from __future__ import annotations

import argparse
import threading
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, clock_text, safe
from elea.cli.style import CliError
from elea.cli.sub import CAPACITY

if TYPE_CHECKING:
    from elea.api.channels import Handler
    from elea.api.sample import Sample

__all__ = ["add_arguments", "run"]

EPILOG: Final = """\
token  declares a token on KEY and holds it until Ctrl-C; when this command ends, however it ends, the token is gone
get    prints the tokens there are; the exit code is 1 if there are none
sub    prints a put for each token that appears and a delete for each that goes

examples:
  elea liveliness token robots/r2d2 -e tcp/127.0.0.1:7447
  elea liveliness sub 'robots/*' --history -e tcp/127.0.0.1:7447"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea liveliness`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=("token", "get", "sub"), help="what to do; see below")
    parser.add_argument("key", metavar="KEY", type=connection.check_key, help="the keys of the tokens")
    parser.add_argument("--history", action="store_true", help="sub: begin with the tokens that are there")
    parser.add_argument("-n", "--count", type=connection.positive, metavar="N", help="sub: end after N changes")
    parser.add_argument(
        "--timeout", type=connection.seconds, default=10.0, metavar="S", help="get: seconds to wait (default: 10)"
    )
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Does what `action` says."""
    action = {"token": _token, "get": _get, "sub": _sub}[args.action]
    return action(args, Output(args))


def _token(args: argparse.Namespace, out: Output) -> int:
    with (
        connection.stoppable() as stop,
        connection.open_session(connection.session_config(args), stop) as session,
        session.liveliness().declare_token(args.key),
    ):
        out.form({"event": "token declared", "key": args.key})
        out.line(f"{out.style.paint('alive', 'green')}  {safe(args.key)}  until Ctrl-C")
        with stop.waiting():
            threading.Event().wait()
    return 0


def _get(args: argparse.Namespace, out: Output) -> int:
    found = 0
    with connection.open_session(connection.session_config(args)) as session:
        connection.need_neighbours(session)
        for reply in session.liveliness().get(args.key, timeout=args.timeout):
            if reply.ok is None:
                out.reply(reply)
                continue
            found += 1
            key = str(reply.ok.key_expr)
            out.form({"key": key, "alive": True})
            out.line(f"{out.style.paint('alive', 'green')}  {safe(key)}")
    if not found:
        raise CliError(f"no token on {args.key}", "elea liveliness token KEY   on the side that should be alive")
    return 0


def _sub(args: argparse.Namespace, out: Output) -> int:
    from elea.api import channels

    channel: Handler[Sample] = channels.Handler(CAPACITY)
    with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
        subscriber = session.liveliness().declare_subscriber(args.key, channel.push, history=args.history)
        out.note(f"watching tokens on {safe(str(subscriber.key_expr))}; Ctrl-C ends")
        _show_changes(channel, out, args.count, stop)
    return 0


def _show_changes(channel: Handler[Sample], out: Output, count: int | None, stop: connection.Stop) -> None:
    paint = out.style.paint
    seen = 0
    while count is None or seen < count:
        with stop.waiting():
            sample = channel.recv()
        key, alive = str(sample.key_expr), sample.kind.name == "PUT"
        state = paint("alive", "green") if alive else paint("gone ", "red")
        out.form({"key": key, "alive": alive})
        out.line(f"{paint(clock_text(), 'dim')}  {state}  {safe(key)}")
        seen += 1
