"""The rules for JSON payloads beside those of Spark's own `from_json`, on a real Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from elea.spark.payload import decoder, observed

TYPES = """flag BOOLEAN, tiny TINYINT, big BIGINT, single FLOAT, double DOUBLE, exact DECIMAL(9,3), text STRING,
octets BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, list ARRAY<INT>,
inner STRUCT<x: DOUBLE, ys: ARRAY<STRING>>, map MAP<STRING, INT>"""

SAME = [
    '{"flag": true, "tiny": -128, "big": 9223372036854775807, "single": 0.5, "double": 1e-7, "exact": 1.0005}',
    '{"exact": "12.5", "text": "a\\"\\u00e9\\ud83d\\ude00 \\n", "octets": "aGk=", "day": "2026-01-31"}',
    '{"at": "2026-01-31T10:00:00.123456Z", "local": "2026-01-31T10:00:00.5"}',
    '{"at": "2026-01-31 10:00:00+05:30"}',
    '{"at": "2026-01-31T10:00"}',
    '{"at": 1767225600}',
    '{"list": [1, null, 3], "inner": {"x": 1, "ys": ["a", null], "z": {}}, "map": {"a": 1, "b": null}}',
    '{"double": NaN, "single": "Infinity"}',
    '{"double": "-INF"}',
    '{"double": 1e400, "big": -0}',
    '{"text": 150}',
    '{"text": {"b": [1, true, "x"]}}',
    '{"big": 1, "big": 2}',
    '\n {"big": 5}\t',
    "{}",
    '{"big": null, "inner": null, "list": []}',
]
"""Payloads that mean the same here and there."""

REFUSED_BY_BOTH = [
    '{"big": "1"}',
    '{"big": 1.0}',
    '{"big": 9223372036854775808}',
    "null",
    "[]",
    '{"local": "2026-01-31T10:00:00Z"}',
    '{"flag": 1}',
    '{"double": "x"}',
    '{"exact": 1234567}',
    '{"day": "2026-02-30"}',
    '{"at": "yesterday"}',
    '{"list": 1}',
    '{"inner": [1]}',
    '{"big": 1',
    '{"text": "line\nend"}',
]
"""Payloads that both refuse. Spark keeps the fields that fit, if the rest is JSON; here there is no value at all."""

OTHERWISE = {
    "": "null, and not corrupt",
    '{"tiny": 128}': "-128",
    '{"big": 1} x': "the first document",
    '{"big": 1}{"big": 2}': "the first document",
    '{"day": "2026-1-2"}': "a date without zeros",
}
"""Payloads that are corrupt here only, and what Spark makes of them."""

WRITTEN = '{"text": 1.50}'
"""Spark writes the number anew: 1.5. Here it is what the sender wrote."""


@pytest.fixture(scope="module")
def both(spark: Any) -> dict[str, tuple[Any, Any, Any]]:
    """Every payload: (what Spark makes of it, what Spark calls corrupt, what is made of it here)."""
    from pyspark.sql import functions as f

    payloads = [*SAME, *REFUSED_BY_BOTH, *OTHERWISE, WRITTEN]
    given = spark.createDataFrame([(payload,) for payload in payloads], "payload STRING")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_bad", "timeZone": "UTC"}
    parsed = given.select(f.from_json("payload", f"{TYPES}, _bad STRING", options).alias("value"))
    theirs = [row["value"] for row in parsed.toArrow().to_pylist()]
    schema = spark.createDataFrame([], TYPES).schema
    ours = decoder("json", schema)(pa.array(payloads).cast(pa.binary()))[0].to_pylist()
    bad = [value and value.pop("_bad") for value in theirs]
    return dict(zip(payloads, zip(theirs, bad, ours, strict=True), strict=True))


def test_payloads_mean_what_spark_takes_them_for(both: dict[str, tuple[Any, Any, Any]]) -> None:
    differ = {payload: both[payload] for payload in SAME if repr(both[payload][0]) != repr(both[payload][2])}

    assert differ == {}


def test_what_spark_calls_corrupt_has_no_value_here(both: dict[str, tuple[Any, Any, Any]]) -> None:
    assert {payload: both[payload][2] for payload in REFUSED_BY_BOTH} == dict.fromkeys(REFUSED_BY_BOTH)
    assert [payload for payload in REFUSED_BY_BOTH if both[payload][1] is None] == []


def test_what_is_corrupt_here_only(both: dict[str, tuple[Any, Any, Any]]) -> None:
    assert {payload: both[payload][2] for payload in OTHERWISE} == dict.fromkeys(OTHERWISE)
    assert [payload for payload in OTHERWISE if both[payload][1] is not None] == []


def test_number_in_a_string_is_what_the_sender_wrote(both: dict[str, tuple[Any, Any, Any]]) -> None:
    theirs, _, ours = both[WRITTEN]

    assert (theirs["text"], ours["text"]) == ("1.5", "1.50")


def test_corrupt_payloads_are_counted_as_they_pass(spark: Any) -> None:
    from pyspark.sql import Observation

    observation = Observation("payloads")
    frame = observed(spark.createDataFrame([(b"x",), (None,), (b"y",)], "_corrupt BINARY"), observation)

    assert len(frame.collect()) == 3
    assert observation.get == {"rows": 3, "corrupt": 2}
