"""How verbs that speak with a data space print: one JSON object per line, or aligned lines safe for a terminal.

What others sent is data: control characters in it are shown as escapes, never passed on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

from elea.cli.style import Style

if TYPE_CHECKING:
    from elea.api.reply import Reply
    from elea.api.sample import Sample
    from elea.content import Contents
    from elea.model.encoding import Encoding

__all__ = ["Output", "payload_form", "safe", "sample_form", "say", "size_text", "time_text", "value_text"]

VALUE_WIDTH: Final = 200
"""Characters of a value shown on a line; `--json` and `--raw` print all of it."""

HEX_OCTETS: Final = 32
KEY_WIDTH: Final = 28
ENCODING_WIDTH: Final = 16


def safe(text: str) -> str:
    """`text` with everything that could steer a terminal as an escape.

    >>> safe("21.5\\x1b[2J")
    '21.5\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    if "\ud800" <= character <= "\udfff":  # a lone half of a pair, from an argument that is no UTF-8
        return f"\\u{ord(character):04x}"
    return character.encode("unicode_escape").decode("ascii")


def value_text(data: bytes, encoding: str = "", *, width: int = VALUE_WIDTH) -> str:
    """One line that shows a payload: its text, or its first octets in hex.

    >>> value_text(b"21.5"), value_text(b"\\xff\\x00\\x01"), value_text(b"")
    ('21.5', 'ff 00 01  (3 octets)', '(empty)')
    """
    if not data:
        return "(empty)"
    text = _as_text(data)
    if text is None:
        more = " …" if len(data) > HEX_OCTETS else ""
        return f"{data[:HEX_OCTETS].hex(' ')}{more}  ({len(data)} octets)"
    shown = safe(text[: width + 1])
    return shown if len(shown) <= width else f"{shown[:width]}…  ({len(data)} octets)"


def _as_text(data: bytes) -> str | None:
    """The text the octets are, if a person would call them so: UTF-8 and next to no control characters."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    odd = sum(1 for c in text[:256] if not c.isprintable() and c not in "\t\r\n")
    return None if odd * 4 > min(len(text), 256) else text


def payload_form(data: bytes) -> dict[str, object]:
    """The members by which JSON says a payload: `value` if it is UTF-8, `hex` otherwise."""
    try:
        return {"value": data.decode()}
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def sample_form(sample: Sample) -> dict[str, object]:
    """The JSON form of a sample."""
    stamp = sample.timestamp
    form: dict[str, object] = {
        "time": None if stamp is None else stamp.get_time().astimezone(UTC).isoformat(),
        "key": str(sample.key_expr),
        "kind": _kind(sample),
        "encoding": encoding_text(sample.encoding),
        "size": len(sample.payload),
        **payload_form(sample.payload.to_bytes()),
        "priority": option_name(sample.priority.name),
        "congestion": option_name(sample.congestion_control.name),
        "express": sample.express,
    }
    if sample.attachment is not None:
        form["attachment"] = payload_form(sample.attachment.to_bytes())
    if sample.source_info is not None:
        source = sample.source_info.source_id
        form["source"] = {"id": str(source.zid), "entity": source.eid, "sn": sample.source_info.source_sn}
    return form


def encoding_text(encoding: Encoding) -> str:
    """The text form of an encoding; a schema may hold any octets."""
    return safe(str(encoding))


def option_name(name: str) -> str:
    """A member of an enumeration as options and JSON spell it: `REAL_TIME` is `real-time`."""
    return name.lower().replace("_", "-")


def size_text(size: float) -> str:
    """A number of octets in three digits.

    >>> size_text(64), size_text(200_000), size_text(5_000_000)
    ('64 B', '200 kB', '5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"


def clock_text(now: datetime | None = None) -> str:
    """The local time of day to the millisecond."""
    moment = datetime.now() if now is None else now
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03}"


