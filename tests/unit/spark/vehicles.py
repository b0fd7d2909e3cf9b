"""A protobuf package for tests, as `protoc` would describe it: one message with every kind of field."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

__all__ = ["DESCRIPTORS", "NAME", "Vehicle", "descriptor", "message_class"]

NAME = "test.vehicle.Status"
_TYPES = {"double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9, "message": 11}
_TYPES |= {"bytes": 12, "uint32": 13, "enum": 14}


def _field(message: Any, name: str, kind: str, of: str = "", *, repeated: bool = False, optional: bool = False) -> None:
    field = message.field.add(name=name, number=len(message.field) + 1, type=_TYPES[kind], label=3 if repeated else 1)
    if of:
        field.type_name = of
    if optional:
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="test/vehicle.proto", package="test.vehicle", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    gear = file.enum_type.add(name="Gear")
    for number, name in enumerate(("GEAR_UNKNOWN", "GEAR_FORWARD", "GEAR_REVERSE")):
        gear.value.add(name=name, number=number)
    place = file.message_type.add(name="Place")
    _field(place, "north", "double")
    _field(place, "east", "double")
    status = file.message_type.add(name="Status")
    entry = status.nested_type.add(name="DoorsEntry")
    entry.options.map_entry = True
    _field(entry, "key", "string")
    _field(entry, "value", "int32")
    for name, kind in (("speed", "double"), ("slip", "float"), ("odometer", "int64"), ("serial", "uint64")):
        _field(status, name, kind)
    for name, kind in (("wheel", "int32"), ("moving", "bool"), ("name", "string"), ("raw", "bytes"), ("rpm", "uint32")):
        _field(status, name, kind)
    _field(status, "gear", "enum", ".test.vehicle.Gear")
    _field(status, "limit", "uint32", optional=True)
    _field(status, "place", "message", ".test.vehicle.Place")
    _field(status, "at", "message", ".google.protobuf.Timestamp")
    _field(status, "pressures", "float", repeated=True)
    _field(status, "track", "message", ".test.vehicle.Place", repeated=True)
    _field(status, "doors", "message", ".test.vehicle.Status.DoorsEntry", repeated=True)
    part = file.message_type.add(name="Part")
    _field(part, "name", "string")
    _field(part, "parts", "message", ".test.vehicle.Part", repeated=True)
    file.message_type.add(name="Nothing")
    return file


DESCRIPTORS: bytes = descriptor_pb2.FileDescriptorSet(
    file=[descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb), _file()]
).SerializeToString()
"""What `protoc --include_imports --descriptor_set_out` writes."""

_POOL = descriptor_pool.DescriptorPool()
for _one in descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS).file:
    _POOL.Add(_one)


def descriptor(name: str = NAME) -> Any:
    """A descriptor."""
    return _POOL.FindMessageTypeByName(name)


def message_class(name: str = NAME) -> Any:
    """The class that the library makes of it."""
    return message_factory.GetMessageClass(descriptor(name))


Vehicle: Any = message_class()
