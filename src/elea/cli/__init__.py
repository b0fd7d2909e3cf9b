"""The `elea` command: one module per verb, found by name and imported only when asked for.

A verb's module offers `add_arguments(parser)` and `run(args) -> int`. Exit codes: 0 done, 1 negative answer
or bad input, 2 usage, 3 cannot reach, 4 refused, 5 data at risk.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from elea.cli.style import CliError, Style, print_error

__all__ = ["main"]

VERBS: Final = {
    "demo": "show the best Elea can do, in under a minute",
    "broker": "run a router, where clients and peers meet",
    "put": "put a value on a key",
    "delete": "delete a key",
    "get": "ask for the values of keys",
    "sub": "print the samples put to keys, as they come",
    "pub": "put samples on a key again and again",
    "explain": "show what a predicate means and where it runs",
    "queryable": "answer questions about keys",
    "liveliness": "declare, list and watch tokens that say who is alive",
    "ping": "measure how long a sample takes there and back",
    "scout": "look for nodes in the network",
    "trace": "show every message between two nodes, from between them",
    "store": "look into the logs of a broker, check them, and move them",
    "up": "publish, receive and call over uProtocol, and show what its bytes mean",
    "pipeline": "run, check and draw pipelines: from the data space to tables and back",
    "check-config": "check a configuration file",
    "decode": "show what recorded bytes mean: hex lines, raw bytes, pcap and pcapng captures",
    "encode": "turn the JSON form of messages back into bytes",
    "key": "compare two key expressions, or check one",
    "info": "show versions, what this installation can do, and what a session sees",
}

INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (without the program's name) and returns its exit code.

    >>> main(["key", "a/*", "a/b"])
    a/*  includes  a/b
    reason   chunk 2: '*' matches 'b'
    witness  a/b
    0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        args = _parser(words).parse_args(words)
    except SystemExit as end:  # argparse ends the program for --help and for wrong usage
        return end.code if isinstance(end.code, int) else 2
    try:
        status = int(_module(args.verb).run(args))
        sys.stdout.flush()
    except CliError as error:
        print_error(f"elea {args.verb}: {error}", error.hint, Style.for_stream(sys.stderr, args.color))
        return error.status
    except BrokenPipeError:
        return _reader_left()
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="elea", description="The Zenoh data space: run it, use it, look into it.", allow_abbrev=False
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    wanted = next((word for word in words if not word.startswith("-")), None)
    for name, text in VERBS.items():
        verb = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        if name == wanted:
            # Only the verb in use is imported: the command must start fast, and must start at all when an
            # extra that another verb needs is missing.
            _module(name).add_arguments(verb)
            verb.add_argument("--json", action="store_true", help="print one JSON object per line, nothing else")
            verb.add_argument(
                "--color",
                choices=("auto", "always", "never"),
                default="auto",
                help="colours (default: on a terminal)",
            )
    return parser


def _module(verb: str) -> Any:
    return import_module(f"elea.cli.{verb.replace('-', '_')}")


def _reader_left() -> int:
    """Whoever read our output has enough: that is no error, but Python would complain again at exit."""
    from os import devnull

    sys.stdout = open(devnull, "w")  # noqa: SIM115 - stays open until the process ends
    return 0
