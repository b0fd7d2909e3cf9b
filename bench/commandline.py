"""What the benchmarks' command lines have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["add_common", "alternately", "positive", "progress"]


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options that every benchmark beside another library has."""
    parser.add_argument("--path", type=Path, help="directory with an installation of elea, e.g. a compiled one")
    parser.add_argument("--json", action="store_true", help="print one JSON object with the figures of all rounds")


def positive(text: str) -> int:
    """A number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def alternately(libraries: Sequence[str], number: int) -> Sequence[str]:
    """The libraries in the order of a round: nobody always comes second."""
    return libraries if number % 2 == 0 else libraries[::-1]


def progress(text: str) -> None:
    """What is being measured, where somebody looks."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text:60}\r")
        sys.stderr.flush()
