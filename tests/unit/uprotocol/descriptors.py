"""The messages of uProtocol as the protobuf library makes them, from the tables of the specification: the oracle."""

from __future__ import annotations

from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

__all__ = ["message_class"]

_KINDS = {"uint32": 13, "fixed64": 6, "string": 9, "bytes": 12, "enum": 14}

_ENUMS = {
    "UMessageType": ["UNSPECIFIED", "PUBLISH", "REQUEST", "RESPONSE", "NOTIFICATION"],
    "UPriority": ["UNSPECIFIED", *(f"CS{level}" for level in range(7))],
    "UPayloadFormat": ["UNSPECIFIED", "ANY", "PROTOBUF", "JSON", "SOMEIP", "SOMEIP_TLV", "RAW", "TEXT", "SHM"],
    "UCode": ["OK", *(f"CODE_{code}" for code in range(1, 17))],
}

# name -> (number, field, type); "?" marks explicit presence, "*" a repeated field.
_MESSAGES = {
    "uprotocol.v1.UUID": [(1, "msb", "fixed64"), (2, "lsb", "fixed64")],
    "uprotocol.v1.UUri": [
        (1, "authority_name", "string"),
        (2, "ue_id", "uint32"),
        (3, "ue_version_major", "uint32"),
        (4, "resource_id", "uint32"),
    ],
    "uprotocol.v1.UAttributes": [
        (1, "id", "uprotocol.v1.UUID"),
        (2, "type", "uprotocol.v1.UMessageType"),
        (3, "source", "uprotocol.v1.UUri"),
        (4, "sink", "uprotocol.v1.UUri"),
        (5, "priority", "uprotocol.v1.UPriority"),
        (6, "ttl", "uint32?"),
        (7, "permission_level", "uint32?"),
        (8, "commstatus", "uprotocol.v1.UCode?"),
        (9, "reqid", "uprotocol.v1.UUID"),
        (10, "token", "string?"),
        (11, "traceparent", "string?"),
        (12, "payload_format", "uprotocol.v1.UPayloadFormat"),
    ],
    "uprotocol.v1.UMessage": [(1, "attributes", "uprotocol.v1.UAttributes"), (2, "payload", "bytes?")],
    "uprotocol.v1.UUriBatch": [(1, "uris", "uprotocol.v1.UUri*")],
    "uprotocol.v1.UStatus": [
        (1, "code", "uprotocol.v1.UCode"),
        (2, "message", "string?"),
        (3, "details", "google.protobuf.Any*"),
    ],
    "uprotocol.core.usubscription.v3.SubscribeAttributes": [
        (1, "expire", "google.protobuf.Timestamp"),
        (2, "details", "google.protobuf.Any*"),
        (3, "sample_period_ms", "uint32?"),
    ],
    "uprotocol.core.usubscription.v3.SubscriberInfo": [(1, "uri", "uprotocol.v1.UUri")],
    "uprotocol.core.usubscription.v3.SubscriptionStatus": [(1, "state", "uint32"), (3, "message", "string")],
    "uprotocol.core.usubscription.v3.Subscription": [
        (1, "topic", "uprotocol.v1.UUri"),
        (2, "subscriber", "uprotocol.core.usubscription.v3.SubscriberInfo"),
        (3, "status", "uprotocol.core.usubscription.v3.SubscriptionStatus"),
        (4, "attributes", "uprotocol.core.usubscription.v3.SubscribeAttributes"),
    ],
    "uprotocol.core.usubscription.v3.SubscriptionRequest": [
        (1, "topic", "uprotocol.v1.UUri"),
        (3, "attributes", "uprotocol.core.usubscription.v3.SubscribeAttributes"),
    ],
    "uprotocol.core.usubscription.v3.SubscriptionResponse": [
        (1, "status", "uprotocol.core.usubscription.v3.SubscriptionStatus"),
        (3, "topic", "uprotocol.v1.UUri"),
    ],
    "uprotocol.core.utwin.v2.MessageResponse": [
        (1, "topic", "uprotocol.v1.UUri"),
        (2, "status", "uprotocol.v1.UStatus"),
        (3, "message", "uprotocol.v1.UMessage"),
    ],
    "uprotocol.core.utwin.v2.GetLastMessagesRequest": [(1, "topics", "uprotocol.v1.UUriBatch")],
    "uprotocol.core.utwin.v2.GetLastMessagesResponse": [(2, "responses", "uprotocol.core.utwin.v2.MessageResponse*")],
}


def message_class(name: str) -> Any:
    """The class that the protobuf library makes of a message."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


def _pool() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for module in (any_pb2, timestamp_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    for package in dict.fromkeys(name.rpartition(".")[0] for name in _MESSAGES):
        pool.Add(_file(package))
    return pool


def _file(package: str) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    file.dependency.extend(["google/protobuf/any.proto", "google/protobuf/timestamp.proto"])
    if package == "uprotocol.v1":
        for name, members in _ENUMS.items():
            enum = file.enum_type.add(name=name)
            for value, member in enumerate(members):
                enum.value.add(name=f"{name}_{member}", number=value)
    else:
        file.dependency.append("uprotocol.v1.proto")
    for name, fields in _MESSAGES.items():
        if name.rpartition(".")[0] == package:
            _add(file.message_type.add(name=name.rpartition(".")[2]), fields)
    return file


def _add(message: Any, fields: list[tuple[int, str, str]]) -> None:
    for number, name, kind in fields:
        plain = kind.rstrip("?*")
        field = message.field.add(number=number, name=name, label=3 if kind.endswith("*") else 1)
        if plain in _KINDS:
            field.type = _KINDS[plain]
        else:
            field.type = 14 if plain.rpartition(".")[2] in _ENUMS else 11
            field.type_name = f".{plain}"
        if kind.endswith("?"):
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")


_POOL = _pool()
