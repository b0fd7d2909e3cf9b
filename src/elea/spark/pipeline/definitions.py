"""What a table or publish is computed from, kept with its checkpoint: a changed one must not go on from the old state.

Spark goes on from a checkpoint whatever the query says by then: a window that has become longer adds up parts of both
lengths. So every checkpoint has the definition that it belongs to beside it, without what touches no result: comments,
spaces, names of steps, lengths of batches, where brokers are, how long versions are kept. A run compares them first.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from elea.model.errors import ConfigError, PipelineChanged
from elea.spark.pipeline.additions import added
from elea.spark.pipeline.ddl import TYPES
from elea.spark.pipeline.problem import Wrong
from elea.spark.pipeline.spec import Publish, Sink, Source, Spec, Step, Table, kind_of
from elea.spark.pipeline.sqltext import Token, tokens

__all__ = ["Change", "changes", "check", "definition_of", "is_same", "keep"]

FILE: Final = "elea-definition.json"
SCHEMA: Final = 1
"""How definitions are written. One of another number cannot be compared, and counts as none."""

NEUTRAL: Final = frozenset(
    "connect config dialect connecttimeoutms requesttimeoutms startingoffsets startingtimestamp maxoffsetspertrigger "
    "maxbytespertrigger minpartitions failondataloss sourceid polltimeoutms pushdown priority congestioncontrol "
    "express reliability idempotent".split()
)
"""Options that say how rows are fetched or sent, not which."""

KEYWORDS: Final = frozenset(
    "SELECT FROM WHERE GROUP BY HAVING AS JOIN LEFT RIGHT FULL OUTER INNER CROSS ON USING AND OR NOT IS NULL BETWEEN "
    "IN LIKE CASE WHEN THEN ELSE END DISTINCT UNION ALL LIMIT WITH CAST INTERVAL ORDER ASC DESC TRUE FALSE".split()
)
"""Words whose case says nothing. That of others may be the name of a column."""

_log: Final = logging.getLogger("elea.spark")

Definition = Mapping[str, Any]


# -- what a definition is ----------------------------------------------------------------------------------------------


def definition_of(spec: Spec, sink: Sink) -> Definition:
    """What a table or publish is computed from.

    `parts` has each source, step and the sink by its name, to tell what has changed; `fingerprint` is the same for two
    that differ only in names of sources and steps.
    """
    parts: dict[str, dict[str, Any]] = {}
    prints: dict[str, str] = {}
    for view in spec.upstream(sink.reads):
        if isinstance(view, Source):
            parts[f"source {view.name}"] = found = _source(view)
            prints[view.name.lower()] = _hash(["source", spec.variables.hidden(found)])
        else:
            parts[f"step {view.name}"] = found = _step(spec, view)
            words = _words(view.sql) if view.python is None else view.reads
            named = spec.variables.hidden([prints.get(word.strip("`").lower(), word) for word in words])
            more = {key: value for key, value in found.items() if key not in ("sql", "from")}
            prints[view.name.lower()] = _hash(["step", named, more] if more else ["step", named])
    kind, own = kind_of(sink), _own(spec, sink)
    parts[f"{kind} {sink.name}"] = {"from": sink.reads, **own}
    parts, own = spec.variables.hidden(parts), spec.variables.hidden(own)
    return {"schema": SCHEMA, "fingerprint": _hash([kind, own, prints[sink.reads.lower()]]), "parts": parts}


def _own(spec: Spec, sink: Sink) -> dict[str, Any]:
    if isinstance(sink, Table):
        return _table(spec, sink)
    if isinstance(sink, Publish):
        return _publish(sink)
    return {"python": str(sink.python), "code": sink.python.fingerprint(spec.base), "mode": sink.mode}


def _step(spec: Spec, step: Step) -> dict[str, Any]:
    if step.python is not None:
        return {"python": str(step.python), "from": list(step.reads), "code": step.python.fingerprint(spec.base)}
    words = _words(step.sql)
    called = {word.lower() for word in words}
    functions = {
        one.name: [str(one.python), one.returns, one.python.fingerprint(spec.base)]
        for one in spec.functions
        if one.name.lower() in called
    }
    found: dict[str, Any] = {"sql": " ".join(words)}
    return {**found, "functions": functions} if functions else found


def _source(source: Source) -> dict[str, Any]:
    found: dict[str, Any] = {
        "keyexpr": sorted(source.key_exprs),
        "format": source.format,
        "schema": None if source.schema is None else " ".join(_ddl(source.schema)),
        "watermark": None if source.watermark is None else source.watermark.seconds,
        "event_time": " ".join(_words(source.event_time)),
        "batch": source.batch,
        "as_of": source.as_of,
        "kind": source.kind,
        "metadata": source.metadata,
        "options": _options(source.options),
    }
    # A stream has its start behind it; what is read as a whole begins there every time.
    return found if source.is_stream else {**found, "start": source.start}


def _table(spec: Spec, table: Table) -> dict[str, Any]:
    rules = [[one.name, " ".join(_words(one.check)), one.otherwise] for one in table.expect]
    how = table.merge
    merged: dict[str, Any] = {}
    if how is not None:
        deletes = None if how.deletes is None else " ".join(_words(how.deletes))
        merged = {"keys": list(how.keys), "sequence_by": list(how.sequence_by), "deletes": deletes, "scd": how.scd}
    return {
        **merged,
        "path": _place(spec, table.path),
        "format": table.format,
        "mode": table.mode,
        "expect": rules,
        "quarantine": None if table.quarantine is None else _place(spec, table.quarantine),
        "partition_by": list(table.partition_by),
    }


def _publish(publish: Publish) -> dict[str, Any]:
    return {
        "format": publish.format,
        "key": publish.key,
        "mode": publish.mode,
        "options": _options(publish.options),
    }


def _place(spec: Spec, path: Path | str) -> str:
    """A directory, so that it stays the same if the whole project is moved."""
    if isinstance(path, str):
        return path
    base = spec.file.resolve().parent
    return str(path.relative_to(base)) if path.is_relative_to(base) else str(path)


def _options(given: Mapping[str, str]) -> dict[str, str]:
    plain = {name.replace("_", "").lower(): value for name, value in given.items()}
    return {name: plain[name] for name in sorted(plain) if name not in NEUTRAL and not name.startswith("zenoh.")}


def _words(sql: str) -> list[str]:
    """The words of a statement or condition, without comments, spaces and the case of keywords."""
    try:
        found = [one for one in tokens(sql) if one.text != ";"]
    except Wrong:  # whoever reads it says what is wrong with it
        return [sql]
    return [one.text.upper() if one.says(*KEYWORDS) else one.text for one in found]


def _ddl(schema: str) -> list[str]:
    """The words of a schema, without comments in it and the case of types."""
    try:
        found = tokens(schema)
    except Wrong:
        return [schema]
    kept: list[Token] = []
    for one in found:
        if one.kind == "text" and kept and kept[-1].says("COMMENT"):
            kept.pop()
        else:
            kept.append(one)
    following = [*kept[1:], None]
    # What stands before another word, or a colon, is the name of a field.
    names = [then is not None and (then.kind == "word" or then.text == ":") for then in following]
    words = zip(kept, names, strict=True)
    return [one.text.upper() if one.says(*TYPES) and not is_name else one.text for one, is_name in words]


def _hash(form: Any) -> str:
    return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()


# -- beside a checkpoint -----------------------------------------------------------------------------------------------


def keep(checkpoint: Path, definition: Definition) -> None:
    """Put it beside a checkpoint, before the checkpoint begins."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    beside = checkpoint / f".{FILE}.new"
    beside.write_text(json.dumps(definition, indent=1, sort_keys=True), encoding="utf-8")
    os.replace(beside, checkpoint / FILE)


