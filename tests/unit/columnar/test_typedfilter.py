"""Predicates over payloads of declared types, as columns: the verdict is that for single samples."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pytest

from elea.columnar import typedfilter
from elea.columnar.batchfilter import BatchFilter
from elea.content import SamplePredicate
from elea.content.contents import Contents
from elea.content.registry import SchemaRegistry
from elea.model.encoding import Encoding
from elea.store.columns import SCHEMA
from tests.cdr import write

IDL = b"""enum Mode { OFF, ON, AUTO }; struct Pos { double x; float y; };
struct Light { long id; string name; Mode mode; Pos pos; sequence<short> hist; sequence<Mode> modes;
    unsigned long long n;
    boolean on; octet raw[2]; char c; };"""
CDR = Encoding.APPLICATION_CDR.id
PREDICATES = [
    "id > 10",
    "NOT id > 10",
    "name LIKE 'l%3'",
    "mode = 'ON' OR mode > 1",
    "mode = 'NOSUCH'",
    "mode LIKE 'O%'",
    "modes[0] < 'AUTO'",
    "pos.x <= pos.y",
    "pos.x <> 0.5 AND id BETWEEN 3 AND 30",
    "hist[1] = 2",
    "distance(hist, [1, 2]) < 1",
    "n >= 18446744073709551615",
    "on = TRUE",
    "raw IS NULL OR raw[0] = 1",
    "raw IS NOT NULL",
    "nosuch IS NULL",
    "nosuch = 1",
    "c = 'b'",
    "id = '3'",
    "id > 5 AND key LIKE '%7'",
    "id > 38 OR kind = 'DELETE'",
]


def rows() -> list[dict[str, Any]]:
    registry = registry_of()
    its = registry.struct(CDR, b"Light")
    assert its is not None
    found = []
    for at in range(40):
        x = (0.5, math.nan, 1.5)[at % 3]
        value = {
            "id": at, "name": f"light {at}", "mode": at % 3, "pos": {"x": x, "y": 1.0}, "hist": [1, 2, 3][: at % 4],
            "modes": [at % 3][: at % 2], "n": 2**64 - 1 - at % 2, "on": at % 2 == 0, "raw": b"\1\2", "c": "abc"[at % 3],
        }  # fmt: skip
        payload = write(its, value, version=1 + at % 2, little=at % 5 > 0)
        found.append((payload, "application/cdr;Light", 0))
    found[5:8] = [(b"broken", "application/cdr;Light", 0), (b"", "application/cdr;Light", 0), (b"", "", 1)]
    found += [(b'{"id": 11, "mode": "ON"}', "application/json", 0), (struct.pack("<i", 11), "application/cdr", 0)]
    return [
        {"position": at, "key": f"home/{at}", "payload": payload, "ntp64": 1, "stamp_id": b"\1", "kind": kind,
         "encoding": Encoding(encoding).id, "schema": Encoding(encoding).schema, "once": False, "qos": 5}
        for at, (payload, encoding, kind) in enumerate(found)
    ]  # fmt: skip


def registry_of() -> SchemaRegistry:
    registry = SchemaRegistry()
    registry.take("@schema/cdr/Light", None, IDL)
    return registry


@pytest.mark.parametrize("text", PREDICATES)
def test_columns_are_judged_as_samples_are(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = Contents(registry_of())
    where = SamplePredicate(text, contents=contents)
    batch = pa.RecordBatch.from_pylist(rows(), schema=pa.schema([field.with_nullable(True) for field in SCHEMA]))
    wanted = [
        row["key"]
        for row in rows()
        if where.takes_parts(
            row["key"], row["payload"], 5, (row["kind"] == 1, (1, b"\1"), row["encoding"], row["schema"], None, None)
        )
    ]

    columns = BatchFilter(text, contents=contents)
    found = columns.filter(batch)

    assert found.column("key").to_pylist() == wanted
    if "key" not in text and "kind" not in text:
        assert columns.unreadable == where.unreadable


def test_payloads_of_declared_types_are_not_decoded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = Contents(registry_of())
    decoded: list[bytes] = []
    original = Contents.decode

    def decode(self: Contents, key: str, encoding: int, schema: bytes | None, payload: bytes) -> object:
        decoded.append(payload)
        return original(self, key, encoding, schema, payload)

    monkeypatch.setattr(Contents, "decode", decode)
    batch = pa.RecordBatch.from_pylist(rows(), schema=pa.schema([field.with_nullable(True) for field in SCHEMA]))

    BatchFilter("id > 10", contents=contents).filter(batch)

    assert decoded == [row["payload"] for row in rows()[-2:]]
    assert batch.num_rows > typedfilter.LEAST