def time_text(time: int | None) -> str | None:
    """Nanoseconds since 1970 in ISO 8601 with all nine digits, which a float could not hold.

    >>> time_text(1_735_689_600_000_000_001)
    '2025-01-01T00:00:00.000000001Z'
    """
    if time is None:
        return None
    seconds, nanoseconds = divmod(time, 1_000_000_000)
    try:
        whole = datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError):
        return f"{seconds}.{nanoseconds:09}"  # A clock far out of range, in input that may hold anything.
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"


def say(line: str, stream: TextIO | None = None) -> None:
    """Print a line at once and whole: `print` writes the end of a line apart, and samples come from several threads."""
    out = sys.stdout if stream is None else stream
    out.write(line + "\n")
    out.flush()


class Output:
    """Where a verb prints: `event` and `form` as JSON, `line` for people; each does nothing in the other's mode."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.json: bool = args.json
        self.style = Style.for_stream(sys.stdout, args.color)
        self.errors = Style.for_stream(sys.stderr, args.color)
        self.live = sys.stderr.isatty() and not args.json
        self.contents: Contents | None = None
        """How payloads are read, if their fields are printed."""

    def form(self, form: Mapping[str, object]) -> None:
        """One JSON object."""
        if self.json:
            say(json.dumps(form))

    def line(self, text: str) -> None:
        """One line for people."""
        if not self.json:
            say(text)

    def note(self, text: str) -> None:
        """A remark on what goes on, which is no result: on the error stream, and not with `--json`."""
        if not self.json:
            say(self.errors.paint(text, "dim"), sys.stderr)

    def progress(self, text: str) -> None:
        """The line that is written over and over on a terminal; an empty text wipes it."""
        if self.live:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def sample(self, sample: Sample) -> None:
        """A sample: time, key, kind, encoding, value."""
        if self.json:
            self.form({**sample_form(sample), **self._fields(sample)})
        else:
            self.line(self.sample_line(sample))

    def reply(self, reply: Reply) -> None:
        """A reply: a sample, or an error."""
        replier = None if reply.replier_id is None else str(reply.replier_id.zid)
        if reply.ok is not None:
            if self.json:
                self.form({**sample_form(reply.ok), **self._fields(reply.ok), "replier": replier})
            else:
                self.line(self.sample_line(reply.ok))
        elif reply.err is not None:
            data, encoding = reply.err.payload.to_bytes(), encoding_text(reply.err.encoding)
            self.form({"error": payload_form(data), "encoding": encoding, "replier": replier})
            who = "" if replier is None else f"  from {replier}"
            self.line(self.style.paint(f"{clock_text()}  error  {value_text(data, encoding)}{who}", "red"))

    def sample_line(self, sample: Sample) -> str:
        """A sample as a line for people."""
        paint = self.style.paint
        stamp = sample.timestamp
        time = clock_text(None if stamp is None else stamp.get_time().astimezone().replace(tzinfo=None))
        deleted = _kind(sample) == "delete"
        encoding = encoding_text(sample.encoding)
        data = sample.payload.to_bytes()
        parts = [
            paint(time, "dim"),
            paint(safe(str(sample.key_expr)).ljust(KEY_WIDTH), "cyan"),
            paint(_kind(sample).ljust(6), "red" if deleted else "green"),
            paint(encoding.ljust(ENCODING_WIDTH), "dim"),
            "" if deleted and not data else self._value(sample, data, encoding),
        ]
        if sample.attachment is not None:
            parts.append(paint(f"attached {value_text(sample.attachment.to_bytes(), width=60)}", "magenta"))
        return "  ".join(parts).rstrip()

    def _fields(self, sample: Sample) -> dict[str, object]:
        """The fields of a payload, if they are wanted; null if they cannot be read."""
        if self.contents is None or _kind(sample) == "delete":
            return {}
        from elea.cli.fields import fields_of

        return {"fields": fields_of(sample, self.contents)}

    def _value(self, sample: Sample, data: bytes, encoding: str) -> str:
        found = self._fields(sample).get("fields")
        return value_text(data if found is None else json.dumps(found, ensure_ascii=False).encode(), encoding)


def _kind(sample: Sample) -> str:
    return option_name(sample.kind.name)