def is_same(checkpoint: Path, definition: Definition) -> bool:
    """Whether a checkpoint belongs to it; one that has not begun belongs to any, one without a definition to none."""
    known = _kept(checkpoint)
    return not _files(checkpoint / "offsets") or (
        known is not None and known["fingerprint"] == definition["fingerprint"]
    )


NEW, SAME, GROWS, CHANGED, FOLLOWS, UNKNOWN = "new", "same", "grows", "changed", "follows", "unknown"
"""What a run makes of a table or publish; see `Change`."""


@dataclass(frozen=True, slots=True)
class Change:
    """A table or publish, and what its definition is to the one of its checkpoint."""

    sink: str
    """Its kind and name."""

    what: str
    """`new`: nothing was computed so far. `same`. `grows`: it gets columns. `changed`: refused without a backfill.
    `follows`: no state, and no rows that stay, so it goes on. `unknown`: its checkpoint is older than definitions."""

    told: tuple[str, ...] = ()
    """In what it differs."""


def changes(spec: Spec) -> list[Change]:
    """What a run would find; nothing is written."""
    found = []
    for sink in spec.sinks:
        if not spec.is_stream(sink.reads):
            continue
        name, place, now = f"{kind_of(sink)} {sink.name}", spec.checkpoints / sink.name, definition_of(spec, sink)
        if not _has_begun(place, sink):
            found.append(Change(name, NEW))
            continue
        if is_same(place, now):
            found.append(Change(name, SAME))
            continue
        known = _kept(place)
        if known is None:
            found.append(Change(name, UNKNOWN))
            continue
        new = _added(sink, place, known["parts"], now["parts"])
        told = _differences(known["parts"], now["parts"])
        if new is not None:
            found.append(Change(name, GROWS, tuple(new)))
        elif not isinstance(sink, Table) and not (place / "state").is_dir():
            found.append(Change(name, FOLLOWS, tuple(told)))
        else:
            found.append(Change(name, CHANGED, tuple(told)))
    return found


