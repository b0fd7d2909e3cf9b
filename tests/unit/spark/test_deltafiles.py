"""What an executor hands back to the Delta writer: files with statistics, or a few rows."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from elea.spark import delta
from elea.spark.deltafiles import INLINE_BYTES, Statistics, cast, task

SCHEMA = pa.schema(
    [("n", pa.int64()), ("x", pa.float64()), ("t", pa.string()), ("at", pa.timestamp("us", "UTC")), ("b", pa.binary())]
)
TIMES = st.datetimes(datetime.datetime(1970, 1, 1), timezones=st.just(datetime.UTC))
ROWS = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "x": st.none() | st.floats(),
        "t": st.none() | st.text(max_size=40),
        "at": st.none() | TIMES,
        "b": st.none() | st.binary(max_size=3),
    }
)


@given(st.lists(st.lists(ROWS, min_size=1, max_size=5), max_size=4))
def test_statistics_bound_every_value_and_count_the_nulls(batches: list[list[dict[str, Any]]]) -> None:
    statistics = Statistics(SCHEMA)
    for rows in batches:
        statistics.add(pa.RecordBatch.from_pylist(rows, SCHEMA))

    said = json.loads(statistics.form())
    rows = [row for batch in batches for row in batch]
    assert said["numRecords"] == len(rows)
    for name in SCHEMA.names:
        assert said["nullCount"][name] == sum(row[name] is None for row in rows)
        assert (name in said["minValues"]) == (name in said["maxValues"])
        values = [row[name] for row in rows if row[name] is not None]
        if name in said["minValues"]:
            least, most = said["minValues"][name], said["maxValues"][name]
            if name == "at":
                least, most = datetime.datetime.fromisoformat(least), datetime.datetime.fromisoformat(most)
            assert least == min(values)
            assert most == max(values)
        else:
            assert name == "b" or not values or any(value != value or len(str(value)) > 32 for value in values)


def run(batches: list[pa.RecordBatch], directory: Path) -> list[dict[str, Any]]:
    found = task(iter(batches), str(directory), SCHEMA.serialize().to_pybytes())
    return [row for batch in found for row in batch.to_pylist()]


def batch(rows: int, octets: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"n": n, "b": b"x" * octets} for n in range(rows)], SCHEMA)


def test_few_rows_travel_and_many_become_a_file(tmp_path: Path) -> None:
    few = run([batch(3, 1), batch(0, 0), batch(2, 1)], tmp_path)
    many = run([batch(10, INLINE_BYTES // 15)] * 3, tmp_path)
    none = run([batch(0, 0)], tmp_path)

    assert none == []
    assert [(row["rows"], row["path"]) for row in few] == [(5, None)]
    assert pa.ipc.open_stream(few[0]["inline"]).read_all().column("n").to_pylist() == [0, 1, 2, 0, 1]
    (written,) = tmp_path.iterdir()
    assert (many[0]["path"], many[0]["size"], many[0]["rows"]) == (written.name, written.stat().st_size, 30)
    assert many[0]["inline"] is None
    assert pq.read_table(written).num_rows == json.loads(many[0]["stats"])["numRecords"] == 30


def test_columns_are_put_in_the_order_of_the_table() -> None:
    given_ = pa.RecordBatch.from_pydict({"b": ["x"], "a": pa.array([1], pa.int32())})

    assert cast(given_, pa.schema([("a", pa.int64()), ("b", pa.string())])).to_pylist() == [{"a": 1, "b": "x"}]


def test_query_is_known_from_its_checkpoint(tmp_path: Path) -> None:
    assert delta.noted(tmp_path) is None

    (tmp_path / "metadata").write_text('{"id":"3a019886-8fd9-4e83-8f39-b43db2702b24"}')

    for place in (tmp_path, str(tmp_path), f"file://{tmp_path}"):
        assert delta.noted(place) == "3a019886-8fd9-4e83-8f39-b43db2702b24"
    assert delta.noted("s3://bucket/checkpoint") is None
    assert delta.noted(None) is None
