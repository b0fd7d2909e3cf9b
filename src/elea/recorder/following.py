"""What a broker has kept and what comes, as batches: for recordings that begin in the past."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from elea.api.apierrors import ChannelClosed
from elea.columnar.arrays import numbers_of
from elea.recorder.samplebatch import SCHEMA, arrivals_of, sample_batch

__all__ = ["followed"]

ROWS: Final = 4096
PAUSE: Final = 0.05


def followed(subscriber: Any, flush: float, closing: threading.Event) -> Iterator[pa.RecordBatch]:
    """Batches of what a subscriber declared with `history` or `since` brings, until it ends.

    Raises:
        StoreError, OperationTimeout: why it has ended before that.
    """
    channel = subscriber.handler
    while True:
        try:
            samples = [channel.recv()]
        except ChannelClosed:
            if not closing.is_set():
                subscriber.recv()  # which says why
            return
        waited = 0.0
        while len(samples) < ROWS and waited < flush and not channel.is_closed:
            some = channel.drain(ROWS - len(samples))
            samples += some
            if not some:
                closing.wait(PAUSE)
                waited += PAUSE if not closing.is_set() else flush
        yield _batch(samples)


def _batch(samples: Sequence[Any]) -> pa.RecordBatch:
    """Stored samples have a timestamp, and their time of arrival is not told: that of the timestamp stands for it."""
    kept = [sample._row for sample in samples]
    names = ("kind", "ntp64", "stamp_id", "encoding", "schema", "attachment", "source_id", "source_eid", "source_sn")
    columns: dict[str, Any] = {
        name: pa.array(values, SCHEMA.field(name).type)
        for name, values in zip(names, zip(*kept, strict=True), strict=True)
    }
    columns["key"] = pa.array([str(sample.key_expr) for sample in samples], pa.string())
    columns["payload"] = pa.array([sample._raw[5] for sample in samples], pa.binary())
    columns["qos"] = numbers_of(np.array([sample._raw[3] for sample in samples], np.uint8), pa.uint8())
    columns["arrival"] = arrivals_of(np.array([sample.timestamp.value.ns for sample in samples], np.int64))
    return sample_batch(columns, len(samples))
