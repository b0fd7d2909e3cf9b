"""Every table and key of a pipeline file: what it may be, what it is if left out, and what it is for.

docs/pipelines.md has the same table; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from elea.spark.options import CONNECT
from elea.spark.pipeline import values
from elea.spark.pipeline.problem import Wrong

__all__ = ["EXPECTATION", "FORMATS", "KINDS", "PIPELINE", "SECTIONS", "Key"]

FORMATS: Final = ("raw", "json", "arrow", "cdr", "protobuf", "uprotocol")
"""What `elea.spark.payload.formats()` says; asking it would import pyarrow, which takes longer than reading a file."""


class Key(NamedTuple):
    """One entry; without a `default` and not `required` it is None."""

    parse: Callable[[Any], Any]
    what: str
    default: Any = None
    required: bool = False


def _rules(value: Any) -> Any:
    if isinstance(value, dict) or not isinstance(value, list):
        fix = 'write expect = [ { name = "known", check = "speed IS NOT NULL" } ]'
        raise Wrong("it is a list of rules", fix)
    return value


_CONNECT: Final = Key(values.locators, "locator of the broker, or a list: the first that answers")
_OPTIONS: Final = Key(values.options, 'further options of `format("zenoh")`', {})
_FROM: Final = Key(values.text, "the source or step whose rows it takes", required=True)

PIPELINE: Final[Mapping[str, Key]] = {
    "name": Key(values.named, "names cursors and transactions: another name reads all of it again", required=True),
    "checkpoints": Key(values.place, "directory for Spark's notes, relative to the file", "state"),
    "include": Key(values.texts, "further files with sources, steps, tables, …", ()),
    "every": Key(values.duration, "instead of a trigger: a run to the end, again and again after so long"),
    "trigger": Key(values.trigger, 'how often, or `"available now"`: one run to the end', "1 second"),
    "connect": Key(values.locators, "locator of the broker, or a list, for sources and publishes", (CONNECT,)),
}
SOURCE: Final[Mapping[str, Key]] = {
    "keyexpr": Key(values.key_exprs, "key expression, or a list", required=True),
    "format": Key(values.one_of(*FORMATS), "format of the payloads", "raw"),
    "schema": Key(values.text, "fields of a payload in Spark's DDL, for every format but raw"),
    "watermark": Key(values.duration, "how late a sample may come and still count in a window"),
    "event_time": Key(values.text, "what the watermark is on: a column, a field such as `value.at`, SQL", "timestamp"),
    "start": Key(values.start, "`earliest`, `latest`, or a time: where a run without checkpoint starts", "earliest"),
    "batch": Key(values.flag, "not a stream but a table, read when the run starts", False),
    "as_of": Key(values.time, "such a table: the newest sample of each key at this time"),
    "kind": Key(values.one_of("put", "delete"), "these samples only"),
    "metadata": Key(values.flag, "all columns of the log: `offset`, `ingest_time`, …", False),
    "connect": _CONNECT,
    "options": _OPTIONS,
}
STEP: Final[Mapping[str, Key]] = {
    "sql": Key(values.text, "a SELECT over sources and other steps"),
    "python": Key(values.code, "instead: `module:function`, which makes a DataFrame of DataFrames"),
    "from": Key(values.texts, "python: the sources and steps it is given, in this order", ()),
}
FUNCTION: Final[Mapping[str, Key]] = {
    "python": Key(values.code, "`module:function`, of the values of a row", required=True),
    "returns": Key(values.text, "the type of what it returns, in Spark's DDL", "STRING"),
}
FOREACH: Final[Mapping[str, Key]] = {
    "from": _FROM,
    "python": Key(values.code, "`module:function`, called with each batch and its number", required=True),
    "mode": Key(
        values.one_of("append", "update", "complete"), "which rows of an aggregation: Spark's output mode", "append"
    ),
}
TABLE: Final[Mapping[str, Key]] = {
    "from": _FROM,
    "path": Key(values.table_place, "directory, relative to the file, or `s3://…`", required=True),
    "format": Key(values.one_of("delta", "parquet"), "how it is stored", "delta"),
    "mode": Key(
        values.one_of("append", "complete", "merge"),
        "`complete`: each batch replaces the table; `merge`: rows replace those of their key",
        "append",
    ),
    "keys": Key(values.texts, "merge: the columns that make a key", ()),
    "sequence_by": Key(values.texts, "merge: columns that say which of two rows is the later one", ()),
    "deletes": Key(values.text, "merge: a condition in SQL; rows that delete their key"),
    "scd": Key(values.scd, "merge: `1` keeps the latest row of a key, `2` all with the time they were valid", 1),
    "expect": Key(_rules, "rules for its rows, see below", []),
    "quarantine": Key(values.table_place, "directory for rows that break a rule; `<path>_quarantine` unless given"),
    "partition_by": Key(values.texts, "columns: a directory for each value", ()),
    "cluster_by": Key(values.texts, "columns by which compactions sort (Z-order)", ()),
    "retention": Key(values.duration, "how long old versions stay readable; then their files are removed"),
}
PUBLISH: Final[Mapping[str, Key]] = {
    "from": _FROM,
    "format": Key(values.one_of("raw", "json", "arrow"), "format of the payloads", "raw"),
    "key": Key(values.key, "key of all rows, if there is no column `key`"),
    "mode": Key(
        values.one_of("append", "update", "complete"), "which rows of an aggregation: Spark's output mode", "append"
    ),
    "connect": _CONNECT,
    "options": _OPTIONS,
}
EXPECTATION: Final[Mapping[str, Key]] = {
    "name": Key(values.text, "what reports and the quarantine call it", required=True),
    "check": Key(values.text, "a condition in SQL; a row that breaks it makes it false or null", required=True),
    "otherwise": Key(values.one_of("quarantine", "drop", "fail"), "what becomes of such a row", "quarantine"),
}

SECTIONS: Final = {
    "source": SOURCE,
    "function": FUNCTION,
    "step": STEP,
    "table": TABLE,
    "publish": PUBLISH,
    "foreach": FOREACH,
}
"""Tables that have names: `[source.NAME]`."""

KINDS: Final = ("pipeline", "parameters", *SECTIONS)
