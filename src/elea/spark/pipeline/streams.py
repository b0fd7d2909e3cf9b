"""What cannot be done with streams, and columns that are not there, as far as it can be seen without Spark.

Spark says the same when a query starts, later and in other words; what this does not see, it says then.
"""

from __future__ import annotations

import re
from typing import Final

from elea.model.errors import InvalidKeyExpr
from elea.model.keyexpr import intersects
from elea.spark.pipeline.lines import Path as Entry
from elea.spark.pipeline.parts import Parts, Reporter
from elea.spark.pipeline.problem import listed, nearest
from elea.spark.pipeline.spec import AVAILABLE_NOW, Publish, Sink, Source, Step, Table
from elea.spark.schema import METADATA, VALUE, names_of

__all__ = ["columns_of", "look"]

_FIELD: Final = re.compile(r"\w+(?:\.\w+)*")
_NO_TIMES: Final = frozenset("BOOLEAN BINARY ARRAY MAP STRUCT".split())
_NO_GROUP: Final = 'leave mode out, or aggregate in a step: "SELECT floor, count(*) AS n FROM … GROUP BY floor"'


def look(parts: Parts, to: Reporter) -> None:
    """Report what streams cannot do."""
    for source in parts.sources.values():
        _event_time(source, parts, to)
        if parts.trigger == AVAILABLE_NOW and source.is_stream and source.start == "latest":
            what = "a first run to the end (trigger) that starts at the latest sample reads nothing"
            fix = 'write start = "earliest", or another trigger'
            to.report(("source", source.name, "start"), what, fix, is_warning=True)
    for name in parts.steps:
        if _is_stream(parts, name):
            _step(name, parts, to)
    for path, sink in parts.sinks:
        if sink.reads not in parts.sources and sink.reads not in parts.steps:
            continue
        _aggregation(path, sink, parts, to)
        _columns(path, sink, parts, to)
        if isinstance(sink, Table) and sink.format == "parquet":
            _parquet(path, sink, parts, to)


def columns_of(parts: Parts, name: str) -> tuple[str, ...] | None:
    """The columns of a view; None if that is unclear."""
    if name in parts.sources:
        source = parts.sources[name]
        at = (source.event_column,) if source.event_column != source.event_time else ()
        return (*names_of(source.format, metadata=source.metadata, has_value=source.has_value), *at)
    found = parts.statements[name].columns if name in parts.statements else None
    return None if found is None else tuple(one or "" for one in found)


def _is_stream(parts: Parts, name: str) -> bool:
    return any(isinstance(one, Source) and one.is_stream for one in parts.upstream(name).values())


def _is_whole(parts: Parts, name: str) -> bool:
    """Whether everything it reads could be read."""
    found = parts.upstream(name)
    return all(read in found for one in found.values() if not isinstance(one, Source) for read in one.reads)


def _streams(parts: Parts, name: str) -> list[Source]:
    return [one for one in parts.upstream(name).values() if isinstance(one, Source) and one.is_stream]


# -- sources and steps -------------------------------------------------------------------------------------------------


def _event_time(source: Source, parts: Parts, to: Reporter) -> None:
    path = ("source", source.name, "event_time")
    if source.event_time == "timestamp":
        return
    if source.watermark is None:
        to.report(path, "event_time says what a watermark is on, and there is none", 'add watermark = "10 seconds"')
    if not _FIELD.fullmatch(source.event_time):
        return  # an expression: Spark looks at it
    outer, _, inner = source.event_time.partition(".")
    columns = columns_of(parts, source.name) or ()
    if outer not in columns:
        fix = "add metadata = true" if outer in METADATA else nearest(outer, columns, "columns are")
        to.report_value(path, f"event_time: there is no column {outer}", fix)
        return
    fields = parts.fields.get(source.name)
    if outer != VALUE or fields is None:
        return
    if inner not in fields:
        fix = nearest(source.event_time, [f"{VALUE}.{one}" for one in fields], "fields are")
        to.report_value(path, f"event_time: the schema has no field {inner or 'that is named'}", fix)
    elif fields[inner] in _NO_TIMES:
        times = [f"{VALUE}.{one}" for one, kind in fields.items() if kind.startswith("TIMESTAMP")]
        fix = f"choose {listed(times)}" if times else "choose a field of type TIMESTAMP"
        to.report_value(path, f"event_time: {inner} is of type {fields[inner]}, no time", fix)


