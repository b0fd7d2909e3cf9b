"""`elea metrics`: the counters of routers, as OpenMetrics text."""

from __future__ import annotations

import argparse
import gzip
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, safe
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.api.sample import Sample

__all__ = ["add_arguments", "run"]

SELECTOR: Final = "@/*/router/metrics?compression=false"
LARGEST: Final = 64 << 20
"""Bytes of a page that came compressed, at most."""

EPILOG: Final = """\
Asks every router that the session reaches. examples:
  elea metrics -e tcp/127.0.0.1:7447
  elea metrics -e tcp/127.0.0.1:7447 --match dropped"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea metrics`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--match", metavar="TEXT", default="", help="only lines that have this in them")
    parser.add_argument("--timeout", type=connection.seconds, default=10.0, metavar="S", help="seconds (default: 10)")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the pages; 1 if there is none."""
    out = Output(args)
    pages = 0
    with connection.open_session(connection.session_config(args)) as session:
        connection.need_neighbours(session)
        for reply in session.get(SELECTOR, timeout=args.timeout):
            if reply.ok is not None:
                pages += 1
                _show(str(reply.ok.key_expr).split("/")[1], page_of(reply.ok), args.match, out)
    if not pages:
        hint = "a router with adminspace/enabled, as elea broker is: -e LOCATOR"
        raise CliError("no router told its counters", hint, connection.NO)
    return 0


def page_of(sample: Sample) -> str:
    """The text of a page, which some nodes send compressed whatever they are asked for."""
    data = sample.payload.to_bytes()
    if data[:2] == b"\x1f\x8b":
        import io

        with gzip.open(io.BytesIO(data)) as file:
            data = file.read(LARGEST)
    return data.decode("utf-8", "replace")


def _show(node: str, page: str, match: str, out: Output) -> None:
    for line in page.splitlines():
        if match not in line or line == "# EOF":
            continue
        out.line(safe(line))
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#"):
            out.form({"node": node, "name": name, "value": _number(value)})


def _number(text: str) -> float | int | str:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text
