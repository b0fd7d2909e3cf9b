"""CDR payloads to a column of structs, by a declared type. The values are those of `elea.content.cdr`.

Payloads of one encapsulation are walked together (`cdrwalk`); what a walk refuses, types with optional members and
mutable structs are decoded one by one. So a payload costs the walk some tenths of a microsecond, and a broken one what
it costs alone.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from elea.columnar.arrays import given_in
from elea.columnar.cdrtypes import arrow_type, as_arrow
from elea.columnar.cdrwalk import Refused, Walk, can_walk
from elea.content.cdr import ENCAPSULATIONS, HEAD, PADDING, CdrReader, default_of, misfit
from elea.content.schema.declared import Extensibility, Struct
from elea.model.limits import CONTENT_BYTES

__all__ = ["CdrColumns"]

ROWS: Final = 1 << 16
"""Payloads that are walked at a time."""

ATTEMPTS: Final = 4
"""Walks over the payloads that earlier ones have not refused; then they are taken one by one."""

FEW: Final = 8
"""So few payloads are cheaper one by one."""


class CdrColumns:
    """Decodes columns of payloads of one type.

    >>> from elea.content.schema import parse_idl
    >>> columns = CdrColumns(parse_idl("struct Light { long id; string name; };")["Light"])
    >>> columns.decode(pa.array([bytes.fromhex("00010000070000000400000061707000"), b""])).to_pylist()
    [{'id': 7, 'name': 'app'}, None]
    """

    def __init__(self, its: Struct) -> None:
        self.declared = its
        self.type: pa.StructType = arrow_type(its)
        self._reader = CdrReader(its)

    def decode(self, payloads: pa.Array) -> pa.Array:
        """A struct for each payload; null where it is null, or none of this type."""
        if isinstance(payloads, pa.ChunkedArray):
            payloads = payloads.combine_chunks()
        if payloads.type != pa.binary():
            payloads = payloads.cast(pa.binary())
        if len(payloads) <= ROWS:
            return self._decoded(payloads)
        pieces = [self._decoded(payloads.slice(at, ROWS)) for at in range(0, len(payloads), ROWS)]
        return pa.concat_arrays(pieces)

    def _decoded(self, payloads: pa.Array) -> pa.Array:
        count = len(payloads)
        if count <= FEW or payloads.buffers()[2] is None:
            return self._one_by_one(payloads)
        _, offsets, data = payloads.buffers()
        cuts = np.frombuffer(offsets, np.int32)[payloads.offset : payloads.offset + count + 1].astype(np.int64)
        octets = np.frombuffer(data, np.uint8)
        starts, ends = cuts[:-1], cuts[1:]
        sizes = ends - starts
        left = given_in(payloads) & (sizes >= HEAD) & (sizes <= CONTENT_BYTES)
        heads = np.full(count, -1, np.int64)
        heads[left] = octets[starts[left]].astype(np.int64) << 8 | octets[starts[left] + 1]
        parts: list[pa.Array] = []
        places: list[Any] = []
        for head in np.unique(heads[left]).tolist():
            rows = np.flatnonzero(heads == head)
            for walked, found in self._walks(octets, rows, starts, ends, head.to_bytes(2, "big")):
                parts.append(found)
                places.append(walked)
                left[walked] = False
        if len(parts) == 1 and len(parts[0]) == count:
            return parts[0]
        done = np.concatenate(places) if places else np.zeros(0, np.int64)
        others = np.setdiff1d(np.arange(count), done, assume_unique=True)
        parts.append(self._one_by_one(payloads.take(pa.array(others))))
        order = np.argsort(np.concatenate([done, others]), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(order))

    def _walks(self, octets: Any, rows: Any, starts: Any, ends: Any, head: bytes) -> list[tuple[Any, pa.Array]]:
        """The rows that a walk can read, and their values."""
        known = ENCAPSULATIONS.get(head)
        if known is None or misfit(self.declared, known) is not None:
            return []
        default = default_of(self.declared, known)
        if not can_walk(self.declared, default):
            return []
        version, little, _ = known
        for _ in range(ATTEMPTS):
            if len(rows) <= FEW:
                return []
            base = starts[rows] + HEAD
            walk = Walk(octets, rows, base, base.copy(), ends[rows], version, "<" if little else ">", default)
            try:
                found = walk.column(self.declared)
                self._check_end(walk, rows)
            except Refused as refused:
                rows = np.setdiff1d(rows, refused.rows, assume_unique=True)
                continue
            return [(rows, found)]
        return []

    def _check_end(self, walk: Walk, rows: Any) -> None:
        if self.declared.extensibility is not Extensibility.APPENDABLE:
            good = walk.end - walk.at <= PADDING
            if not good.all():
                raise Refused(rows[~good])

    def _one_by_one(self, payloads: pa.Array) -> pa.Array:
        return pa.array([self._one(payload) for payload in payloads.to_pylist()], self.type)

    def _one(self, payload: bytes | None) -> object:
        if payload is None or len(payload) > CONTENT_BYTES:
            return None
        try:
            return as_arrow(self._reader.decode(payload))
        except ValueError:
            return None
