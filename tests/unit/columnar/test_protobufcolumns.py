"""Protobuf messages as columns: descriptors that would make too many of them."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2

from elea.columnar.protobufcolumns import ProtobufColumns
from elea.content.protobuf import descriptor_in, message_decoder
from elea.model.errors import ConfigError, InvalidSchema


def doubling(levels: int, fields: int = 2) -> bytes:
    """Messages of some others each."""
    file = descriptor_pb2.FileDescriptorProto(name="doubling.proto", syntax="proto3")
    for level in range(levels):
        message = file.message_type.add(name=f"M{level}")
        for number in range(1, fields + 1):
            field = message.field.add(name=f"f{number}", number=number, type=11 if level else 5, label=1)
            if level:
                field.type_name = f".M{level - 1}"
    found: bytes = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    return found


def test_messages_that_double_are_refused_as_columns_and_read_one_by_one() -> None:
    with pytest.raises(ConfigError, match="SCHEMA_MEMBERS"):
        ProtobufColumns(descriptor_in(doubling(13), "M12"))
    with pytest.raises(ConfigError, match="SCHEMA_DEPTH"):
        ProtobufColumns(descriptor_in(doubling(40, 1), "M39"))

    assert message_decoder(doubling(13), "M12")(b"\x0a\x00") == {"f1": {"f1": None, "f2": None}, "f2": None}
    assert len(ProtobufColumns(descriptor_in(doubling(12), "M11")).type) == 2


def test_messages_within_each_other_without_end_are_refused() -> None:
    with pytest.raises(InvalidSchema, match="protobuf"):
        message_decoder(doubling(5000, 1), "M4999")


def test_a_payload_with_more_fields_than_bytes_is_refused() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="wide.proto", syntax="proto3")
    wide = file.message_type.add(name="Wide")
    for number in range(1, 1001):
        wide.field.add(name=f"f{number}", number=number, type=5, label=1)
    file.message_type.add(name="Many").field.add(name="all", number=1, type=11, label=3, type_name=".Wide")
    read = message_decoder(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), "Many")

    assert len(read(b"\x0a\x00" * 3)["all"]) == 3  # type: ignore[index]
    with pytest.raises(ValueError, match="CONTENT_RECORDS"):
        read(b"\x0a\x00" * 10_000)
