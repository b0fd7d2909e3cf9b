"""Predicates as expressions of Arrow."""

from __future__ import annotations

from time import thread_time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from elea.columnar.predicate import expression
from elea.model.errors import InvalidPredicate
from elea.model.predicate import Predicate, compile_row
from elea.model.predicate.functions import register
from elea.model.predicate.types import Enumeration
from tests.property.predicates import arrow_verdicts
from tests.unit.columnar.predicatecases import REFUSED, TABLE, VERDICTS


@pytest.mark.parametrize(("text", "verdicts"), VERDICTS.items(), ids=VERDICTS)
def test_verdicts_of_columns(text: str, verdicts: list[bool | None]) -> None:
    assert arrow_verdicts(Predicate(text), TABLE) == verdicts


@pytest.mark.parametrize(("text", "verdicts"), VERDICTS.items(), ids=VERDICTS)
def test_verdicts_of_rows(text: str, verdicts: list[bool | None]) -> None:
    # Rows have no time below the microsecond, so pyarrow gives a class of its own for it.
    rows = TABLE.set_column(TABLE.schema.get_field_index("ns"), "ns", floored()).to_pylist()

    assert [compile_row(text)(row) for row in rows] == verdicts


def floored() -> pa.ChunkedArray:
    return pc.floor_temporal(TABLE.column("ns"), unit="microsecond").cast(pa.timestamp("us"))


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=REFUSED)
def test_strict_predicate_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidPredicate, match=problem):
        expression(text, TABLE.schema, strict=True)


def test_table_is_filtered() -> None:
    found = TABLE.filter(expression("i >= 1 AND s LIKE '_'", TABLE.schema))

    assert found.column("i").to_pylist() == [1, 2**53 + 1]


def test_dictionary_and_numbers_of_an_enumeration() -> None:
    levels = Enumeration((("LOW", 5), ("HIGH", 9)))
    labels: dict[tuple[str, ...], Enumeration] = {("mode",): levels, ("number",): levels}
    table = pa.table(
        {
            "mode": pa.array(["LOW", "HIGH", "else", None]).dictionary_encode(),
            "number": pa.array([9, 5, 1, None], pa.int8()),
            "text": pa.array(["x", "y", "x", None]).dictionary_encode(),
        }
    )

    def found(text: str) -> list[int]:
        rows = table.append_column("row", pa.array(range(4)))
        numbers: list[int] = rows.filter(expression(text, table.schema, enumerations=labels)).column("row").to_pylist()
        return numbers

    assert found("mode > 'LOW'") == [1]
    assert found("mode < number") == [0]
    assert found("number = 'HIGH' OR number = 1") == [0, 2]
    assert found("mode IS NULL") == [3]
    assert found("text = 'x'") == [0, 2]
    assert found("text LIKE 'y%'") == [1]


def test_fields_that_could_not_be_read_are_neither_null_nor_not() -> None:
    table = pa.table({"x": pa.array([None, None, 1], pa.int64()), "readable": [True, False, True]})
    verdict = expression("x IS NULL", table.schema, readable=pc.field("readable"))
    opposite = expression("x IS NOT NULL", table.schema, readable=pc.field("readable"))

    assert (table.filter(verdict).num_rows, table.filter(opposite).num_rows) == (1, 1)


def test_names_stand_in_for_columns_that_are_not_there() -> None:
    names = {"here": "[1,2]", "radius": "1", "word": "abc", "i": "9"}

    def count(text: str) -> int:
        rows: int = TABLE.filter(expression(text, TABLE.schema, names=names)).num_rows
        return rows

    assert count("inRange(p, here, radius)") == 1
    assert count("word LIKE 'a%'") == 3
    assert count("word IS NULL") == 0
    assert count("i = 1") == 1
    assert count("i < radius OR radius > i") == 0
    assert count("word < 'b' AND word <> here") == 3


def test_function_without_a_form_for_columns_is_told() -> None:
    register("elea_test_columns", lambda value: True, arity=1)

    with pytest.raises(InvalidPredicate, match="no form for columns"):
        expression("elea_test_columns(i)", TABLE.schema)


def test_pattern_takes_bounded_time() -> None:
    table = pa.table({"s": ["a" * 20_000]})

    start = thread_time()
    assert table.filter(expression("s LIKE '" + "%a" * 127 + "%b'", table.schema)).num_rows == 0
    assert thread_time() - start < 2.0
