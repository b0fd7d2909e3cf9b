"""The `elea` command: one module per verb, found by name and imported only when asked for.

A verb's module offers `add_arguments(parser)` and `run(args) -> int`. The exit codes are in `elea.cli.style.STATUS`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, NoReturn

from elea.cli.style import STATUS, CliError, Style, print_end, print_error

__all__ = ["main", "parser_of"]

VERBS: Final = {
    "demo": "show the best Elea can do, in under a minute",
    "broker": "run a router, where clients and peers meet",
    "put": "put a value on a key",
    "delete": "delete a key",
    "get": "ask for the values of keys",
    "sub": "print the samples put to keys, as they come",
    "pub": "put samples on a key again and again",
    "explain": "show what a predicate means and where it runs",
    "schema": "declare types of payloads, and list what is declared",
    "queryable": "answer questions about keys",
    "liveliness": "declare, list and watch tokens that say who is alive",
    "ping": "measure how long a sample takes there and back",
    "scout": "look for nodes in the network",
    "trace": "show every message between two nodes, from between them",
    "capture": "record the samples put to keys into a file, with lag and drops",
    "replay": "put the samples of captures again, at their pace or as fast as possible",
    "plot": "draw values over time, of captures or as they come",
    "store": "look into the logs of a broker, check them, and move them",
    "offsets": "print where the logs of a broker begin and end, for Spark",
    "up": "publish, receive and call over uProtocol, and show what its bytes mean",
    "pipeline": "run, check and draw pipelines: from the data space to tables and back",
    "check-config": "check a configuration file",
    "decode": "show what recorded bytes mean: hex lines, raw bytes, pcap and pcapng captures",
    "encode": "turn the JSON form of messages back into bytes",
    "key": "compare two key expressions, or check one",
    "conformance": "check whether an endpoint keeps to the early protocol, requirement by requirement",
    "metrics": "print the counters of routers, as text",
    "completion": "print a script that completes this command in bash, zsh or fish",
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
    wanted = _verb(words)
    name = f"elea {wanted}" if wanted in VERBS else "elea"
    try:
        if not words:
            _parser(words).print_help()
            return 0
        args = _parser(words).parse_args(words)
        status = int(_module(args.verb).run(args))
        sys.stdout.flush()
    except SystemExit as end:  # argparse ends the program for --help and --version
        return end.code if isinstance(end.code, int) else 2
    except CliError as error:
        style = Style.for_stream(sys.stderr, _option(words, "--color") or "auto")
        print_error(f"{name}: {error}", error.hint, style, status=error.status, as_json="--json" in words)
        return error.status
    except BrokenPipeError:
        return _reader_left()
    except KeyboardInterrupt:
        style = Style.for_stream(sys.stderr, _option(words, "--color") or "auto")
        print_end(f"{name}: interrupted", style, as_json="--json" in words)
        return INTERRUPTED
    return status


def _verb(words: Sequence[str]) -> str | None:
    return next((word for word in words if not word.startswith("-")), None)


class _Parser(argparse.ArgumentParser):
    """Wrong usage is an error like all others: one line, and what to try; `--help` prints the usage."""

    def error(self, message: str) -> NoReturn:
        raise CliError(message, f"{self.prog} --help", 2)


class _Version(argparse.Action):
    """`--version`, which looks for it only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from elea.cli.info import own_version

        print(f"elea {own_version()}")
        parser.exit()


def _option(words: Sequence[str], name: str) -> str | None:
    """The value of an option, also where the rest of the line made no sense."""
    found = [after for word, after in pairwise(words) if word == name]
    return next((word.partition("=")[2] for word in words if word.startswith(f"{name}=")), found[0] if found else None)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    codes = "; ".join(f"{code} {meaning}" for code, (_, meaning) in STATUS.items())
    parser = _Parser(
        prog="elea",
        description="The Zenoh data space: run it, use it, look into it.",
        epilog=f"exit codes: {codes}",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and end")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    wanted = _verb(words)
    if wanted is not None and wanted not in VERBS:
        from difflib import get_close_matches

        close = get_close_matches(wanted, VERBS, n=1, cutoff=0.5)
        raise CliError(f"there is no verb {wanted!r}", f"elea {close[0]}" if close else "elea --help", 2)
    for name, text in VERBS.items():
        verb = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        if name == wanted:
            _add_arguments(name, verb)
    return parser


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a verb."""
    parser = _Parser(prog=f"elea {name}", allow_abbrev=False)
    _add_arguments(name, parser)
    return parser


def _add_arguments(name: str, verb: argparse.ArgumentParser) -> None:
    # Only the verb in use is imported: the command must start fast, and must start at all when an extra that another
    # verb needs is missing.
    _module(name).add_arguments(verb)
    verb.add_argument("--json", action="store_true", help="print one JSON object per line, nothing else")
    verb.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colours (default: on a terminal)"
    )


def _module(verb: str) -> Any:
    return import_module(f"elea.cli.{verb.replace('-', '_')}")


def _reader_left() -> int:
    """Whoever read our output has enough: that is no error, but Python would complain again at exit."""
    from os import devnull

    sys.stdout = open(devnull, "w")  # noqa: SIM115 - stays open until the process ends
    return 0
