"""Rows into a Delta table by key: the latest of each key (SCD 1), or all of them with the time they were valid (SCD 2).

What a table has is decided by the rows alone, not by the batches they came in: which row is the later one is said by
`sequence_by`, so a row that comes late is told from a new one. Deletions are remembered in a table beside, or a late
row would bring back what was deleted. Driver only; `elea.spark.pipeline.mergetarget` calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable

__all__ = ["CURRENT", "DELETED", "FROM", "HISTORY", "TO", "Merge", "merge", "table_schema", "tombstone_schema"]

DELETED: Final = "__deleted"
"""A column that says which rows are deletions."""

FROM: Final = "valid_from"
TO: Final = "valid_to"
CURRENT: Final = "is_current"
HISTORY: Final = (FROM, TO, CURRENT)
"""The columns that a history adds."""

_NEW: Final = "__new"

LISTED: Final = 200
"""Keys that a question to a table names one by one; of more, the first and the last."""


@dataclass(frozen=True, slots=True)
class Merge:
    """How rows are put into a table."""

    keys: tuple[str, ...]
    sequence_by: tuple[str, ...] = ()
    """Columns that say which of two rows is the later one. Without: that of the later batch."""

    deletes: str | None = None
    """A condition in SQL: rows that delete their key."""

    scd: int = 1
    """2: every row is kept, with `valid_from`, `valid_to` and `is_current`."""

    def __post_init__(self) -> None:
        if not self.keys:
            raise ConfigError("keys", "a merge needs the columns that make a key", 'name them: keys=["id"]')
        if self.scd not in (1, 2):
            raise ConfigError("scd", f"there is no type {self.scd}", "1: the latest row, 2: all with their time")
        if self.scd == 2 and not self.sequence_by:
            raise ConfigError("scd", "a history needs sequence_by, which says from when a row is valid", "name a time")
        both = sorted({*self.keys} & {*self.sequence_by})
        if both:
            raise ConfigError("sequence_by", f"{', '.join(both)} is a key", "name columns that are no keys")

    @property
    def has_tombstones(self) -> bool:
        """Whether deletions are remembered: rows may come late, and there are some."""
        return self.deletes is not None and bool(self.sequence_by)


# -- columns -----------------------------------------------------------------------------------------------------------


def table_schema(how: Merge, schema: pa.Schema, where: str) -> pa.Schema:
    """The columns of the table for rows of these.

    Raises:
        ConfigError: they lack a key, or have a column that the history needs.
    """
    import pyarrow as pa

    for what, names in (("keys", how.keys), ("sequence_by", how.sequence_by)):
        for name in names:
            if name not in schema.names:
                hint = f"columns are {', '.join(schema.names)}"
                raise ConfigError(f"{what} of table {where}", f"there is no column {name}", hint)
            if pa.types.is_nested(schema.field(name).type) or pa.types.is_floating(schema.field(name).type):
                hint = "use text, whole numbers, times or bytes: only they are equal or in order beyond doubt"
                raise ConfigError(f"{what} of table {where}", f"{name} is {schema.field(name).type}", hint)
    if how.scd == 1:
        return schema
    taken = [name for name in HISTORY if name in schema.names]
    if taken:
        hint = "rename it in the step"
        raise ConfigError(f"table {where}", f"its history needs the name {taken[0]}", hint)
    at = schema.field(how.sequence_by[0]).type
    return pa.schema([*schema, pa.field(FROM, at), pa.field(TO, at), pa.field(CURRENT, pa.bool_())])


def tombstone_schema(how: Merge, schema: pa.Schema) -> pa.Schema:
    """The columns of the table of deletions."""
    import pyarrow as pa

    return pa.schema([schema.field(name) for name in (*how.keys, *how.sequence_by)])


# -- merging -----------------------------------------------------------------------------------------------------------


def merge(
    table: DeltaTable, rows: pa.Table, how: Merge, *, gone: DeltaTable | None, properties: CommitProperties
) -> dict[str, int]:
    """Put rows into a table, in one commit; without one if nothing changes.

    Args:
        rows: with the column `DELETED`, if there may be deletions.
        gone: the table of deletions, with those of `rows`.

    Returns:
        what `deltalake` counts: rows that were inserted, updated, deleted.

    Raises:
        ConfigError: a key or place in the sequence is null, or nobody says which of two rows of a key is the later one.
    """
    import pyarrow as pa

    if DELETED not in rows.schema.names:
        rows = rows.append_column(DELETED, pa.repeat(False, rows.num_rows))
    _check(rows, how, table.table_uri)
    found: dict[str, int] = {}
    merger = (_history if how.scd == 2 else _latest)(table, rows.combine_chunks(), how, gone, properties)
    if merger is not None:
        found = merger.execute()
    return found


def _check(rows: pa.Table, how: Merge, where: str) -> None:
    for name in (*how.keys, *how.sequence_by):
        if rows[name].null_count:
            hint = 'leave such rows out, with WHERE or with a rule: expect = [ { check = "… IS NOT NULL" } ]'
            problem = f"{name} is null in {rows[name].null_count} of {rows.num_rows} rows"
            raise ConfigError(f"merge into {where}", problem, hint)


def _latest(
    table: DeltaTable, rows: pa.Table, how: Merge, gone: DeltaTable | None, properties: CommitProperties
) -> Any:
    """One row for each key."""
    line = _Line(how, rows, [] if gone is None else [(_of_keys(gone, rows, how, ()), True)])
    last = line.last_of(line.key)
    if not how.sequence_by and len(last) < rows.num_rows:
        problem = f"{rows.num_rows} rows of a batch have {len(last)} keys, and nobody says which row is the later one"
        raise ConfigError(f"merge into {table.table_uri}", problem, 'name a column that does: sequence_by = "offset"')
    # A deletion of before that is later than all rows of its key has done what there was to do.
    newest = rows.take(last[line.is_row[last]])
    columns = {_quoted(name): f"s.{_quoted(name)}" for name in rows.schema.names if name != DELETED}
    later = _not_before(how.sequence_by)
    merger = _merger(table, newest, how.keys, properties).when_matched_delete(f"s.{DELETED} AND {later}")
    merger = merger.when_matched_update(columns, f"NOT s.{DELETED} AND {later}")
    return merger.when_not_matched_insert(columns, f"NOT s.{DELETED}")


def _history(
    table: DeltaTable, rows: pa.Table, how: Merge, gone: DeltaTable | None, properties: CommitProperties
) -> Any:
    """All versions of the keys that rows are of: when each begins is its own, when it ends the next one's."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    known = _of_keys(table, rows, how, (TO,))
    more = [(known.drop_columns([TO]), False)]
    if gone is not None:
        more.append((_of_keys(gone, rows, how, ()), True))
    line = _Line(how, rows, more)
    at = line.last_of(line.key, line.sequence, line.is_deletion)  # in order
    begins = line.places[how.sequence_by[0]].take(at)
    has_next = np.append(line.key[at][1:] == line.key[at][:-1], False)
    following = pa.array(np.arange(1, len(at) + 1), mask=~has_next)
    ends = begins.take(following)
    is_new, is_put = line.is_row[at], ~line.is_deletion[at]
    stored = pa.concat_arrays(
        [pa.nulls(rows.num_rows, ends.type), known[TO].combine_chunks(), pa.nulls(len(line.key), ends.type)]
    )
    same = pc.fill_null(pc.equal(ends, stored.take(at)), False).to_numpy(zero_copy_only=False)
    both = pc.and_(pc.is_null(ends), pc.is_null(stored.take(at))).to_numpy(zero_copy_only=False)
    new, closed = np.flatnonzero(is_new & is_put), np.flatnonzero(~is_new & is_put & ~(same | both))
    if not len(new) and not len(closed):
        return None
    source = pa.concat_tables(
        [
            _versions(rows.drop_columns([DELETED]).take(at[new]), how, ends.take(new), is_new=True),
            _versions(known.drop_columns([TO]).take(at[closed] - rows.num_rows), how, ends.take(closed), is_new=False),
        ],
        promote_options="default",
    )
    insert = {_quoted(name): f"s.{_quoted(name)}" for name in source.schema.names if name != _NEW}
    merger = _merger(table, source, (*how.keys, *how.sequence_by), properties)
    merger = merger.when_matched_update(insert, f"s.{_NEW}")
    merger = merger.when_matched_update({name: f"s.{name}" for name in (TO, CURRENT)}, f"NOT s.{_NEW}")
    return merger.when_not_matched_insert(insert)


