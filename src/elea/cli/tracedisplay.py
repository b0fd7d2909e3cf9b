"""How a trace is shown: a line for each message, every field of it, or JSON; of several connections at once."""

from __future__ import annotations

import argparse
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from elea.cli.output import Output, clock_text, safe, size_text, value_text

if TYPE_CHECKING:
    from elea.cli.conversation import Conversation, Seen

__all__ = ["Showing"]

ARROWS: Final = ("→", "←")
COLOURS: Final = ("green", "blue")
NAME_WIDTH: Final = 20
KEY_WIDTH: Final = 28
DETAILS_WIDTH: Final = 100


class Showing:
    """Shows what connections carry, until it has been enough."""

    def __init__(self, args: argparse.Namespace, out: Output) -> None:
        from elea.wire import dialect_named

        self.enough = threading.Event()
        self.dialect = dialect_named(args.dialect)
        self._out = out
        self._long: bool = args.long
        self._quiet: bool = args.no_keep_alive
        self._left: int | None = args.count
        self._lock = threading.Lock()

    def tell(self, number: int, event: str, text: str) -> None:
        with self._lock:
            self._out.form({"event": event, "connection": number, "detail": text})
            self._out.note(f"{clock_text()}  #{number}  {event}  {text}")

    def show(self, number: int, side: int, talk: Conversation, data: bytes | None) -> None:
        with self._lock:
            for seen in talk.end(side) if data is None else talk.feed(side, data):
                if self.enough.is_set():
                    return
                if self._quiet and seen.name == "KEEP_ALIVE":
                    continue
                self._show_one(number, side, seen)
                if self._left is not None:
                    self._left -= 1
                    if not self._left:
                        self.enough.set()

    def _show_one(self, number: int, side: int, seen: Seen) -> None:
        if self._out.json:
            self._out.form(
                {
                    "time": datetime.now(UTC).isoformat(),
                    "connection": number,
                    "direction": "to" if side == 0 else "back",
                    "message": seen.name,
                    "key": seen.key,
                    "size": seen.size,
                    **({"fragments": seen.pieces} if seen.pieces else {}),
                    **(seen.form if seen.error is not None and isinstance(seen.form, dict) else {"decoded": seen.form}),
                }
            )
        elif not self._long:
            self._out.line(self._line(number, side, seen))
        elif seen.first:
            self._dissect(number, side, seen)

    def _line(self, number: int, side: int, seen: Seen) -> str:
        paint = self._out.style.paint
        payload = seen.payload
        more = seen.details if payload is None else f"{seen.details}  {value_text(payload, width=60)}".strip()
        if seen.pieces:
            more = f"of {seen.pieces} fragments  {more}"
        if seen.error is not None:
            more = seen.error.problem
        parts = [
            paint(clock_text(), "dim"),
            paint(f"#{number} {ARROWS[side]}", COLOURS[side], "bold"),
            paint(seen.name.ljust(NAME_WIDTH), "red" if seen.error is not None else COLOURS[side]),
            paint(safe(seen.key or "").ljust(KEY_WIDTH), "cyan"),
            size_text(seen.size).rjust(7),
            paint(_cut(safe(more)), "dim"),
        ]
        return "  ".join(parts).rstrip()

    def _dissect(self, number: int, side: int, seen: Seen) -> None:
        from elea.cli.dissection import error_line, field_lines, heading

        style = self._out.style
        title = f"#{number} {ARROWS[side]} {self.dialect.name} {seen.unit}"
        self._out.line(heading(style, title, f"{clock_text()}  {len(seen.data)} octets"))
        if not seen.data and seen.error is not None:
            self._out.line(error_line(style, seen.error))
            return
        for line in field_lines(style, seen.data, self.dialect.dissect(seen.unit, seen.data)):
            self._out.line(line)


def _cut(text: str) -> str:
    return text if len(text) <= DETAILS_WIDTH else f"{text[: DETAILS_WIDTH - 1]}…"
