"""Declared types of payloads (docs/payloads.md, `@schema`) as the schemas of an MCAP file, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from elea.content import Contents
from elea.content.registry import FORMATS, IDL, ROSMSG, SchemaRegistry, rule_key, type_key
from elea.model.encoding import Encoding
from elea.model.errors import InvalidSchema

__all__ = ["DeclaredType", "Types", "take_type", "types_of"]

_PROTOBUF: Final = Encoding.APPLICATION_PROTOBUF.id
PROTOBUF: Final = "protobuf"


class DeclaredType(NamedTuple):
    """What MCAP says of the payloads of a channel, beside their key."""

    encoding: int
    """The encoding, which may be told by a rule for the key."""
    name: str
    """Of the schema; empty if there is none."""
    language: str
    """In which it is written: `omgidl`, `ros2msg`, `protobuf`; empty if it is not declared."""
    text: bytes


Types = Callable[[str, int, "bytes | None"], DeclaredType]
"""What is known of the payloads of a key with this encoding and schema."""


def types_of(contents: Contents) -> Types:
    """The types that a data space declares; may wait for its answer when a channel is new."""

    def found(key: str, encoding: int, schema: bytes | None) -> DeclaredType:
        if not contents.is_declared(key, encoding, schema):
            contents.decode(key, encoding, schema, b"")  # which asks for the type
        encoding, schema = contents.told(key, encoding, schema)
        name = (schema or b"").decode("utf-8", "backslashreplace")
        language, text = "", b""
        if contents.schemas is not None and encoding in FORMATS:
            language, text = _text(contents.schemas, encoding, name)
        if language == IDL:
            name = name.replace("/", "::")
        return DeclaredType(encoding, name, language, text)

    return found


def _text(registry: SchemaRegistry, encoding: int, name: str) -> tuple[str, bytes]:
    try:
        place = type_key(Encoding.of(encoding), name)
    except InvalidSchema:
        return "", b""
    for key, language, text in registry.texts():
        if key == place:
            if encoding == _PROTOBUF:
                return PROTOBUF, text
            return language or (IDL if b"{" in text else ROSMSG), text
    return "", b""


def take_type(registry: SchemaRegistry, key: str, encoding: int, its: DeclaredType) -> None:
    """The schema of a channel that was read, for whoever reads its payloads.

    Args:
        encoding: of its samples; the channel may say more than they do, as a rule for their key told it.
    """
    if not its.text or not its.name or its.encoding not in FORMATS or its.language not in (IDL, ROSMSG, PROTOBUF):
        return
    language = None if its.language == PROTOBUF else its.language.encode()
    registry.take(type_key(Encoding.of(its.encoding), its.name), language, its.text)
    if encoding != its.encoding:
        registry.take(rule_key(key), None, str(Encoding.of(its.encoding, its.name.encode())).encode())
