"""Computing the tables of a pipeline anew from the logs, and putting the results in their place.

A backfill is a run of its own into tables beside the real ones (`<path>_backfill`), with checkpoints of its own; it can
be killed and goes on when it is asked for again. When it is through, each table gets its new rows in one commit, as a
new version, and the checkpoint of the backfill becomes that of the table: the next run goes on where it ended. What is
cut off between the two is finished by the next run, whatever it is.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from elea.model.errors import ConfigError
from elea.spark.deltafiles import Written, told
from elea.spark.pipeline.definitions import definition_of, is_same, keep
from elea.spark.pipeline.problem import nearest
from elea.spark.pipeline.spec import AVAILABLE_NOW, Spec, Table
from elea.spark.pipeline.tables import targets_of
from elea.spark.pipeline.targets import DeltaTarget, Target
from elea.spark.tableplaces import beside, copy_file, remove

__all__ = ["begin", "check", "chosen", "ready", "rebuilding", "settle"]

PLACE: Final = ".backfill"
READY: Final = "ready"
BEFORE: Final = ".before"
"""Where the checkpoints of a table are kept that a backfill has replaced, until the next one."""

_log: Final = logging.getLogger("elea.spark")


def chosen(spec: Spec, names: Sequence[str]) -> Spec:
    """The pipeline with these tables only; with all, if none is named.

    Raises:
        ConfigError: there is no such table, or nothing to compute it from.
    """
    if not names:
        return spec
    known = {table.name: table for table in spec.tables}
    for name in names:
        if name not in known:
            raise ConfigError(f"table {name}", "there is no such table", nearest(name, known))
        if not spec.is_stream(known[name].reads):
            raise ConfigError(f"table {name}", "every run writes it anew", "run the pipeline without --backfill")
    return replace(spec, tables=tuple(table for table in spec.tables if table.name in names))


def rebuilding(spec: Spec) -> Spec:
    """The pipeline that computes the tables anew, beside them. Sources with a start in time keep it."""
    streams = [table for table in spec.tables if spec.is_stream(table.reads)]
    return replace(
        spec,
        checkpoints=spec.checkpoints / PLACE,
        trigger=AVAILABLE_NOW,
        sources=tuple(replace(one, start="earliest") if one.start == "latest" else one for one in spec.sources),
        tables=tuple(_beside(table) for table in streams),
        publishes=(),
        foreachs=(),
        every=None,
    )


def _beside(table: Table) -> Table:
    """The table that a backfill writes."""
    path = beside(table.path, "_backfill")
    return replace(table, path=path, quarantine=beside(path, "_quarantine"))


def check(spec: Spec, *, accept_loss: bool) -> None:
    """Look whether a backfill can give what the tables have.

    Raises:
        ConfigError: it cannot, and what to do about it.
    """
    for table in spec.tables:
        if table.format != "delta" and spec.is_stream(table.reads):
            hint = "use Delta; or delete its directory and its checkpoint, and run the pipeline"
            raise ConfigError(f"table {table.name}", "a table of parquet has no versions to put a backfill in", hint)
    if accept_loss:
        return
    from elea.spark.logs import Logs
    from elea.spark.options import ReadOptions
    from elea.spark.sessions import close_all

    read = {one.name for table in spec.tables for one in spec.upstream(table.reads)}
    try:
        for source in spec.sources:
            if source.name not in read or not source.is_stream or source.start not in ("earliest", "latest"):
                continue
            for head in Logs(ReadOptions.parse(source.read_options())).heads().values():
                if head.first > 0:
                    hint = (
                        "keep the tables as they are, or accept with --accept-loss (accept_loss=True) that they lose "
                        "the rows of it: their old versions stay readable for a while"
                    )
                    problem = f"log {head.log} begins at position {head.first}: retention has removed what was before"
                    raise ConfigError(f"backfill of source {source.name}", problem, hint)
    finally:
        close_all()


def begin(spec: Spec) -> None:
    """Note what is computed. A backfill that was cut off goes on only if it computes the same."""
    place = spec.checkpoints / PLACE
    wanted = {table.name: definition_of(spec, table) for table in spec.tables if spec.is_stream(table.reads)}
    if not all(is_same(place / name, definition) for name, definition in wanted.items()):
        _log.warning(
            "backfill begins again: pipeline=%s reason=its definition has changed since it was cut off", spec.name
        )
        shutil.rmtree(place)
        for table in spec.tables:
            _remove(targets_of(_beside(table), spec.name))
    for name, definition in wanted.items():
        keep(place / name, definition)


def ready(spec: Spec) -> None:
    """Note that the backfill is through: from now on `settle` puts it in place."""
    (spec.checkpoints / PLACE / READY).touch()


def settle(spec: Spec) -> None:
    """Put a backfill that is through in its place; nothing happens without one."""
    place = spec.checkpoints / PLACE
    if not (place / READY).exists():
        return
    for table in spec.tables:
        beside = targets_of(_beside(table), spec.name)
        if (place / table.name).exists():
            _put_in_place(spec, table, beside)
        _remove(beside)
    shutil.rmtree(place)


def _remove(beside: dict[str, Target]) -> None:
    for target in beside.values():
        if isinstance(target, DeltaTarget):
            remove(target.path)


def _put_in_place(spec: Spec, table: Table, beside: dict[str, Target]) -> None:
    checkpoint, real = spec.checkpoints / PLACE / table.name, spec.checkpoints / table.name
    query = str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8").splitlines()[-1])["id"])
    for name, target in targets_of(table, spec.name).items():
        staged = beside[name]
        if isinstance(target, DeltaTarget) and isinstance(staged, DeltaTarget):
            _swap(target, staged, query)
    # The checkpoint comes last: as long as it is here, all of this is done again.
    if real.exists():
        before = spec.checkpoints / BEFORE / table.name
        shutil.rmtree(before, ignore_errors=True)
        before.parent.mkdir(exist_ok=True)
        real.rename(before)
    checkpoint.rename(real)


def _swap(target: DeltaTarget, staged: DeltaTarget, query: str) -> None:
    """The rows of one table into another, as one commit."""
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(staged.path):  # no row came so far
        return
    table = DeltaTable(staged.path)
    target.open_for_replacement(table)
    if target.is_written_by(query):
        return
    last = table.transaction_version(f"{target.name}:{query}")
    files = list(_files(table))
    for one in files:
        copy_file(staged.path, target.path, str(one.path))
    target.replace(files, query, -1 if last is None else last)
    _log.info("table replaced: table=%s files=%d query=%s", target.path, len(files), query)


def _files(table: Any) -> Iterator[Written]:
    """The files of a table's newest version, with what its log says of them."""
    import pyarrow as pa

    for one in pa.table(table.get_add_actions()).to_pylist():
        stats = {
            "numRecords": one["num_records"],
            "minValues": _leaves(one.get("min")),
            "maxValues": _leaves(one.get("max")),
            "nullCount": _leaves(one.get("null_count")),
        }
        partition = {
            name: None if value is None else _text(value) for name, value in (one.get("partition") or {}).items()
        }
        yield Written("", unquote(one["path"]), one["size_bytes"], one["num_records"], json.dumps(stats), partition)


def _leaves(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _leaves(value) for name, value in values.items() if value is not None}
    return {} if values is None else told(values)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
