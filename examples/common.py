"""What all examples share: the options of the command line, and the configuration they make."""

from __future__ import annotations

import argparse
import importlib
import json
from typing import Any


def arguments(description: str, *, count: int, **options: dict[str, Any]) -> argparse.Namespace:
    """Parse the command line.

    Args:
        description: the first line of the help.
        count: how often the example does what it does before it ends; 0 for ever.
        options: further options by name, each with the words `argparse` takes.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--library", choices=("elea", "zenoh"), default="elea", help="which of the two to import")
    parser.add_argument("-m", "--mode", choices=("client", "peer", "router"), help="role of this node")
    parser.add_argument("-e", "--connect", action="append", default=[], metavar="LOCATOR", help="where to connect")
    parser.add_argument("-l", "--listen", action="append", default=[], metavar="LOCATOR", help="where to listen")
    parser.add_argument("--no-multicast-scouting", action="store_true", help="find nobody by multicast")
    parser.add_argument("--count", type=int, default=count, help=f"end after so many, 0 for never (default {count})")
    for name, words in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **words)
    return parser.parse_args()


def library(args: argparse.Namespace) -> Any:
    """The library asked for; everything else is the same for both."""
    return importlib.import_module(args.library)


def configuration(zenoh: Any, args: argparse.Namespace) -> Any:
    """A configuration as the command line says."""
    config = zenoh.Config()
    if args.mode:
        config.insert_json5("mode", json.dumps(args.mode))
    if args.connect:
        config.insert_json5("connect/endpoints", json.dumps(args.connect))
    if args.listen:
        config.insert_json5("listen/endpoints", json.dumps(args.listen))
    if args.no_multicast_scouting:
        config.insert_json5("scouting/multicast/enabled", "false")
    return config


def say(*words: object) -> None:
    """Print at once, also into a pipe; in one piece, since callbacks print too."""
    print(" ".join(map(str, words)) + "\n", end="", flush=True)


def numbers(count: int) -> Any:
    """0, 1, 2 … up to `count`, or for ever."""
    number = 0
    while not count or number < count:
        yield number
        number += 1


def wait_for_match(entity: Any, seconds: float = 10.0) -> bool:
    """Wait until somebody listens to a publisher or answers a querier."""
    import threading

    matched = threading.Event()

    def changed(status: Any) -> None:
        if status.matching:
            matched.set()

    entity.declare_matching_listener(changed)
    return entity.matching_status.matching or matched.wait(seconds)
