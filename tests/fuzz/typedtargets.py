"""Declared types: schema texts that somebody has put below `@schema`, and payloads that are read by them."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from elea.columnar.cdrcolumns import CdrColumns
from elea.columnar.cdrtypes import as_arrow
from elea.columnar.protobufcolumns import ProtobufColumns
from elea.content.cdr import CdrReader
from elea.content.protobuf import message_decoder
from elea.content.registry import struct_of
from elea.content.schema import parse_idl
from elea.content.schema.declared import Struct
from elea.model.errors import InvalidSchema
from tests.cdr import write
from tests.fuzz.laws import require
from tests.fuzz.target import Target
from tests.unit.spark.vehicles import DESCRIPTORS, NAME, Vehicle, descriptor

__all__ = ["cdr_target", "descriptor_target", "protobuf_target", "schema_target"]

IDL: Final = """enum Mode { OFF, ON }; @final struct Pos { double x; string s; };
@appendable struct App { octet a; Pos p; };
@final struct Light { long id; string<8> name; Mode mode; sequence<Pos> track; long long n; boolean b[2][2];
    sequence<octet> raw; App app; };
@mutable struct Mut { long id; @optional string name; sequence<Mode> modes; };
@final struct Opt { octet b; @optional double d; sequence<string> s; };"""
TYPES: Final = tuple(parse_idl(IDL)[name] for name in ("Light", "Mut", "Opt", "App"))
SCHEMAS: Final = (
    b"\0struct T { long a; };",
    b"\0" + IDL.replace("Light", "T").encode(),
    b'\0const long N = 3; typedef sequence<long, N> S; module m { @verbatim(text="x") struct U { S s[N]; }; };'
    b"struct T { m::U u; };",
    b"\1int32 a\nstring<=5[<=3] b\nfloat64[9] c 1.0\nint8 X=1\nstd_msgs/Header h",
    b"\1T2 a\n" + b"=" * 80 + b"\nMSG: m/T2\nbyte[] data",
)
SCHEMA_TOKENS: Final = tuple(
    text.encode()
    for text in ("struct", "T", "{", "}", "<", ">", ";", "::", "@", "(", ")", "[", "]", "sequence<", "string", "long ",
                 "unsigned", "@mutable ", "@id(", "enum E { A }; ", "typedef ", "module m {", "/*", "*/", "#", "\n",
                 "=" * 40 + "\nMSG: ", "int32[] a\n", "9" * 50, "4294967295", "sequence<" * 40)
)  # fmt: skip
HEADS: Final = tuple(bytes([0, id, 0, 0]) for id in (0, 1, 2, 3, 6, 7, 8, 9, 10, 11))
UNKNOWN_FIELDS: Final = (b"", b"\x12\x01x", b"\x18\x01", b"\x12\0", b"\x25\0\0\0\0")
DESCRIPTOR_SEEDS: Final = tuple(DESCRIPTORS + more for more in UNKNOWN_FIELDS)
CDR_TOKENS: Final = (
    *HEADS,
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\0" * 8,
    b"\x01\x7f\x08\x00",
    b"\x02\x7f",
    b"a\0",
)


def schema_target() -> Target:
    """A text that declares a type (octet 0 says the language): refused with its place, or small enough to be used."""

    def decode(data: bytes) -> Struct:
        language = ("omgidl", "ros2msg")[data[0] & 1] if data else "omgidl"
        text = data[1:].decode("utf-8", "replace")
        name = "T" if language == "omgidl" else "m/T"
        return struct_of(name, language, text)

    def law(data: bytes, its: Struct) -> None:
        columns = CdrColumns(its)
        for head in HEADS:
            payload = head + bytes(64)
            require(
                columns.decode(pa.array([payload] * 9, pa.binary())).to_pylist()[:1]
                == pa.array([_one(CdrReader(its), payload)], columns.type).to_pylist(),
                "columns are what samples are",
                payload,
            )

    return Target("schema", decode, law, (InvalidSchema,), lambda: SCHEMAS, lambda: SCHEMA_TOKENS, 4_096)


def _one(reader: CdrReader, payload: bytes) -> Any:
    try:
        return as_arrow(reader.decode(payload))
    except ValueError:
        return None


def _cdr_seeds() -> list[bytes]:
    """Payloads of every type in every encapsulation."""
    pos = {"x": 1.5, "s": "ab"}
    app = {"a": 1, "p": pos}
    values: list[dict[str, Any]] = [
        {"id": 1, "name": "n", "mode": 1, "track": [pos, pos], "n": -1, "b": [[True, False], [False, True]],
         "raw": b"xy", "app": app},
        {"id": 1, "name": "m", "modes": [0, 1]},
        {"b": 1, "d": 2.0, "s": ["a", ""]},
        app,
    ]  # fmt: skip
    return [
        bytes([which]) + write(its, value, version=version, little=little)
        for which, (its, value) in enumerate(zip(TYPES, values, strict=True))
        for version in (1, 2)
        for little in (False, True)
    ]


def cdr_target() -> Target:
    """A payload of a type (octet 0 says which) among good ones: read or refused, alone and in a column."""
    made = [(CdrReader(its), CdrColumns(its)) for its in TYPES]

    payloads = _cdr_seeds()

    def decode(data: bytes) -> list[Any]:
        reader, columns = made[data[0] % len(made) if data else 0]
        payload = data[1:]
        good = payloads[4 * (data[0] % len(made) if data else 0) + 1][1:]
        return [columns.decode(pa.array([good] * 9 + [payload, good], pa.binary())), _one(reader, payload), columns]

    def law(data: bytes, found: list[Any]) -> None:
        column, alone, columns = found
        column.validate(full=True)
        require(column.null_count <= 1 and column[0].is_valid and column[10].is_valid, "good ones stay good", data)
        require(
            repr(column[9].as_py()) == repr(pa.array([alone], columns.type)[0].as_py()), "columns are samples", data
        )

    return Target("cdr-payload", decode, law, (), lambda: payloads, lambda: CDR_TOKENS, 4_096)


def protobuf_target() -> Target:
    """A payload by a descriptor, alone and among good ones."""
    read, columns = message_decoder(DESCRIPTORS, NAME), ProtobufColumns(descriptor())
    good = Vehicle(speed=1.5, name="a").SerializeToString()

    def decode(data: bytes) -> list[Any]:
        try:
            alone: object = read(data)
        except ValueError:
            alone = None
        return [columns.decode(pa.array([good, data, good], pa.binary())), alone]

    def law(data: bytes, found: list[Any]) -> None:
        column, alone = found
        column.validate(full=True)
        require(column[0].is_valid and column[2].is_valid, "good ones stay good", data)
        require(column[1].is_valid is (alone is not None), "a column reads what a sample reads", data)

    full = Vehicle(gear=2, limit=0, pressures=[1.0, 2.0], doors={"a": 1}).SerializeToString()
    seeds = (good, full, b"", full + good, Vehicle(track=[{"north": 1.0}], raw=b"x").SerializeToString())
    return Target(
        "protobuf-payload", decode, law, (), lambda: seeds, lambda: (b"\xff" * 9, b"\x08", b"\x6a\x02"), 4_096
    )


def descriptor_target() -> Target:
    """A descriptor set that somebody has put below `@schema`."""

    def decode(data: bytes) -> object:
        return message_decoder(data, NAME)

    def law(data: bytes, read: Any) -> None:
        try:
            require(isinstance(read(b""), dict), "a message is its fields", data)
        except ValueError:
            return

    return Target(
        "descriptor-set", decode, law, (InvalidSchema,), lambda: DESCRIPTOR_SEEDS, lambda: (b"\x0a", b"\x12\x02"), 4_096
    )
