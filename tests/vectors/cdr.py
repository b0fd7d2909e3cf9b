"""Vectors of CDR data: what each payload says, by the types that the file describes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from tests.vectors.cases import Case, Record, check_equal

__all__ = ["cdr_cases"]

TYPES: Final = """
enum Mode { OFF, ON, AUTO };
@final struct Pos { double x, y; };
@final struct Light { @key long id; string name; float luminosity; Mode mode; Pos pos; sequence<short> hist; };
@appendable struct LightApp { @key long id; string name; };
@mutable struct LightMut { @key long id; string name; };
"""


def cdr_cases(content: Record) -> Iterator[Case]:
    """The payloads of a file, and the names in what a writer says of itself."""
    for record in content["vectors"]:
        yield Case(record["name"], partial(_check_value, record))
    for record in content.get("sedp", {}).get("params", []):
        if record["name"] in ("TOPIC_NAME", "TYPE_NAME", "PARTITION"):
            yield Case(record["name"], partial(_check_parameter, record))


def _check_value(record: Record) -> None:
    from elea.content.cdr import CdrReader
    from elea.content.schema import parse_idl

    its = parse_idl(TYPES)[record["type"]]
    payload = bytes.fromhex(record["hex"])
    check_equal("value", _plain(CdrReader(its).decode(payload)), record["value"])


def _check_parameter(record: Record) -> None:
    from elea.content.cdr import CdrReader
    from elea.content.schema import parse_idl

    kind = "sequence<string>" if isinstance(record["value"], list) else "string"
    its = parse_idl(f"struct Parameter {{ {kind} value; }};")["Parameter"]
    found = CdrReader(its).decode(bytes.fromhex("00010000" + record["hex"]))
    check_equal("value", found["value"], record["value"])


def _plain(value: object) -> object:
    """Labels as the numbers they are."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
