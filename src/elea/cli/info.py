"""`elea info`: what is installed here, for bug reports and for the curious; and what a session sees from here."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

from elea.cli import connection
from elea.cli.style import Style

__all__ = ["add_arguments", "own_version", "run"]

EXTRAS: Final = {
    "compression": ("lz4",),
    "broker": ("uvloop", "pyarrow"),
    "arrow": ("pyarrow", "numba"),
    "spark": ("pyspark", "pyarrow", "deltalake"),
    "recorder": ("mcap", "pyarrow", "numba"),
    "plot": ("mcap", "matplotlib"),
    "uprotocol": ("google.protobuf",),
    "dds": ("cyclonedds",),
}
"""What each extra of the package is recognised by."""


EPILOG: Final = """\
With any of the connection options a session is opened and shown too: its id, the routers and peers it is connected
to, and what it dropped. example: elea info -e tcp/127.0.0.1:7447"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea info`."""
    parser.epilog = EPILOG
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the facts."""
    facts = _facts()
    if args.connect or args.listen or args.config or args.mode or args.cfg:
        facts |= _session_facts(args)
    if args.json:
        print(json.dumps(facts))
        return 0
    style = Style.for_stream(sys.stdout, args.color)
    for name, value in facts.items():
        print(f"{style.paint(name.ljust(12), 'cyan')}{_text(style, value)}")
    return 0


def _facts() -> dict[str, object]:
    from elea.wire import compiled, dialect_named

    names = ("zenoh1", "zenoh2018", "xrce2017")
    return {
        "elea": own_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "decoders": "compiled" if compiled() else "interpreted",
        "dialects": {name: list(dialect_named(name).units) for name in names},
        "extras": {name: all(map(_present, modules)) for name, modules in EXTRAS.items()},
    }


def _session_facts(args: argparse.Namespace) -> dict[str, object]:
    with connection.open_session(connection.session_config(args)) as session:
        info = session.info
        return {
            "id": str(info.zid()),
            "routers": [str(id) for id in info.routers_zid()],
            "peers": [str(id) for id in info.peers_zid()],
            "listening": session._runtime.links.locators(),
            "sessions": [f"{one.dialect.name} {one.link.remote}" for one in list(session._runtime.links.connections)],
            "dropped": info.dropped(),
        }


def own_version() -> str:
    try:
        return version("elea")
    except PackageNotFoundError:
        return "from a source tree"


def _present(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above a dotted name is missing
        return False


def _text(style: Style, value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) or style.paint("none", "dim")
    if not isinstance(value, dict):
        return str(value)
    if all(isinstance(count, int) and not isinstance(count, bool) for count in value.values()):
        return ", ".join(f"{count} {name}" for name, count in value.items()) or "0"
    if all(isinstance(present, bool) for present in value.values()):
        return ", ".join(
            style.paint(name, "green") if on else style.paint(f"no {name}", "dim") for name, on in value.items()
        )
    return ("\n" + " " * 12).join(f"{name} ({', '.join(items)})" for name, items in value.items())
