"""`format("zenoh")` as a sink: every row one sample, once."""

from __future__ import annotations

import datetime
import shutil
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import zenoh
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elea
from elea.api.stagedbatch import StagedBatch
from elea.model.encoding import Encoding
from elea.model.errors import StoreFenced
from elea.model.timestamp import ns_from_ntp64
from elea.store import SCHEMA
from tests.interop.inbox import eventually, free_port
from tests.interop.storing import StoringBroker

UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
# Times of the future are replaced.
TIMES = st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2023, 12, 31), timezones=st.just(UTC))
ROWS = st.tuples(
    st.sampled_from(["s/a", "s/b/c", "s/ä"]),
    st.none() | st.binary(max_size=40),
    st.none() | st.sampled_from(["text/plain", "application/json;v=2", "zenoh/bytes", "mine;x"]),
    st.none() | st.binary(max_size=9),
    st.none() | st.sampled_from(["PUT", "DELETE"]),
    st.none() | TIMES,
).filter(lambda row: row[1] is not None or row[4] != "PUT")
COLUMNS = "key string, payload binary, encoding string, attachment binary, kind string, timestamp timestamp"


def stored(session: elea.Session, keys: str = "**") -> list[dict[str, Any]]:
    return session.read(keys, timeout=60).read_all().to_pylist()  # type: ignore[no-any-return]


def numbers(session: elea.Session, keys: str) -> list[int]:
    return [int(row["payload"]) for row in stored(session, keys)]


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(ROWS, min_size=1, max_size=40))
def test_samples_are_equal_to_rows(spark: Any, broker: StoringBroker, session: elea.Session, rows: list[Any]) -> None:
    before = len(stored(session))
    frame = spark.createDataFrame(rows, COLUMNS).coalesce(1)

    frame.write.format("zenoh").mode("append").option("connect", broker.locator).save()

    found = stored(session)[before:]
    assert len(found) == len(rows)
    for (key, payload, encoding, attachment, kind, time), sample in zip(rows, found, strict=True):
        is_deletion = kind == "DELETE" or (kind is None and payload is None)
        assert sample["key"] == key
        assert sample["kind"] == int(is_deletion)
        assert sample["payload"] == (b"" if is_deletion else payload)
        assert Encoding.of(sample["encoding"], sample["schema"]) == Encoding(encoding)
        assert sample["attachment"] == attachment
        if time is not None:
            assert ns_from_ntp64(sample["ntp64"]) // 1000 == (time - EPOCH) // datetime.timedelta(microseconds=1)
    assert list(found[0]) == SCHEMA.names


def files(spark: Any, place: Path, count: int, rows: int) -> None:
    """A source of files, one a micro-batch, with numbers that go up."""
    for index in range(count):
        spark.range(index * rows, (index + 1) * rows, 1, 1).write.parquet(str(place / f"part={index}"))


def stream(spark: Any, place: Path) -> Any:
    return spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).parquet(str(place / "part=*"))


