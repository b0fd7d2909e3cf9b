"""`elea info`: what is installed here, for bug reports and for the curious."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

from elea.cli.style import Style

__all__ = ["add_arguments", "run"]

EXTRAS: Final = {
    "compression": ("lz4",),
    "broker": ("uvloop",),
    "arrow": ("pyarrow", "numba"),
    "spark": ("pyspark", "pyarrow", "deltalake"),
    "uprotocol": ("google.protobuf",),
    "dds": ("cyclonedds",),
}
"""What each extra of the package is recognised by."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`elea info` has no options of its own."""


def run(args: argparse.Namespace) -> int:
    """Prints the facts."""
    facts = _facts()
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
        "elea": _own_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "decoders": "compiled" if compiled() else "interpreted",
        "dialects": {name: list(dialect_named(name).units) for name in names},
        "extras": {name: all(map(_present, modules)) for name, modules in EXTRAS.items()},
    }


def _own_version() -> str:
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
    if not isinstance(value, dict):
        return str(value)
    if all(isinstance(present, bool) for present in value.values()):
        return ", ".join(
            style.paint(name, "green") if on else style.paint(f"no {name}", "dim") for name, on in value.items()
        )
    return ("\n" + " " * 12).join(f"{name} ({', '.join(items)})" for name, items in value.items())
