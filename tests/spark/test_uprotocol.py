"""uProtocol messages through Spark: as a batch, as a stream that is started again, in a pipeline, with bad ones."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.spark.payload import observed
from elea.spark.pipeline import runner, specreader
from elea.uprotocol import (
    CallOptions,
    Publisher,
    RpcClient,
    RpcServer,
    UCode,
    UPayload,
    UStatusError,
    UTransportZenoh,
    UUri,
)
from tests.interop.inbox import eventually
from tests.interop.storing import StoringBroker
from tests.unit.spark.vehicles import DESCRIPTORS, NAME, Vehicle

PAGE = Path(__file__).parents[2] / "docs" / "uprotocol.md"
TOPIC = "//vcu/10AB/3/8001"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "vehicle.desc"
    path.write_bytes(DESCRIPTORS)
    return str(path)


@pytest.fixture
def vehicle(session: elea.Session) -> UTransportZenoh:
    return UTransportZenoh(session, "//vcu/10AB/3/0")


def reading(reader: Any, broker: StoringBroker, file: str) -> Any:
    given = {"payloadFormat": "uprotocol", "payloadMessage": NAME, "payloadDescriptor": file}
    return reader.format("zenoh").options(connect=broker.locator, startingOffsets="earliest", **given)


def publish(vehicle: UTransportZenoh, first: int, count: int) -> None:
    for number in range(first, first + count):
        Publisher(vehicle).publish(0x8001, UPayload.protobuf(Vehicle(speed=number / 2, name=f"car {number}")))


def stored(session: elea.Session, count: int) -> None:
    """Wait until the broker keeps so many."""
    eventually(lambda: session.read("up/**").read_all().num_rows >= count, f"{count} messages are stored")


def test_a_batch_of_all_types(spark: Any, broker: StoringBroker, vehicle: UTransportZenoh, file: str) -> None:
    phone = UTransportZenoh(vehicle.session, "//phone/1/1/0")

    def serve(*_: object) -> UPayload:
        if len(served) == 2:
            raise UStatusError(UCode.NOT_FOUND, "no such door")
        served.append(1)
        return UPayload.protobuf(Vehicle(name="done"))

    served: list[int] = []
    publish(vehicle, 0, 3)
    with RpcServer(vehicle) as server, RpcClient(phone) as client:
        server.register_endpoint(None, 0xB, serve)
        method = UUri.parse("//vcu/10AB/3/B")
        for _ in range(2):
            client.invoke_method(method, UPayload.protobuf(Vehicle(wheel=4)), CallOptions(ttl=5000))
        with pytest.raises(UStatusError):
            client.invoke_method(method, None, CallOptions(ttl=5000))
    stored(vehicle.session, 9)

    rows = reading(spark.read, broker, file).load("up/**").orderBy("created").collect()

    assert Counter(row.type for row in rows) == {"PUBLISH": 3, "REQUEST": 3, "RESPONSE": 3}
    assert {row.problem for row in rows} == {None}
    speeds = [row.value.speed for row in rows if row.type == "PUBLISH"]
    assert (sorted(speeds), {row.source for row in rows if row.type == "PUBLISH"}) == ([0.0, 0.5, 1.0], {TOPIC})
    requests = {row.id: row for row in rows if row.type == "REQUEST"}
    answers = [row for row in rows if row.type == "RESPONSE"]
    assert {row.reqid for row in answers} == set(requests)
    assert {(row.source, row.sink, row.priority, row.ttl) for row in answers} == {
        ("//vcu/10AB/3/B", "//phone/1/1/0", "CS4", 5000)
    }
    assert sorted((row.commstatus or "OK", row.value and row.value.name) for row in answers) == [
        ("NOT_FOUND", None),
        ("OK", "done"),
        ("OK", "done"),
    ]


def test_a_stream_that_is_started_again_counts_what_it_cannot_decode(
    spark: Any, broker: StoringBroker, session: elea.Session, vehicle: UTransportZenoh, file: str, tmp_path: Path
) -> None:
    def run() -> list[Any]:
        frame = observed(reading(spark.readStream, broker, file).load("up/**"), "zenoh")
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "table"))
        query = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
        query.awaitTermination()
        assert query.exception() is None
        return [one.observedMetrics["zenoh"] for one in query.recentProgress if one.observedMetrics]

    publish(vehicle, 0, 10)
    session.put("up/nobody", b"no message", attachment=b"\x02no version of ours", ack=True, timeout=60)
    Publisher(vehicle).publish(0x8001, UPayload(b"\xff\xff", 2))
    stored(session, 12)
    first = run()
    publish(vehicle, 10, 5)
    stored(session, 17)
    second = run()

    assert [sum(one[name] for one in first) for name in ("rows", "corrupt")] == [12, 2]
    assert [sum(one[name] for one in second) for name in ("rows", "corrupt")] == [5, 0]
    table = spark.read.parquet(str(tmp_path / "table"))
    good = table.where("problem IS NULL").selectExpr("value.name AS name").collect()
    assert sorted(row.name for row in good) == sorted(f"car {number}" for number in range(15))
    bad = {row.problem: bytes(row._corrupt) for row in table.where("problem IS NOT NULL").collect()}
    assert sorted(bad.values()) == [b"no message", b"\xff\xff"]
    assert any("version 2 of the attributes" in problem for problem in bad)


PIPELINE = """
[pipeline]
name = "vehicles"
checkpoints = "state"
trigger = "available now"
connect = "{locator}"

[source.speeds]
keyexpr = "up/*/10AB/0/3/8001/**"
format = "uprotocol"
options = {{ payloadMessage = "{name}", payloadDescriptor = "{file}" }}

[step.speed_rows]
sql = "SELECT id, source, type, value.speed AS speed, value.gear AS gear FROM speeds WHERE problem IS NULL"

[table.fast]
from = "speed_rows"
path = "fast"

[table.messages]
from = "speeds"
path = "messages"
"""


def test_a_pipeline(
    spark: Any, broker: StoringBroker, session: elea.Session, vehicle: UTransportZenoh, file: str, tmp_path: Path
) -> None:
    from deltalake import DeltaTable

    publish(vehicle, 0, 4)
    stored(session, 4)
    place = tmp_path / "pipeline.toml"
    place.write_text(PIPELINE.format(locator=broker.locator, name=NAME, file=file))

    runner.run(specreader.read(str(place)), spark)

    rows = DeltaTable(tmp_path / "fast").to_pyarrow_table().to_pylist()
    assert sorted(row["speed"] for row in rows) == [0.0, 0.5, 1.0, 1.5]
    assert {(row["source"], row["type"], row["gear"]) for row in rows} == {(TOPIC, "PUBLISH", "GEAR_UNKNOWN")}
    whole = DeltaTable(tmp_path / "messages").to_pyarrow_table().to_pylist()  # written by the tasks of the source
    assert sorted(row["value"]["name"] for row in whole) == ["car 0", "car 1", "car 2", "car 3"]
    assert {row["id"] for row in whole} == {row["id"] for row in rows}


def test_example_of_the_page(spark: Any, broker: StoringBroker, session: elea.Session, capsys: Any) -> None:
    [code] = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    exec(compile(code, str(PAGE), "exec"), {"__name__": "example", "broker": broker.locator, "spark": spark})

    assert re.search(r"PUBLISH\|//vcu.my_vin/10AB/3/8001\|CS1 +\|50.5", capsys.readouterr().out)