def _versions(rows: pa.Table, how: Merge, ends: Any, *, is_new: bool) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = rows.append_column(FROM, rows[how.sequence_by[0]]).append_column(TO, ends)
    return rows.append_column(CURRENT, pc.is_null(ends)).append_column(_NEW, pa.repeat(is_new, rows.num_rows))


def _merger(table: DeltaTable, source: pa.Table, on: tuple[str, ...], properties: CommitProperties) -> Any:
    same = " AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in on)
    return table.merge(source, same, source_alias="s", target_alias="t", commit_properties=properties)


def _of_keys(table: DeltaTable, rows: pa.Table, how: Merge, more: tuple[str, ...]) -> pa.Table:
    """What a table has of the keys of some rows; maybe of others, if a key has several columns."""
    import pyarrow as pa

    at = rows.schema.field(how.sequence_by[0]).type
    shape = pa.schema(
        [rows.schema.field(name) for name in (*how.keys, *how.sequence_by)] + [pa.field(name, at) for name in more]
    )
    # Not as a dataset of pyarrow: it cannot compare texts with the statistics of files that `deltalake` has written.
    found = pa.table(table.scan(shape.names, _condition(how.keys[0], rows[how.keys[0]].unique())))
    return found.cast(shape).combine_chunks()


def _condition(name: str, values: Any) -> str | None:
    """What leaves out files that have none of the values; None where a type has no literals that are beyond doubt."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(values.type) or pa.types.is_integer(values.type)):
        return None

    def literal(value: Any) -> str:
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)

    if len(values) <= LISTED:
        return f'"{name}" IN ({", ".join(map(literal, values.to_pylist()))})'
    ends = pc.min_max(values).as_py()
    return f'"{name}" BETWEEN {literal(ends["min"])} AND {literal(ends["max"])}'


def _not_before(sequence_by: tuple[str, ...]) -> str:
    """A condition: the row is not before the one that the table has.

    >>> _not_before(("at", "n"))
    '(s.`at` > t.`at` OR (s.`at` = t.`at` AND (s.`n` >= t.`n`)))'
    """
    if not sequence_by:
        return "true"
    name, rest = _quoted(sequence_by[0]), sequence_by[1:]
    if not rest:
        return f"(s.{name} >= t.{name})"
    return f"(s.{name} > t.{name} OR (s.{name} = t.{name} AND {_not_before(rest)}))"


def _quoted(name: str) -> str:
    return f"`{name}`"


# -- which row is the later one ----------------------------------------------------------------------------------------


class _Line:
    """Rows, and what tables know of their keys, in the order of the sequence; numbers stand for values."""

    def __init__(self, how: Merge, rows: pa.Table, more: list[tuple[pa.Table, bool]]) -> None:
        import numpy as np
        import pyarrow as pa

        names = [*how.keys, *how.sequence_by]
        tables = [rows.select(names), *(one.select(names) for one, _ in more)]
        self.places = {
            name: pa.chunked_array(
                [c for t in tables for c in t[name].chunks] or [], tables[0].schema.field(name).type
            ).combine_chunks()
            for name in names
        }
        self.key = _numbers([self.places[name] for name in how.keys])
        self.sequence = _numbers([self.places[name] for name in how.sequence_by], len(self.key))
        deleted = [rows[DELETED].to_numpy(), *(np.full(one.num_rows, is_deletion) for one, is_deletion in more)]
        self.is_deletion = np.concatenate(deleted).astype(bool)
        self.is_row = np.arange(len(self.key)) < rows.num_rows
        # Of a put and a deletion of the same moment the deletion counts; of two of a kind the one that came last.
        self._order = np.lexsort((self.is_row, self.is_deletion, self.sequence, self.key))
        mine = np.zeros(int(self.key.max(initial=0)) + 1, bool)
        mine[self.key[self.is_row]] = True
        self._order = self._order[mine[self.key[self._order]]]

    def last_of(self, *groups: Any) -> Any:
        """The index of the last of each group, in order; groups are of what the order begins with."""
        import numpy as np

        if not len(self._order):
            return self._order
        ends = np.zeros(len(self._order), bool)
        ends[-1] = True
        for group in groups:
            sorted_ = group[self._order]
            ends[:-1] |= sorted_[1:] != sorted_[:-1]
        return self._order[ends]


def _numbers(columns: list[Any], count: int = 0) -> Any:
    """A number for each row, equal and in order as its values are."""
    import numpy as np
    import pyarrow.compute as pc

    found = np.zeros(len(columns[0]) if columns else count, np.int64)
    for column in columns:
        ranks = pc.rank(column, tiebreaker="dense").to_numpy().astype(np.int64)
        found = np.unique(found * (int(ranks.max(initial=0)) + 1) + ranks, return_inverse=True)[1].astype(np.int64)
    return found
