"""Blocks: samples as rows of numbers over the bytes they came in. Made by a scanner, or of a run of flat tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from elea.columnar import rows as k
from elea.model.errors import DecodeError
from elea.wire.zenoh1.messages import Put
from elea.wire.zenoh1.samples import Pushed, details

__all__ = ["Block", "block_of_samples"]


class Block:
    """Some samples; `rows` says where in `octets` their parts are, and its codes are indices of `keys`.

    `rows` has `PLAIN_WIDTH` columns if no sample has more than a payload. `keys` is never changed, but may grow.
    `arrival_ns` is one number for all of them, or an array.
    """

    __slots__ = ("arrival_ns", "keys", "octets", "rows", "size")

    def __init__(self, keys: list[str], rows: Any, octets: Any, arrival_ns: Any, size: int) -> None:
        self.keys = keys
        self.rows = rows
        self.octets = octets
        self.arrival_ns = arrival_ns
        self.size = size

    def __len__(self) -> int:
        return len(self.rows)

    def fitting(self, octets: int) -> int:
        """How many of the first samples have no more than so many bytes of payload together."""
        return int(np.searchsorted(np.cumsum(self.rows[:, k.PAYLOAD + 1]), octets, "right"))

    def split(self, count: int) -> tuple[Block, Block]:
        """All but the first `count` samples, and these."""
        times = self.arrival_ns
        rest, first = (times, times) if isinstance(times, int) else (times[count:], times[:count])
        size = int(self.rows[:count, k.PAYLOAD + 1].sum())
        return (
            Block(self.keys, self.rows[count:], self.octets, rest, max(self.size - size, 0)),
            Block(self.keys, self.rows[:count], self.octets, first, size),
        )


def block_of_samples(
    keys: list[str], codes: Sequence[int], run: Sequence[Pushed], arrivals: Sequence[int]
) -> tuple[Block, int]:
    """The block of samples off the slower way, and how many were left out because their details cannot be read."""
    metas = [(index, raw[4]) for index, raw in enumerate(run) if raw[4] is not None]
    payloads = [raw[5] for raw in run]
    rows = np.empty((len(run), k.WIDTH if metas else k.PLAIN_WIDTH), np.int64)
    rows[:, k.CODE] = codes
    rows[:, k.FLAGS] = [raw[3] for raw in run]
    rows[:, k.PAYLOAD + 1] = lengths = np.fromiter(map(len, payloads), np.int64, len(run))
    rows[:, k.PAYLOAD] = np.cumsum(lengths) - lengths
    bad: list[int] = []
    if metas:
        rows[:, k.PLAIN_WIDTH :] = -1
        rows[:, k.ENCODING] = 0
        used = int(lengths.sum())
        for index, meta in metas:
            try:
                used = _fill(rows[index], meta, used, payloads)
            except DecodeError:
                bad.append(index)
    arrived = np.array(arrivals, np.int64)
    if bad:
        rows, arrived = np.delete(rows, bad, axis=0), np.delete(arrived, bad)
    data = b"".join(payloads)
    return Block(keys, rows, np.frombuffer(data, np.uint8), arrived, len(data)), len(bad)


def _fill(row: Any, meta: bytes | None, used: int, parts: list[bytes]) -> int:
    """Put the details of a sample into its row, and their bytes behind the other parts."""
    body = details(meta, b"")

    def region(column: int, octets: bytes) -> None:
        nonlocal used
        row[column], row[column + 1] = used, len(octets)
        parts.append(octets)
        used += len(octets)

    row[k.FLAGS] |= k.MORE
    if body.timestamp is not None:
        row[k.NTP64] = body.timestamp.ntp64 - (body.timestamp.ntp64 >> 63 << 64)
        region(k.STAMP, body.timestamp.id)
    if not isinstance(body, Put):
        row[k.FLAGS] |= k.KIND
    elif body.encoding is not None:
        row[k.ENCODING] = body.encoding.id
        if body.encoding.schema is not None:
            region(k.SCHEMA, body.encoding.schema)
    if body.attachment is not None:
        region(k.ATTACHMENT, body.attachment)
    if body.source_info is not None:
        region(k.SOURCE, body.source_info.zid)
        row[k.SOURCE_EID], row[k.SOURCE_SN] = body.source_info.eid, body.source_info.sn
    return used