def _step(name: str, parts: Parts, to: Reporter) -> None:
    path = ("step", name, "sql")
    found = parts.statements.get(name)
    if found is None:
        return  # what a function does, Spark sees when it is called
    if found.over_at is not None:
        fix = "group by window(timestamp, '1 minute'), or take max_by(column, timestamp)"
        to.report_value(path, "a stream has no windows over rows (OVER)", fix, found.over_at)
    if found.distinct_at is not None:
        fix = "use approx_count_distinct, or SELECT DISTINCT in a step before"
        to.report_value(path, "a stream cannot aggregate distinct values", fix, found.distinct_at)
    complete = any(sink.mode == "complete" and name in parts.upstream(sink.reads) for _, sink in parts.sinks)
    if found.sort_at is not None and not complete:
        fix = "sort when you read the table"
        to.report_value(path, "a stream has no end, so it cannot be sorted", fix, found.sort_at)
    both = [read for read in parts.steps[name].reads if _is_stream(parts, read)]
    bare = [one.name for one in _streams(parts, name) if one.watermark is None]
    if found.has_join and len(both) > 1 and bare:
        fix = f'add watermark = "1 minute" to [source.{bare[0]}], and a range of time to the condition'
        if found.outer_at is not None:
            what = "an outer join of two streams never knows that a row has no partner without watermarks"
            to.report_value(path, what, fix, found.outer_at)
        else:
            what = "a join of two streams without watermarks keeps all rows for ever"
            to.report_value(path, what, fix, is_warning=True)


# -- tables and publishes ----------------------------------------------------------------------------------------------


def _aggregation(path: Entry, sink: Sink, parts: Parts, to: Reporter) -> None:
    """What is appended must be final, which only a watermark can say."""
    steps = [name for name in parts.upstream(sink.reads) if name in parts.statements and _is_stream(parts, name)]
    groups = [name for name in steps if parts.statements[name].group_at is not None]
    functions = [one for one in parts.upstream(sink.reads).values() if isinstance(one, Step) and one.python is not None]
    if sink.mode == "complete" and steps and not groups and not functions and _is_whole(parts, sink.reads):
        to.report((*path, "mode"), "complete writes the whole result of an aggregation, and there is none", _NO_GROUP)
    bare = [one.name for one in _streams(parts, sink.reads) if one.watermark is None]
    watermarks = [one for one in _streams(parts, sink.reads) if one.watermark is not None]
    if sink.mode != "append" or not groups:
        return
    name = groups[-1]
    found = parts.statements[name]
    if watermarks:
        _ending(path, sink, name, [*watermarks], parts, to)
        return
    if not bare or (found.distinct_at is not None and not found.grouped):  # which was told
        return
    other = "complete" if isinstance(sink, Table) else "update"
    add = f'add watermark = "10 seconds" to [source.{bare[0]}]'
    if found.window_at is not None:
        what = f"without a watermark no window ever ends, so {path[0]} {sink.name} would stay empty"
        to.report_value(("step", name, "sql"), what, add, found.window_at)
    else:
        what = f"an aggregation without watermark is never final, so {path[0]} {sink.name} cannot append it"
        fix = f"{add} and group by window(timestamp, '1 minute'), or write mode = \"{other}\" there"
        to.report_value(("step", name, "sql"), what, fix, found.group_at or 0)


