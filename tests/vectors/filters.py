"""Vectors of DDS filter expressions: which rows are selected, by the closure and by Arrow, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.vectors.cases import Case, Mismatch, Record, check_equal

__all__ = ["filter_cases"]

EXTENSIONS = ("not in the DDS grammar",)
"""What a vector refuses and the vector itself says that a project may allow."""


def filter_cases(content: Record) -> Iterator[Case]:
    """Expressions over the rows of the file; those that are invalid, too."""
    for record in content["vectors"]:
        yield Case(record["expression"], partial(_check_selected, record, content["rows"]))
    for record in content["invalid"]:
        yield Case(record["expression"] or "empty", partial(_check_refused, record, content["rows"]))


def _check_selected(record: Record, rows: list[Record]) -> None:
    import pyarrow as pa

    from elea.columnar.predicate import expression, record_of
    from elea.model.predicate import Predicate, compile_row
    from elea.model.predicate.typed import check
    from elea.model.predicate.types import Enumeration

    labels: dict[tuple[str, ...], Enumeration] = {("mode",): Enumeration.of("OFF", "ON", "AUTO")}
    table = pa.Table.from_pylist(rows)
    schema = record_of(table.schema, labels)
    predicate = Predicate(record["expression"], record["parameters"])
    check(predicate, schema)
    test = compile_row(predicate, schema=schema)
    check_equal("closure", [row["id"] for row in rows if test(row) is True], record["ids"])
    found = table.filter(expression(predicate, table.schema, enumerations=labels, strict=True))
    check_equal("arrow", found.column("id").to_pylist(), record["ids"])
    check_equal("canonical", Predicate(predicate.text, record["parameters"]).text, predicate.text)


def _check_refused(record: Record, rows: list[Record]) -> None:
    import pyarrow as pa

    from elea.columnar.predicate import record_of
    from elea.model.errors import InvalidPredicate
    from elea.model.predicate import Predicate
    from elea.model.predicate.typed import check

    is_extension = record["reason"].startswith(EXTENSIONS)
    try:
        check(Predicate(record["expression"]), record_of(pa.Table.from_pylist(rows).schema))
    except InvalidPredicate as error:
        if is_extension or not 1 <= error.column <= len(record["expression"]) + 1:
            raise Mismatch(f"{error}") from None
        return
    if not is_extension:
        raise Mismatch(f"taken, expected: {record['reason']}")
