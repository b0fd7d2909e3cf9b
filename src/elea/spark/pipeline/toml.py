"""What `tomllib` says of a text that is no TOML, with what to do about it."""

from __future__ import annotations

import re
import tomllib
from typing import Final

from elea.spark.pipeline.problem import Problem

__all__ = ["problem"]

_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)")
_FIXES: Final = (
    ("twice", "give one of them another name"),
    ("Cannot overwrite", "the same name stands above: leave one of them out"),
    ("Invalid value", 'texts stand in quotes: format = "json"; true and false are written small'),
    ("Expected newline", 'texts stand in quotes: trigger = "2 seconds"; one entry a line'),
    ("Illegal character", 'close the quotes on the same line; for texts of several lines use """'),
    ("Unterminated string", "close the quotes"),
    ("Expected '='", 'entries look like this: name = "fleet"'),
    ("Unescaped", "write \\\\ for a backslash, or put the text in 'single quotes'"),
    ("Expected ']'", "tables look like this: [source.lights]"),
    ("Unclosed array", "close the list with ]"),
    ("Invalid statement", 'entries look like this: name = "fleet", tables like this: [source.lights]'),
)


def problem(error: tomllib.TOMLDecodeError, text: str) -> Problem:
    """The mistake, with its place."""
    said = str(error)
    found = _PLACE.search(said)
    what = _PLACE.sub("", said)
    fix = next((fix for word, fix in _FIXES if word in said), "the rules of TOML: toml.io")
    if found is None or found[1] is None:
        return Problem(text.count("\n") + 1, 1, f"this is no TOML: {what} at its end", fix)
    return Problem(int(found[1]), int(found[2]), f"this is no TOML: {what}", fix)
