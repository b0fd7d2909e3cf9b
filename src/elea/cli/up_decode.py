"""`elea up decode`: what the bytes and keys of uProtocol mean, field by field.

With `--json` each is one object: its fields, with `problem` if the attributes break a rule, or `{"error", "at",
"dialect", "problem"}` as `elea decode` has it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final, NamedTuple

from elea.cli import connection, inputs
from elea.cli.output import Output, payload_form, safe, value_text
from elea.cli.up_form import attributes_form
from elea.model.errors import DecodeError
from elea.uprotocol import ANY_UURI, InvalidUri, UAttributes, UMessage, UUri, key_of, uris_of
from elea.uprotocol.attachment import VERSION, read_checked
from elea.uprotocol.validation import problem_of

__all__ = ["add_arguments", "run"]

KINDS: Final = ("auto", "attachment", "attributes", "message")
NO_KEY: Final = "NO_KEY"
NO_ADDRESS: Final = "NO_ADDRESS"

EPILOG: Final = """\
DATA is an address (//vcu/10AB/3/80CD), a key (up/…), or hex, in which blanks, colons and 0x are ignored. Without DATA,
each line of standard input is one. An attachment begins with its version, 01; a message is what UMessage is in
protobuf, attributes are UAttributes. The exit code is 1 if something cannot be read or breaks a rule. examples:
  elea up decode //vcu/10AB/3/80CD
  elea up decode 'up/vcu/10AB/0/3/80CD/{}/{}/{}/{}/{}'
  elea sub 'up/**' --json | jq -r .attachment.hex | elea up decode"""

_KINDS: Final = {"topic": "topic", "rpc_method": "method", "response_or_notification_sink": "entity", "any": "any"}


class Shown(NamedTuple):
    """What one of them means: fields, the payload of a message, and what is wrong."""

    fields: dict[str, object]
    payload: bytes | None = None
    problem: str = ""


class NotReadable(NamedTuple):
    """Why it means nothing."""

    code: str
    at: int
    problem: str
    dialect: str = "uprotocol"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea up decode`."""
    parser.epilog = EPILOG
    parser.add_argument("data", nargs="*", metavar="DATA", help="addresses, keys or hex (default: lines of stdin)")
    parser.add_argument(
        "--kind", choices=KINDS, default="auto", help="what the bytes are (default: what they look like)"
    )


def run(args: argparse.Namespace) -> int:
    """Shows all of them; 1 if one is bad."""
    out, status = Output(args), 0
    for number, (where, line) in enumerate(_given(args.data)):
        shown = (
            NotReadable(line.code, line.at, line.problem)
            if isinstance(line, inputs.BadInput)
            else _read(where, line, args.kind)
        )
        if number:
            out.line("")
        _show(out, where, shown)
        if isinstance(shown, NotReadable) or shown.problem:
            status = connection.NO
    return status


def _given(words: list[str]) -> Iterator[tuple[str, bytes | inputs.BadInput]]:
    if words:
        yield from (
            (f"argument {number}", word.encode(errors="surrogateescape")) for number, word in enumerate(words, 1)
        )
        return
    for source in inputs.open_inputs([]):
        for line in inputs.lines(source):
            yield (line.where, line) if isinstance(line, inputs.BadInput) else line


def _read(where: str, line: bytes, kind: str) -> Shown | NotReadable:
    if line.startswith(b"up/"):
        return _read_key(line.decode(errors="replace"))
    if line.startswith((b"/", b"up:")):
        return _read_address(line.decode(errors="replace"))
    unit = inputs.parse_hex(where, line)
    if isinstance(unit, inputs.BadInput):
        return NotReadable(unit.code, unit.at, unit.problem)
    try:
        return _read_bytes(unit.data, kind)
    except DecodeError as error:
        return NotReadable(error.code, error.at, error.problem, error.dialect)


def _read_key(key: str) -> Shown | NotReadable:
    try:
        source, sink = uris_of(key)
    except InvalidUri as error:
        return NotReadable(NO_KEY, 0, error.problem)
    return Shown({"kind": "key", "source": str(source), **({} if sink is None else {"sink": str(sink)})})


def _read_address(text: str) -> Shown | NotReadable:
    """An address, part by part; and the key that its messages have, or a listener of them."""
    try:
        uri = UUri.parse(text)
    except InvalidUri as error:
        return NotReadable(NO_ADDRESS, 0, error.problem)
    parts = {"type": uri.ue_type, "instance": uri.ue_instance, "version": uri.ue_version_major}
    fields: dict[str, object] = {"kind": "address", "address": str(uri), "authority": uri.authority_name}
    fields |= {name: f"{value:X}" for name, value in parts.items()}
    fields |= {"resource": f"{uri.resource_id:X}", "is": _KINDS[uri.kind], "wildcards": " ".join(uri.wildcards)}
    if uri.authority_name:
        published = uri.kind in ("topic", "any")
        fields["key"] = key_of(uri, None, "") if published else key_of(ANY_UURI, uri, "")
    return Shown({name: value for name, value in fields.items() if value != ""})


def _read_bytes(data: bytes, kind: str) -> Shown:
    if kind == "attachment" or (kind == "auto" and data[:1] == bytes((VERSION,))):
        attributes, problem = read_checked(data)
        return Shown({"kind": "attachment", **attributes_form(attributes)}, None, problem)
    if kind != "attributes":
        message = UMessage.from_bytes(data)
        # The identifier that attributes begin with reads as a message whose attributes have no field that we know.
        if kind == "message" or message.attributes != UAttributes():
            form = {"kind": "message", **attributes_form(message.attributes)}
            return Shown(form, message.payload, problem_of(message.attributes))
    attributes = UAttributes.from_bytes(data)
    return Shown({"kind": "attributes", **attributes_form(attributes)}, None, problem_of(attributes))


def _show(out: Output, where: str, shown: Shown | NotReadable) -> None:
    paint = out.style.paint
    if isinstance(shown, NotReadable):
        form = {"error": shown.code, "at": shown.at, "dialect": shown.dialect, "problem": shown.problem}
        out.form(form)
        out.line(paint(f"{safe(where)}: {safe(shown.problem)} (at {shown.at})", "red"))
        return
    problem = {"problem": shown.problem} if shown.problem else {}
    out.form(shown.fields | ({} if shown.payload is None else payload_form(shown.payload)) | problem)
    lines = {name: safe(str(value)) for name, value in shown.fields.items()}
    if shown.payload is not None:
        lines["payload"] = value_text(shown.payload)
    width = max(map(len, [*lines, *problem]))
    for name, text in lines.items():
        out.line(f"{paint(name.ljust(width), 'cyan')}  {text}")
    if problem:
        out.line(paint(f"{'problem'.ljust(width)}  {safe(shown.problem)}", "red"))