def test_stream_is_stored_once_although_a_batch_comes_again_with_other_rows(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    files(spark, tmp_path / "in", 3, 1000)

    def run(parts: int, more: int) -> Any:
        chosen = stream(spark, tmp_path / "in").repartition(parts)
        frame = chosen.selectExpr("concat('out/', id % 7) AS key", f"cast(id + {more} AS string) AS payload")
        writer = frame.writeStream.format("zenoh").option("connect", broker.locator).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert query.awaitTermination(120)
        return query

    got: list[int] = []
    with session.declare_subscriber("out/**", lambda sample: got.append(int(sample.payload.to_string()))):
        first = run(1, 0)
        before = numbers(session, "out/**")
        (last,) = (tmp_path / "checkpoint" / "commits").glob("2")
        last.unlink()  # as if the driver had died between the broker's commit and Spark's
        (tmp_path / "checkpoint" / "commits" / ".2.crc").unlink(missing_ok=True)
        again = run(2, 5_000_000)
        eventually(lambda: len(got) >= 3000, "every sample was published")

    assert again.lastProgress["batchId"] == 2
    assert numbers(session, "out/**") == before
    assert Counter(before) == Counter(range(3000))
    assert Counter(got) == Counter(range(3000))
    with pytest.raises(StoreFenced, match="has committed batch 2 since"):
        StagedBatch(session, uuid.UUID(str(first.id)), 1).stage("**", [("out/zombie", "-1")])

    shutil.rmtree(tmp_path / "checkpoint")  # control: without the memory of the query everything comes again
    run(1, 0)
    assert Counter(numbers(session, "out/**")) == Counter(dict.fromkeys(range(3000), 2))


def test_foreach_batch_stores_a_number_of_a_writer_once(
    spark: Any, broker: StoringBroker, session: elea.Session
) -> None:
    frame = spark.range(100).selectExpr("cast(id AS string) AS payload")

    def write(batch: int) -> None:
        frame.write.format("zenoh").mode("append").options(
            connect=broker.locator, key="once", writerId="gold", writerBatch=str(batch), idempotent="true"
        ).save()

    for batch in (0, 0, 1, 1):
        write(batch)

    assert Counter(numbers(session, "once")) == Counter(dict.fromkeys(range(100), 2))
    with pytest.raises(Exception, match=r"batch 0 of writer .* committed batch 1 since"):
        write(0)


def test_plain_router_gets_rows_at_least_once_and_exactly_once_is_refused(spark: Any) -> None:
    locator = f"tcp/127.0.0.1:{free_port()}"
    config = zenoh.Config()
    for path, value in {"mode": '"router"', "listen/endpoints": f'["{locator}"]'}.items():
        config.insert_json5(path, value)
    config.insert_json5("scouting/multicast/enabled", "false")
    got: list[tuple[str, str, bytes]] = []

    def note(sample: zenoh.Sample) -> None:
        got.append((str(sample.key_expr), str(sample.kind), sample.payload.to_bytes()))

    frame = spark.range(50).selectExpr(
        "concat('p/', id) AS key", "if(id = 7, null, cast(id AS string)) AS payload", "'text/plain' AS encoding"
    )
    with zenoh.open(config) as router, router.declare_subscriber("p/**", note):
        frame.write.format("zenoh").mode("append").option("connect", locator).save()
        eventually(lambda: len(got) >= 50, "every row arrived")

        with pytest.raises(Exception, match=r"option idempotent: nobody at .* keeps samples; start one with --store"):
            frame.write.format("zenoh").mode("append").options(connect=locator, idempotent="true").save()

    assert {key for key, _, _ in got} == {f"p/{n}" for n in range(50)}
    assert [kind for key, kind, _ in got if key == "p/7"] == ["SampleKind.DELETE"]
    assert ("p/3", "SampleKind.PUT", b"3") in got


def test_what_cannot_be_written_is_said(spark: Any, broker: StoringBroker) -> None:
    nobody = {"connect": "tcp/127.0.0.1:9", "connectTimeoutMs": "1500"}
    good = ["'k' AS key", "'x' AS payload"]
    cases: list[tuple[list[str], str, dict[str, str], str]] = [
        (["'k' AS key", "id AS n"], "append", {}, "column n: no sample has such a column"),
        (good, "overwrite", {}, "mode overwrite: a data space is not emptied by a write"),
        (good, "append", {"enconding": "x"}, "did you mean encoding"),
        (good, "append", {"reliability": "best_effort"}, "option reliability: .* it is one of reliable"),
        (good, "append", {"writerId": "x"}, "it goes with writerBatch"),
        (["'k/*' AS key", "'x' AS payload"], "append", {}, "a sample has one key, without wildcards"),
        (good, "append", nobody, "no broker was reached at tcp/127.0.0.1:9"),
    ]
    for columns, mode, options, said in cases:
        writer = spark.range(3).coalesce(1).selectExpr(*columns).write.format("zenoh").mode(mode)
        with pytest.raises(Exception, match=said):
            writer.options(**{"connect": broker.locator, **options}).save()


def test_packed_rows_come_back_as_values(spark: Any, broker: StoringBroker) -> None:
    frame = spark.range(20).selectExpr(
        "concat('v/', id) AS key", "id AS n", "id * 0.5D AS half", "named_struct('s', 'ß') AS inner"
    )
    frame.write.format("zenoh").mode("append").options(connect=broker.locator, payloadFormat="json").save()

    options = {
        "connect": broker.locator,
        "payloadFormat": "json",
        "payloadSchema": "n bigint, half double, inner struct<s string>",
    }
    back = spark.read.format("zenoh").options(**options).load("v/**").selectExpr("key", "value.*", "encoding")

    assert sorted(tuple(row) for row in back.drop("encoding").collect()) == sorted(
        tuple(row) for row in frame.collect()
    )
    assert {row.encoding for row in back.select("encoding").distinct().collect()} == {"application/json"}
