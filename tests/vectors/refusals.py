"""What must be refused before it is octets: JSON forms that are no message, definition files that make no sense."""

from __future__ import annotations

from functools import partial

from elea.model.errors import EncodeError, NotationError
from elea.notation.check import check
from elea.notation.parser import parse
from elea.wire import dialect_named
from tests.vectors.cases import Case, Mismatch, Record

__all__ = ["definitions_case", "form_case"]


def form_case(records: list[Record], index: int) -> Case:
    """A record with the JSON form of a unit that cannot be read or cannot be written."""
    return Case(records[index]["name"], partial(_check_form, records[index]))


def _check_form(record: Record) -> None:
    dialect = dialect_named(record["dialect"])
    try:
        octets = dialect.encode(record["unit"], dialect.from_json(record["unit"], record["form"]))
    except EncodeError:
        return
    raise Mismatch(f"encoded as {octets.hex()}, expected {record['error']}")


def definitions_case(records: list[Record], index: int) -> Case:
    """A record with a definition file that must be refused; `times` repeats a part of it."""
    return Case(records[index]["name"], partial(_check_definitions, records[index]))


def _check_definitions(record: Record) -> None:
    text = record["definitions"].replace("…", record.get("repeated", "") * record.get("times", 0))
    try:
        check(parse(text, dialect="vector"))
    except NotationError:
        return
    raise Mismatch(f"accepted, expected {record['error']}")
