"""Every vector of `semantics.json` that early session rules answer, in both dialects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elea.protocol.early import acknack, may_send, requested, serial_less, synch_available, window_open

VECTORS = Path(__file__).parents[2] / "vectors"


def vectors(category: str) -> list[Any]:
    records = [
        record
        for dialect in ("zenoh2018", "xrce2017")
        for record in json.loads((VECTORS / dialect / "semantics.json").read_text())
        if record["category"] == category
    ]
    assert records
    return [pytest.param(record, id=f"{record['dialect']}-{record['name']}") for record in records]


@pytest.mark.parametrize("record", vectors("acknack-request"))
def test_requested(record: dict[str, Any]) -> None:
    assert requested(**record["input"]) == record["expected"]


@pytest.mark.parametrize("record", vectors("acknack-mask"))
def test_acknack(record: dict[str, Any]) -> None:
    assert acknack(**record["input"])._asdict() == record["expected"]


@pytest.mark.parametrize("record", vectors("serial-less"))
def test_serial_less(record: dict[str, Any]) -> None:
    assert serial_less(**record["input"]) is record["expected"]


@pytest.mark.parametrize("record", vectors("synch-available"))
def test_synch_available(record: dict[str, Any]) -> None:
    assert list(synch_available(**record["input"])) == record["expected"]


@pytest.mark.parametrize("record", vectors("window-open"))
def test_window_open(record: dict[str, Any]) -> None:
    given = record["input"]
    answer = window_open(given["temporalOrigin"], given["period"], given["duration"], given["t"])

    assert answer is record["expected"]


@pytest.mark.parametrize("record", vectors("commit-mode"))
def test_may_send(record: dict[str, Any]) -> None:
    assert may_send(**record["input"])._asdict() == record["expected"]