def _ending(path: Entry, sink: Sink, name: str, sources: list[Source], parts: Parts, to: Reporter) -> None:
    """A watermark ends groups only if they are groups of times; a name may be one of a time, so Spark has to say."""
    found = parts.statements[name]
    steps = [parts.statements[one] for one in parts.upstream(sink.reads) if one in parts.statements]
    times = {one.event_column.lower() for one in sources}
    if any(one.window_at is not None for one in steps) or times & found.grouped or found.group_at is None:
        return
    what = (
        f"nothing that it groups by is a time, so no watermark ends a group, and {path[0]} {sink.name} cannot append it"
    )
    other = "complete" if isinstance(sink, Table) else "update"
    fix = f"group by window({sources[0].event_column}, '1 minute'), or write mode = \"{other}\" there"
    to.report_value(("step", name, "sql"), what, fix, found.group_at, is_warning=True)


def _parquet(path: Entry, table: Table, parts: Parts, to: Reporter) -> None:
    """Files are added, and never taken away: a table that is written anew needs versions."""
    fix = 'write format = "delta", or leave it out'
    if table.mode == "complete":
        what = f"table {table.name} is replaced by every batch (mode), and files of parquet cannot be while others read"
        to.report((*path, "format"), what, fix)
    elif not _is_stream(parts, table.reads) and _is_whole(parts, table.reads):
        what = f"{table.reads} is no stream: every run writes table {table.name} anew, and parquet cannot be replaced"
        to.report((*path, "format"), what, fix)


def _columns(path: Entry, sink: Sink, parts: Parts, to: Reporter) -> None:
    columns = columns_of(parts, sink.reads)
    statement = parts.statements.get(sink.reads)
    if statement is not None and statement.unnamed_at is not None and isinstance(sink, Table):
        what = f"a column of table {sink.name} has no name"
        to.report_value(("step", sink.reads, "sql"), what, "give it one: count(*) AS n", statement.unnamed_at)
    if isinstance(sink, Publish):
        _publish(path, sink, columns, parts, to)
        return
    if not isinstance(sink, Table):
        return
    for what, names in sink.named.items():
        for name in names if columns is not None and "" not in columns else ():
            if name.lower() not in (one.lower() for one in columns or ()):
                fix = nearest(name, columns or (), "columns are")
                to.report_value((*path, what), f"{what}: {sink.reads} has no column {name}", fix)
    if sink.merge is not None and not _is_stream(parts, sink.reads) and _is_whole(parts, sink.reads):
        what = f"{sink.reads} is no stream: every run writes table {sink.name} anew, and has nothing to merge with"
        to.report((*path, "mode"), what, "leave mode out")


def _publish(path: Entry, sink: Publish, columns: tuple[str, ...] | None, parts: Parts, to: Reporter) -> None:
    if sink.reads in parts.sources:
        fix = f'add a step: "SELECT key, payload FROM {sink.reads}"'
        what = "rows of a source have columns that a sample has not (source_id, sn)"
        to.report_value((*path, "from"), f"from: {what}", fix)
        return
    known = None if columns is None else {one.lower() for one in columns}
    if known is not None and "key" not in known and sink.key is None:
        fix = f"let the step {sink.reads} say  concat('alerts/', …) AS key , or add key = \"alerts/all\""
        to.report((*path, "from"), f"nobody says the key: step {sink.reads} has no column key", fix)
    if known is not None and sink.format == "raw" and "payload" not in known:
        fix = 'add format = "json", which packs the columns, or a column payload'
        to.report((*path, "from"), f"raw needs a column payload, and step {sink.reads} has none", fix)
    for source in _streams(parts, sink.reads) if sink.key is not None else ():
        if any(_meet(sink.key, one) for one in source.key_exprs):
            what = f"source {source.name} reads what is put there, again and again"
            to.report_value((*path, "key"), f"key: {what}", "choose a key that it does not read", is_warning=True)


def _meet(key: str | None, key_expr: str) -> bool:
    try:
        return key is not None and intersects(key, key_expr)
    except InvalidKeyExpr:
        return False
