"""Where the boxes of a picture stand: columns from what is read to what is written, rows so that few lines cross."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from elea.spark.pipeline import sqltext
from elea.spark.pipeline.problem import Wrong
from elea.spark.pipeline.spec import Foreach, Publish, Sink, Source, Spec, Step, kind_of

__all__ = ["Box", "Layout", "layout"]

_ROUNDS: Final = 4
"""How often columns are sorted by their neighbours; pictures of pipelines do not change after that."""


@dataclass(slots=True)
class Box:
    """A box, or with an empty `kind` a place where a long line passes."""

    kind: str
    name: str
    detail: str = ""
    column: int = 0
    row: int = 0


@dataclass(slots=True)
class Layout:
    """Boxes, and the lines between boxes of neighbouring columns, each with the box where it began."""

    boxes: list[Box]
    lines: list[tuple[Box, Box, str]]

    @property
    def columns(self) -> list[list[Box]]:
        """The boxes of every column, from the top."""
        last = max((box.column for box in self.boxes), default=-1)
        return [sorted((one for one in self.boxes if one.column == at), key=_row) for at in range(last + 1)]


def layout(spec: Spec) -> Layout:
    """Place everything."""
    found: dict[str, Box] = {}
    edges: list[tuple[str, str]] = []
    for source in spec.sources:
        found[source.name] = Box("source", source.name, _of_source(source))
    for step in spec.steps:
        column = 1 + max((found[read].column for read in step.reads if read in found), default=-1)
        found[step.name] = Box("step", step.name, _of_step(step), max(column, 1))
        edges += [(read, step.name) for read in step.reads if read in found]
    last = 0
    for sink in spec.sinks:
        kind = kind_of(sink)
        place = f"{kind} {sink.name}"
        found[place] = Box(kind, sink.name, _of_sink(sink, spec), found[sink.reads].column + 1)
        edges.append((sink.reads, place))
        last = max(last, found[place].column)
    made = Layout(list(found.values()), [])
    for start, end in edges:
        _line(made, found[start], found[end])
    _rows(made)
    return made


def _line(made: Layout, start: Box, end: Box) -> None:
    """A line goes from column to column; in between it passes places of its own."""
    before = start
    for column in range(start.column + 1, end.column):
        after = Box("", start.name, "", column)
        made.boxes.append(after)
        made.lines.append((before, after, start.name))
        before = after
    made.lines.append((before, end, start.name))


def _row(box: Box) -> int:
    return box.row


def _rows(made: Layout) -> None:
    for column in made.columns:
        for at, box in enumerate(column):
            box.row = at
    for _ in range(_ROUNDS):
        for column in made.columns:
            wanted = {id(box): _wanted(made, box) for box in column}
            free = 0
            for box in sorted(column, key=lambda one: (wanted[id(one)], one.row)):
                box.row = max(free, round(wanted[id(box)]))
                free = box.row + 1


def _wanted(made: Layout, box: Box) -> float:
    """The height of what it reads; of a source, of what reads it."""
    rows = [start.row for start, end, _ in made.lines if end is box]
    if not rows:
        rows = [end.row for start, end, _ in made.lines if start is box]
        return min(rows, default=box.row)
    return sum(rows) / len(rows)


# -- what a box says ---------------------------------------------------------------------------------------------------


def _of_source(source: Source) -> str:
    kind = "" if source.is_stream else f" as of {source.as_of}" if source.as_of is not None else " (batch)"
    more = f" +{len(source.key_exprs) - 1}" if len(source.key_exprs) > 1 else ""
    return f"{source.key_exprs[0]}{more}{kind}"


def _of_step(step: Step) -> str:
    if step.python is not None:
        return f"Python: {step.python}"
    try:
        found = sqltext.statement(step.sql)
    except Wrong:
        return "SQL"
    words = [
        *(("join",) if found.has_join else ()),
        *(("window",) if found.window_at is not None else ()),
        *(("group",) if found.group_at is not None and found.window_at is None else ()),
    ]
    return f"SQL: {', '.join(words)}" if words else "SQL"


def _of_sink(sink: Sink, spec: Spec) -> str:
    if isinstance(sink, Publish):
        return f"{sink.key or '(column key)'} · {sink.format}"
    if isinstance(sink, Foreach):
        return f"Python: {sink.python}"
    base = spec.file.resolve().parent
    is_inside = isinstance(sink.path, Path) and sink.path.is_relative_to(base)
    place = os.path.relpath(sink.path, base) if is_inside else str(sink.path)
    rules = f" · {len(sink.expect)} rule{'s' if len(sink.expect) > 1 else ''}" if sink.expect else ""
    mode = "" if sink.mode == "append" else f" · {sink.mode}"
    return f"{place} · {sink.format}{mode}{rules}"
