"""`elea up`: uProtocol messages from the command line; one module an action."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any, Final

__all__ = ["add_arguments", "run"]

ACTIONS: Final = {
    "pub": "publish on a topic, or notify one entity with --to",
    "sub": "print messages as they come",
    "call": "call a method and print its answer",
    "decode": "show what addresses, keys, attachments and messages mean",
}

EPILOG: Final = """\
An address is written //authority/entity/version/resource, the numbers in hex. Wildcards are * for an authority, FFFF
for the type or instance of an entity, FF for a version, FFFF for a resource. elea up ACTION --help tells more.
examples:
  elea up sub -e tcp/127.0.0.1:7447
  elea up pub //vcu.my_vin/10AB/3/8001 '{"speed": 50}' --format json -e tcp/127.0.0.1:7447
  elea up call //vcu.my_vin/CD/4/B open --ttl 500 -e tcp/127.0.0.1:7447
  elea up decode 'up/vcu/10AB/0/3/80CD/{}/{}/{}/{}/{}'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea up`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in ACTIONS.items():
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        action.formatter_class = argparse.RawDescriptionHelpFormatter
        _module(name).add_arguments(action)
        # The verb has these, too. A default here would undo what was said before the action.
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON, a line each")
        action.add_argument(
            "--color", choices=("auto", "always", "never"), default=argparse.SUPPRESS, help="colours, as of all verbs"
        )


def run(args: argparse.Namespace) -> int:
    """Does what the action says."""
    return int(_module(args.action).run(args))


def _module(action: str) -> Any:
    return import_module(f"elea.cli.up_{action}")
