"""`format("zenoh.capture")`: recorded traffic as a DataFrame, a row a message, of all three dialects.

    spark.read.format("zenoh.capture").load("captures/*.pcap").where("kind = 'PUT'").select("time", "key", "payload")

| option | default | meaning |
|---|---|---|
| `path` | required | a file, glob or directory; `load([…])` takes several; pcap and pcapng, also with gzip |
| `dialect` | `auto` | `zenoh1`, `zenoh2018`, `xrce2017` (or `1.x`, `2018`, `xrce`); `auto` looks at each connection |
| `port` | `7447` | Zenoh's ports, with commas; `all` takes every TCP connection. Not given: datagrams of others, too |
| `mode` | `PERMISSIVE` | what cannot be decoded is a row with `error`; `FAILFAST`: it ends the query |
| `splitBytes` | 67108864 | a larger file is read by several tasks, each of which takes some of its connections |

A schema given with `.schema(…)` chooses columns; leaving out `json` makes reading three times as fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

from elea.model.errors import ConfigError
from elea.spark.saidfirst import says_first

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from elea.spark.capture_reader import CaptureOptions, CaptureReader

__all__ = ["COLUMNS", "ZenohCaptureSource"]

COLUMNS: Final = {
    "time": "timestamp",
    "file": "string",
    "packet": "bigint",
    "number": "int",
    "transport": "string",
    "source": "string",
    "target": "string",
    "direction": "string",
    "dialect": "string",
    "sn": "bigint",
    "reliability": "string",
    "priority": "tinyint",
    "message": "string",
    "kind": "string",
    "key": "string",
    "payload": "binary",
    "encoding": "string",
    "timestamp": "timestamp",
    "attachment": "binary",
    "json": "string",
    "error": "string",
    "octets": "binary",
}
"""The columns and their types in Spark; `docs/captures.md` says what they hold."""

DIALECTS: Final = ("zenoh1", "zenoh2018", "xrce2017")
ALIASES: Final = {"1.x": "zenoh1", "2018": "zenoh2018", "xrce": "xrce2017"}
SPLIT_BYTES: Final = 1 << 26
OPTIONS: Final = ("path", "paths", "dialect", "port", "mode", "splitBytes")


@says_first
class ZenohCaptureSource(DataSource):
    """Captures of Zenoh's traffic; see the module's text for options."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "zenoh.capture"

    def schema(self) -> str:
        """All columns."""
        return ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())

    def reader(self, schema: StructType) -> CaptureReader:
        """The reader of the columns in `schema`."""
        from elea.spark.capture_reader import CaptureReader

        _check_columns(schema)
        return CaptureReader(schema, capture_options(self.options))


def capture_options(given: Mapping[str, str]) -> CaptureOptions:
    """The options, checked.

    Raises:
        ConfigError: one is unknown or has a value it cannot have, or there is no such file.
    """
    from elea.spark.capture_files import files_of
    from elea.spark.capture_reader import CaptureOptions

    options = {name.lower().replace("_", ""): text for name, text in given.items()}
    known = {name.lower(): name for name in OPTIONS}
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(OPTIONS)}"
            raise ConfigError(f"option {name}", "there is no such option", hint)
    ports, every = _ports(options.get("port"))
    return CaptureOptions(
        files=tuple(files_of(options)),
        dialects=_dialects(options.get("dialect", "auto")),
        ports=ports,
        every_port=every,
        fail_fast=_fail_fast(options.get("mode", "PERMISSIVE")),
        split_bytes=_size(options.get("splitbytes", str(SPLIT_BYTES))),
    )


def _dialects(text: str) -> tuple[str, ...]:
    name = ALIASES.get(text.strip().lower(), text.strip().lower())
    if name == "auto":
        return DIALECTS
    if name not in DIALECTS:
        raise ConfigError("option dialect", f"there is no dialect {text!r}", f"there are auto, {', '.join(DIALECTS)}")
    return (name,)


def _ports(text: str | None) -> tuple[frozenset[int], bool]:
    found: set[int] = set()
    every = False
    for part in text.split(",") if text is not None else ():
        if part.strip().lower() == "all":
            every = True
        elif part.strip().isdecimal() and 0 < int(part) < 65_536:
            found.add(int(part))
        else:
            raise ConfigError("option port", f"{part.strip()!r} is no port", "give numbers with commas, or all")
    return frozenset(found), every


def _fail_fast(text: str) -> bool:
    modes = {"PERMISSIVE": False, "FAILFAST": True}
    if text.strip().upper() not in modes:
        raise ConfigError("option mode", f"there is no mode {text!r}", f"there are {', '.join(modes)}")
    return modes[text.strip().upper()]


def _size(text: str) -> int:
    if not text.strip().isdecimal() or not int(text):
        raise ConfigError("option splitBytes", f"{text!r} is no size", "give a number of octets from 1")
    return int(text)


def _check_columns(schema: StructType) -> None:
    for column in schema.fields:
        known = COLUMNS.get(column.name)
        if known is None:
            near = get_close_matches(column.name, COLUMNS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COLUMNS)}"
            raise ConfigError(f"column {column.name}", "there is no such column", hint)
        if column.dataType.simpleString() != known:
            hint = f"write {column.name} {known}, and cast it in the query"
            raise ConfigError(f"column {column.name}", f"it is no {column.dataType.simpleString()}", hint)
