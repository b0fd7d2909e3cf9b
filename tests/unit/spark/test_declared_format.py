"""`payloadFormat=cdr` and `protobuf`: columns by a declared type, from a file or from the data space."""

from __future__ import annotations

import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import elea
from elea.content.registry import rule_key, type_key
from elea.model.encoding import Encoding
from elea.model.errors import ConfigError
from elea.spark.options import ReadOptions
from elea.spark.payload.declared_format import declared_columns, declared_ddl
from elea.spark.schema import CORRUPT, VALUE, ddl_of
from elea.store.columns import SCHEMA
from tests.unit.api.stores import config, locator_of
from tests.unit.spark.vehicles import DESCRIPTORS, NAME, Vehicle

IDL = """module demo { enum Mode { OFF, ON }; struct Pos { double x; uint8 n; };
struct Light { unsigned long long id; string name; Mode mode; sequence<Pos> track; sequence<octet> raw; }; };"""
DDL = (
    "STRUCT<`id`: decimal(20,0), `name`: string, `mode`: string, "
    "`track`: ARRAY<STRUCT<`x`: double, `n`: smallint>>, `raw`: binary>"
)
VALUE_TYPE = pa.struct(
    [
        ("id", pa.decimal128(20, 0)),
        ("name", pa.string()),
        ("mode", pa.string()),
        ("track", pa.list_(pa.struct([("x", pa.float64()), ("n", pa.int16())]))),
        ("raw", pa.binary()),
    ]
)


def light(id: int) -> bytes:
    body = struct.pack("<QI2sxxiIdBxxxI3s", id, 2, b"a\0", 1, 1, 1.5, 7, 3, b"xyz")
    return b"\0\1\0\0" + body


def batch(*samples: tuple[bytes, str]) -> pa.RecordBatch:
    """Samples as a log has them; the second is the encoding."""
    rows = []
    for at, (payload, encoding) in enumerate(samples):
        made = Encoding(encoding)
        rows.append(
            {"position": at, "key": f"home/{at}", "payload": payload, "ntp64": 1, "stamp_id": b"\1", "kind": 0,
             "encoding": made.id, "schema": made.schema, "once": False, "qos": 5}
        )  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema([field.with_nullable(True) for field in SCHEMA]))


def options(**given: str) -> ReadOptions:
    return ReadOptions.parse({"path": "home/**", "payloadFormat": "cdr", **given})


def row(id: int) -> dict[str, Any]:
    return {"id": Decimal(id), "name": "a", "mode": "ON", "track": [{"x": 1.5, "n": 7}], "raw": b"xyz"}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "light.idl"
    path.write_text(IDL)
    return str(path)


def test_columns_by_a_type_in_a_file(file: str) -> None:
    given = options(payloadMessage="demo::Light", payloadDescriptor=file)
    samples = [
        (light(1), "application/cdr"),
        (light(2), "application/cdr;demo::Light"),
        (light(3), "application/cdr;demo::Other"),
        (b"broken", ""),
        (light(2**64 - 1), ""),
    ]

    found = declared_columns(VALUE_TYPE, given)(batch(*samples))

    assert declared_ddl(given) == DDL
    assert found[VALUE].to_pylist() == [row(1), row(2), None, None, row(2**64 - 1)]
    assert found[CORRUPT].to_pylist() == [None, None, light(3), b"broken", None]


def test_a_schema_chooses_some_fields(file: str) -> None:
    given = options(payloadMessage="demo::Light", payloadDescriptor=file, payloadSchema="name STRING, more INT")
    wanted = pa.struct([("name", pa.string()), ("more", pa.int32())])

    found = declared_columns(wanted, given)(batch((light(1), ""), (b"", "")))

    assert found[VALUE].to_pylist() == [{"name": "a", "more": None}, None]
    with pytest.raises(ConfigError, match="payloadSchema"):
        declared_columns(pa.struct([("name", pa.int32())]), given)(batch((light(1), "")))


def test_messages_of_protobuf_by_a_descriptor_set(tmp_path: Path) -> None:
    path = tmp_path / "set"
    path.write_bytes(DESCRIPTORS)
    given = options(payloadFormat="protobuf", payloadMessage=NAME, payloadDescriptor=str(path))
    wanted = pa.struct([("speed", pa.float64()), ("gear", pa.string())])
    payload = Vehicle(speed=2.5, gear=1).SerializeToString()

    found = declared_columns(wanted, given)(batch((payload, f"application/protobuf;{NAME}"), (b"\xff", "")))

    assert found[VALUE].to_pylist() == [{"speed": 2.5, "gear": "GEAR_FORWARD"}, None]
    assert "`speed`: double" in ddl_of(given)


def test_columns_by_a_type_of_the_data_space(tmp_path: Path) -> None:
    manager = {"volumes": {"log": {"dir": str(tmp_path)}}}
    router = config("router", listen__endpoints=["tcp/127.0.0.1:0"], plugins__storage_manager=manager)
    with elea.open(router) as broker:
        kept: dict[str, Any] = {"durability": "persistent", "ack": True, "timeout": 30}
        broker.put(type_key("application/cdr;demo::Light"), IDL, **kept)
        broker.put(rule_key("home/**"), "application/cdr;demo::Light", **kept)
        given = options(connect=locator_of(broker))

        assert declared_ddl(given) == DDL
        found = declared_columns(VALUE_TYPE, given)(batch((light(1), "")))
        assert found[VALUE].to_pylist() == [row(1)]
        with pytest.raises(ConfigError, match=r"declares no demo::Nosuch.*elea schema put"):
            declared_ddl(options(connect=locator_of(broker), payloadMessage="demo::Nosuch"))
        with pytest.raises(ConfigError, match="nothing says of which type the payloads of other are"):
            declared_ddl(options(connect=locator_of(broker), path="other"))
        from elea.spark.sessions import close_all

        close_all()


def test_what_is_no_type(file: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("struct {")
    for given, problem in (
        ({"payloadMessage": "demo::Nosuch", "payloadDescriptor": file}, "no struct demo/Nosuch; it declares demo/Pos"),
        ({"payloadMessage": "T", "payloadDescriptor": str(broken)}, "line 1, column 8"),
        ({"payloadMessage": "T", "payloadDescriptor": str(tmp_path / "nosuch")}, "payloadDescriptor"),
    ):
        with pytest.raises(ConfigError, match=problem):
            declared_ddl(options(**given))
