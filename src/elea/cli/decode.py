"""`elea decode`: recorded bytes shown field by field, or as the JSON form of the vectors.

With `--json` each unit is one object: its decoded form, or `{"error", "at", "dialect", "problem"}`. In a
capture that would not say who spoke: there the form is put in `{"time", "src", "dst", "decoded"}`, and errors
get the same three members in front.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from elea.cli import inputs
from elea.cli.output import time_text
from elea.cli.style import CliError, Style, print_error
from elea.model.errors import DecodeError

if TYPE_CHECKING:
    from elea.wire.dialect import Dialect, Json
    from elea.wire.traffic import Ports

__all__ = ["add_arguments", "run"]

DIALECTS: Final = ("zenoh1", "zenoh2018", "xrce2017")

EPILOG: Final = """\
Hex lines hold one unit each; blanks, colons, 0x and # comments are ignored, a lone 0x is the empty unit. Raw input
is one unit. In captures, TCP streams on port 7447 and UDP datagrams are taken, the framing follows each session's
handshake, and --json prints {"time", "src", "dst", "decoded"}. A bad unit is {"error", "at", "dialect", "problem"}
and makes the exit code 1."""


class Origin(NamedTuple):
    """When and between whom a captured unit went."""

    time: str | None
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Item:
    """One unit to show: its octets, or the reason why there are none."""

    where: str
    unit: str
    data: bytes
    origin: Origin | None = None
    error: DecodeError | None = None


class NotOctets(DecodeError):
    """A line that is not hex; `at` is the column."""

    code = inputs.NOT_HEX


class TooLong(DecodeError):
    """Input too long to be one unit."""

    code = inputs.OVERSIZE


def add_dialect_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that `decode` and `encode` share."""
    parser.add_argument("--dialect", choices=DIALECTS, default=DIALECTS[0], help="wire language (default: zenoh1)")
    parser.add_argument("--unit", help="what each piece of bytes is (default: batch for zenoh1, packet for the others)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea decode`."""
    parser.epilog = EPILOG
    add_dialect_arguments(parser)
    parser.add_argument("--full", action="store_true", help="show long payloads whole")
    parser.add_argument("--input", choices=inputs.FORMATS, default="auto", help="input format (default: by content)")
    parser.add_argument(
        "--port",
        action="append",
        default=[],
        type=_port,
        metavar="N|all",
        help="in captures, take this port for Zenoh's instead of 7447; may be repeated",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="files to read (default: standard input)")


def run(args: argparse.Namespace) -> int:
    """Decodes all inputs; 1 if anything in them was bad."""
    dialect, unit = find_dialect(args.dialect, args.unit)
    show = _JsonShow(dialect, args.full) if args.json else _HumanShow(dialect, Style.for_stream(sys.stdout, args.color))
    bad: list[Item] = []
    for item in _items(args, dialect, unit):
        if not show.item(item) and len(bad) < 2:
            bad.append(item)
    if not bad:
        return 0
    problem = f"elea decode: bad input at {bad[0].where}" + (" and elsewhere" if len(bad) > 1 else "")
    style = Style.for_stream(sys.stderr, args.color)
    print_error(problem, _hint(bad[0], dialect, args), style, as_json=args.json)
    return 1


def find_dialect(name: str, unit: str | None) -> tuple[Dialect, str]:
    """The dialect and unit asked for; raises CliError for a unit that the dialect has not."""
    from elea.wire import dialect_named

    dialect = dialect_named(name)
    if unit is not None and unit not in dialect.units:
        raise CliError(f"{name} has no unit {unit!r}", f"--unit {' | '.join(dialect.units)}", status=2)
    return dialect, unit or dialect.units[0]


def _port(text: str) -> int:
    if text == "all":
        return 0
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a port number nor 'all'")
    return int(text)


# -- where units come from -----------------------------------------------------------------------------------


def _items(args: argparse.Namespace, dialect: Dialect, unit: str) -> Iterator[Item]:
    for source in inputs.open_inputs(args.files):
        kind = inputs.detect(source.stream) if args.input == "auto" else args.input
        if kind == "pcap":
            yield from _captured_items(source, dialect, args.port)
            continue
        units = inputs.hex_units(source) if kind == "hex" else inputs.raw_units(source)
        for found in units:
            if isinstance(found, inputs.BadInput):
                error = NotOctets if found.code == inputs.NOT_HEX else TooLong
                yield Item(found.where, unit, b"", error=error(dialect.name, found.at, found.problem))
            else:
                yield Item(found.where, unit, found.data)


def _captured_items(source: inputs.Input, dialect: Dialect, ports: list[int]) -> Iterator[Item]:
    from elea.wire.traffic import Traffic

    traffic = Traffic(dialect, _ports(ports))
    number = 0
    try:
        for found in traffic.units(source.stream):
            number += 1
            origin = Origin(time_text(found.time), found.flow.source_text, found.flow.target_text)
            yield Item(f"{source.name}:{number}", found.unit, found.data, origin, found.error)
    except DecodeError as error:
        yield Item(source.name, "pcap", b"", error=error)


def _ports(ports: list[int]) -> Ports:
    from elea.wire.traffic import Ports

    return Ports(frozenset(ports) - {0}, every=0 in ports)


# -- how they are shown --------------------------------------------------------------------------------------


class _JsonShow:
    def __init__(self, dialect: Dialect, full: bool) -> None:
        self._dialect = dialect
        self._full = full

    def item(self, item: Item) -> bool:
        """Prints one line; false if the item was bad."""
        error = item.error
        form: Json = None
        if error is None:
            try:
                value = self._dialect.decode(item.unit, item.data)
                form = self._dialect.to_json(item.unit, value, full=self._full)
            except DecodeError as problem:
                error = problem
        print(json.dumps(_envelope(item.origin, form, error)))
        return error is None


def _envelope(origin: Origin | None, form: Json, error: DecodeError | None) -> Json:
    outer: dict[str, Json] = {}
    if origin is not None:
        outer = {"time": origin.time, "src": origin.source, "dst": origin.target}
    if error is not None:
        outer |= {"error": error.code, "at": error.at, "dialect": error.dialect, "problem": error.problem}
        return outer
    return outer | {"decoded": form} if origin is not None else form


class _HumanShow:
    def __init__(self, dialect: Dialect, style: Style) -> None:
        self._dialect = dialect
        self._style = style
        self._first = True

    def item(self, item: Item) -> bool:
        """Prints a dissection; false if the item was bad."""
        from elea.cli.dissection import error_line, field_lines, heading

        if not self._first:
            print()
        self._first = False
        print(heading(self._style, _title(item, self._dialect.name), _facts(item)))
        if item.error is not None:
            print(error_line(self._style, item.error))
            return False
        fields = self._dialect.dissect(item.unit, item.data)
        print("\n".join(field_lines(self._style, item.data, fields)))
        return all(field.error is None for field in fields)


def _title(item: Item, dialect: str) -> str:
    return f"{item.where}  {dialect} {item.unit}"


def _facts(item: Item) -> str:
    size = f"{len(item.data)} octet{'' if len(item.data) == 1 else 's'}"
    if item.origin is None:
        return size
    return f"{size}  {item.origin.time or 'no time'}  {item.origin.source} → {item.origin.target}"


# -- what to try ---------------------------------------------------------------------------------------------


def _hint(item: Item, dialect: Dialect, args: argparse.Namespace) -> str:
    if isinstance(item.error, TooLong):
        return "a capture, or hex lines of one unit each"
    if isinstance(item.error, NotOctets):
        return "hex digits, one unit per line, or --input raw for bytes"
    if item.error is not None and item.error.dialect == "pcap":
        return "a capture saved as pcap or pcapng, and not cut short"
    if item.origin is not None and item.error is not None and item.error.code == "GAP":
        return "a larger buffer and whole packets when capturing: tcpdump -B 65536 -s 0 -w FILE port 7447"
    if item.origin is not None:
        return "--port N if Zenoh uses another port, or --dialect zenoh2018 or xrce2017"
    from elea.wire import dialect_named

    # The bytes are often fine and only their kind was misjudged: see which kinds they would be.
    fits = [
        f"--dialect {name} --unit {unit}" if name != dialect.name else f"--unit {unit}"
        for name in (dialect.name, *DIALECTS)
        for unit in dialect_named(name).units
        if unit != "vle" and _decodes(dialect_named(name), unit, item.data)
    ]
    if fits:
        return f"{fits[0]}, as which these octets do decode"
    return "the octets after the length prefix, or --unit stream with it; --unit and --dialect say what they are"


def _decodes(dialect: Dialect, unit: str, data: bytes) -> bool:
    try:
        dialect.decode(unit, data)
    except DecodeError:
        return False
    return True
