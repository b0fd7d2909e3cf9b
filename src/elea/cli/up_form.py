"""uProtocol messages for people and as JSON; addresses are always written as people write them."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from elea.cli.output import Output, clock_text, option_name, payload_form, safe, time_text, value_text
from elea.uprotocol import ReceivedMessage, UAttributes, UMessage, UMessageType, UPayloadFormat, UPriority, UUri
from elea.uprotocol.status import code_of

__all__ = ["attributes_form", "message_form", "show_message"]

TYPE_WIDTH: Final = 12


def attributes_form(attributes: UAttributes) -> dict[str, object]:
    """The JSON form: only what is there; what an enumeration has by its name, everything else by its number."""
    given: dict[str, object] = {
        "time": None if attributes.id is None else time_text(attributes.id.time_ms * 1_000_000),
        "type": _name(UMessageType, attributes.type),
        "source": attributes.source,
        "sink": attributes.sink,
        "priority": _name(UPriority, attributes.priority) if attributes.priority else None,
        "format": _name(UPayloadFormat, attributes.payload_format) if attributes.payload_format else None,
        "id": attributes.id,
        "reqid": attributes.reqid,
        "ttl": attributes.ttl,
        "permission_level": attributes.permission_level,
        "commstatus": None if attributes.commstatus is None else option_name(code_of(attributes.commstatus).name),
        "token": attributes.token,
        "traceparent": attributes.traceparent,
    }
    return {name: value if isinstance(value, int) else str(value) for name, value in given.items() if value is not None}


def message_form(message: UMessage) -> dict[str, object]:
    """The JSON form of attributes and payload; without a payload it has neither `value` nor `hex`.

    A sender may leave out its authority; then `origin` has the whole address.
    """
    origin = {} if _origin(message) == message.source else {"origin": str(_origin(message))}
    payload = {} if message.payload is None else payload_form(message.payload)
    return attributes_form(message.attributes) | origin | payload


def _origin(message: UMessage) -> UUri | None:
    return message.origin if isinstance(message, ReceivedMessage) else message.source


def show_message(out: Output, message: UMessage) -> None:
    """A message that has come: time, type, from where to where, format, payload."""
    if out.json:
        out.form(message_form(message))
        return
    form, paint = attributes_form(message.attributes), out.style.paint
    way = str(_origin(message)) if message.sink is None else f"{_origin(message)} → {message.sink}"
    parts = [
        paint(clock_text(), "dim"),
        paint(str(form["type"]).ljust(TYPE_WIDTH), "green"),
        paint(safe(way), "cyan"),
        paint(str(form.get("format", "")), "dim"),
        paint("" if form.get("commstatus") in (None, "ok") else str(form["commstatus"]), "red"),
        "(no payload)" if message.payload is None else value_text(message.payload),
    ]
    out.line("  ".join(part for part in parts if part))


def _name(kind: type[IntEnum], value: int) -> str | int:
    try:
        return option_name(kind(value).name)
    except ValueError:
        return value
