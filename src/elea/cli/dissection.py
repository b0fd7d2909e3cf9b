"""The human form of decoded bytes: one line per field, with offsets, octets, name and value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from elea.cli.output import safe
from elea.cli.style import Style
from elea.model.errors import DecodeError
from elea.wire.dialect import Field

__all__ = ["error_line", "field_lines", "heading"]

OCTETS: Final = 8
"""Octets shown of each field; enough for all but texts, payloads and node ids."""

RANGE_WIDTH: Final = 11
HEX_WIDTH: Final = 3 * OCTETS + 1
NAME_WIDTH: Final = 24
VALUE_WIDTH: Final = 200


def heading(style: Style, title: str, facts: str) -> str:
    """The line above a unit."""
    return f"{style.paint(title, 'bold')}  {style.paint(facts, 'dim')}"


def field_lines(style: Style, data: bytes, fields: list[Field]) -> Iterator[str]:
    """The lines of one unit."""
    for field in fields:
        if field.error is not None:
            yield error_line(style, field.error)
        else:
            yield _field_line(style, data, field)


def error_line(style: Style, error: DecodeError) -> str:
    """The line that ends a unit which cannot be read further."""
    place = f"{error.at}".rjust(RANGE_WIDTH)
    return f"{style.paint(place, 'red')}  {style.paint(f'{error.code}: {error.problem}', 'red', 'bold')}"


def _field_line(style: Style, data: bytes, field: Field) -> str:
    indent = "  " * field.depth
    place = _place(field.start, field.end)
    octets = _octets(data, field.start, field.end)
    # A group spells no octets of its own: its parts follow with theirs.
    name_colours = ("cyan",) if field.text else ("green", "bold")
    name = style.paint(field.name, *name_colours) + " " * max(1, NAME_WIDTH - len(indent) - len(field.name))
    line = f"{style.paint(place.rjust(RANGE_WIDTH), 'dim')}  {style.paint(octets.ljust(HEX_WIDTH), 'yellow')}"
    return f"{line}  {indent}{name}{_value(field.text)}".rstrip()


def _place(start: int, end: int) -> str:
    """The octets from first to last; nothing for what has none of its own, such as a group of bits."""
    if end <= start:
        return ""
    return f"{start}" if end == start + 1 else f"{start}-{end - 1}"


def _octets(data: bytes, start: int, end: int) -> str:
    shown = data[start : min(end, start + OCTETS)].hex(" ")
    return f"{shown} …" if end - start > OCTETS else shown


def _value(text: str) -> str:
    """Control characters would let a message repaint the terminal; they are shown as escapes."""
    shown = safe(text)
    return shown if len(shown) <= VALUE_WIDTH else f"{shown[: VALUE_WIDTH - 1]}…"
