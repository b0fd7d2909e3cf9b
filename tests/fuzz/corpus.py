"""Where inputs start from: the octets of the vectors, and a dictionary made from the definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from elea.model.errors import EleaError
from elea.notation import syntax as s
from elea.notation.generate import WIRE, plan_of
from elea.notation.parser import KEYWORDS
from elea.wire import DIALECTS, dialect_named
from elea.wire.primitives import write_nat, write_z

__all__ = ["KEY_TOKENS", "NOTATION_TOKENS", "definition_seeds", "forms", "key_seeds", "octets", "seeds", "tokens"]

VECTORS = Path(__file__).parent.parent / "vectors"

BORDERS = (0, 1, 127, 128, 255, 256, 16_383, 16_384, 65_535, 65_536, (1 << 32) - 1, 1 << 32, (1 << 56) - 1,
           1 << 56, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
FLAGS = (0x00, 0x20, 0x40, 0x80, 0xA0, 0xE0)
MORE = 0x80

KEY_TOKENS = tuple(
    text.encode()
    for text in ("*", "**", "/**/", "/*/", "$*", "@", "@a", "$*a$*", "?", "#", "?{", "}", "{a,b}", "zenoh://",
                 "xrce://", "$ls", "\\${s}", "%2F", "é", "..", "[now(-1s)..]", "now()", ";", "=", "_time=",
                 "2024-02-29T12:00:00.5Z", "]now(1e9w);3m[", "\n", "a/b", "//")
)  # fmt: skip
NOTATION_TOKENS = tuple(
    word.encode() for word in (*sorted(KEYWORDS), "->", "...", "[", "]", "{", "}", "!", "*", "+", ":", "-- ", "\n")
)

DEFINITIONS = (
    "a = nat",
    "a, b = [byte] range 1 ... 16",
    "Kind = enum { A = 1, B = 2 }\nm = record { h: header 5 Kind, x: flag 5, y: if x then nat }",
    "Kind = enum { A = 1, B = 2 }\nA1 = record { n: nat }\nB1 = record { f: flag 7, s: [A1] }\n"
    "M = record { h: header 5 Kind, body: case h of { A -> A1, B -> B1 } }\nF = record { sn: z64, all: run M }",
    "m = record { octet, n: flag 0 ... 3, f: flag 4, s: [flag 5 ... 7 + 1: byte], t: if f then utf8 [z16: byte] }",
    "m = record { s: stem 1 z32, f: flag 0, x: if f then [z8: byte] } ",
    "m = record { h: header 4 byte, z: flag 7, x: u16, chain z { a: 1 = z64, b: 2! = sized [*: byte], c: 3 = unit } } ",
    "E = enum { X = 0, Y = 3 }\nm = record { octet, e: flag 0 ... 1 of E, v: case e of { X -> nat, Y -> [byte] } }",
    "m = record { a: [z16: nat], b: [a: z8], n: z16 range 2 ... 9, c: case n of { 2, 3 -> nat, 4 ... 9 -> byte } }",
)

_HEX = ("hex", "decompressed_hex", "reencoded", "sent_network_message_hex", "compressed_hex")


@cache
def octets(dialect: str) -> tuple[bytes, ...]:
    """Every piece of octets that a vector of the dialect holds, good and bad."""
    found: dict[bytes, None] = {}
    for folder in (VECTORS / dialect, VECTORS / "findings"):
        for path in sorted(folder.rglob("*.json")):
            for record in _records(json.loads(path.read_text(encoding="utf-8"))):
                if record.get("dialect", dialect) == dialect:
                    texts = [record[name] for name in _HEX if isinstance(record.get(name), str)]
                    found.update((bytes.fromhex(text), None) for text in texts)
    return tuple(found)


def _records(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, dict):
        yield content
        content = list(content.values())
    if isinstance(content, list):
        for item in content:
            yield from _records(item)


@cache
def seeds(dialect: str, unit: str) -> tuple[bytes, ...]:
    """Octets to start from as one unit of a dialect: those that are one, and the short ones that are not."""
    found = [data for data in octets(dialect) if len(data) <= 64 or _value(dialect, unit, data) is not None]
    return tuple(found)


def _value(dialect: str, unit: str, data: bytes) -> object:
    try:
        return dialect_named(dialect).decode(unit, data)
    except EleaError:
        return None


@cache
def forms(dialect: str) -> tuple[tuple[str, Any], ...]:
    """JSON forms with the unit they are of."""
    found: list[tuple[str, Any]] = []
    for unit in dialect_named(dialect).units:
        for data in octets(dialect):
            value = _value(dialect, unit, data)
            # Everything decodes as an empty run of messages; forms that say nothing are no place to start.
            if value and len(data) <= 200:
                found.append((unit, dialect_named(dialect).to_json(unit, value, full=True)))
    return tuple(found)


@cache
def tokens(dialect: str) -> tuple[bytes, ...]:
    """Header octets of every message with typical flags, extension headers, borders of numbers."""
    plan = plan_of(dialect)
    found: dict[bytes, None] = {}
    for union in plan.unions.values():
        for number in (*union.arms, *union.reserved):
            found.update((bytes([number & 0xFF | flags]), None) for flags in FLAGS)
    for record in plan.records.values():
        for member in record.record.members:
            if isinstance(member.type, s.Chain):
                for extension in member.type.extensions:
                    found[bytes([extension.header])] = found[bytes([extension.header | MORE])] = None
    for border in BORDERS:
        out = bytearray()
        if dialect == "zenoh1":
            write_z(out, border, 64, "border")
        else:
            write_nat(out, border, "border")
        found[bytes(out)] = None
    found[b"\x80" * 8 + b"\x00"] = found[b"\xff" * 10] = found[b"\x80\x00"] = None
    return tuple(found)


@cache
def key_seeds() -> tuple[bytes, ...]:
    """Texts of the grammars of keys, two or three to a seed, parted by line ends."""
    texts: dict[str, None] = {}
    for path in sorted(VECTORS.rglob("*.json")):
        for record in _records(json.loads(path.read_text(encoding="utf-8"))):
            for value in record.values():
                values = value if isinstance(value, list) else [value]
                texts.update((text, None) for text in values if isinstance(text, str) and 0 < len(text) <= 40)
    found = [text for text in texts if any(mark in text for mark in "/*$?#@") and "\n" not in text]
    pairs = zip(found, found[7:] + found[:7], strict=True)
    return tuple(f"{a}\n{b}".encode() for a, b in pairs)


@cache
def definition_seeds() -> tuple[bytes, ...]:
    """Small files that pass, each with another construct, and the paragraphs of the dialects' files."""
    found = [text.encode() for text in DEFINITIONS]
    for dialect in DIALECTS:
        text = (WIRE / dialect / f"{dialect}.zn").read_text(encoding="utf-8")
        found += [piece.strip().encode() for piece in text.split("\n\n") if piece.strip()]
    return tuple(found)
