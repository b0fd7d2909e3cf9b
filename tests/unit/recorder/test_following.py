"""What a broker has kept, as batches that a reader takes."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from elea.api.channels import Handler
from elea.recorder import following
from tests.unit.recorder.samples import JSON, NOON


def sample(number: int, payload: int, attachment: int = 0) -> Any:
    row = (0, number, b"\x07", JSON, None, bytes(attachment) or None, None, None, None)
    timestamp = SimpleNamespace(value=SimpleNamespace(ns=NOON + number))
    raw = (None, None, None, 5, None, bytes(payload))
    return SimpleNamespace(_row=row, _raw=raw, key_expr="home/1", timestamp=timestamp)


def followed(samples: list[Any]) -> list[pa.RecordBatch]:
    channel: Handler[Any] = Handler(len(samples))
    channel.push_many(samples)
    channel.close()
    closing = threading.Event()
    closing.set()
    return list(following.followed(SimpleNamespace(handler=channel), 1.0, closing))


@pytest.mark.parametrize("large", ["payload", "attachment"])
def test_a_batch_of_what_was_kept_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch, large: str) -> None:
    monkeypatch.setattr(following, "OCTETS", 4_000)
    sizes = [10] * 20 + [1_000] * 30 + [9_000, 10, 3_000, 1_000, 9_000, 9_000, 10]

    batches = followed([sample(n, **{"payload": 0, large: size}) for n, size in enumerate(sizes)])

    assert [n for batch in batches for n in batch.column("ntp64").to_pylist()] == list(range(len(sizes)))
    for batch in batches:
        octets = sum(len(value or b"") for value in batch.column(large).to_pylist())
        assert octets <= 4_000 or batch.num_rows == 1
    assert len(batches) < 25


def test_small_samples_come_in_large_batches() -> None:
    batches = followed([sample(n, 1) for n in range(5_000)])

    assert [batch.num_rows for batch in batches] == [4096, 904]
