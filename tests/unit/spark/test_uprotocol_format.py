"""uProtocol messages as columns: the same as reading them one by one, whatever is among them."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from elea.model.errors import ConfigError, DecodeError
from elea.spark.batch import rows_maker
from elea.spark.options import ReadOptions
from elea.spark.payload import attributecolumns, encoder, protobuf_rows
from elea.spark.payload.attributecolumns import read_attachments, uuid_texts
from elea.spark.payload.uprotocol_format import message_columns
from elea.spark.schema import COLUMNS, CORRUPT, MESSAGE, METADATA, VALUE, checked, ddl_of
from elea.store.columns import SCHEMA
from elea.uprotocol import (
    UUID,
    UAttributes,
    UCode,
    UMessage,
    UMessageType,
    UPayload,
    UPayloadFormat,
    UPriority,
    UStatus,
    UUri,
    key_of,
    new_uuid,
)
from elea.uprotocol.attachment import read_checked, write_attachment
from elea.uprotocol.protobuf import sized
from elea.uprotocol.status import code_of
from elea.uprotocol.zenohkey import key_problem, resolved
from tests.unit.spark.vehicles import DESCRIPTORS, NAME, Vehicle, descriptor

TOPIC = UUri.parse("//vcu/10AB/3/8001")
CLIENT = UUri.parse("//phone/1/1/0")
METHOD = UUri.parse("//vcu/10AB/3/B")


def sample(key: str, attachment: bytes | None, payload: bytes = b"", *, kind: int = 0) -> dict[str, Any]:
    """A row of a log."""
    return {
        "position": 0, "key": key, "payload": payload, "ntp64": 0, "stamp_id": b"", "kind": kind, "encoding": 0,
        "arrival": datetime(2025, 1, 1, tzinfo=UTC), "attachment": attachment, "once": False, "qos": 5,
    }  # fmt: skip


def of_message(message: UMessage, authority: str = "vcu") -> dict[str, Any]:
    attributes = message.attributes
    assert attributes.source is not None
    key = key_of(attributes.source, attributes.sink, authority)
    return sample(key, write_attachment(attributes), message.payload or b"")


def options(**given: str) -> ReadOptions:
    return ReadOptions.parse({"path": "up/**", "payloadFormat": "uprotocol", **given})


def made(rows: list[dict[str, Any]], value: Any = None, **given: str) -> dict[str, list[Any]]:
    """All columns of messages of a batch."""
    types = dict.fromkeys(MESSAGE) | {CORRUPT: None} | ({} if value is None else {VALUE: value})
    decode = message_columns(types, options(**given))
    assert decode is not None
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    # A slice, as Spark's batches are: places in the buffers do not begin at 0.
    some = pa.RecordBatch.from_pylist([sample("up/x", b"\x01", b"first"), *rows], SCHEMA).slice(1)
    found = {name: column.to_pylist() for name, column in decode(batch).items()}
    assert {name: column.to_pylist() for name, column in decode(some).items()} == found
    return found


def test_every_column_of_every_type() -> None:
    request = UMessage.request(CLIENT, METHOD, b"x", 7, ttl=500, permission_level=3, token="secret")
    messages = [
        UMessage.publish(TOPIC, b"1", UPayloadFormat.TEXT, id=UUID.parse("01941f29-7c00-7abc-8123-456789abcdef")),
        UMessage.notification(TOPIC, CLIENT, b"2", 6, ttl=9, priority=UPriority.CS3, traceparent="00-ab"),
        request,
        UMessage.response(request.attributes, UStatus(UCode.NOT_FOUND).to_bytes(), 2, code=UCode.NOT_FOUND),
    ]

    found = made([of_message(message) for message in messages])

    ids = [str(message.attributes.id) for message in messages]
    assert found == {
        "id": ids,
        "type": ["PUBLISH", "NOTIFICATION", "REQUEST", "RESPONSE"],
        "source": ["//vcu/10AB/3/8001", "//vcu/10AB/3/8001", "//phone/1/1/0", "//vcu/10AB/3/B"],
        "sink": [None, "//phone/1/1/0", "//vcu/10AB/3/B", "//phone/1/1/0"],
        "priority": ["CS1", "CS3", "CS4", "CS4"],
        "ttl": [None, 9, 500, 500],
        "created": [_time(message.attributes.id.time_ms) for message in messages],  # type: ignore[union-attr]
        "commstatus": [None, None, None, "NOT_FOUND"],
        "reqid": [None, None, None, ids[2]],
        "permission_level": [None, None, 3, None],
        "traceparent": [None, "00-ab", None, None],
        "payload_format": ["TEXT", "RAW", "TEXT", "PROTOBUF"],
        "problem": [None] * 4,
        CORRUPT: [None] * 4,
    }
    assert ids[0] == "01941f29-7c00-7abc-8123-456789abcdef"


def plainly(row: dict[str, Any]) -> dict[str, Any]:
    """What the columns say of a row, read by itself: the oracle."""
    nothing = dict.fromkeys((*MESSAGE, CORRUPT))
    if row["kind"]:
        return nothing
    try:
        if row["attachment"] is None:
            raise DecodeError("uprotocol", 0, "no attributes")
        given, problem = read_checked(row["attachment"])
    except DecodeError as error:
        told = "no attributes" if row["attachment"] is None else str(error)
        return nothing | {"problem": told, CORRUPT: row["payload"]}
    problem = problem or key_problem(row["key"], given.type, given.source, given.sink)
    addresses = [given.source, given.sink]
    for at, uri in enumerate(addresses):
        with contextlib.suppress(ValueError):
            addresses[at] = uri and resolved(uri, row["key"], sink=bool(at))
    has_id = given.id is not None and given.id != UUID()
    millis = given.id.time_ms if has_id else 0  # type: ignore[union-attr]
    names = [_named(UMessageType, given.type), _named(UPriority, given.priority or 2)]
    return {
        "id": str(given.id) if has_id else None,
        "created": _time(millis) if has_id and millis < 253_402_300_800_000 else None,
        "type": names[0],
        "priority": names[1],
        "source": None if addresses[0] is None else str(addresses[0]),
        "sink": None if addresses[1] is None else str(addresses[1]),
        "ttl": given.ttl,
        "commstatus": None if given.commstatus is None else code_of(given.commstatus).name,
        "reqid": str(given.reqid) if given.reqid not in (None, UUID()) else None,
        "permission_level": given.permission_level,
        "traceparent": given.traceparent,
        "payload_format": _named(UPayloadFormat, given.payload_format),
        "problem": problem or None,
        CORRUPT: row["payload"] if problem else None,
    }


def _time(millis: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)


def _named(kind: Any, number: int) -> str | None:
    if not number:
        return None
    return next((str(one.name) for one in kind if one == number), str(number))


def _messages(chance: Random) -> list[UMessage]:
    topics = [TOPIC.with_resource(0x8001 + at) for at in range(3)] + [UUri.parse("/10AB/3/8001")]
    request = UMessage.request(CLIENT, METHOD, b"", 6, ttl=1 + chance.randrange(3), token=chance.choice([None, "t"]))
    return [
        UMessage.publish(chance.choice(topics), b"p", chance.randrange(9), ttl=chance.choice([None, 0, 7])),
        UMessage.notification(chance.choice(topics), CLIENT, b"n", 7, priority=chance.randrange(8)),
        request,
        UMessage.response(request.attributes, b"r", 7, code=chance.choice([UCode.OK, UCode.INTERNAL])),
    ]


def _hostile(chance: Random, attributes: UAttributes) -> bytes | None:
    """An attachment that is unusual or wrong in one of many ways."""
    data = write_attachment(attributes)
    body = data[1:]
    reqid = sized(9, new_uuid().to_bytes())
    ways: list[Callable[[], bytes | None]] = [
        lambda: None,
        lambda: b"",
        lambda: b"\x01",
        lambda: b"\x02" + body,
        lambda: data[: chance.randrange(len(data))],
        lambda: b"\x01" + body[20:] + body[:20],  # the identifier last
        lambda: data + sized(1, new_uuid().to_bytes()),  # a second one, which counts
        lambda: data + reqid,
        lambda: data + reqid + sized(9, new_uuid().to_bytes()),
        lambda: b"\x01" + body[:20] + sized(10, reqid) + body[20:],  # looks like one, in the token
        lambda: b"\x01" + body[:22] + sized(11, b"\x4a\x12\x09" + b"a" * 8 + b"\x11" + b"b" * 8) + body[22:],
        lambda: write_attachment(attributes._replace(id=UUID(chance.getrandbits(64), chance.getrandbits(64)))),
        lambda: write_attachment(attributes._replace(id=None)),
        lambda: write_attachment(attributes._replace(id=UUID(), reqid=UUID(1, 0))),
        lambda: write_attachment(attributes._replace(type=chance.randrange(9), priority=chance.randrange(12))),
        lambda: write_attachment(attributes._replace(source=UUri("X", 1, 2, 3))),
        lambda: write_attachment(attributes._replace(traceparent=f"00-{chance.getrandbits(64):x}")),
        lambda: bytes(chance.getrandbits(8) for _ in range(chance.randrange(60))),
        lambda: bytes(byte if chance.random() > 0.05 else chance.getrandbits(8) for byte in data),
    ]
    return chance.choice(ways)()


@pytest.mark.parametrize("seed", range(12))
def test_columns_are_what_rows_say_one_by_one(seed: int) -> None:
    chance = Random(seed)
    rows = []
    for _ in range(150):
        for message in _messages(chance):
            row = of_message(message)
            if chance.random() < 0.4:
                row["attachment"] = _hostile(chance, message.attributes)
            if chance.random() < 0.1:
                row["key"] = chance.choice(["up/x", "fleet/1", "up/vcu/10AB/0/3/8009/{}/{}/{}/{}/{}"])
            if chance.random() < 0.05:
                row["kind"] = 1
            rows.append(row)

    found = made(rows)

    expected = [plainly(row) for row in rows]
    for name in found:
        assert found[name] == [one[name] for one in expected], name


def test_identifiers_are_read_without_looking_at_each_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand messages of two topics and a thousand answers, three attachments are read."""
    seen: list[bytes] = []

    def read(data: bytes) -> tuple[UAttributes, str]:
        seen.append(data)
        return read_checked(data)

    monkeypatch.setattr(attributecolumns, "read_checked", read)
    request = UMessage.request(CLIENT, METHOD, ttl=5)
    messages = [UMessage.publish(TOPIC.with_resource(0x8001 + at % 2)) for at in range(1000)]
    messages += [UMessage.response(request.attributes._replace(id=new_uuid())) for _ in range(1000)]

    found = read_attachments(pa.array([write_attachment(message.attributes) for message in messages]))

    assert len(seen) == 3
    assert uuid_texts(found.ids).to_pylist() == [str(message.attributes.id) for message in messages]
    assert uuid_texts(found.reqids).to_pylist()[1000:] == [str(message.attributes.reqid) for message in messages[1000:]]


