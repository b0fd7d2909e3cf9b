"""The loop that writes PUSH messages of rows, as Numba compiles it; its twin is in `elea.columnar.pushwriter`.

Imported by `elea.columnar.compiled` only, and not by those who only receive.
"""

from __future__ import annotations

from typing import Any

from numba import types

from elea.columnar import rows as k
from elea.columnar.kernels import NUMBERS, OCTETS, OWN, TABLE, loop, signed, unsigned

__all__ = ["write"]


@loop()
def _natural(out: Any, at: int, value: Any) -> int:
    """Write a natural of 1.x; returns where it ends."""
    for _ in range(8):
        if value < unsigned(0x80):
            break
        out[at] = value & unsigned(0x7F) | unsigned(0x80)
        value >>= unsigned(7)
        at += 1
    out[at] = value  # a ninth byte is a whole one
    return at + 1


@loop()
def _region(out: Any, at: int, data: Any, start: int, length: int) -> int:
    """Write a length and the bytes of a region."""
    at = _natural(out, at, unsigned(length))
    source, target = unsigned(start), unsigned(at)  # without a sign: see `kernels.gather`
    for step in range(unsigned(length)):
        out[target + step] = data[source + step]
    return at + length


@loop(types.int64(TABLE, types.int64, OCTETS, TABLE, OCTETS, OCTETS, OCTETS, OCTETS, OWN, NUMBERS))
def write(
    rows: Any,
    first: int,
    heads: Any,
    head_regions: Any,
    payloads: Any,
    stamps: Any,
    schemas: Any,
    attachments: Any,
    out: Any,
    answer: Any,
) -> int:
    """Write the messages of rows from `first` on, as long as they fit; returns the row to go on with.

    `heads` has what every message of a key begins with, `answer[0]` tells the bytes written.
    """
    at = 0
    index = first
    while index < len(rows):
        row = rows[index]
        code = row[k.CODE]
        begin, length = head_regions[code, 0], head_regions[code, 1]
        # Besides regions: a header, 9 + 1 of a timestamp, 5 + 2 of an encoding, 1 + 5 of an attachment, 5 of a length.
        need = length + 30 + row[k.PAYLOAD + 1]
        if row[k.STAMP] >= 0:
            need += row[k.STAMP + 1]
        if row[k.SCHEMA] >= 0:
            need += row[k.SCHEMA + 1]
        if row[k.ATTACHMENT] >= 0:
            need += row[k.ATTACHMENT + 1]
        if need > len(out) - at:
            break
        for step in range(length):
            out[at + step] = heads[begin + step]
        at += length
        is_put = row[k.FLAGS] & k.KIND == 0
        encoded = is_put and (row[k.ENCODING] != 0 or row[k.SCHEMA] >= 0)
        header = 1 if is_put else 2
        if row[k.STAMP] >= 0:
            header |= 0x20
        if encoded:
            header |= 0x40
        if row[k.ATTACHMENT] >= 0:
            header |= 0x80
        out[at] = header
        at += 1
        if row[k.STAMP] >= 0:
            at = _natural(out, at, unsigned(row[k.NTP64]))
            at = _region(out, at, stamps, row[k.STAMP], row[k.STAMP + 1])
        if encoded:
            has_schema = 1 if row[k.SCHEMA] >= 0 else 0
            at = _natural(out, at, unsigned(row[k.ENCODING] << 1 | has_schema))
            if has_schema:
                at = _region(out, at, schemas, row[k.SCHEMA], row[k.SCHEMA + 1])
        if row[k.ATTACHMENT] >= 0:
            out[at] = 0x43 if is_put else 0x42
            at = _region(out, at + 1, attachments, row[k.ATTACHMENT], row[k.ATTACHMENT + 1])
        if is_put:
            at = _region(out, at, payloads, row[k.PAYLOAD], row[k.PAYLOAD + 1])
        index += 1
    answer[0] = signed(at)
    return index
