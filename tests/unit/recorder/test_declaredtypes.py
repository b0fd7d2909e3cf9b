"""Declared types of payloads are schemas of MCAP files, by which other tools and we read them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from mcap.reader import make_reader
from mcap.writer import Writer

from elea.content import Contents
from elea.content.registry import SchemaRegistry, rule_key, type_key
from elea.model.encoding import Encoding
from elea.recorder import Recorder, open_capture
from elea.recorder.declaredtypes import types_of
from elea.recorder.fieldvalues import FieldValues
from tests.unit.api.stores import broker, client
from tests.unit.recorder.samples import NOON, batch_of, row, table_of, written
from tests.unit.recorder.sessions import eventually

CDR = Encoding.APPLICATION_CDR.id
PROTOBUF = Encoding.APPLICATION_PROTOBUF.id
LIGHT = "module demo { struct Light { float level; }; };"


def light(level: float) -> bytes:
    return b"\0\1\0\0" + struct.pack("<f", level)


def descriptors() -> bytes:
    """Those of `google.protobuf.Timestamp`."""
    file = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(file)
    found: bytes = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    return found


@pytest.fixture
def contents() -> Contents:
    """What a data space declares."""
    registry = SchemaRegistry()
    assert registry.take(type_key("application/cdr", "demo/Light"), b"omgidl", LIGHT.encode())
    assert registry.take(type_key("application/protobuf", "google.protobuf.Timestamp"), None, descriptors())
    assert registry.take(rule_key("lamps/*"), None, b"application/cdr;demo/Light")
    return Contents(registry)


def test_declared_types_are_schemas_and_payloads_are_read_by_them(tmp_path: Path, contents: Contents) -> None:
    stamp = timestamp_pb2.Timestamp(seconds=42).SerializeToString()
    rows = [
        row(0, key="lamp", payload=light(0.5), encoding=CDR, schema=b"demo/Light"),
        row(1, key="clock", payload=stamp, encoding=PROTOBUF, schema=b"google.protobuf.Timestamp"),
        row(2, key="lamps/1", payload=light(1.5), encoding=0),
        row(3, key="other", payload=b"?", encoding=CDR, schema=b"demo/Unknown"),
    ]
    (path,) = written(tmp_path / "a.mcap", [batch_of(rows)], types=types_of(contents))

    with path.open("rb") as file:
        found = {
            channel.topic: (channel.message_encoding, schema)
            for schema, channel, _ in make_reader(file).iter_messages()
            if schema is not None
        }
    told = {key: (encoding, its.name, its.encoding, its.data) for key, (encoding, its) in found.items()}
    capture = open_capture(path)
    assert table_of(capture).equals(table_of([batch_of(rows)]))
    assert told == {
        "lamp": ("cdr", "demo::Light", "omgidl", LIGHT.encode()),
        "clock": ("protobuf", "google.protobuf.Timestamp", "protobuf", descriptors()),
        "lamps/1": ("cdr", "demo::Light", "omgidl", LIGHT.encode()),
        "other": ("cdr", "demo/Unknown", "", b""),
    }
    values = FieldValues(["level", "seconds"], Contents(capture.types))
    values.add(batch_of(rows))
    assert {name: numbers.tolist() for name, (_, numbers) in values.lines().items()} == {
        ("lamp", "level"): [0.5],
        ("clock", "seconds"): [42.0],
        ("lamps/1", "level"): [1.5],
    }
    assert values.unreadable == 1  # what nobody declares


def test_messages_of_ros_in_a_foreign_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "ros.mcap"
    with path.open("wb") as file:
        writer: Any = Writer(file)
        writer.start(profile="ros2")
        schema = writer.register_schema("std_msgs/msg/Float32", "ros2msg", b"float32 data")
        channel = writer.register_channel("/speed", "cdr", schema)
        for number in range(3):
            writer.add_message(channel, NOON + number, light(number / 2), NOON + number)
        writer.finish()
    capture = open_capture(path)
    values = FieldValues(["data"], Contents(capture.types))

    for batch in capture:
        values.add(batch)

    assert [numbers.tolist() for _, numbers in values.lines().values()] == [[0.0, 0.5, 1.0]]


def test_recorder_asks_the_data_space_for_types(tmp_path: Path) -> None:
    with broker(types="@schema/**") as router, client(router) as session:
        place = type_key("application/cdr", "demo/Light")
        session.put(place, LIGHT, encoding="text/plain;omgidl", durability="transient", ack=True)
        with Recorder(session, "lamp", tmp_path / "a.mcap", flush=0.01) as recorder:
            session.put("lamp", light(0.5), encoding="application/cdr;demo/Light")
            eventually(lambda: recorder.figures().samples == 1, "it is recorded")

    with (tmp_path / "a.mcap").open("rb") as file:
        ((schema, channel, _),) = make_reader(file).iter_messages(topics=["lamp"])
    assert schema is not None
    assert (channel.message_encoding, schema.name, schema.data) == ("cdr", "demo::Light", LIGHT.encode())
