"""JSON forms that nearly are messages: any of them is a value or an EncodeError, and so is writing it.

The octets of an input are no JSON text, which mutation would mostly spoil, but edits of a form taken from the
vectors: two octets choose the form, one the unit, then four each say where and how to change it. An input that
starts with 255 is a JSON text.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Final

from elea.model.errors import DecodeError, EncodeError
from elea.wire import DIALECTS, dialect_named
from tests.fuzz import corpus
from tests.fuzz.laws import require
from tests.fuzz.target import Target

__all__ = ["json_target"]

AS_TEXT: Final = 255
EDITS: Final = 8

VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 127, 128, 255, 256, 65_535, 65_536, 1 << 31, 1 << 32, 1 << 40, 1 << 63, 1 << 64,
    10**30, -(1 << 63), 1.5, float("inf"), float("nan"), "", "00", "zz", "0", "ff" * 17, "\ud800", "\udc80", "a/é",
    "é" * 300, "9" * 5_000, [], [[]], [0], [None], {}, {"_": []}, {"_": "PUT"}, {"kind": "Data"}, {"value": 1},
    {"priority": 5}, {"raw": -1}, {"raw": []}, {"unknown_41": "00"}, {"unknown_1ff": 3}, {"unknown_": True},
    {"scope": 0, "suffix": 3, "mapping": []}, "sender", "INIT_SYN", "zbuf", "router", "KSQTRNMA", "00" * 600,
)  # fmt: skip

NAMES: Final = ("_", "kind", "ext", "value", "messages", "markers", "message", "msgs", "body", "body_hex", "enc", "qos",
                "unknown_4f", "unknown_zz", "unknown_1f", "options", "resolution", "lease_unit", "chunk", "wire_expr",
                "usrpwd", "pubkey", "zid", "packets", "unbounded", "no such member")  # fmt: skip

Read = tuple[str, str, Any, object]


def json_target() -> Target:
    """Forms of all units of all dialects."""
    bases = [(dialect, unit, form) for dialect in DIALECTS for unit, form in corpus.forms(dialect)]

    def decode(data: bytes) -> Read:
        dialect, unit, form = _form(bases, data)
        return dialect, unit, form, dialect_named(dialect).from_json(unit, form)

    def law(data: bytes, read: Read) -> None:
        name, unit, _, value = read
        dialect = dialect_named(name)
        try:
            octets = dialect.encode(unit, value)
        except EncodeError:
            return
        try:
            again = dialect.decode(unit, octets)
        except DecodeError:
            # The writers take some values that the readers refuse, such as a marker in front of the wrong message.
            return
        require(dialect.encode(unit, again) == octets, "what was written is written again the same", octets, again)

    def seeds() -> list[bytes]:
        spread = [number.to_bytes(2, "big") + b"\0" + bytes(4 * (number % 3)) for number in range(0, len(bases), 5)]
        texts = [bytes([AS_TEXT, number & 0xFF]) + json.dumps(form).encode() for number, (_, _, form) in
                 enumerate(bases[::40])]  # fmt: skip
        return [*spread, *texts]

    def tokens() -> list[bytes]:
        return [bytes([a, b, c, d]) for a in (0, 7, 90) for b in (1, 33) for c in range(6) for d in range(0, 60, 9)]

    return Target("json", decode, law, (EncodeError,), seeds, tokens, 2_048, repeats=False)


def _form(bases: list[tuple[str, str, Any]], data: bytes) -> tuple[str, str, Any]:
    """Dialect, unit and form that the octets stand for."""
    if data[:1] == bytes([AS_TEXT]):
        dialect, unit, _ = bases[sum(data[1:2]) * 40 % len(bases)]
        try:
            return dialect, unit, json.loads(data[2:].decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            # Not JSON, or deeper than Python's own reader goes.
            raise EncodeError("input", "not JSON") from None
    dialect, unit, form = bases[int.from_bytes(data[:2], "big") % len(bases)]
    if sum(data[2:3]) > 127:
        units = dialect_named(dialect).units
        unit = units[data[2] % len(units)]
    form = copy.deepcopy(form)
    for at in range(3, min(len(data), 3 + 4 * EDITS), 4):
        form = _edited(form, bases, data[at : at + 4].ljust(4, b"\0"))
    return dialect, unit, form


def _edited(form: Any, bases: list[tuple[str, str, Any]], edit: bytes) -> Any:
    places = list(_places(form))
    new = copy.deepcopy(VALUES[edit[3] % len(VALUES)])
    if not places:
        return new
    holder, key = places[int.from_bytes(edit[:2], "big") % len(places)]
    match edit[2] % 8:
        case 0 | 1 | 2:
            holder[key] = new
        case 3:
            del holder[key]
        case 4 if isinstance(holder, dict):
            holder[NAMES[edit[3] % len(NAMES)]] = holder.pop(key)
        case 5 if isinstance(holder, dict):
            holder[NAMES[edit[1] % len(NAMES)]] = new
        case 6:
            holder[key] = copy.deepcopy(bases[edit[3] * 7 % len(bases)][2])
        case 7 if isinstance(holder[key], int):
            holder[key] = holder[key] + edit[3] - 128
        case _:
            holder[key] = [holder[key]]
    return form


def _places(form: Any) -> list[tuple[Any, Any]]:
    """Every member and item of a form with what holds it, in order."""
    found: list[tuple[Any, Any]] = []
    waiting = [form]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            found.append((holder, key))
            waiting.append(holder[key])
    return found
