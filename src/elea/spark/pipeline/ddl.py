"""The schema of payloads (`speed DOUBLE, tags ARRAY<STRING>`) read without Spark: its fields, or where it is wrong.

Spark parses it again when the pipeline runs; this is for messages with a place, in no time. What it accepts is what
`elea.spark.payload` can read: `tests/spark` compare the two.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from elea.spark.pipeline.problem import Wrong, nearest

__all__ = ["TYPES", "fields_of", "is_left_to_spark"]

TYPES: Final = frozenset(
    "BOOLEAN TINYINT BYTE SMALLINT SHORT INT INTEGER BIGINT LONG FLOAT REAL DOUBLE DECIMAL DEC NUMERIC STRING "
    "BINARY DATE TIMESTAMP TIMESTAMP_LTZ TIMESTAMP_NTZ ARRAY MAP STRUCT".split()
)
_FOREIGN: Final = {
    "STR": "STRING",
    "TEXT": "STRING",
    "CHAR": "STRING",
    "VARCHAR": "STRING",
    "BOOL": "BOOLEAN",
    "INT8": "TINYINT",
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INT64": "BIGINT",
    "UINT8": "SMALLINT",
    "UINT16": "INT",
    "UINT32": "BIGINT",
    "UINT64": "DECIMAL(20, 0)",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "NUMBER": "DOUBLE",
    "BYTES": "BINARY",
    "DATETIME": "TIMESTAMP",
    "LIST": "ARRAY",
    "OBJECT": "STRUCT",
    "DICT": "MAP",
}
"""What other languages call them."""

_OF_SPARK: Final = frozenset(
    "INTERVAL VARIANT TIME VOID CHARACTER GEOMETRY GEOGRAPHY COLLATE DEFAULT GENERATED".split()
)
"""Words that Spark knows in a schema, and this does not."""

_TOKEN: Final = re.compile(
    r"""\s*(?:(`(?:[^`]|``)+`)|(\d*[^\W\d]\w*)|(\d+)|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(\S))?"""
)
_EXAMPLE: Final = 'write name and type, with commas between: "speed DOUBLE, tags ARRAY<STRING>"'


class _Token(NamedTuple):
    text: str
    at: int
    is_name: bool


def fields_of(schema: str) -> dict[str, str]:
    """The fields and their types, those inside of structs as `outer.inner`.

    >>> fields_of("on BOOLEAN, at STRUCT<x: INT>")
    {'on': 'BOOLEAN', 'at': 'STRUCT', 'at.x': 'INT'}

    Raises:
        Wrong: it is no schema, or one that payloads cannot have.
    """
    if schema.strip().startswith("{"):
        return _of_json(schema)
    reader = _Reader(schema)
    if reader.word() == "STRUCT" and reader.ahead(1) == "<":
        reader.take()
        reader.take()
        found = reader.fields("", ">")
        reader.expect(">")
    else:
        found = reader.fields("", "")
    if reader.text:
        raise Wrong(f"{reader.text!r} does not belong there", _EXAMPLE, reader.at)
    return found


def is_left_to_spark(schema: str, at: int) -> bool:
    """Whether what does not do at `at` may be something that only Spark knows.

    >>> is_left_to_spark("took INTERVAL DAY TO SECOND", 5), is_left_to_spark("took doubel", 5)
    (True, False)
    """
    found = re.compile(r"\w+").match(schema, at)
    return found is not None and found[0].upper() in _OF_SPARK


def _of_json(schema: str) -> dict[str, str]:
    """Of what `schema.json()` prints: the outer fields only; Spark looks at the rest."""
    import json

    try:
        return {str(field["name"]): str(field["type"]).upper() for field in json.loads(schema)["fields"]}
    except (ValueError, KeyError, TypeError) as error:
        raise Wrong("it is not the JSON of a schema", "give what schema.json() prints, or " + _EXAMPLE) from error


class _Reader:
    def __init__(self, schema: str) -> None:
        self._tokens = []
        for match in _TOKEN.finditer(schema):
            if match.lastindex is not None:
                text = match[match.lastindex]
                self._tokens.append(_Token(text, match.start(match.lastindex), match.lastindex in (1, 2)))
        self._tokens.append(_Token("", len(schema), False))
        self._next = 0

    @property
    def text(self) -> str:
        return self._tokens[self._next].text

    @property
    def at(self) -> int:
        return self._tokens[self._next].at

    def word(self) -> str:
        return self.text.upper()

    def ahead(self, by: int) -> str:
        return self._tokens[min(self._next + by, len(self._tokens) - 1)].text

    def take(self) -> str:
        text = self.text
        if text:
            self._next += 1
        return text

    def expect(self, mark: str) -> None:
        if self.text != mark:
            found = f"{self.text!r} stands there" if self.text else "it ends"
            raise Wrong(f"a {mark} is missing, {found}", f"write {mark}", self.at)
        self.take()

    def fields(self, outer: str, end: str) -> dict[str, str]:
        found: dict[str, str] = {}
        while True:
            at = self.at
            if not self._tokens[self._next].is_name:
                what = f"{self.text!r} is no name of a field" if self.text else "a field is missing at its end"
                raise Wrong(what, "put it in `backquotes`" if self.text[:1].isalnum() else _EXAMPLE, at)
            name = self.take().strip("`")
            if self.text == ":":
                self.take()
            if name.lower() in (one.rpartition(".")[2].lower() for one in found if one.count(".") == outer.count(".")):
                raise Wrong(f"the field {name} is there twice", "leave one of them out", at)
            path = outer + name
            found[path] = self.word()
            found |= self._type(path)
            self._behind(name)
            if self.text != ",":
                if self.text and self.text != end:
                    raise Wrong(f"a comma is missing before {self.text!r}", _EXAMPLE, self.at)
                return found
            self.take()

    def _type(self, path: str) -> dict[str, str]:
        """Reads a type; the fields in it."""
        at, name = self.at, self.word()
        if name not in TYPES:
            if not name or name in (",", ">"):
                raise Wrong(f"the field {path} has no type", _EXAMPLE, at)
            fix = f"write {_FOREIGN[name]}" if name in _FOREIGN else nearest(name, TYPES, "types are")
            raise Wrong(f"there is no type {self.text}", fix, at)
        self.take()
        found: dict[str, str] = {}
        if name == "STRUCT":
            self.expect("<")
            found = self.fields(path + ".", ">")
            self.expect(">")
        elif name in ("ARRAY", "MAP"):
            self.expect("<")
            self._type(path)
            if name == "MAP":
                self.expect(",")
                self._type(path)
            self.expect(">")
        elif self.text == "(":
            while self.text and self.take() != ")":
                pass
        return found

    def _behind(self, name: str) -> None:
        if self.word() == "NOT":
            fix = "leave NOT NULL out, and add an expectation to the table"
            raise Wrong(f"the field {name} must not be null, which no sender can be held to", fix, self.at)
        if self.word() == "COMMENT":
            self.take()
            self.take()
