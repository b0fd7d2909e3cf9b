"""Whether rows fit the columns of a Delta table, and what is done where they do not.

Columns and fields that the table lacks can be added (`evolve`): rows of before have null there, and no file is written
anew. Numbers of a narrower type than the table's are widened on their way in. Everything else is refused with the fix:
`deltalake` does not write the table feature by which a column of a table becomes wider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

__all__ = ["fitted"]

WIDER: Final = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
}
"""Types that have every value of a type."""

HINT: Final = "select and cast the columns of the table, or write to another table"
ADD: Final = "evolve=True adds columns that the table lacks; "


class _Fit:
    """A comparison: what to write, what to add, what is wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.added: list[str] = []

    def struct(self, have: Any, want: Any, schema: Any, above: str = "") -> tuple[list[Any], list[Any]]:
        """The fields to write, as Arrow has them, and those that the table lacks, as Delta has them."""
        import pyarrow as pa

        known = {field.name: field.type for field in have}
        spelled = {name.lower(): name for name in known}
        kept: list[pa.Field] = []
        new: list[Any] = []
        for field, arrow in zip(want, schema, strict=True):
            name = f"{above}{field.name}"
            if field.name in known:
                type_, more = self._type(name, known[field.name], field.type, arrow.type)
                kept.append(pa.field(arrow.name, type_))
                new += [_field(field.name, more)] if more is not None else []
            elif field.name.lower() in spelled:
                self.problems.append(f"column {name} is written {spelled[field.name.lower()]} in the table")
            else:
                self.added.append(name)
                kept.append(arrow)
                new.append(_field(field.name, field.type))
        here = {field.name for field in want}
        missing = [f"column {above}{name} is not in the rows" for name in known if name not in here]
        self.problems[:0] = missing
        return kept, new

    def _type(self, name: str, have: Any, want: Any, arrow: Any) -> tuple[Any, Any]:
        """The type to write, and what is to be added to a column of fields."""
        import pyarrow as pa
        from deltalake.schema import StructType

        if have == want:
            return arrow, None
        if isinstance(have, StructType) and isinstance(want, StructType):
            kept, new = self.struct(have.fields, want.fields, list(arrow), f"{name}.")
            return pa.struct(kept), StructType(new) if new else None
        if _kind(have) in WIDER.get(_kind(want), ()):
            return {"short": pa.int16(), "integer": pa.int32(), "long": pa.int64(), "double": pa.float64()}[
                _kind(have)
            ], None
        self.problems.append(f"column {name} is {_kind(have)} in the table and {_kind(want)} in the rows")
        return arrow, None


def fitted(path: str, table: DeltaTable, schema: pa.Schema, *, evolve: bool, hint: str = HINT) -> pa.Schema:
    """The columns with which rows are written; the table gets those that it lacks, if it may `evolve`.

    Raises:
        ConfigError: rows and table do not go together.
    """
    import pyarrow as pa
    from deltalake import Schema

    fit = _Fit()
    kept, new = fit.struct(table.schema().fields, Schema.from_arrow(schema).fields, list(schema))
    problems = list(fit.problems)
    if not evolve:
        problems = [f"column {name} is not in the table" for name in fit.added] + problems
    if problems:
        raise ConfigError(
            f"table {path}", "; ".join(problems), hint if fit.problems or not fit.added else f"{ADD}{hint}"
        )
    if new:
        table.alter.add_columns(new)
    return pa.schema(kept)


def _field(name: str, type_: Any) -> Any:
    from deltalake import Field

    return Field(name, type_, nullable=True)


def _kind(type_: Any) -> str:
    return str(getattr(type_, "type", type_))
