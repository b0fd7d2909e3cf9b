"""What a broker has kept and what comes, as batches: for recordings that begin in the past."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from elea.api.apierrors import ChannelClosed
from elea.columnar.arrays import numbers_of
from elea.model.errors import OperationTimeout
from elea.recorder.samplebatch import SCHEMA, arrivals_of, sample_batch

__all__ = ["followed"]

ROWS: Final = 4096
OCTETS: Final = 4 << 20
"""Bytes of payloads and attachments from which on a batch is written; only one sample alone may be larger."""

PIECE: Final = 16
"""Samples taken at once, of which nobody knows how large they are."""

_NAMES: Final = (
    "kind", "ntp64", "stamp_id", "encoding", "schema", "attachment", "source_id", "source_eid", "source_sn"
)  # fmt: skip
_ATTACHMENT: Final = _NAMES.index("attachment")


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
        octets = _octets(samples[0])
        until = time.monotonic() + flush
        while len(samples) < ROWS and octets < OCTETS:
            some = channel.drain(min(PIECE, ROWS - len(samples)))
            if not some:
                try:
                    some = [channel.recv(timeout=max(until - time.monotonic(), 0.0))]
                except (ChannelClosed, OperationTimeout):
                    break
            samples += some
            octets += sum(map(_octets, some))
        for few in _bounded(samples):
            yield _batch(few)


def _bounded(samples: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The same in parts that are not too large, or have one sample."""
    begin = octets = 0
    for at, sample in enumerate(samples):
        each = _octets(sample)
        if at > begin and octets + each > OCTETS:
            yield samples[begin:at]
            begin, octets = at, 0
        octets += each
    yield samples[begin:]


def _octets(sample: Any) -> int:
    return len(sample._raw[5]) + len(sample._row[_ATTACHMENT] or b"")


def _batch(samples: Sequence[Any]) -> pa.RecordBatch:
    """Stored samples have a timestamp, and their time of arrival is not told: that of the timestamp stands for it."""
    kept = [sample._row for sample in samples]
    columns: dict[str, Any] = {
        name: pa.array(values, SCHEMA.field(name).type)
        for name, values in zip(_NAMES, zip(*kept, strict=True), strict=True)
    }
    columns["key"] = pa.array([str(sample.key_expr) for sample in samples], pa.string())
    columns["payload"] = pa.array([sample._raw[5] for sample in samples], pa.binary())
    columns["qos"] = numbers_of(np.array([sample._raw[3] for sample in samples], np.uint8), pa.uint8())
    columns["arrival"] = arrivals_of(np.array([sample.timestamp.value.ns for sample in samples], np.int64))
    return sample_batch(columns, len(samples))
