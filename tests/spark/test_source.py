"""`format("zenoh")` as a batch source: every column of every sample, any part of a log, and what is said if not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import elea
from elea.model.encoding import CUSTOM_ENCODING
from elea.model.errors import StoreError
from elea.model.node_id import NodeId
from elea.model.timestamp import Timestamp as ModelTimestamp
from elea.spark.logs import Logs
from elea.spark.options import ReadOptions
from elea.spark.sessions import close_all
from tests.interop.inbox import eventually, free_port
from tests.interop.storing import StoringBroker
from tests.spark.conftest import client

ALL = ["key", "payload", "encoding", "timestamp", "kind", "attachment", "source_id", "sn", "hlc", "priority",
       "congestion", "express", "log", "offset", "ingest_time", "source_eid"]  # fmt: skip
NUMBER = iter(range(1_000_000))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoringBroker]:
    """A broker that all tests of this module share; each has keys of its own."""
    store = tmp_path_factory.mktemp("store")
    with StoringBroker("--store", str(store), "--persist", "**") as broker:
        yield broker


@pytest.fixture(scope="module")
def writer(place: StoringBroker) -> Iterator[elea.Session]:
    with client(place.locator) as session:
        yield session


def load(spark: Any, place: StoringBroker, keys: str, **options: str) -> Any:
    return spark.read.format("zenoh").option("connect", place.locator).options(**options).load(keys)


# -- columns ---------------------------------------------------------------------------------------------------------

CHUNKS = st.text(st.characters(exclude_characters="/*$?#@", exclude_categories=["Cs"]), min_size=1, max_size=6)
KEYS = st.lists(CHUNKS, min_size=1, max_size=3).map("/".join)
COMMON = {
    "key": KEYS,
    "payload": st.binary(max_size=40) | st.just(b""),
    "kind": st.integers(0, 1),
    "encoding": st.sampled_from([0, 1, 4, 5, 700, CUSTOM_ENCODING]),
    "schema": st.none() | st.sampled_from([b"utf-8", b"\xff\xfe", "größe".encode()]),
    "attachment": st.none() | st.binary(max_size=9),
}
SOURCES = st.builds(
    lambda id, entity, number: elea.SourceInfo(elea.EntityGlobalId(elea.ZenohId(id), entity), number),
    st.binary(min_size=15, max_size=15).map(lambda id: id + b"\x01"),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, (1 << 32) - 1),
)
SINGLE = st.fixed_dictionaries(
    {
        **COMMON,
        "priority": st.sampled_from(list(elea.Priority)[1:]),
        "congestion": st.sampled_from([elea.CongestionControl.DROP, elea.CongestionControl.BLOCK]),
        "express": st.booleans(),
        "source": st.none() | SOURCES,
    }
)
PAST = 1_700_000_000 << 32  # times of the future are replaced
STAMP_IDS = st.binary(max_size=15).map(lambda id: id + b"\x01")
STAMPED = st.fixed_dictionaries({**COMMON, "ntp64": st.integers(0, PAST), "stamp_id": STAMP_IDS})
GIVEN = st.tuples(st.lists(SINGLE, max_size=6), st.lists(STAMPED, min_size=1, max_size=20))
TYPES = {
    "key": pa.string(),
    "payload": pa.binary(),
    "kind": pa.uint8(),
    "encoding": pa.uint32(),
    "schema": pa.binary(),
    "attachment": pa.binary(),
    "ntp64": pa.uint64(),
    "stamp_id": pa.binary(),
}


def put_singles(session: elea.Session, rows: list[dict[str, Any]]) -> None:
    """As any client puts them."""
    for row in rows:
        options: dict[str, Any] = {
            "priority": row["priority"],
            "congestion_control": row["congestion"],
            "express": row["express"],
            "attachment": row["attachment"],
            "source_info": row["source"],
        }
        if row["kind"]:
            session.delete(row["key"], **options)
        else:
            encoding = elea.Encoding.of(row["encoding"], row["schema"])
            session.put(row["key"], row["payload"], encoding=encoding, **options)


def same_as_put(row: dict[str, Any], one: dict[str, Any]) -> None:
    is_put = not one["kind"]
    assert row["kind"] == ("PUT" if is_put else "DELETE")
    assert row["payload"] == (one["payload"] if is_put else None)
    assert row["attachment"] == one["attachment"]
    if is_put:
        assert row["encoding"] == str(elea.Encoding.of(one["encoding"], one["schema"]))


@settings(max_examples=4, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@given(samples=GIVEN)
def test_rows_are_equal_to_samples_in_every_column(
    spark: Any, place: StoringBroker, writer: elea.Session, samples: Any
) -> None:
    prefix = f"columns/{next(NUMBER)}"
    # A number before each key, so that it is known which row is which.
    singles, stamped = (
        [{**row, "key": f"{prefix}/{name}{at}/{row['key']}"} for at, row in enumerate(rows)]
        for name, rows in zip("ab", samples, strict=True)
    )
    before = datetime.now(UTC).replace(microsecond=0)
    put_singles(writer, singles)
    eventually(
        lambda: writer.read(f"{prefix}/**", timeout=60).read_all().num_rows == len(singles), "plain puts are stored"
    )
    receipt = writer.put_batch(
        pa.Table.from_pylist(stamped, pa.schema(list(TYPES.items()))), f"{prefix}/**", timeout=60
    )

    frame = load(spark, place, f"{prefix}/**", includeMetadata="true")
    rows = sorted((row.asDict() for row in frame.collect()), key=lambda row: row["offset"])

    assert frame.columns == ALL
    assert [row["key"] for row in rows[len(singles) :]] == [one["key"] for one in stamped]
    by_key = {row["key"]: row for row in rows}
    for one in singles:
        row = by_key[one["key"]]
        same_as_put(row, one)
        assert row["priority"] == int(one["priority"])
        assert row["congestion"] == one["congestion"].name
        assert row["express"] == one["express"]
        assert row["timestamp"].astimezone(UTC) >= before
        if one["source"] is not None:
            source = one["source"].source_id
            assert (row["source_id"], row["source_eid"]) == (bytes(source.zid), source.eid)
            assert row["sn"] == one["source"].source_sn
    for at, one in enumerate(stamped):
        row = by_key[one["key"]]
        same_as_put(row, one)
        stamp = ModelTimestamp(one["ntp64"], NodeId(one["stamp_id"]))
        assert row["timestamp"].astimezone(UTC) == stamp.get_time()
        assert row["hlc"] == one["ntp64"].to_bytes(8, "big") + stamp.id.data
        assert (row["log"], row["offset"]) == (receipt.log, (receipt.position or 0) + at)
        assert row["sn"] == by_key[stamped[0]["key"]]["sn"] + at
    assert len(rows) == len(singles) + len(stamped)
    assert all(row["ingest_time"].astimezone(UTC) >= before for row in rows)


# -- parts of a log --------------------------------------------------------------------------------------------------


def test_any_part_of_a_log_can_be_read(spark: Any, place: StoringBroker, writer: elea.Session) -> None:
    times = [int(datetime(2026, 1, 1, hour, tzinfo=UTC).timestamp()) for hour in range(10)]
    rows = [
        {"key": f"parts/{at % 2}", "payload": str(at).encode(), "kind": int(at == 9), "ntp64": time << 32,
         "stamp_id": b"\1"}
        for at, time in enumerate(times)
    ]  # fmt: skip
    receipt = writer.put_batch(pa.Table.from_pylist(rows), "parts/**", timeout=60)
    first = receipt.position or 0

    def numbers(keys: str = "parts/**", **options: str) -> list[int]:
        frame = load(spark, place, keys, **options).select("payload", "kind")
        return sorted(9 if row.kind == "DELETE" else int(row.payload) for row in frame.collect())

    def offset(position: int) -> str:
        return json.dumps({"epoch": receipt.epoch, "next": position})

    named = json.dumps({receipt.log: {"epoch": receipt.epoch, "next": first + 6}})
    assert numbers() == list(range(10))
    assert numbers(startingOffsets=offset(first + 3), endingOffsets=named) == [3, 4, 5]
    assert numbers(startingOffsets="latest") == []
    assert numbers(startingOffsets=str(first + 3), endingOffsets=json.dumps({receipt.log: first + 6})) == [3, 4, 5]
    assert numbers(startingOffsets=json.dumps({receipt.log: "earliest"})) == list(range(10))
    assert numbers(startingTimestamp="2026-01-01T04:00:00Z", endingTimestamp=str(times[7] * 1000)) == [4, 5, 6]
    assert numbers("parts/1", kind="put") == [1, 3, 5, 7]
    assert numbers(kind="delete") == [9]
    assert numbers('["parts/0", "parts/1", "other/**"]') == list(range(10))
    assert numbers(mode="query") == [8]
    assert numbers(asOf="2026-01-01T05:30:00Z") == [4, 5]
    assert numbers(selector="parts/1?_history") == [1, 3, 5, 7, 9]
    chosen = load(spark, place, "parts/0", minPartitions="2").where("payload = '4'")
    assert chosen.count() == 1
    only = spark.read.format("zenoh").schema("offset bigint, key string").option("connect", place.locator)
    assert sorted(tuple(row) for row in only.load("parts/**").collect())[-1] == (first + 9, "parts/1")


def test_payloads_become_values_and_bad_ones_stand_aside(
    spark: Any, place: StoringBroker, writer: elea.Session
) -> None:
    payloads = [b'{"speed": 1.5, "name": "a"}', b"no json", b'{"speed": "fast"}', b'{"name": "b", "more": 1}', b""]
    writer.put_batch([("values/x", payload) for payload in payloads], timeout=60)
    writer.delete("values/x", durability="persistent", ack=True, timeout=60)

    frame = load(spark, place, "values/**", payloadFormat="json", payloadSchema="speed double, name string")
    rows = frame.select("kind", "value", "_corrupt").collect()

    found = [None if row.value is None else tuple(row.value) for row in rows]
    assert found == [(1.5, "a"), None, None, (None, "b"), None, None]
    corrupt = [None if row["_corrupt"] is None else bytes(row["_corrupt"]) for row in rows]
    assert corrupt == [None, b"no json", b'{"speed": "fast"}', None, b"", None]
    assert frame.where("value.speed > 1").count() == 1


FORMAT = """
import pyarrow as pa
from elea.spark.payload import register

