"""An MCAP file to batches of samples, chunk by chunk; files of other recorders too.

Chunks are taken in the order of the file, which is that of the recording. Indexes are not looked at: a file whose
recorder was killed has none at its end, and is read up to its last whole chunk.
"""

from __future__ import annotations

import io
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import lz4.frame
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Metadata, Schema, Statistics
from mcap.stream_reader import get_chunk_data_stream
from mcap.writer import MCAP0_MAGIC

from elea.columnar.arrays import numbers_of, octets_of, texts_of
from elea.model.errors import CaptureDamaged, EleaError
from elea.model.limits import MCAP_CHUNK_BYTES, MCAP_CHUNK_RECORDS, MCAP_CHUNK_ROWS, MCAP_DETAILS_KEPT
from elea.model.timestamp import ntp64_from_ns
from elea.recorder.capturefiles import Capture
from elea.recorder.declaredtypes import DeclaredType, take_type
from elea.recorder.mcapformat import CAPTURE, DETAILS, DETAILS_COLUMNS, DETAILS_FORM, ENCODINGS, HEAD, ChannelName
from elea.recorder.samplebatch import arrivals_of, sample_batch
from elea.store.entrance import read_stream

__all__ = ["McapCapture"]

FOREIGN: Final = b"mcap"
"""Who gave the timestamps of samples that another recorder wrote: only the time is known, `publish_time`."""

_LOOKED_AT: Final = {
    Opcode.CHUNK,
    Opcode.MESSAGE,
    Opcode.CHANNEL,
    Opcode.SCHEMA,
    Opcode.METADATA,
    Opcode.STATISTICS,
}
_BROKEN: Final = (
    EleaError, McapError, ValueError, struct.error, RuntimeError, KeyError, IndexError, OverflowError
)  # fmt: skip
"""Whatever the library, NumPy and Arrow say of records that are not what they claim."""

_RECORD: Final = struct.Struct("<BQ")
_LENGTH: Final = struct.Struct("<Q")


class _Details(NamedTuple):
    first: int
    batch: pa.RecordBatch


class _Channel(NamedTuple):
    """A channel that was described; `name` is None for that of the details."""

    capture: str | None
    name: ChannelName | None


