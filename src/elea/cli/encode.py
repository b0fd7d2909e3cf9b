"""`elea encode`: the inverse of `elea decode --json`. JSON lines in, hex lines (or bytes) out."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Final

from elea.cli import inputs
from elea.cli.decode import add_dialect_arguments, find_dialect
from elea.cli.style import CliError, Style, print_error
from elea.model.errors import EncodeError

if TYPE_CHECKING:
    from elea.wire.dialect import Dialect

__all__ = ["add_arguments", "run"]

NOT_JSON: Final = "NOT_JSON"
CANNOT_ENCODE: Final = "CANNOT_ENCODE"


class _Refused(Exception):
    def __init__(self, code: str, at: int, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.code = code
        self.at = at
        self.hint = hint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea encode`."""
    add_dialect_arguments(parser)
    parser.add_argument("--raw", action="store_true", help="write bytes instead of hex lines")
    parser.add_argument("files", nargs="*", metavar="FILE", help="files to read (default: standard input)")


def run(args: argparse.Namespace) -> int:
    """Encodes all lines; 1 if any was bad. A bad line gives a message in place of output."""
    if args.raw and args.json:
        raise CliError("--raw and --json contradict each other", "one of them", status=2)
    dialect, unit = find_dialect(args.dialect, args.unit)
    last: tuple[str, _Refused] | None = None
    for source in inputs.open_inputs(args.files):
        for line in inputs.lines(source):
            where = line.where if isinstance(line, inputs.BadInput) else line[0]
            try:
                data = _encode(dialect, unit, line)
            except _Refused as refused:
                if last is not None and not args.json:
                    print(f"elea encode: {last[0]}: {last[1]}", file=sys.stderr)
                last = where, refused
                if args.json:
                    _print_refusal(dialect, refused)
            else:
                _write(data, args)
    if last is None:
        return 0
    style = Style.for_stream(sys.stderr, args.color)
    print_error(f"elea encode: {last[0]}: {last[1]}", last[1].hint, style, as_json=args.json)
    return 1


def _encode(dialect: Dialect, unit: str, line: tuple[str, bytes] | inputs.BadInput) -> bytes:
    if isinstance(line, inputs.BadInput):
        raise _Refused(line.code, line.at, line.problem, "shorter lines, one JSON value each")
    try:
        form = json.loads(line[1])
    except json.JSONDecodeError as error:
        raise _Refused(NOT_JSON, error.pos, error.msg, "one JSON value per line, as printed by decode") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of thousands of digits, deep nesting
        raise _Refused(NOT_JSON, 0, "not a JSON text", "one JSON value per line, in UTF-8") from error
    try:
        return dialect.encode(unit, dialect.from_json(unit, form))
    except EncodeError as error:
        hint = f"the form printed by: elea decode --json --full --dialect {dialect.name} --unit {unit}"
        raise _Refused(CANNOT_ENCODE, 0, str(error), hint) from error


def _print_refusal(dialect: Dialect, refused: _Refused) -> None:
    form = {"error": refused.code, "at": refused.at, "dialect": dialect.name, "problem": str(refused)}
    print(json.dumps(form))


def _write(data: bytes, args: argparse.Namespace) -> None:
    if args.raw:
        sys.stdout.buffer.write(data)
    elif args.json:
        print(json.dumps({"hex": data.hex()}))
    else:
        # An empty unit would be a blank line, which reads as nothing; decode takes a lone 0x for it.
        print(data.hex() or "0x")
