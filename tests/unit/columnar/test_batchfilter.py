"""Predicates over batches of samples: the same rows as one sample after the other."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

from elea.columnar.batchfilter import BatchFilter
from elea.content import SamplePredicate
from elea.model.encoding import Encoding
from elea.model.errors import InvalidPredicate
from elea.model.predicate.functions import register
from elea.model.timestamp import ntp64_from_ns
from elea.store.columns import SCHEMA
from elea.wire.details import Parts

PREDICATES = [
    "key LIKE 'a/%'",
    "key = 'a/1' OR key = 'b/1'",
    "kind = 'DELETE'",
    "kind <> 'DELETE' AND n > 3",
    "timestamp >= '2026-01-01T00:00:00.000003Z'",
    "timestamp IS NULL",
    "NOT timestamp < '2026-01-01T00:00:00.000003Z' AND n IS NOT NULL",
    "encoding = 'application/json'",
    "encoding LIKE 'application/json;%'",
    "sample.priority = 5 AND sample.express = TRUE",
    "sample.size > 9 AND (n = 1 OR key = 'b/1')",
    "n > 2",
    "NOT n > 2",
    "n IS NULL",
    "n > 2 OR key = 'a/1'",
    "value = 7",
    "property.x = 1 OR n = 1",
    "timestamp > '2000-01-01T00:00:00Z' AND key LIKE '%1' AND name = 'é'",
]


def batch(seed: int, rows: int, *, live: bool) -> pa.RecordBatch:
    chance = random.Random(seed)
    start = 1_767_225_600_000_000_000
    made = []
    for position in range(rows):
        is_deletion = chance.random() < 0.2
        has_stamp = not live or chance.random() < 0.7
        payload = chance.choice(
            [json.dumps({"n": chance.randrange(6), "name": "é"}).encode(), b'{"name": null}', b"7", b"\xff", b""]
        )
        made.append(
            {
                "position": position,
                "key": chance.choice(["a/1", "a/2", "b/1"]),
                "payload": b"" if is_deletion else payload,
                "ntp64": ntp64_from_ns(start + chance.randrange(6000)) if has_stamp else None if live else 0,
                "stamp_id": b"\x01" if has_stamp else None if live else b"",
                "arrival": start,
                "kind": int(is_deletion),
                "encoding": chance.choice([0, Encoding.APPLICATION_JSON.id, Encoding.APPLICATION_CBOR.id]),
                "schema": chance.choice([None, b"x", b"\xff"]),
                "once": False,
                "qos": chance.choice([5, 5 | 16, 2]),
            }
        )
    fields = [field for field in SCHEMA if field.name != "position"]
    schema = SCHEMA if not live else pa.schema([pa.field(field.name, field.type) for field in fields])
    return pa.RecordBatch.from_pylist(made, schema=schema)


def one_by_one(text: str, rows: pa.RecordBatch) -> list[int]:
    where = SamplePredicate(text)
    found = []
    for number, row in enumerate(rows.to_pylist()):
        stamp = None if row["ntp64"] is None else (row["ntp64"], row["stamp_id"])
        parts: Parts = (row["kind"] == 1, stamp, row["encoding"], row["schema"], None, None)
        if where.takes_parts(row["key"], row["payload"], row["qos"], parts):
            found.append(number)
    return found


@pytest.mark.parametrize("live", [False, True], ids=["log", "live"])
@pytest.mark.parametrize("text", PREDICATES)
def test_same_rows_as_one_by_one(text: str, live: bool) -> None:
    rows = batch(1, 300, live=live)
    numbered = rows.set_column(rows.schema.get_field_index("arrival"), "arrival", pa.array(range(300)))
    where = BatchFilter(text)

    found = where.filter(numbered).column("arrival").to_pylist()

    assert found == one_by_one(text, rows)
    assert (where.passed, where.refused) == (len(found), 300 - len(found))


def test_some_of_them_are_chosen() -> None:
    """A predicate that takes all or nothing would prove little."""
    rows = batch(1, 300, live=True)

    counts = {text: len(one_by_one(text, rows)) for text in PREDICATES}

    assert [text for text, count in counts.items() if not 0 < count < 300] == []


def test_batch_without_rows() -> None:
    assert BatchFilter("key = 'a' AND n = 1").filter(batch(1, 0, live=False)).num_rows == 0


def test_somebody_may_have_stopped_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.columnar.batchfilter.LOOKED", 1000)
    looks: list[int] = []

    def alive() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        BatchFilter("n = 1").filter(batch(1, 300, live=False), alive)
    assert len(looks) == 3


def test_function_without_a_form_for_columns_is_called_row_by_row() -> None:
    register("elea_test_ends_in_one", lambda key: str(key).endswith("1"), arity=1)
    rows = batch(2, 100, live=False)

    found = BatchFilter("elea_test_ends_in_one(key) AND kind = 'PUT'").filter(rows)

    assert set(found.column("key").to_pylist()) == {"a/1", "b/1"}


def test_what_cannot_be_read_is_counted() -> None:
    where = BatchFilter("n = 1 AND kind = 'PUT'")
    rows = batch(1, 300, live=False)

    where.filter(rows)

    unreadable = SamplePredicate("n = 1")
    for row in rows.to_pylist():
        unreadable.takes_parts(
            row["key"], row["payload"], 5, (row["kind"] == 1, None, row["encoding"], row["schema"], None, None)
        )
    assert where.unreadable == unreadable.unreadable > 0


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidPredicate):
        BatchFilter("kind = 'put'")
