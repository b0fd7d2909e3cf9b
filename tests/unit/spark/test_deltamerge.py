"""Merging by key: the table is what the rows say, in whatever batches and however late they came."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from elea.model.errors import ConfigError
from elea.spark.deltamerge import DELETED, Merge, merge, table_schema, tombstone_schema

SCHEMA = pa.schema(
    [
        ("a", pa.string()),
        ("b", pa.int64()),
        ("t", pa.int64()),
        ("n", pa.binary()),
        ("v", pa.struct([("x", pa.int64())])),
    ]
)
ROWS = SCHEMA.append(pa.field(DELETED, pa.bool_()))
NONE = CommitProperties()


def rows(*found: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(found), ROWS)


def tables(place: Path, how: Merge) -> tuple[Path, Path]:
    DeltaTable.create(place / "table", table_schema(how, SCHEMA, "table"))
    DeltaTable.create(place / "gone", tombstone_schema(how, SCHEMA))
    return place / "table", place / "gone"


def put(place: Path, how: Merge, batch: pa.Table) -> None:
    write_deltalake(place / "gone", batch.filter(batch[DELETED]).select([*how.keys, *how.sequence_by]), mode="append")
    merge(DeltaTable(place / "table"), batch, how, gone=DeltaTable(place / "gone"), properties=NONE)


def found(table: Path) -> list[dict[str, Any]]:
    return sorted(
        pa.table(DeltaTable(table).scan()).to_pylist(), key=lambda row: (row["a"], row["b"], row["t"], row["n"])
    )


def expected(samples: list[dict[str, Any]], scd: int) -> list[dict[str, Any]]:
    """The same, one key after the other."""
    keys: dict[Any, list[dict[str, Any]]] = {}
    for one in sorted(samples, key=lambda one: (one["t"], one["n"])):
        keys.setdefault((one["a"], one["b"]), []).append(one)
    made = []
    for versions in keys.values():
        ends = [*(one["t"] for one in versions[1:]), None]
        for one, end in zip(versions, ends, strict=True):
            row = {name: one[name] for name in SCHEMA.names}
            if scd == 2:
                row |= {"valid_from": one["t"], "valid_to": end, "is_current": end is None}
            if not one[DELETED] and (scd == 2 or one is versions[-1]):
                made.append(row)
    return sorted(made, key=lambda row: (row["a"], row["b"], row["t"], row["n"]))


SAMPLE = st.fixed_dictionaries(
    {
        "a": st.sampled_from(["x", "it's", ""]),
        "b": st.integers(0, 1),
        "t": st.integers(0, 5),
        "v": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 9)}),
        DELETED: st.booleans(),
    }
)


@pytest.mark.parametrize("scd", [1, 2])
@given(st.lists(SAMPLE, min_size=1, max_size=25), st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1))
@settings(max_examples=25, deadline=None)
def test_table_is_what_the_rows_say_in_whatever_batches_they_come(
    scd: int, samples: list[dict[str, Any]], cuts: list[tuple[int, bool]]
) -> None:
    how = Merge(("a", "b"), ("t", "n"), DELETED, scd)
    samples = [{**one, "n": at.to_bytes(2)} for at, one in enumerate(samples)]
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        table, _ = tables(place, how)
        start, number = 0, 0
        while start < len(samples):
            size, is_repeated = cuts[number % len(cuts)]
            batch = rows(*samples[start : start + size])
            for _ in range(2 if is_repeated else 1):
                put(place, how, batch)
            start, number = start + size, number + 1

        assert found(table) == expected(samples, scd)


def test_row_without_key_or_order_is_refused_and_names_what_is_missing(tmp_path: Path) -> None:
    how = Merge(("a",))
    DeltaTable.create(tmp_path / "table", SCHEMA)
    table = DeltaTable(tmp_path / "table")
    first = {"a": "x", "b": 1, "t": 1, "n": b"", "v": None, DELETED: False}

    with pytest.raises(ConfigError, match="a is null in 1 of 2 rows"):
        merge(table, rows(first, {**first, "a": None}), how, gone=None, properties=NONE)
    with pytest.raises(ConfigError, match="2 rows of a batch have 1 keys, and nobody says which row is the later one"):
        merge(table, rows(first, {**first, "b": 2}), how, gone=None, properties=NONE)
    merge(table, rows(first), how, gone=None, properties=NONE)
    merge(DeltaTable(tmp_path / "table"), rows({**first, "b": 2}), how, gone=None, properties=NONE)
    merge(DeltaTable(tmp_path / "table"), rows({**first, "b": 3, "t": 0}), how, gone=None, properties=NONE)
    assert [row["b"] for row in found(tmp_path / "table")] == [3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (((),), "a merge needs the columns that make a key"),
        ((("a",), (), None, 3), "there is no type 3"),
        ((("a",), (), None, 2), "a history needs sequence_by"),
        ((("a",), ("a",)), "a is a key"),
    ],
)
def test_senseless_merges_are_refused(arguments: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Merge(*arguments)


def test_columns_that_cannot_be_keys_are_refused() -> None:
    with pytest.raises(ConfigError, match="keys of table t: there is no column z"):
        table_schema(Merge(("z",)), SCHEMA, "t")
    with pytest.raises(ConfigError, match=r"keys of table t: v is struct<x: int64>"):
        table_schema(Merge(("v",)), SCHEMA, "t")
    with pytest.raises(ConfigError, match="its history needs the name valid_to"):
        table_schema(Merge(("a",), ("t",), None, 2), SCHEMA.append(pa.field("valid_to", pa.int64())), "t")
