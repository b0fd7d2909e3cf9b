"""Input of the byte tools: files or standard input, as hex lines, raw bytes or captures.

The format is known by the content: captures by their magic number, hex lines by being text, anything else is
raw. Everything is read piece by piece; a piece above the limit is refused, not held.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, NamedTuple, cast

from elea.cli.style import CliError
from elea.model.limits import CLI_UNIT_BYTES
from elea.wire.pcap.capture import looks_like_capture

__all__ = [
    "FORMATS",
    "NOT_HEX",
    "OVERSIZE",
    "BadInput",
    "Input",
    "RawUnit",
    "detect",
    "hex_units",
    "lines",
    "open_inputs",
    "parse_hex",
    "raw_units",
]

FORMATS: Final = ("auto", "hex", "raw", "pcap")

NOT_HEX: Final = "NOT_HEX"
OVERSIZE: Final = "OVERSIZE"

SEPARATORS: Final = b" \t:"
PREFIX: Final = re.compile(rb"(?:^|(?<=\s))0[xX]")
HEX_DIGITS: Final = frozenset(b"0123456789abcdefABCDEF")

# Bytes that never occur in text; NUL alone would miss short binary input.
CONTROL: Final = frozenset(range(32)) - frozenset(b"\t\n\r\f") | {127}


class RawUnit(NamedTuple):
    """The octets of one unit and where they came from, e.g. `trace.hex:12`."""

    where: str
    data: bytes


class BadInput(NamedTuple):
    """Input that is not even octets; `at` is the column, from 0."""

    where: str
    code: str
    at: int
    problem: str


class Input(NamedTuple):
    """An open input: its name for messages and its bytes."""

    name: str
    stream: io.BufferedReader


@contextmanager
def _opened(path: str) -> Iterator[Input]:
    if path == "-":
        stdin = cast(BinaryIO, sys.stdin.buffer)
        # Not closed: it is not ours.
        yield Input("-", stdin if isinstance(stdin, io.BufferedReader) else _buffered(stdin))
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed by the with below
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", "a file that exists, or - for standard input") from error
    with stream:
        yield Input(path, stream)


def _buffered(stream: BinaryIO) -> io.BufferedReader:
    return io.BufferedReader(cast(io.RawIOBase, stream))


def open_inputs(paths: list[str]) -> Iterator[Input]:
    """The inputs named, each closed when the next is asked for; none named means standard input."""
    for path in paths or ["-"]:
        with _opened(path) as source:
            yield source


def detect(stream: io.BufferedReader) -> str:
    """The format of what `stream` will give, without taking any of it."""
    head = stream.peek(4)
    if looks_like_capture(head):
        return "pcap"
    return "raw" if CONTROL.intersection(head) else "hex"


def lines(source: Input, limit: int = 2 * CLI_UNIT_BYTES) -> Iterator[tuple[str, bytes] | BadInput]:
    """The lines that hold something, with their place; `#` starts a comment at the beginning of a line."""
    number = 0
    while line := source.stream.readline(limit + 1):
        number += 1
        where = f"{source.name}:{number}"
        if len(line) > limit:
            _skip_line(source.stream, line)
            yield BadInput(where, OVERSIZE, limit, f"line above the limit of {limit} characters")
            continue
        text = line.strip()
        if text and not text.startswith(b"#"):
            yield where, text


def _skip_line(stream: io.BufferedReader, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = stream.readline(65_536)


def hex_units(source: Input) -> Iterator[RawUnit | BadInput]:
    """One unit per line; blanks, colons and 0x are tolerated, a lone 0x is the empty unit."""
    for line in lines(source):
        yield line if isinstance(line, BadInput) else parse_hex(*line)


def parse_hex(where: str, line: bytes) -> RawUnit | BadInput:
    """The octets of one line."""
    text = PREFIX.sub(b" ", line.partition(b"#")[0].replace(b":", b" "))
    try:
        # fromhex takes blanks between octets but not inside one, so "0x1 0x2" is not read as 12.
        return RawUnit(where, bytes.fromhex(text.decode("ascii")))
    except ValueError:  # covers UnicodeDecodeError
        return _not_hex(where, line)


def _not_hex(where: str, line: bytes) -> BadInput:
    at = next((i for i, c in enumerate(line) if c not in HEX_DIGITS and c not in SEPARATORS + b"xX"), -1)
    if at < 0:
        return BadInput(where, NOT_HEX, len(line), "an octet without its two hex digits")
    return BadInput(where, NOT_HEX, at, f"{line[at : at + 1].decode('latin-1')!r} is not a hex digit")


def raw_units(source: Input) -> Iterator[RawUnit | BadInput]:
    """The whole input as one unit."""
    data = source.stream.read(CLI_UNIT_BYTES + 1)
    if len(data) > CLI_UNIT_BYTES:
        problem = f"input above the limit of {CLI_UNIT_BYTES} octets for one unit"
        yield BadInput(source.name, OVERSIZE, CLI_UNIT_BYTES, problem)
    else:
        yield RawUnit(source.name, data)
