"""The protobuf message of the demo's vehicle. A project of its own would have `protoc` make this module of

    syntax = "proto3";
    package elea.demo;
    message Drive { string origin = 1; double speed = 2; double allowed = 3; }

Spark imports it (`payloadModule` in demo.toml), and so knows the message by its name.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["NAME", "Drive"]

NAME: Final = "elea.demo.Drive"

_PACKAGE, _, _MESSAGE = NAME.rpartition(".")
_STRING, _DOUBLE = 9, 1


def _described() -> bytes:
    file = descriptor_pb2.FileDescriptorProto(name="elea/demo/drive.proto", package=_PACKAGE, syntax="proto3")
    message = file.message_type.add(name=_MESSAGE)
    for number, (name, kind) in enumerate((("origin", _STRING), ("speed", _DOUBLE), ("allowed", _DOUBLE)), 1):
        message.field.add(name=name, number=number, type=kind, label=1)
    made: bytes = file.SerializeToString()
    return made


descriptor_pool.Default().AddSerializedFile(_described())
Drive: Any = message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(NAME))
"""What the vehicle publishes; and what it is asked, and answers, when it is called."""