def check(spec: Spec, *, accept_change: bool) -> tuple[str, ...]:
    """Compare every table and publish with what its checkpoint belongs to; from now on that is what it is now.

    Returns:
        what was found and does not keep the run from going on.

    Raises:
        PipelineChanged: tables would get rows of two definitions, or windows parts of both.
    """
    found = changes(spec)
    changed = {one.sink: one.told for one in found if one.what == CHANGED}
    if changed and not accept_change:
        raise PipelineChanged(spec.name, changed, str(spec.checkpoints))
    for sink in spec.sinks:
        if spec.is_stream(sink.reads):
            keep(spec.checkpoints / sink.name, definition_of(spec, sink))
    notes = tuple(note for note in map(_note, found) if note)
    for note in notes:
        _log.warning("definition: %s", note)
    return notes


def _note(change: Change) -> str:
    name, told = change.sink, ", ".join(change.told)
    if change.what == UNKNOWN:
        return (
            f"{name}: its checkpoint is older than definitions, so nobody knows whether it has changed; "
            "the one of now is taken for it"
        )
    if change.what == FOLLOWS:
        verb = "published" if name.startswith("publish ") else "done"
        return f"{name}: what is {verb} from now on has another definition: {told}"
    return {
        GROWS: f"{name} gets columns: {told}; rows of before have null there",
        CHANGED: f"{name} goes on with another definition, as accepted: {told}",
    }.get(change.what, "")


def _added(sink: Sink, checkpoint: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str] | None:
    """What is new, if that is all and the table can go on: its rows are there, and nothing is computed over several."""
    if not isinstance(sink, Table) or sink.format != "delta" or (checkpoint / "state").is_dir():
        return None
    return added(before, now)


def _kept(checkpoint: Path) -> Definition | None:
    try:
        found = json.loads((checkpoint / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA else None


def _has_begun(checkpoint: Path, sink: Sink) -> bool:
    """Whether anything of it is stored: a first batch that has failed, as a rule may want, has left nothing behind."""
    if _files(checkpoint / "commits"):
        return True
    if not isinstance(sink, Table):
        return False
    if isinstance(sink.path, str):
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            return DeltaTable.is_deltatable(sink.path) and DeltaTable(sink.path).version() > 0
        except (OSError, DeltaError) as error:
            hint = "give credentials and endpoint by the environment: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …"
            problem = f"it cannot be reached: {str(error).splitlines()[0]}"
            raise ConfigError(f"table {sink.path}", problem, hint) from error
    return next(sink.path.rglob("*.parquet"), None) is not None


def _files(directory: Path) -> bool:
    return directory.is_dir() and any(path.name.isdigit() for path in directory.iterdir())


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Which parts are not what they were, and in what."""
    found = [f"{name} is new" for name in now if name not in before]
    found += [f"{name} is gone" for name in before if name not in now]
    for name in now:
        if name in before and now[name] != before[name]:
            keys = [key for key in now[name] if now[name][key] != before[name].get(key)]
            found.append(f"{name} ({', '.join(keys)})")
    return found
