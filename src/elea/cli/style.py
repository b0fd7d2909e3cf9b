"""How the command speaks to people: colours on terminals, errors that say what to try.

Colours are those every terminal has, so that the user's own theme applies. `NO_COLOR` is obeyed.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import Final, TextIO

__all__ = ["STATUS", "CliError", "Style", "print_end", "print_error"]

CODES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


STATUS: Final = {
    0: ("done", "what was asked for was done"),
    1: ("no", "the answer is no: nothing was found, or the input is bad"),
    2: ("usage", "wrong options, arguments or configuration"),
    3: ("unreachable", "nobody could be reached"),
    4: ("refused", "somebody said no: a session, an address, a store that another process has"),
    5: ("at risk", "samples were lost, or stored data is damaged"),
    130: ("interrupted", "Ctrl-C ended it"),
}
"""The exit codes of every verb: the name by which `--json` tells them, and what they mean."""


class CliError(Exception):
    """Ends the command with `status`; `hint` is what to try instead."""

    def __init__(self, problem: str, hint: str, status: int = 1) -> None:
        super().__init__(problem)
        self.hint = hint
        self.status = status


@dataclass(frozen=True, slots=True)
class Style:
    """Paints text, or leaves it alone.

    >>> Style(on=True).paint("key", "cyan", "bold")
    '\\x1b[36;1mkey\\x1b[0m'
    """

    on: bool = False

    @staticmethod
    def for_stream(stream: TextIO, choice: str = "auto") -> Style:
        """The style for output to `stream` under `--color CHOICE`."""
        if choice != "auto":
            return Style(choice == "always")
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        return Style(not plain and stream.isatty())

    def paint(self, text: str, *names: str) -> str:
        """`text` in the colours and weights named."""
        if not self.on or not text:
            return text
        return f"\x1b[{';'.join(CODES[name] for name in names)}m{text}\x1b[0m"


def print_error(problem: str, hint: str, style: Style, *, status: int = 1, as_json: bool = False) -> None:
    """A problem on the error stream, and as last line what to try; with `--json` one object."""
    if as_json:
        form = {"error": STATUS[status][0], "status": status, "problem": problem, "hint": hint}
        print(json.dumps(form), file=sys.stderr)
        return
    print(style.paint(problem, "red"), file=sys.stderr)
    print(f"{style.paint('try:', 'bold')} {hint}", file=sys.stderr)


def print_end(text: str, style: Style, *, as_json: bool) -> None:
    """That Ctrl-C has ended the command: one line, whatever was on its way."""
    if as_json:
        print(json.dumps({"error": STATUS[130][0], "status": 130, "problem": text}), file=sys.stderr)
    else:
        print(style.paint(text, "dim"), file=sys.stderr)
