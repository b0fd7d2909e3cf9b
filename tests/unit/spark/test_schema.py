"""Columns of a log as rows of Spark, against values made one by one; no JVM."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from elea.model.encoding import CUSTOM_ENCODING, Encoding
from elea.model.errors import ConfigError
from elea.model.node_id import NodeId
from elea.model.qos import Qos
from elea.model.timestamp import Timestamp, ns_from_ntp64, ntp64_from_ns
from elea.spark.options import ReadOptions
from elea.spark.rows import Rows
from elea.spark.schema import COLUMNS, METADATA, checked, ddl_of
from elea.store.columns import SCHEMA

TYPES: dict[str, Any] = {
    "string": StringType(),
    "binary": BinaryType(),
    "timestamp": TimestampType(),
    "bigint": LongType(),
    "tinyint": ByteType(),
    "boolean": BooleanType(),
}
ALL = {**COLUMNS, **METADATA}
OPTIONS = ReadOptions.parse({"path": "**"})


def struct(*names: str) -> StructType:
    return StructType([StructField(name, TYPES[ALL[name]]) for name in names])


SCHEMAS = st.none() | st.sampled_from([b"utf-8", b"", b"\xff\xfe", "schéma".encode()]) | st.binary(max_size=8)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "position": st.integers(0, (1 << 63) - 1),
            "key": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
            "payload": st.binary(max_size=8),
            "ntp64": st.integers(0, (1 << 64) - 1)
            | st.integers(0, 4 * 10**15).map(lambda at: ntp64_from_ns(at * 1000)),
            "stamp_id": st.binary(max_size=16),
            "arrival": st.integers(0, 4 * 10**18),
            "kind": st.integers(0, 1),
            "encoding": st.sampled_from([0, 1, 5, 52, 53, 1000, CUSTOM_ENCODING]),
            "schema": SCHEMAS,
            "attachment": st.none() | st.binary(max_size=8),
            "source_id": st.none() | st.binary(min_size=1, max_size=16),
            "source_eid": st.none() | st.integers(0, (1 << 32) - 1),
            "source_sn": st.none() | st.integers(0, (1 << 63) - 1),
            "once": st.booleans(),
            "qos": st.integers(0, 63),
        }
    ),
    min_size=1,
    max_size=20,
)


def expected(row: dict[str, Any], log: str) -> dict[str, Any]:
    """One row, by the classes of the model."""
    stamp = Timestamp(row["ntp64"], NodeId(b"\x01"))
    qos = Qos.from_raw(row["qos"])
    has_stamp = bool(row["stamp_id"])
    return {
        "key": row["key"],
        "payload": None if row["kind"] else row["payload"],
        "encoding": str(Encoding.of(row["encoding"], row["schema"])),
        "timestamp": stamp.get_time() if has_stamp else None,
        "kind": "DELETE" if row["kind"] else "PUT",
        "attachment": row["attachment"],
        "source_id": row["source_id"],
        "sn": row["source_sn"],
        "hlc": row["ntp64"].to_bytes(8, "big") + row["stamp_id"] if has_stamp else None,
        "priority": int(qos.priority),
        "congestion": qos.congestion_control.name,
        "express": qos.express,
        "log": log,
        "offset": row["position"],
        "ingest_time": datetime.fromtimestamp(row["arrival"] // 10**9, UTC).replace(
            microsecond=row["arrival"] % 10**9 // 1000
        ),
        "source_eid": row["source_eid"],
    }


@given(ROWS, st.sets(st.sampled_from(sorted(ALL)), min_size=1))
def test_rows_are_what_the_samples_are_in_any_choice_of_columns(rows: list[dict[str, Any]], names: set[str]) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    chosen = sorted(names)
    maker = Rows(struct(*chosen), None)

    made = maker.rows_of(batch, "fleet")

    assert made.schema == maker.schema
    assert made.to_pylist() == [{name: expected(row, "fleet")[name] for name in chosen} for row in rows]
    assert maker.rows_of(batch.slice(1), "fleet").to_pylist() == made.to_pylist()[1:]


@given(st.integers(0, 999_999), st.integers(-8, 8), st.integers(0, (1 << 32) - 1))
def test_times_are_cut_where_nanoseconds_rounded_up_are(micros: int, beside: int, seconds: int) -> None:
    """Around the fraction of a second where one microsecond ends and the next begins."""
    fraction = min(max(((micros * 1000 << 32) // 1_000_000_000) + beside, 0), (1 << 32) - 1)
    stamp = seconds << 32 | fraction
    row = {"position": 0, "key": "k", "payload": b"", "ntp64": stamp, "stamp_id": b"\1", "arrival": 0, "kind": 0,
           "encoding": 0, "once": False, "qos": 5}  # fmt: skip

    made = Rows(struct("timestamp"), None).rows_of(pa.RecordBatch.from_pylist([row], SCHEMA))

    assert made.column("timestamp").cast(pa.int64()).to_pylist() == [ns_from_ntp64(stamp) // 1000]


def test_many_distinct_schemas_of_encodings_are_joined_by_column() -> None:
    rows = [(index % 6, None if index % 3 == 0 else f"s{index}".encode()) for index in range(1000)]
    base = {"position": 0, "key": "k", "payload": b"", "ntp64": 1, "stamp_id": b"\1", "arrival": 0, "kind": 0,
            "once": False, "qos": 5}  # fmt: skip
    batch = pa.RecordBatch.from_pylist([{**base, "encoding": id, "schema": schema} for id, schema in rows], SCHEMA)

    made = Rows(struct("encoding"), None).rows_of(batch)

    assert made.column("encoding").to_pylist() == [str(Encoding.of(id, schema)) for id, schema in rows]


def test_rows_of_no_log_have_no_offset() -> None:
    row = {"position": 7, "key": "k", "payload": b"", "ntp64": 1, "stamp_id": b"\1", "arrival": 0, "kind": 0,
           "encoding": 0, "once": False, "qos": 5}  # fmt: skip

    made = Rows(struct("offset", "log"), None).rows_of(pa.RecordBatch.from_pylist([row], SCHEMA))

    assert made.to_pylist() == [{"offset": None, "log": None}]


def test_the_schema_has_what_the_options_ask_for() -> None:
    assert ddl_of(OPTIONS).startswith("`key` string, `payload` binary, `encoding` string, `timestamp` timestamp")
    assert "offset" not in ddl_of(OPTIONS)
    assert "`offset` bigint" in ddl_of(ReadOptions.parse({"path": "a", "includeMetadata": "true"}))
    assert (
        ddl_of(ReadOptions.parse({"path": "a", "payloadFormat": "json", "payloadSchema": "speed double"}))
        .lower()
        .endswith("`value` struct<speed double>, `_corrupt` binary")
    )


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            "speed doubel",
            r"'speed doubel' does not do: there is no type doubel \(character 7\); did you mean \"DOUBLE\"",
        ),
        ("speed", r"'speed' does not do: the field speed has no type .*write name and type"),
        ("speed double name string", r"a comma is missing before 'name' \(character 14\)"),
        ("at struct<x int", r"a > is missing, it ends"),
        ("on bool", r"there is no type bool \(character 4\); write BOOLEAN"),
        ("speed double not null", r"the field speed must not be null.*leave NOT NULL out"),
        ("  ", r"payloadSchema: it is empty"),
    ],
)
def test_a_misspelt_payload_schema_is_told_with_option_text_and_fix(schema: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said if not schema.strip() else f"option payloadSchema: .*{said}"):
        ddl_of(ReadOptions.parse({"path": "a", "payloadFormat": "json", "payloadSchema": schema}))


@pytest.mark.parametrize("schema", ["took INTERVAL DAY TO SECOND", "any VARIANT", '`a b` INT COMMENT "it\'s", c DATE'])
def test_what_only_spark_knows_is_left_to_spark(schema: str) -> None:
    assert schema in ddl_of(ReadOptions.parse({"path": "a", "payloadFormat": "json", "payloadSchema": schema}))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (StructType([StructField("speed", LongType())]), "column speed: there is no such column.*key, payload"),
        (StructType([StructField("key", LongType())]), "column key: it is of type string, not bigint.*cast"),
        (StructType([StructField("value", LongType())]), "column value: there is no such column"),
    ],
)  # fmt: skip
def test_a_column_that_there_is_not_is_named(schema: StructType, said: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){said}"):
        checked(schema, OPTIONS)
