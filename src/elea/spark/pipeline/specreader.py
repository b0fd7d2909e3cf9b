"""A pipeline file to a `Spec`, or to the list of all that is wrong with it.

Nothing stops at the first mistake: a key that does not do is left out, and the rest is looked at all the same. Only
TOML that is none at all ends it, because nobody knows what the rest would mean.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from elea.model.errors import ConfigError, PipelineError
from elea.spark.deltamerge import Merge
from elea.spark.pipeline import ddl, graph, lines, sourceoptions, sqltext, streams, toml, values
from elea.spark.pipeline.filereader import Text, read_text
from elea.spark.pipeline.keys import EXPECTATION, KINDS, PIPELINE, SECTIONS, Key
from elea.spark.pipeline.parts import Parts, Reporter
from elea.spark.pipeline.problem import Problem, Wrong, nearest
from elea.spark.pipeline.pythoncode import Code
from elea.spark.pipeline.spec import Expectation, Foreach, Function, Publish, Source, Spec, Step, Table
from elea.spark.schema import UPROTOCOL
from elea.spark.tableplaces import is_remote

__all__ = ["read", "text_of", "understand"]

MERGE: Final = ("keys", "sequence_by", "deletes", "scd")
"""Keys of a table for `mode = "merge"`."""


def read(path: str | Path, parameters: Mapping[str, str] | None = None) -> Spec:
    """Read a file.

    Args:
        parameters: values that go before those of `[parameters]`.

    Raises:
        PipelineError: with everything that is wrong in it.
        OSError: it cannot be opened.
    """
    file = Path(path)
    spec, problems = understand(text_of(file), file, parameters)
    if spec is None:
        raise PipelineError(str(path), [one for one in problems if not one.is_warning])
    return spec


def text_of(file: Path) -> str:
    """The text of a file.

    Raises:
        PipelineError: it is no text.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        problem = Problem(0, 0, f"it is no UTF-8 at octet {error.start}", "save the file as UTF-8")
        raise PipelineError(str(file), [problem]) from error