@pytest.mark.parametrize("field", [10, 11, 15])
def test_what_only_looks_like_a_request_is_none(field: int) -> None:
    """In a response without a `reqid`, bytes of another field that look like one."""
    likeness = b"\x4a\x12\x09apaaaaaa\x11bbbbbb\xc3\xa9"
    answer = UMessage.response(UMessage.request(CLIENT, METHOD, ttl=5).attributes).attributes
    attachment = write_attachment(answer._replace(reqid=None)) + sized(field, likeness)

    found = made([sample(key_of(METHOD, CLIENT, ""), attachment)])

    assert (found["reqid"], found["problem"]) == ([None], ["reqid of a response missing"])
    assert found["traceparent"] == [likeness.decode() if field == 11 else None]


def test_no_rows_and_nothing_attached() -> None:
    nothing = read_attachments(pa.array([], pa.binary()))
    empty = read_attachments(pa.nulls(3, pa.binary()))

    assert (nothing.distinct, nothing.places.tolist()) == ([], [])
    assert [empty.distinct[place].problem for place in empty.places] == ["no attributes"] * 3
    assert made([])["id"] == []


# -- payloads ----------------------------------------------------------------------------------------------------------

FULL = {
    "speed": 50.5, "slip": 0.5, "odometer": -(2**40), "serial": 2**64 - 1, "wheel": -1, "moving": True, "name": "ö",
    "raw": b"\xff", "rpm": 2**32 - 1, "gear": 2, "limit": 0, "place": {"north": 1.5},
    "at": {"seconds": 1, "nanos": 2999}, "pressures": [2.0, 2.5],
    "track": [{"north": 1.0}, {"east": 2.0}], "doors": {"right": 2, "left": 1},
}  # fmt: skip
FULL_VALUE = FULL | {
    "serial": Decimal(2**64 - 1),
    "gear": "GEAR_REVERSE",
    "place": {"north": 1.5, "east": 0.0},
    "at": datetime(1970, 1, 1, 0, 0, 1, 2, tzinfo=UTC),
    "track": [{"north": 1.0, "east": 0.0}, {"north": 0.0, "east": 2.0}],
    "doors": [("left", 1), ("right", 2)],
}
EMPTY_VALUE = {
    "speed": 0.0, "slip": 0.0, "odometer": 0, "serial": Decimal(0), "wheel": 0, "moving": False, "name": "", "raw": b"",
    "rpm": 0, "gear": "GEAR_UNKNOWN", "limit": None, "place": None, "at": None, "pressures": [], "track": [],
    "doors": [],
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "vehicle.desc"
    path.write_bytes(DESCRIPTORS)
    return str(path)


def published(payload: UPayload | None) -> dict[str, Any]:
    data, form = (None, 0) if payload is None else payload
    return of_message(UMessage.publish(TOPIC, data, form))


def test_payloads_by_descriptor(file: str) -> None:
    payloads = [
        UPayload.protobuf(Vehicle(**FULL)),
        UPayload.any(Vehicle(**FULL)),
        UPayload(b"", UPayloadFormat.PROTOBUF),
        UPayload.protobuf(Vehicle(gear=7)),
        UPayload.json({"speed": 3.5, "name": "json"}),
        None,
    ]

    found = made(
        [published(one) for one in payloads],
        protobuf_rows.struct_type(descriptor()),
        payloadMessage=NAME,
        payloadDescriptor=file,
    )

    values = found[VALUE]
    assert values[:3] == [FULL_VALUE, FULL_VALUE, EMPTY_VALUE]
    assert values[3] == EMPTY_VALUE | {"gear": "7"}
    assert (values[4]["speed"], values[4]["name"], values[4]["rpm"], values[5]) == (3.5, "json", None, None)
    assert found["problem"] == found[CORRUPT] == [None] * 6


def test_payloads_of_several_formats_stay_in_their_rows(file: str) -> None:
    payloads = [UPayload.json({"speed": 1}), UPayload.protobuf(Vehicle(speed=2.0)), UPayload.json({"speed": 3})]

    found = made([published(one) for one in payloads], pa.struct([("speed", pa.float64())]),
                 payloadMessage=NAME, payloadDescriptor=file)  # fmt: skip

    assert found[VALUE] == [{"speed": 1.0}, {"speed": 2.0}, {"speed": 3.0}]


def test_payloads_that_cannot_be_decoded_are_told_and_spoil_nothing(file: str) -> None:
    other = UPayload(UPayload.any(Vehicle()).data.replace(b"Status", b"Statuz"), UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY)
    bad = [
        UPayload(b"\xff", UPayloadFormat.PROTOBUF),
        UPayload(b"\xff", UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY),
        other,
        UPayload(b"{", UPayloadFormat.JSON),
        UPayload(b"x", UPayloadFormat.SOMEIP),
        UPayload(b"x", UPayloadFormat.UNSPECIFIED),
        UPayload.protobuf(Vehicle(at={"seconds": 1 << 60})),
        UPayload(b"\x3a\x01\xff", UPayloadFormat.PROTOBUF),  # a string that is not UTF-8
    ]
    good = UPayload.protobuf(Vehicle(speed=1.0))
    rows = [published(one) for each in bad for one in (good, each)]

    found = made(rows, pa.struct([("speed", pa.float64()), ("at", pa.timestamp("us", "UTC")), ("name", pa.string())]),
                 payloadMessage=NAME, payloadDescriptor=file)  # fmt: skip

    assert found[VALUE][0::2] == [{"speed": 1.0, "at": None, "name": ""}] * len(bad)
    assert found[VALUE][1::2] == [None] * len(bad)
    assert found[CORRUPT][1::2] == [one.data for one in bad]
    assert found["problem"][1::2] == [
        f"the PROTOBUF payload is no {NAME}",
        f"the PROTOBUF_WRAPPED_IN_ANY payload is no {NAME}",
        f"the PROTOBUF_WRAPPED_IN_ANY payload is no {NAME}",
        f"the JSON payload is no {NAME}",
        f"no {NAME} can be read from a payload of SOMEIP",
        f"no {NAME} can be read from a payload of UNSPECIFIED",
        f"the PROTOBUF payload is no {NAME}",
        f"the PROTOBUF payload is no {NAME}",
    ]


def test_a_failed_call_has_no_value_and_no_problem(file: str) -> None:
    request = UMessage.request(CLIENT, METHOD, ttl=5).attributes
    status = UStatus(UCode.INTERNAL, "broken").to_bytes()

    found = made([of_message(UMessage.response(request, status, 2, code=UCode.INTERNAL))],
                 pa.struct([("speed", pa.float64())]), payloadMessage=NAME, payloadDescriptor=file)  # fmt: skip

    assert (found[VALUE], found["problem"], found["commstatus"]) == ([None], [None], ["INTERNAL"])


def test_an_invalid_message_is_not_decoded(file: str) -> None:
    row = published(UPayload.protobuf(Vehicle(speed=1.0)))
    row["key"] = "up/other/10AB/0/3/8001/{}/{}/{}/{}/{}"

    found = made([row], pa.struct([("speed", pa.float64())]), payloadMessage=NAME, payloadDescriptor=file)

    assert (found[VALUE], found[CORRUPT]) == ([None], [row["payload"]])
    assert found["problem"] == ["its attributes say from //vcu/10AB/3/8001 to None"]


def test_json_payloads_need_no_message() -> None:
    rows = [published(UPayload.json({"speed": 2})), published(UPayload.text("x"))]

    found = made(rows, pa.struct([("speed", pa.float64())]))

    assert found[VALUE] == [{"speed": 2.0}, None]
    assert found["problem"] == [None, "no value of the schema can be read from a payload of TEXT"]


def test_the_schema_comes_from_the_descriptor(file: str) -> None:
    text = ddl_of(options(payloadMessage=NAME, payloadDescriptor=file))

    assert text.startswith("`key` string, `payload` binary, ")
    assert "`priority` string, `ttl` bigint, `created` timestamp" in text
    assert "`serial`: decimal(20,0)" in text
    assert "`place`: STRUCT<`north`: double, `east`: double>" in text
    assert "`doors`: MAP<string, int>" in text
    assert text.endswith("`_corrupt` binary")
    assert "`value`" not in ddl_of(options())
    assert "`value` STRUCT<a INT>" in ddl_of(options(payloadSchema="a INT"))
    assert ddl_of(options(includeMetadata="true")).count("`priority`") == 1


def test_columns_of_a_schema_of_the_user() -> None:
    from pyspark.sql.types import ByteType, StringType, StructField

    wanted = StructType([StructField("priority", StringType()), StructField("key", StringType())])
    row = published(None)

    checked(wanted, options())
    batch = rows_maker(wanted, options()).rows_of(pa.RecordBatch.from_pylist([row], SCHEMA))

    assert batch.to_pylist() == [{"priority": "CS1", "key": row["key"]}]
    with pytest.raises(ConfigError, match="column priority: it is of type string, not tinyint"):
        checked(StructType([StructField("priority", ByteType())]), options())
    plain = rows_maker(StructType([StructField("key", StringType())]), options())
    assert plain.rows_of(pa.RecordBatch.from_pylist([row], SCHEMA)).to_pylist() == [{"key": row["key"]}]
    assert not MESSAGE.keys() & COLUMNS.keys()
    assert MESSAGE.keys() & METADATA.keys() == {"priority"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"payloadMessage": "test.vehicle.Statut"}, r"has no message test.vehicle.Statut.*did you mean test.vehicle"),
        ({"payloadMessage": "test.vehicle.Part"}, r"test.vehicle.Part in test.vehicle.Part: it contains itself"),
        ({"payloadMessage": "test.vehicle.Nothing"}, r"test.vehicle.Nothing has no fields"),
        ({}, r"payloadDescriptor: nothing says which of its messages"),
        (
            {"payloadMessage": NAME, "payloadFormat": "json", "payloadSchema": "a INT"},
            "json knows no declared types",
        ),
    ],
)
def test_messages_that_cannot_be(file: str, given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        ddl_of(ReadOptions.parse({"path": "up/**", "payloadFormat": "uprotocol", "payloadDescriptor": file} | given))


def test_descriptors_that_are_none(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    text, half = tmp_path / "text", tmp_path / "half"
    text.write_text("message Status {}")
    whole = descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS)
    half.write_bytes(descriptor_pb2.FileDescriptorSet(file=whole.file[1:]).SerializeToString())

    for path, problem in ((tmp_path / "none", "is no descriptor set"), (text, "is no descriptor set"), (half, "whole")):
        with pytest.raises(ConfigError, match=rf"payloadDescriptor.*{problem}.*--include_imports"):
            protobuf_rows.descriptor_of(NAME, str(path))
    with pytest.raises(ConfigError, match=r"no module here has a message test.Nowhere.*payloadModule"):
        protobuf_rows.descriptor_of("test.Nowhere", None)


def test_a_message_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import base64\nfrom google.protobuf import descriptor_pb2, descriptor_pool\n"
        f"found = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode({base64.b64encode(DESCRIPTORS)!r}))\n"
        "descriptor_pool.Default().AddSerializedFile(found.file[1].SerializeToString())\n"
    )
    (tmp_path / "vehicle_of_a_test_pb2.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)

    text = ddl_of(options(payloadMessage=NAME, payloadModule="vehicle_of_a_test_pb2"))

    assert "`speed`: double" in text


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (pa.struct([("sped", pa.float64())]), r"test.vehicle.Status has no field sped.*did you mean speed"),
        (pa.struct([("speed", pa.int64())]), r"Status.speed is double, and cannot be int64"),
        (pa.struct([("pressures", pa.float32())]), r"Status.pressures is list.*cannot be float"),
        (pa.struct([("place", pa.struct([("up", pa.float64())]))]), r"Status.place has no field up"),
        (pa.struct([("doors", pa.map_(pa.string(), pa.string()))]), r"Status.doors.value is int32"),
    ],
)
def test_fields_that_the_message_has_not(wanted: pa.StructType, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        protobuf_rows.ProtobufRows(descriptor(), wanted)


def test_fields_of_a_message_that_contains_itself_can_be_chosen() -> None:
    rows = protobuf_rows.ProtobufRows(descriptor("test.vehicle.Part"), pa.struct([("name", pa.string())]))

    assert rows.one_by_one(pa.array([b"\x0a\x01x", b"\xff"])).to_pylist() == [{"name": "x"}, None]


def test_it_cannot_be_written() -> None:
    with pytest.raises(ConfigError, match="can be read only"):
        encoder("uprotocol", pa.struct([("a", pa.int32())]))
