"""Record batches to PUSH messages: as many to a piece as fit, without an object per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from elea.columnar import rows as k
from elea.columnar.arrays import given_in, numbers_in
from elea.columnar.compiled import writer
from elea.wire.primitives import write_z
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.samples import split_body

__all__ = ["Outgoing", "Piece"]

LONGEST_SCHEMA: Final = 255
LONGEST_STAMP: Final = 16

Piece = tuple[bytes, int]
"""Bytes of whole messages, and how many they are."""


class Outgoing:
    """Samples of a batch on their way out.

    Args:
        batch: columns `key, payload` and any of `kind, encoding, schema, attachment, ntp64, stamp_id`, in their types.

    Raises:
        ValueError: a row has what no message can carry.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        count = batch.num_rows
        keys = batch.column("key").dictionary_encode()
        self.keys: list[str] = keys.dictionary.to_pylist()
        """Each key once; the codes of rows are indices of it."""
        self.rows = np.full((count, k.WIDTH), -1, np.int64)
        self.rows[:, k.CODE] = numbers_in(keys.indices, np.int32)
        self._payloads = self._region(batch, "payload", k.PAYLOAD)
        self._schemas = self._region(batch, "schema", k.SCHEMA, longest=LONGEST_SCHEMA)
        self._attachments = self._region(batch, "attachment", k.ATTACHMENT)
        self._stamps = self._region(batch, "stamp_id", k.STAMP, least=1, longest=LONGEST_STAMP)
        self.rows[:, k.ENCODING] = _numbers(batch, "encoding", np.uint32)
        self.rows[:, k.NTP64] = _numbers(batch, "ntp64", np.uint64).view(np.int64)
        kinds = _numbers(batch, "kind", np.uint8)
        if (kinds > 1).any():
            raise ValueError(f"column 'kind' has {kinds.max()}: 0 is a put, 1 a deletion")
        self.rows[:, k.FLAGS] = np.where(kinds == 1, k.KIND, 0)
        if batch.schema.get_field_index("ntp64") >= 0:
            self.rows[~given_in(batch.column("ntp64")), k.STAMP] = -1

    def _region(self, batch: pa.RecordBatch, name: str, column: int, *, least: int = 0, longest: int = -1) -> Any:
        """Say where the bytes of a column are, and return them."""
        if batch.schema.get_field_index(name) < 0:
            return np.frombuffer(b"", np.uint8)
        values = batch.column(name)
        _, places, data = values.buffers()
        if not len(values) or data is None:
            self.rows[given_in(values), column : column + 2] = 0
            return np.frombuffer(b"", np.uint8)
        offsets = np.frombuffer(places, np.int32)[values.offset : values.offset + len(values) + 1]
        given = given_in(values)
        lengths = np.diff(offsets)
        if longest >= 0 and ((lengths > longest) | (lengths < least))[given].any():
            raise ValueError(f"column {name!r} has a value that is not of {least} to {longest} bytes")
        self.rows[:, column] = np.where(given, offsets[:-1], -1)
        self.rows[:, column + 1] = lengths
        octets = np.frombuffer(data, np.uint8)
        octets.flags.writeable = False  # as the loops expect it
        return octets

    def stamp(self, missing: int, ntp64: int, stamp_id: bytes) -> None:
        """Give timestamps to the rows that have none, `missing` of them, counting up from `ntp64`."""
        places = self.rows[:, k.STAMP] < 0
        assert int(places.sum()) == missing
        octets = self._stamps.tobytes() + stamp_id
        self.rows[places, k.STAMP] = len(octets) - len(stamp_id)
        self.rows[places, k.STAMP + 1] = len(stamp_id)
        self.rows[places, k.NTP64] = (np.arange(missing, dtype=np.uint64) + np.uint64(ntp64)).view(np.int64)
        self._stamps = np.frombuffer(octets, np.uint8)

    @property
    def unstamped(self) -> int:
        """Rows without a timestamp."""
        return int((self.rows[:, k.STAMP] < 0).sum())

    def pieces(self, heads: Sequence[bytes], chosen: Any, room: int) -> Iterator[Piece | int]:
        """The messages of some rows, in pieces of up to `room` bytes; the index of a row that does not fit alone.

        Args:
            heads: what messages of each key begin with, by code.
            chosen: which rows, as a mask or as indices.
        """
        rows = np.ascontiguousarray(self.rows if chosen is None else self.rows[chosen])
        compiled = writer()
        yield from (
            self._written(heads, rows, room) if compiled is None else self._compiled(compiled, heads, rows, room)
        )

    def _compiled(self, write: Any, heads: Sequence[bytes], rows: Any, room: int) -> Iterator[Piece | int]:
        lengths = np.fromiter(map(len, heads), np.int64, len(heads))
        regions = np.stack([np.cumsum(lengths) - lengths, lengths], axis=1)
        octets = np.frombuffer(b"".join(heads), np.uint8)
        out, answer = np.empty(room, np.uint8), np.zeros(1, np.int64)
        data = (self._payloads, self._stamps, self._schemas, self._attachments)
        at = 0
        while at < len(rows):
            end = write(rows, at, octets, regions, *data, out, answer)
            if end == at:
                yield at
                at += 1
                continue
            yield out[: answer[0]].tobytes(), end - at
            at = end

    def _written(self, heads: Sequence[bytes], rows: Any, room: int) -> Iterator[Piece | int]:
        """The twin of the loop, where there is no Numba."""
        parts: list[bytes] = []
        size = 0
        for index, row in enumerate(rows.tolist()):
            meta, payload = self._body(row)
            message = heads[row[k.CODE]] + meta + (b"" if row[k.FLAGS] & k.KIND else _vle(len(payload)) + payload)
            if size + len(message) > room and parts:
                yield b"".join(parts), len(parts)
                parts, size = [], 0
            if len(message) > room:
                yield index
                continue
            parts.append(message)
            size += len(message)
        if parts:
            yield b"".join(parts), len(parts)

    def sample(self, row: int) -> tuple[int, bytes | None, bytes]:
        """One row as it is sent alone: its code, the bytes before its payload (None if plain), its payload."""
        found = self.rows[row].tolist()
        meta, payload = self._body(found)
        return found[k.CODE], None if meta == b"\x01" else meta, payload

    def _body(self, row: list[int]) -> tuple[bytes, bytes]:
        def octets(data: Any, column: int) -> bytes | None:
            start = row[column]
            return None if start < 0 else data[start : start + row[column + 1]].tobytes()

        stamp_id, attachment = octets(self._stamps, k.STAMP), octets(self._attachments, k.ATTACHMENT)
        stamp = None if stamp_id is None else m.Timestamp(row[k.NTP64] & (1 << 64) - 1, stamp_id)
        if row[k.FLAGS] & k.KIND:
            return split_body(m.Del(stamp, None, attachment))
        schema = octets(self._schemas, k.SCHEMA)
        encoding = m.Encoding(row[k.ENCODING], schema) if row[k.ENCODING] or schema is not None else None
        return split_body(m.Put(octets(self._payloads, k.PAYLOAD) or b"", stamp, encoding, attachment=attachment))


def _numbers(batch: pa.RecordBatch, name: str, dtype: Any) -> Any:
    """A column of numbers, 0 where there is none."""
    if batch.schema.get_field_index(name) < 0:
        return np.zeros(batch.num_rows, np.uint64)
    column = batch.column(name)
    return np.where(given_in(column), numbers_in(column, dtype), 0).astype(np.uint64)


def _vle(value: int) -> bytes:
    out = bytearray()
    write_z(out, value, 64, "size")
    return bytes(out)
