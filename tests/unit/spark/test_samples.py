"""Rows to samples, column by column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from elea.model.encoding import Encoding
from elea.model.errors import ConfigError, InvalidSample
from elea.model.timestamp import ns_from_ntp64
from elea.spark.options import WriteOptions
from elea.spark.samples import Samples, checked

KEYS = pa.array(["a/b", "a/c"])
NOW = 1_700_000_000_000_000


def made(columns: dict[str, Any], packed: tuple[str, ...] = (), **options: str) -> dict[str, list[Any]]:
    rows = pa.RecordBatch.from_pydict(columns)
    samples = Samples(rows.schema, WriteOptions.parse(options), list(packed)).of(rows, b"\x01", NOW)
    return samples.to_pydict()  # type: ignore[no-any-return]


def test_null_payload_deletes_and_kind_says_otherwise() -> None:
    found = made({"key": pa.array(["k"] * 5), "payload": pa.array([b"1", None, b"3", None, b"5"], pa.binary()),
                  "kind": pa.array(["put", None, "DELETE", "Delete", None])})  # fmt: skip

    assert found["kind"] == [0, 1, 1, 1, 0]
    assert found["payload"] == [b"1", b"", b"", b"", b"5"]


def test_encodings_go_with_their_rows() -> None:
    texts = ["text/plain", None, "application/json;v=2", "mine"]
    columns = {"key": pa.array(["k"] * 4), "payload": pa.array(["x"] * 4), "encoding": pa.array(texts)}

    found = made(columns, encoding="application/cbor")

    pairs = zip(found["encoding"], found["schema"], strict=True)
    assert [str(Encoding.of(id, schema)) for id, schema in pairs] == [
        "text/plain", "application/cbor", "application/json;v=2", "mine",
    ]  # fmt: skip
    assert found["payload"] == [b"x"] * 4


def test_timestamps_are_exact_to_the_microsecond_and_null_is_now() -> None:
    micros = [0, 1, 999_999, 1_700_000_000_123_457, None, ((1 << 32) - 1) * 1_000_000]
    columns = {"key": pa.array(["k"] * 6), "payload": pa.array([b""] * 6),
               "timestamp": pa.array(micros, pa.timestamp("us", "UTC"))}  # fmt: skip

    found = made(columns)

    wanted = [NOW if one is None else one for one in micros]
    assert [ns_from_ntp64(one) // 1000 for one in found["ntp64"]] == wanted
    assert found["stamp_id"] == [b"\x01"] * 6


def test_columns_of_nulls_are_left_to_the_broker() -> None:
    columns = {"key": KEYS, "payload": pa.array([b"", b""]), "attachment": pa.nulls(2, pa.binary()),
               "timestamp": pa.nulls(2, pa.timestamp("us", "UTC"))}  # fmt: skip

    assert sorted(made(columns)) == ["encoding", "key", "kind", "payload"]


def test_key_of_the_option_is_for_rows_without_one() -> None:
    assert made({"payload": pa.array([b"1"])}, key="all")["key"] == ["all"]
    assert made({"key": pa.array(["a", None]), "payload": pa.array([b"1", b"2"])}, key="all")["key"] == ["a", "all"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"key": pa.array(["a", None]), "payload": pa.array([b"", b""])}, "row 1 of a batch has key null"),
        ({"key": pa.array(["a", "b//c"]), "payload": pa.array([b"", b""])}, "row 1 of a batch has key 'b//c'"),
        ({"key": pa.array(["a", "b/*"]), "payload": pa.array([b"", b""])}, "without wildcards"),
        (
            {"key": KEYS, "payload": pa.array([b"", b""]), "kind": pa.array(["PUT", "POST"])},
            "'POST': it is PUT or DELETE",
        ),
        ({"key": KEYS, "payload": pa.array([b"", None]), "kind": pa.array(["PUT", "PUT"])}, "row 1 .* a PUT has one"),
        (
            {"key": KEYS, "payload": pa.array([b"", b""]), "timestamp": pa.array([1, -1], pa.timestamp("us", "UTC"))},
            "row 1 of a batch has timestamp .* between 1970 and 2106",
        ),
    ],
)
def test_row_that_is_no_sample_is_named(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSample, match=said):
        made(columns)


def test_other_columns_are_packed() -> None:
    found = made(
        {"key": KEYS, "speed": pa.array([1.5, None]), "n": pa.array([1, 2])}, ("speed", "n"), payloadFormat="json"
    )

    assert [payload.decode() for payload in found["payload"]] == ['{"speed":1.5,"n":1}', '{"n":2}']
    assert found["encoding"] == [Encoding("application/json").id] * 2


def test_value_is_packed_as_it_was_read_and_null_deletes() -> None:
    value = pa.array([{"n": 1}, None], pa.struct([("n", pa.int64())]))

    found = made({"key": KEYS, "value": value}, ("value",), payloadFormat="json")

    assert found["payload"] == [b'{"n":1}', b""]
    assert found["kind"] == [0, 1]


def schema(ddl: str) -> StructType:
    found = _parse_simple(ddl)
    assert isinstance(found, StructType)
    return found


def _parse_simple(ddl: str) -> Any:
    """DDL without a JVM, which PySpark asks for it."""
    from pyspark.sql.types import BinaryType, LongType, StringType, TimestampType

    kinds = {"string": StringType(), "binary": BinaryType(), "bigint": LongType(), "timestamp": TimestampType()}
    found = StructType()
    for part in ddl.split(","):
        name, kind = part.split()
        found.add(name, kinds[kind])
    return found


@pytest.mark.parametrize(
    ("ddl", "options", "said"),
    [
        ("payload binary", {}, "column key: there is none; .*option"),
        ("key string", {}, "column payload: there is none"),
        ("key string, payload bigint", {}, "it is binary or string, not bigint; cast it"),
        ("key string, payload binary, sn bigint", {}, "column sn: no sample has such a column; select key, payload"),
        ("key string, payload binary, n bigint", {"payloadFormat": "json"}, "json makes the payload"),
        ("key string", {"payloadFormat": "json"}, "no column to make a payload of"),
    ],
)
def test_schema_that_does_not_fit_is_refused_with_a_way_out(ddl: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        checked(schema(ddl), WriteOptions.parse(options))


def test_schema_that_fits_tells_what_is_packed() -> None:
    assert checked(schema("key string, payload binary, timestamp timestamp"), WriteOptions.parse({})) == []
    assert checked(schema("n bigint, s string"), WriteOptions.parse({"key": "k", "payloadFormat": "json"})) == [
        "n",
        "s",
    ]
