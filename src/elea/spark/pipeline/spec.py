"""What a pipeline file says, as values: sources, steps, tables, publishes, and how they hang together.

`elea.spark.pipeline.specreader` makes them; by then names exist, nothing goes in a circle and paths are absolute.
Nothing here needs Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from elea.spark.deltamerge import Merge
from elea.spark.pipeline.pythoncode import Code
from elea.spark.pipeline.sqltext import statement
from elea.spark.pipeline.variables import Variables
from elea.spark.schema import UPROTOCOL

__all__ = [
    "AVAILABLE_NOW",
    "Duration",
    "Expectation",
    "Foreach",
    "Function",
    "Publish",
    "Sink",
    "Source",
    "Spec",
    "Step",
    "Table",
    "View",
    "kind_of",
]

AVAILABLE_NOW: Final = "available now"
"""The trigger of a run that ends when everything that was there at its start is done."""


def _joined(texts: tuple[str, ...]) -> str:
    """As an option of Spark, which splits at commas what is no JSON."""
    return texts[0] if len(texts) == 1 and "," not in texts[0] else json.dumps(texts)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: `text` as Spark reads it (`10 seconds`), and in seconds."""

    text: str
    seconds: float

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Samples of key expressions: a stream, or with `batch` or `as_of` a table read whole when a step needs it."""

    name: str
    key_exprs: tuple[str, ...]
    connect: tuple[str, ...]
    format: str = "raw"
    schema: str | None = None
    """DDL of a payload, for formats other than raw."""

    watermark: Duration | None = None
    event_time: str = "timestamp"
    """What the watermark is on: a column of times, or a field or expression, which becomes a column `event_time`."""

    start: str = "earliest"
    """`earliest`, `latest`, or a time; where a stream without a checkpoint starts."""

    batch: bool = False
    as_of: str | None = None
    """A time: the newest sample of each key then."""

    kind: str | None = None
    metadata: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of `format("zenoh")`, as they are."""

    line: int = 0

    @property
    def event_column(self) -> str:
        """The column that the watermark is on: Spark wants one that is not inside of another."""
        return self.event_time if self.event_time in ("timestamp", "ingest_time") else "event_time"

    @property
    def has_value(self) -> bool:
        """Whether its payloads are decoded into a column `value`."""
        if self.format != UPROTOCOL or self.schema is not None:
            return self.format != "raw"
        return any(name.replace("_", "").lower() == "payloadmessage" for name in self.options)

    @property
    def is_stream(self) -> bool:
        """Whether it goes on for ever."""
        return not self.batch and self.as_of is None

    def read_options(self) -> dict[str, str]:
        """The options of `spark.read` or `spark.readStream`, but for `sourceId`, which whoever starts a query names."""
        found = {"connect": _joined(self.connect), "keyexpr": _joined(self.key_exprs)}
        if self.format != "raw":
            found["payloadFormat"] = self.format
            if self.schema is not None or self.format != UPROTOCOL:
                found["payloadSchema"] = self.schema or ""
        if self.kind is not None:
            found["kind"] = self.kind
        if self.metadata:
            found["includeMetadata"] = "true"
        if self.as_of is not None:
            found["asOf"] = self.as_of
        elif self.start in ("earliest", "latest"):
            found["startingOffsets"] = self.start
        else:
            found["startingTimestamp"] = self.start
        return found | dict(self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A SELECT over sources and other steps, or a function of them: a view, stored only where a table says so."""

    name: str
    sql: str = ""
    reads: tuple[str, ...] = ()
    """The sources and steps it names, in the order of their first mention."""

    python: Code | None = None
    """Instead of SQL: a function that is given what it reads."""

    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A rule for the rows of a table; rows for which `check` is not true are counted, and go `otherwise`."""

    name: str
    check: str
    otherwise: str = "quarantine"
    """`quarantine`: into a table of their own; `drop`: away; `fail`: the run ends."""

    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A stored table."""

    name: str
    reads: str
    """`from`: the source or step whose rows it keeps."""

    path: Path | str
    """A directory, or the address of a place in an object store."""

    format: str = "delta"
    mode: str = "append"
    """`append`: rows are added. `complete`: every batch replaces the table by the whole result of an aggregation.
    `merge`: rows take the place of those with the same key."""

    merge: Merge | None = None
    """How, if `mode` says so."""

    expect: tuple[Expectation, ...] = ()
    quarantine: Path | str | None = None
    """Where rows that break a rule go; None without a rule that says so."""

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    """Columns by which compactions sort the rows."""

    retention: Duration | None = None
    """Rows stay as long as the table; old versions and their files this long. None: until somebody vacuums."""

    line: int = 0

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """Columns that it names, by what they are for."""
        found = {"partition_by": self.partition_by, "cluster_by": self.cluster_by}
        return (
            found if self.merge is None else {**found, "keys": self.merge.keys, "sequence_by": self.merge.sequence_by}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Rows put into the data space."""

    name: str
    reads: str
    connect: tuple[str, ...]
    format: str = "raw"
    """`raw`: there is a column `payload`; otherwise all columns but `key` are packed."""

    key: str | None = None
    """The key of every row; None if there is a column `key`."""

    mode: str = "append"
    """Spark's output mode: `append`, `update`, `complete`."""

    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of `format("zenoh")`, as they are."""

    line: int = 0

    def write_options(self) -> dict[str, str]:
        """The options of `df.writeStream`."""
        found = {"connect": _joined(self.connect)}
        if self.format != "raw":
            found["payloadFormat"] = self.format
        if self.key is not None:
            found["key"] = self.key
        return found | dict(self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreach:
    """A function that is called with each batch: at least once, for it may have done its work before a crash."""

    name: str
    reads: str
    python: Code
    mode: str = "append"
    """Spark's output mode."""

    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of Python that SQL may call."""

    name: str
    python: Code
    returns: str = "STRING"
    line: int = 0


View = Source | Step
Sink = Table | Publish | Foreach


def kind_of(sink: Sink) -> str:
    """What the file calls it."""
    return "table" if isinstance(sink, Table) else "publish" if isinstance(sink, Publish) else "foreach"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A pipeline."""

    file: Path
    name: str
    checkpoints: Path
    trigger: str = "1 second"
    """What Spark calls the processing time, or `available now`."""

    connect: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    steps: tuple[Step, ...] = ()
    """Every step behind those it reads."""

    tables: tuple[Table, ...] = ()
    publishes: tuple[Publish, ...] = ()
    foreachs: tuple[Foreach, ...] = ()
    functions: tuple[Function, ...] = ()
    every: Duration | None = None
    """How long after the beginning of a run to the end the next one begins."""

    variables: Variables = field(default_factory=Variables, repr=False, compare=False)
    """Knows which texts are not to be shown."""

    @property
    def base(self) -> Path:
        """The directory of the file."""
        return self.file.resolve().parent

    @property
    def is_once(self) -> bool:
        """Whether a run ends by itself."""
        return self.trigger == AVAILABLE_NOW

    @property
    def views(self) -> dict[str, View]:
        """Sources and steps by name, each behind what it reads."""
        found: tuple[View, ...] = (*self.sources, *self.steps)
        return {one.name: one for one in found}

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """What a query is started for."""
        return (*self.tables, *self.publishes, *self.foreachs)

    def upstream(self, name: str) -> tuple[View, ...]:
        """The view `name` and everything it reads, directly or not, in an order in which they can be made."""
        views = self.views
        wanted, todo = {name}, [name]
        while todo:
            one = views[todo.pop()]
            found = [read for read in one.reads if read not in wanted] if isinstance(one, Step) else []
            wanted.update(found)
            todo += found
        return tuple(one for one in views.values() if one.name in wanted)

    def output_mode(self, sink: Sink) -> str:
        """What Spark calls the output mode. Rows that are merged may change: an aggregation gives what has changed."""
        if sink.mode != "merge":
            return sink.mode
        steps = [one for one in self.upstream(sink.reads) if isinstance(one, Step)]
        is_grouped = any(one.sql and statement(one.sql).group_at is not None for one in steps)
        return "update" if is_grouped else "append"

    def is_stream(self, name: str) -> bool:
        """Whether the view `name` goes on for ever: one of its sources does."""
        return any(isinstance(one, Source) and one.is_stream for one in self.upstream(name))