def halves(schema):
    def decode(payloads):
        numbers = [None if one is None else {"n": int(one) // 2} for one in payloads.to_pylist()]
        return pa.array(numbers, schema), pa.nulls(len(payloads), pa.binary())
    return decode

register("halves", halves, lambda schema: lambda rows: pa.array([str(2 * n).encode() for n in rows["n"].to_pylist()]))
"""


def test_format_of_ones_own_is_known_wherever_spark_plans_and_decodes(
    spark: Any, place: StoringBroker, writer: elea.Session, tmp_path: Path
) -> None:
    (tmp_path / "formats_of_a_user.py").write_text(FORMAT)
    spark.sparkContext.addPyFile(str(tmp_path / "formats_of_a_user.py"))
    options = {"payloadFormat": "halves", "payloadModule": "formats_of_a_user"}
    with pytest.raises(Exception, match=r"there is no format 'halves'.*payloadModule"):
        load(spark, place, "halves/**", payloadSchema="n bigint", payloadFormat="halves")

    rows = spark.sql("SELECT 'halves/x' AS key, 21 AS n")
    rows.write.format("zenoh").mode("append").options(connect=place.locator, **options).save()
    (row,) = load(spark, place, "halves/**", payloadSchema="n bigint", **options).collect()

    assert (bytes(row.payload), row.value.n) == (b"42", 21)


def test_pushed_filters_narrow_what_is_asked_for(spark: Any, place: StoringBroker, writer: elea.Session) -> None:
    writer.put_batch([(f"pushed/{at % 5}/x", str(at)) for at in range(50)], timeout=60)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition, count in (
            ("key = 'pushed/1/x'", 10), ("key in ('pushed/1/x', 'pushed/2/x')", 20), ("key like 'pushed/3/%'", 10),
            ("kind = 'DELETE'", 0), ("timestamp > '2020-01-01' and key <> 'pushed/0/x'", 40),
        ):  # fmt: skip
            assert load(spark, place, "pushed/**", pushdown="true").where(condition).count() == count
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_second_query_of_a_load_whose_filters_were_pushed_is_refused(
    spark: Any, place: StoringBroker, writer: elea.Session
) -> None:
    writer.put_batch([(f"claimed/{at % 5}/x", str(at)) for at in range(50)], timeout=60)
    one = "key = 'claimed/1/x'"

    def fresh() -> Any:
        return load(spark, place, "claimed/**", pushdown="true", minPartitions="2")

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        plain = fresh()
        assert (plain.count(), plain.where(one).count()) == (50, 10)
        with pytest.raises(Exception, match="narrowed by the filters of one query are read once more"):
            plain.count()  # without the refusal: 10
        for second in ("key = 'claimed/2/x'", one):
            both = fresh()
            with pytest.raises(Exception, match="another query of this load"):
                both.where(one).union(both.where(second)).count()  # the second branch twice
        branches = fresh()
        with pytest.raises(Exception, match="read once more"):
            branches.where(one).union(branches).count()
        grouped = fresh()
        left, right = grouped.where(one).groupBy("kind").count(), grouped.groupBy("kind").count()
        with pytest.raises(Exception, match="read once more"):
            left.union(right).collect()
        assert [row["count"] for row in fresh().where(one).groupBy("kind").count().collect()] == [10]
        assert fresh().where(one).union(fresh()).count() == 60
        assert len(fresh().where(one).take(3)) == 3
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


# -- what cannot be --------------------------------------------------------------------------------------------------


def test_what_is_wrong_is_said_with_what_to_do(spark: Any, place: StoringBroker, writer: elea.Session) -> None:
    writer.put_batch([("wrong/x", "1")], timeout=60)
    nobody = f"tcp/127.0.0.1:{free_port()}"
    lost = '{"epoch": "00", "next": 1}'
    cases: list[tuple[dict[str, str], str, tuple[str, ...]]] = [
        ({"startingOfset": "latest"}, "", ("ConfigError", "startingofset", "did you mean startingOffsets")),
        ({"predicate": "a = "}, "", ("ConfigError", "predicate", "column 5")),
        ({}, "speed double", ("ConfigError", "column speed: there is no such column", "key, payload")),
        ({}, "key bigint", ("ConfigError", "column key: it is of type string, not bigint", "cast")),
        ({"payloadFormat": "yaml", "payloadSchema": "a int"}, "", ("ConfigError", "'yaml'", "json")),
        ({"payloadFormat": "json", "payloadSchema": "a itn"}, "", ("option payloadSchema", "'a itn'", '"INT"?')),
        ({"connect": nobody, "connectTimeoutMs": "300"}, "", ("SessionError", nobody, "elea broker", "option connect")),
        ({"startingOffsets": lost}, "", ("DataLost", "replaced", "epoch is", "failOnDataLoss=false")),
        ({"startingOffsets": '{"other": {"epoch": "00", "next": 1}}'}, "", ("ConfigError", "says nothing of log")),
        ({"pushdown": "true"}, "", ("spark.sql.python.filterPushdown.enabled",)),
    ]
    for options, schema, said in cases:
        reader = spark.read.format("zenoh").options(**{"connect": place.locator, **options})
        with pytest.raises(Exception) as caught:  # Spark has a class for each way
            (reader.schema(schema) if schema else reader).load("wrong/**").count()
        for text in said:
            assert text in str(caught.value), (options, schema)


def test_logs_of_several_brokers_are_read_together(tmp_path: Path) -> None:
    with (
        StoringBroker("--store", str(tmp_path / "1"), "--persist", "home/**") as one,
        StoringBroker("--store", str(tmp_path / "2"), "--persist", "away/**") as two,
        StoringBroker("--store", str(tmp_path / "3"), "--persist", "home/**") as again,
    ):
        for broker, key in ((one, "home/x"), (two, "away/x"), (again, "home/x")):
            with client(broker.locator) as session:
                session.put_batch([(key, "1")] * 3, timeout=60)

        def options(*brokers: StoringBroker) -> ReadOptions:
            locators = ",".join(broker.locator for broker in brokers)
            return ReadOptions.parse({"connect": locators, "path": "**", "zenoh.mode": "peer"})

        logs = Logs(options(one, two))
        assert [(kept.key_expr, kept.keys) for kept in logs.kept.values()] == [("away/**", None), ("home/**", None)]
        assert [head.end for head in logs.heads().values()] == [3, 3]
        with pytest.raises(StoreError, match=r"two logs called home.*names of their own"):
            Logs(options(one, two, again))
        close_all()


PLANNING = """
import gc, sys
from importlib.machinery import ModuleSpec
from pyspark.sql.types import StructType
from elea.spark.source import ZenohDataSource
sys.modules["__main__"].__spec__ = ModuleSpec("pyspark.daemon", None)
source = ZenohDataSource({"path": "**", "connect": sys.argv[1]})
reader = source.reader(StructType()) if sys.argv[2] == "partitions" else source
before = gc.get_freeze_count()
getattr(reader, sys.argv[2])()
print(before, gc.get_freeze_count() > 1000)
"""


@pytest.mark.parametrize("step", ["schema", "partitions"])
def test_processes_that_plan_do_not_look_through_their_modules_after_every_plan(
    place: StoringBroker, writer: elea.Session, step: str
) -> None:
    writer.put_batch([("planned/x", "1")], timeout=60)

    done = subprocess.run(
        [sys.executable, "-c", PLANNING, place.locator, step], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["0", "True"]


def test_a_router_without_a_store_is_told_apart(spark: Any) -> None:
    with (
        StoringBroker() as plain,
        client(plain.locator) as session,
        session.declare_queryable("plain/x", lambda query: query.reply("plain/x", "here")),
    ):
        with pytest.raises(Exception, match=r"(?s)NoLog.*--persist 'plain/\*\*'.*ingest=spool.*mode=query"):
            load(spark, plain, "plain/**").count()

        (row,) = load(spark, plain, "plain/**", mode="query").collect()

    assert (row.key, bytes(row.payload), row.kind) == ("plain/x", b"here", "PUT")