def understand(
    text: str, file: Path, parameters: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> tuple[Spec | None, list[Problem]]:
    """What a text says, and its problems in the order of its lines; no `Spec` if one of them is an error."""
    text = text.replace("\r\n", "\n")
    try:
        found = read_text(text, file, parameters or {}, os.environ if environment is None else environment)
    except tomllib.TOMLDecodeError as error:
        return None, [toml.problem(error, text)]
    reader = _Reader(found, file)
    spec = reader.spec()
    hide = found.variables.hide
    problems = [replace(one, what=hide(one.what), fix=hide(one.fix)) for one in (*found.problems, *reader.problems)]
    problems.sort(key=lambda one: (one.file or "", one.line, one.column))
    return None if any(not one.is_warning for one in problems) else spec, problems


class _Reader(Reporter):
    def __init__(self, found: Text, file: Path) -> None:
        super().__init__(found.places)
        self._data = found.data
        self._variables = found.variables
        self._file = file
        self._base = file.resolve().parent

    def spec(self) -> Spec:
        """The pipeline, as far as it can be read."""
        for name in self._data:
            if name in KINDS:
                continue
            if name in PIPELINE and not isinstance(self._data[name], dict):
                self.report((name,), f"{name} stands in no table", "put it under [pipeline]")
            else:
                known = nearest(name, KINDS, "tables are")
                self.report((name,), f"there is no table {name}", known)
        head = self._data.get("pipeline")
        top = {name: key.default for name, key in PIPELINE.items()}
        if isinstance(head, dict):
            top |= self._entries(head, ("pipeline",), PIPELINE, "[pipeline]")
            if "every" in head and "trigger" in head:
                what = "every says when runs begin that go to the end, trigger how often batches do"
                self.report(("pipeline", "every"), what, "leave one of them out")
        else:
            self.report(("pipeline",), "the table [pipeline] is missing", 'begin with [pipeline] and name = "fleet"')
        connect = top["connect"]
        parts = Parts(checkpoints=self._path(top["checkpoints"]), trigger=top["trigger"])
        for kind in SECTIONS:
            self._section(kind, connect, parts)
        steps = graph.look(parts, self)
        streams.look(parts, self)
        return Spec(
            file=self._file,
            name=top["name"],
            checkpoints=parts.checkpoints,
            trigger=parts.trigger,
            connect=connect,
            sources=tuple(parts.sources.values()),
            steps=steps,
            tables=tuple(parts.tables.values()),
            publishes=tuple(parts.publishes.values()),
            foreachs=tuple(parts.foreachs.values()),
            functions=tuple(parts.functions.values()),
            every=top["every"],
            variables=self._variables,
        )

    def _table_path(self, text: str) -> Path | str:
        return text if is_remote(text) else self._path(text)

    def _path(self, text: str) -> Path:
        return Path(self._base, Path(text).expanduser())

    # -- tables with names ---------------------------------------------------------------------------------------------

    def _section(self, kind: str, connect: tuple[str, ...], parts: Parts) -> None:
        found = self._data.get(kind, {})
        if not isinstance(found, dict):
            self.report((kind,), f"{kind} is a table", f"write [{kind}.NAME]")
            return
        for name, data in found.items():
            path = (kind, name)
            if not isinstance(data, dict):
                what = f"[{kind}] has no name" if name in SECTIONS[kind] else f"{kind}.{name} is a table"
                if isinstance(data, list):
                    self.report(path, what, f"write [{kind}.{name}] with single brackets, once")
                    parts.names.setdefault(kind, []).append(name)
                else:
                    self.report(path, what, f"write [{kind}.NAME] above it")
                continue
            parts.names.setdefault(kind, []).append(name)
            try:
                values.check_name(name)
            except Wrong as error:
                self.report(path, error.what, error.fix)
            entries = self._entries(data, path, SECTIONS[kind], f"[{kind}.{name}]")
            if "from" in entries and kind != "step":
                parts.reads[path] = entries["from"]
            if any(key.required and each not in entries for each, key in SECTIONS[kind].items()):
                continue
            line = self.places.key(path).line
            if kind == "source":
                self._source(name, entries, connect, line, parts)
            elif kind == "step":
                self._step(name, entries, line, parts)
            elif kind == "table":
                parts.tables[name] = self._table(name, entries, line)
            elif kind == "function":
                self._code(path, entries["python"])
                parts.functions[name] = Function(name=name, line=line, **entries)
            elif kind == "foreach":
                self._code(path, entries["python"])
                parts.foreachs[name] = Foreach(
                    name=name, reads=entries["from"], python=entries["python"], mode=entries["mode"], line=line
                )
            else:
                self._publish(name, entries, connect, line, parts)

    def _entries(
        self, data: Mapping[str, Any], path: lines.Path, keys: Mapping[str, Key], table: str
    ) -> dict[str, Any]:
        """The values that can be read; those left out have their defaults, those that are wrong are missing."""
        found: dict[str, Any] = {}
        for name, value in data.items():
            if name not in keys:
                self._unknown(name, (*path, name), keys, table)
                continue
            try:
                found[name] = keys[name].parse(value)
            except Wrong as error:
                self.report_value((*path, name), f"{name}: {error.what}", error.fix, error.at)
        for name, key in keys.items():
            if key.required and name not in data:
                self.report(path, f"{table} has no {name}", f"add {name} = …: {key.what}")
            elif not key.required and name not in found:
                found[name] = key.default
        return found

    def _unknown(self, name: str, path: lines.Path, keys: Mapping[str, Key], table: str) -> None:
        near = nearest(name, keys, "keys are")
        others = [kind for kind, has in {"pipeline": PIPELINE, **SECTIONS}.items() if name in has]
        if others and not near.startswith("did"):
            near = f"it belongs to {' or '.join(f'[{one}]' if one == 'pipeline' else f'[{one}.…]' for one in others)}"
        self.report(path, f"{table} knows no {name}", near)

    # -- one of each ---------------------------------------------------------------------------------------------------

    def _source(self, name: str, entries: dict[str, Any], connect: tuple[str, ...], line: int, parts: Parts) -> None:
        path = ("source", name)
        given = self._data["source"][name]
        schema, kind = entries["schema"], entries["format"]
        if kind not in ("raw", UPROTOCOL) and schema is None and "schema" not in given:
            fix = 'add schema = "speed DOUBLE, name STRING"'
            self.report((*path, "format"), f"{kind} payloads need a schema", fix)
        if kind == "raw" and schema is not None:
            fix = 'add format = "json"' if "format" not in given else "leave the schema out, or name another format"
            self.report((*path, "schema"), "raw payloads have no schema", fix)
        if schema is not None:
            try:
                parts.fields[name] = ddl.fields_of(schema)
            except Wrong as error:
                self.report_value((*path, "schema"), f"schema: {error.what}", error.fix, error.at)
                schema = None
        made = Source(
            name=name,
            key_exprs=entries["keyexpr"],
            line=line,
            connect=entries["connect"] or connect,
            schema=schema,
            **{one: entries[one] for one in ("format", "watermark", "event_time", "start", "batch")},
            **{one: entries[one] for one in ("as_of", "kind", "metadata", "options")},
        )
        parts.sources[name] = made
        self._table_or_stream(made, given)
        sourceoptions.check_source(made, self)

    def _table_or_stream(self, made: Source, given: Mapping[str, Any]) -> None:
        """Keys that are for streams only, or for tables only."""
        path = ("source", made.name)
        if made.is_stream:
            return
        which = "as_of" if made.as_of is not None else "batch"
        if made.watermark is not None:
            fix = f"leave watermark out, or {which}, if it should be a stream"
            self.report((*path, "watermark"), f"a table ({which}) has no watermark", fix)
        if made.as_of is not None and "start" in given:
            self.report((*path, "start"), "as_of says one time, start another", "leave one of them out")
        elif made.start == "latest":
            fix = "leave start out: a table is read from its beginning"
            self.report((*path, "start"), "a table (batch) that starts at the latest sample is empty", fix)

    def _code(self, path: lines.Path, code: Code) -> None:
        try:
            code.check(self._base)
        except Wrong as error:
            self.report_value((*path, "python"), f"python: {error.what}", error.fix)

    def _step(self, name: str, entries: dict[str, Any], line: int, parts: Parts) -> None:
        path = ("step", name)
        given = self._data["step"][name]
        if ("sql" in given) == ("python" in given):
            what = "a step has sql or python, not both" if "sql" in given else "a step has sql or python"
            self.report(path, what, 'write sql = "SELECT …", or python = "module:function" with from = ["…"]')
            return
        if "python" in given:
            if not entries["from"] and "from" not in given:
                self.report(
                    path, "nobody says what the function is given", 'add from = "…": a source or step, or a list'
                )
            if entries["python"] is not None:
                self._code(path, entries["python"])
                parts.steps[name] = Step(name=name, python=entries["python"], reads=entries["from"], line=line)
            return
        if "from" in given:
            self.report((*path, "from"), "from is for functions of Python", "leave it out: SQL names what it reads")
        if entries["sql"] is None:
            return
        try:
            found = sqltext.statement(entries["sql"])
        except Wrong as error:
            self.report_value(("step", name, "sql"), f"sql: {error.what}", error.fix, error.at)
            return
        parts.statements[name] = found
        reads = tuple(one.name for one in found.reads)
        parts.steps[name] = Step(name=name, sql=entries["sql"], reads=reads, line=line)

    def _table(self, name: str, entries: dict[str, Any], line: int) -> Table:
        path = ("table", name)
        rules = self._expect(path, entries["expect"])
        place = self._table_path(entries["path"])
        quarantine = None
        if any(rule.otherwise == "quarantine" for rule in rules):
            quarantine = self._table_path(entries["quarantine"] or f"{entries['path'].rstrip('/')}_quarantine")
        elif entries["quarantine"] is not None:
            fix = 'add expect = [ { name = "…", check = "…", otherwise = "quarantine" } ], or leave quarantine out'
            self.report((*path, "quarantine"), "no rule sends rows to the quarantine", fix)
        return Table(
            name=name,
            reads=entries["from"],
            path=place,
            merge=self._merge(path, entries),
            quarantine=quarantine,
            expect=rules,
            line=line,
            **{one: entries[one] for one in ("format", "mode", "partition_by", "cluster_by", "retention")},
        )

    def _merge(self, path: lines.Path, entries: dict[str, Any]) -> Merge | None:
        """How rows are merged; None if they are not."""
        given = [name for name in MERGE if entries[name] != SECTIONS["table"][name].default]
        if entries.get("mode") != "merge":
            for name in given:
                self.report((*path, name), f"{name} is for rows that are merged", 'add mode = "merge", or leave it out')
            return None
        if entries.get("format") == "parquet":
            self.report(
                (*path, "format"), "files of parquet cannot be merged", 'write format = "delta", or leave it out'
            )
        try:
            return Merge(entries["keys"], entries["sequence_by"], entries["deletes"], entries["scd"])
        except ConfigError as error:
            # What is not given cannot be pointed at.
            at = error.path if error.path in given else "mode"
            self.report((*path, at), f"{error.path}: {error.problem}", f"{error.hint}".replace("keys=", "keys = "))
            return None

    def _expect(self, path: lines.Path, found: list[Any]) -> tuple[Expectation, ...]:
        rules: dict[str, Expectation] = {}
        for number, data in enumerate(found):
            place = (*path, "expect", number)
            if not isinstance(data, dict):
                fix = f'write {{ name = "…", check = {str(data)!r} }}'.replace("'", '"')
                self.report(place, "a rule has a name and a check", fix)
                continue
            entries = self._entries(data, place, EXPECTATION, "the rule")
            if "name" not in entries or "check" not in entries:
                continue
            try:
                words = sqltext.tokens(entries["check"])
                if words and words[0].says("SELECT", "WHERE", "FROM"):
                    raise Wrong("it is a condition, not a statement", 'write e.g. check = "speed > 0"')
            except Wrong as error:
                self.report_value((*place, "check"), f"check: {error.what}", error.fix, error.at)
            if entries["name"] in rules:
                self.report((*place, "name"), f"there are two rules {entries['name']!r}", "rename one of them")
            line = self.places.key(place).line
            rules[entries["name"]] = Expectation(**{"otherwise": "quarantine"} | entries, line=line)
        return tuple(rules.values())

    def _publish(self, name: str, entries: dict[str, Any], connect: tuple[str, ...], line: int, parts: Parts) -> None:
        made = Publish(
            name=name,
            reads=entries["from"],
            line=line,
            connect=entries["connect"] or connect,
            **{one: entries[one] for one in ("format", "key", "mode", "options")},
        )
        parts.publishes[name] = made
        sourceoptions.check_publish(made, self)
