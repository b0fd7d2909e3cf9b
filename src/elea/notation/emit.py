"""Lines of Python being written: indentation, wrapping, and fresh names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["WIDTH", "Lines", "call"]

WIDTH = 110


class Lines:
    """Source text under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, line: str = "") -> None:
        self.lines.append("    " * self.depth + line if line else "")

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        self(line)
        self.depth += 1
        yield
        self.depth -= 1

    def wrapped(self, head: str, items: list[str], tail: str) -> None:
        """`head`, comma-separated `items`, `tail`: on one line if it fits, else one item a line."""
        line = head + ", ".join(items) + tail
        if 4 * self.depth + len(line) <= WIDTH:
            self(line)
            return
        self(head)
        self.depth += 1
        for item in items:
            self(f"{item},")
        self.depth -= 1
        self(tail)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def call(function: str, *arguments: str) -> str:
    """Source of a call."""
    return f"{function}({', '.join(arguments)})"