class McapCapture(Capture):
    """The samples of an MCAP file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.without_details = 0
        """Samples of our own recorder whose details another tool has lost."""
        self._messages = 0
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, _Channel] = {}
        self._details: dict[str, deque[_Details]] = {}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with self.path.open("rb") as file:
            if file.read(len(MCAP0_MAGIC)) != MCAP0_MAGIC:
                raise CaptureDamaged(str(self.path), 0, "it does not begin as an MCAP file does")
            yield from self._records(file)

    def _records(self, file: BinaryIO) -> Iterator[pa.RecordBatch]:
        while True:
            self.done = at = file.tell()
            head = file.read(_RECORD.size)
            opcode, length = _RECORD.unpack(head) if len(head) == _RECORD.size else (0, 0)
            if opcode == Opcode.FOOTER:
                self.done = self.size
                return
            if len(head) < _RECORD.size or length > self.size - file.tell():
                self.is_cut = True
                return
            if opcode not in _LOOKED_AT:
                file.seek(length, io.SEEK_CUR)
                continue
            try:
                if length > MCAP_CHUNK_BYTES:
                    raise ValueError(f"a record of {length} bytes, the limit is {MCAP_CHUNK_BYTES} (MCAP_CHUNK_BYTES)")
                yield from self._record(opcode, head, file.read(length))
            except _BROKEN as error:
                raise CaptureDamaged(str(self.path), at, str(error)) from error

    def _record(self, opcode: int, head: bytes, data: bytes) -> Iterator[pa.RecordBatch]:
        if opcode == Opcode.CHUNK:
            chunk = Chunk.read(ReadDataStream(io.BytesIO(data)))
            yield from self._chunk(_decompressed(chunk))
        elif opcode == Opcode.METADATA:
            self.facts |= Metadata.read(ReadDataStream(io.BytesIO(data))).metadata
        elif opcode == Opcode.STATISTICS:
            promised = Statistics.read(ReadDataStream(io.BytesIO(data))).message_count
            if promised != self._messages:
                raise ValueError(f"the file should have {promised} messages, and {self._messages} were found")
        else:  # a file without chunks
            yield from self._chunk(head + data)

    # -- chunks

    def _chunk(self, data: bytes) -> Iterator[pa.RecordBatch]:
        places = _places(data)
        opcodes = np.frombuffer(data, np.uint8)[places[:-1]]
        for row in np.flatnonzero((opcodes == Opcode.SCHEMA) | (opcodes == Opcode.CHANNEL)).tolist():
            self._describe(int(opcodes[row]), data[places[row] + _RECORD.size : places[row + 1]])
        messages = np.flatnonzero(opcodes == Opcode.MESSAGE)
        self._messages += len(messages)
        if not len(messages):
            return
        if np.diff(places)[messages].min() < HEAD.itemsize:
            raise ValueError("a message is cut off")
        parts = _parts(data, places)
        heads = np.frombuffer(_joined(parts.take(numbers_of(2 * messages, pa.int64()))), HEAD)
        is_details = np.isin(heads["channel"], [n for n, one in self._channels.items() if one.name is None])
        for at in np.flatnonzero(is_details).tolist():
            row = messages[at]
            self._take_details(heads[at], data[places[row] + HEAD.itemsize : places[row + 1]])
        samples = np.flatnonzero(~is_details)
        for start in range(0, len(samples), MCAP_CHUNK_ROWS):
            some = samples[start : start + MCAP_CHUNK_ROWS]
            yield self._batch(heads[some], parts.take(numbers_of(2 * messages[some] + 1, pa.int64())))

    def _describe(self, opcode: int, data: bytes) -> None:
        stream = ReadDataStream(io.BytesIO(data))
        if opcode == Opcode.SCHEMA:
            schema = Schema.read(stream)
            self._schemas[schema.id] = schema
            return
        channel = Channel.read(stream)
        capture = channel.metadata.get(CAPTURE)
        name = None
        if capture is None or channel.message_encoding != DETAILS:
            its = self._schemas.get(channel.schema_id)
            name = ChannelName.of(channel.topic, channel.message_encoding, its.name if its else None, channel.metadata)
            if its is not None:
                encoding = ENCODINGS.get(channel.message_encoding, name.encoding)
                told = name.schema.decode(errors="replace") if name.schema else its.name
                take_type(self.types, name.key, name.encoding, DeclaredType(encoding, told, its.encoding, its.data))
        self._channels[channel.id] = _Channel(capture, name)

    def _take_details(self, head: Any, data: bytes) -> None:
        capture = self._channels[int(head["channel"])].capture or ""
        (batch,) = read_stream(data, DETAILS_FORM)
        self._details.setdefault(capture, deque(maxlen=MCAP_DETAILS_KEPT)).append(
            _Details(int(head["sequence"]), batch)
        )

    # -- samples

    def _batch(self, heads: Any, payloads: pa.Array) -> pa.RecordBatch:
        numbers, rows = np.unique(heads["channel"], return_inverse=True)
        channels = [self._channels.get(number) for number in numbers.tolist()]
        if None in channels:
            raise ValueError(f"channel {numbers[channels.index(None)]} is not described")
        names = [channel.name for channel in channels if channel is not None and channel.name is not None]
        by_row = numbers_of(rows.astype(np.int32), pa.int32())
        columns: dict[str, Any] = {
            "key": texts_of([name.key for name in names]).take(by_row),
            "payload": payloads,
            "arrival": arrivals_of(heads["log_time"].astype(np.int64)),
            "kind": numbers_of(np.array([name.kind for name in names], np.uint8)[rows], pa.uint8()),
            "encoding": numbers_of(np.array([name.encoding for name in names], np.uint32)[rows], pa.uint32()),
        }
        if any(name.schema is not None for name in names):
            schemas = octets_of([name.schema or b"" for name in names])
            given = numbers_mask(np.array([name.schema is not None for name in names])[rows])
            columns["schema"] = pc.if_else(given, schemas.take(by_row), pa.scalar(None, pa.binary()))
        captures = [channel.capture for channel in channels if channel is not None]
        columns |= self._details_of(heads, captures, rows)
        return sample_batch(columns, len(heads))

    def _details_of(self, heads: Any, captures: list[str | None], rows: Any) -> dict[str, Any]:
        """What MCAP has no field for, of each row."""
        if set(captures) == {None}:
            times = heads["publish_time"].tolist()
            return {
                "ntp64": numbers_of(np.array([ntp64_from_ns(time) for time in times], np.uint64), pa.uint64()),
                "stamp_id": pa.repeat(pa.scalar(FOREIGN, pa.binary()), len(heads)),
            }
        low, high = int(heads["sequence"].min()), int(heads["sequence"].max())
        known = [
            (capture, one)
            for capture in set(captures)
            for one in self._details.get(capture or "", ())
            if one.first <= high and one.first + one.batch.num_rows > low
        ]
        places = np.full(len(heads), -1, np.int64)
        before = 0
        for capture, (first, batch) in known:
            mine = np.array([one == capture for one in captures])[rows]
            offset = heads["sequence"].astype(np.int64) - first
            found = mine & (offset >= 0) & (offset < batch.num_rows)
            places[found] = before + offset[found]
            before += batch.num_rows
        ours = np.array([one is not None for one in captures])[rows]
        self.without_details += int((ours & (places < 0)).sum())
        if not known:
            return {}
        indices = numbers_of(np.maximum(places, 0), pa.int64(), places >= 0)
        whole = pa.concat_tables([pa.table(batch) for _, (_, batch) in known], promote_options="default")
        return {
            name: _chunk_of(whole.column(name).take(indices)) for name in DETAILS_COLUMNS if name in whole.column_names
        }


def _decompressed(chunk: Chunk) -> bytes:
    """What a chunk holds; what it promises is looked at before room is made for it."""
    size = chunk.uncompressed_size
    try:
        if chunk.compression == "zstd":
            size = max(size, zstandard.frame_content_size(chunk.data))
        elif chunk.compression == "lz4":
            size = max(size, lz4.frame.get_frame_info(chunk.data)["content_size"])
        if size > MCAP_CHUNK_BYTES:
            raise ValueError(f"a chunk of {size} bytes, the limit is {MCAP_CHUNK_BYTES} (MCAP_CHUNK_BYTES)")
        if chunk.compression == "lz4":
            chunk = replace(chunk, compression="", data=_unpacked(chunk))
        stream, length = get_chunk_data_stream(chunk, validate_crc=True)
    except zstandard.ZstdError as error:
        raise ValueError(f"a chunk cannot be decompressed: {error}") from error
    return stream.read(length)


def _unpacked(chunk: Chunk) -> bytes:
    """What is in a frame of LZ4, which need not say how much that is: no more is made of it than the chunk promises."""
    frame = lz4.frame.LZ4FrameDecompressor()
    data: bytes = frame.decompress(chunk.data, max_length=chunk.uncompressed_size + 1)
    if len(data) != chunk.uncompressed_size:
        found = "more" if len(data) > chunk.uncompressed_size else str(len(data))
        raise ValueError(f"a chunk should have {chunk.uncompressed_size} bytes, and has {found}")
    if not frame.eof:
        raise ValueError("a chunk cannot be decompressed: its frame has no end")
    return data


def _places(data: bytes) -> Any:
    """Where records begin in a chunk, and where the last one ends."""
    # A step for each record, as its length is all that says where the next one is.
    places = [0]
    at, end, length = 0, len(data), _LENGTH.unpack_from
    add, most = places.append, MCAP_CHUNK_RECORDS
    while at + 9 <= end:
        at += 9 + length(data, at + 1)[0]
        add(at)
        if len(places) > most + 1:
            raise ValueError(f"a chunk of more than {most} records (MCAP_CHUNK_RECORDS)")
    if at != end:
        raise ValueError("a chunk ends in the middle of a record")
    return np.array(places, np.int32)


def _parts(data: bytes, places: Any) -> pa.Array:
    """Every record as two values, its head and the rest, over the bytes as they lie."""
    cuts = np.empty(2 * len(places) - 1, np.int32)
    cuts[::2] = places
    cuts[1::2] = np.minimum(places[:-1].astype(np.int64) + HEAD.itemsize, places[1:])
    return pa.Array.from_buffers(pa.binary(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(data)])


def _joined(column: pa.Array) -> bytes:
    """The bytes of all values, behind one another."""
    _, places, data = column.buffers()
    offsets = np.frombuffer(places, np.int32)[column.offset : column.offset + len(column) + 1]
    return data[int(offsets[0]) : int(offsets[-1])] if len(column) else b""


def numbers_mask(mask: Any) -> pa.Array:
    """A NumPy mask as an Arrow one."""
    bits = np.packbits(mask, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(bits)])


def _chunk_of(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
