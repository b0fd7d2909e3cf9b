"""The parts of a pipeline while its file is read: some may be missing, because they are wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from elea.spark.pipeline.lines import Lines
from elea.spark.pipeline.lines import Path as Entry
from elea.spark.pipeline.problem import Problem
from elea.spark.pipeline.spec import Foreach, Function, Publish, Sink, Source, Step, Table
from elea.spark.pipeline.sqltext import Statement

__all__ = ["Parts", "Reporter"]


@dataclass(slots=True)
class Parts:
    """What could be read, by name."""

    checkpoints: Path
    trigger: str
    names: dict[str, list[str]] = field(default_factory=dict)
    """By kind, all that the file has, also those that are wrong."""

    sources: dict[str, Source] = field(default_factory=dict)
    fields: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of a source: the fields of `value` and their types."""

    steps: dict[str, Step] = field(default_factory=dict)
    statements: dict[str, Statement] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    publishes: dict[str, Publish] = field(default_factory=dict)
    foreachs: dict[str, Foreach] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    reads: dict[tuple[str, str], str] = field(default_factory=dict)
    """What tables and publishes say to be `from`, also of those that are wrong otherwise."""

    @property
    def sinks(self) -> list[tuple[tuple[str, str], Sink]]:
        """Tables and publishes, with where they stand."""
        return [
            *((("table", name), one) for name, one in self.tables.items()),
            *((("publish", name), one) for name, one in self.publishes.items()),
            *((("foreach", name), one) for name, one in self.foreachs.items()),
        ]

    def upstream(self, name: str) -> dict[str, Source | Step]:
        """The view `name` and all that it reads, as far as it is known; the farthest last."""
        found: dict[str, Source | Step] = {}
        todo = [name]
        while todo:
            one = todo.pop(0)
            view = self.sources.get(one) or self.steps.get(one)
            if view is None or one in found:
                continue
            found[one] = view
            todo += view.reads if isinstance(view, Step) else ()
        return found


class Reporter:
    """Collects problems, with their places."""

    def __init__(self, places: Lines) -> None:
        self.places = places
        self.problems: list[Problem] = []

    def report(self, path: Entry, what: str, fix: str, *, is_warning: bool = False) -> None:
        """A problem of an entry as a whole, or of one that is missing."""
        place = self.places.key(path)
        self.problems.append(Problem(place.line, place.column, what, fix, is_warning, self.places.file_of(path)))

    def report_value(self, path: Entry, what: str, fix: str, at: int = 0, *, is_warning: bool = False) -> None:
        """A problem of a value, at one of its characters."""
        place = self.places.character(path, at)
        self.problems.append(Problem(place.line, place.column, what, fix, is_warning, self.places.file_of(path)))
