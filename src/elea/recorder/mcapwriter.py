"""Batches of samples to an MCAP file: a chunk for each batch, made of columns, without an object per sample.

The records are those of the `mcap` library, and so is the order in which its own writer has them. That one takes
messages one by one, which takes several times as long; here a chunk is one join of columns (`bench/recorder.py`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import lz4.frame
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from mcap.writer import MCAP0_MAGIC

from elea.columnar.arrays import numbers_in
from elea.content.contents import PLAIN
from elea.model.limits import MCAP_CHANNELS, MCAP_CHUNK_ROWS, MCAP_SAMPLES, MCAP_SUMMARY_BYTES
from elea.recorder.appendfile import AppendFile
from elea.recorder.declaredtypes import DeclaredType, Types, types_of
from elea.recorder.mcapformat import CAPTURE, DETAILS, HEAD, INDEX, MESSAGE_ENCODINGS, ChannelName, details_of
from elea.recorder.samplebatch import nanoseconds

__all__ = ["COMPRESSION", "McapWriter"]

COMPRESSION: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "zstd": lambda data: zstandard.ZstdCompressor(level=1).compress(data),
    "lz4": lz4.frame.compress,
    "none": bytes,
}
_INDEX_HEAD: Final = struct.Struct("<BQHI")
_DETAILS: Final = 1
"""The channel of what MCAP has no field for."""


class McapWriter:
    """Writes a file; `finish` makes it whole, and without that it can be read up to its last chunk."""

    def __init__(
        self,
        file: AppendFile,
        facts: Mapping[str, str],
        *,
        capture: str,
        compression: str = "zstd",
        types: Types = types_of(PLAIN),  # noqa: B008 - it has no state
    ) -> None:
        self._file = file
        self._types = types
        self._capture = capture
        self._compress = COMPRESSION[compression]
        self._compression = "" if compression == "none" else compression
        self._channels: dict[ChannelName, int] = {}
        self._schemas: dict[tuple[str, str, bytes], int] = {}
        self._known = {Opcode.SCHEMA: RecordBuilder(), Opcode.CHANNEL: RecordBuilder()}  # for the summary
        self._indexes = RecordBuilder()
        self._metadata: list[MetadataIndex] = []
        self._counts: dict[int, int] = {}
        self._chunks = 0
        self._first_time = self._last_time = 0
        self.samples = 0
        file.append(MCAP0_MAGIC + _bytes(Header("", "elea")))
        self._add_metadata("elea.capture", {"capture": capture, **facts})
        first = RecordBuilder()
        self._add_channel(first, Channel(_DETAILS, DETAILS, DETAILS, {CAPTURE: capture}, 0))
        self._pending = _taken(first)  # goes into the first chunk, as a channel has to

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._file.size

    def write(self, batch: pa.RecordBatch) -> int:
        """Append samples in their order; how many of them: fewer than all if the format has no numbers left for more.

        Raises:
            CaptureFull, OSError: they could not be written; what was written before can be read.
        """
        done = 0
        while done < batch.num_rows and self._write_chunk(some := batch.slice(done, MCAP_CHUNK_ROWS)):
            done += some.num_rows
        return done

    def finish(self, facts: Mapping[str, str]) -> None:
        """Make the file whole: what is known at the end, and the summary by which readers find their way."""
        self._add_metadata("elea.end", dict(facts))
        data_end = _bytes(DataEnd(0))
        start = self._file.size + len(data_end)
        summary = RecordBuilder()
        offsets = []
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self._channels) + 1,
            channel_message_counts=self._counts,
            chunk_count=self._chunks,
            message_count=sum(self._counts.values()),
            message_end_time=self._last_time,
            message_start_time=self._first_time,
            metadata_count=len(self._metadata),
            schema_count=len(self._schemas),
        )
        groups = [
            (Opcode.SCHEMA, _taken(self._known[Opcode.SCHEMA])),
            (Opcode.CHANNEL, _taken(self._known[Opcode.CHANNEL])),
            (Opcode.STATISTICS, _bytes(statistics)),
            (Opcode.CHUNK_INDEX, _taken(self._indexes)),
            (Opcode.METADATA_INDEX, b"".join(map(_bytes, self._metadata))),
        ]
        for opcode, group in groups:
            if group:
                offsets.append(SummaryOffset(opcode, start + summary.count, len(group)))
                summary.write(group)
        offset_start = start + summary.count
        for offset in offsets:
            offset.write(summary)
        data = _taken(summary)
        head = struct.pack("<BQQQ", Opcode.FOOTER, 8 + 8 + 4, start, offset_start)
        footer = _bytes(Footer(start, offset_start, zlib.crc32(head, zlib.crc32(data))))
        self._file.append(data_end + data + footer + MCAP0_MAGIC)

    # -- chunks

    def _write_chunk(self, batch: pa.RecordBatch) -> bool:
        rows = batch.num_rows
        codes, names = _names(batch)
        new = [name for name in names if name not in self._channels]
        if (
            len(self._channels) + len(new) >= MCAP_CHANNELS
            or self.samples + rows > MCAP_SAMPLES
            or self._indexes.count > MCAP_SUMMARY_BYTES
        ):
            return False
        described = RecordBuilder()
        described.write(self._pending)
        for name in new:
            self._describe(described, name)
        self._pending = _taken(described)  # a chunk that is not written leaves them to the next one
        body = self._pending
        channels = np.array([self._channels[name] for name in names], np.uint16)[codes]
        arrivals, times = nanoseconds(batch)

        details = details_of(batch)
        head = np.zeros(1, HEAD)
        head[0] = (Opcode.MESSAGE, HEAD.itemsize - 9 + len(details), _DETAILS, self.samples, arrivals[0], times[0])
        messages = _messages(batch, channels, self.samples, arrivals, times)
        lengths = np.diff(np.frombuffer(messages.buffers()[1], np.int32)[: rows + 1])
        data = b"".join((body, head.tobytes(), details, memoryview(messages.buffers()[2])))

        first = len(body) + HEAD.itemsize + len(details)
        index = np.empty(rows, INDEX)
        index["time"] = arrivals
        index["offset"] = first + np.cumsum(lengths) - lengths
        indexes = {_DETAILS: (len(body), int(arrivals[0]))}
        self._append_chunk(data, channels, index, indexes, int(arrivals.min()), int(arrivals.max()))
        self._pending = b""
        self.samples += rows
        return True

    def _append_chunk(
        self, data: bytes, channels: Any, index: Any, single: dict[int, tuple[int, int]], low: int, high: int
    ) -> None:
        packed = self._compress(data)
        crc = zlib.crc32(data)
        record = _bytes(Chunk(self._compression, packed, high, low, crc, len(data)))
        order = np.argsort(channels, kind="stable")
        used, counts = np.unique(channels, return_counts=True)
        pieces = np.split(index[order], np.cumsum(counts)[:-1])
        found = [(number, 1, struct.pack("<QQ", when, at)) for number, (at, when) in single.items()]
        found += zip(used.tolist(), counts.tolist(), (piece.tobytes() for piece in pieces), strict=True)

        parts, places = [record], {}
        at = behind = self._file.size + len(record)
        for number, _, entries in found:
            places[number] = at
            parts += [_INDEX_HEAD.pack(Opcode.MESSAGE_INDEX, 6 + len(entries), number, len(entries)), entries]
            at += _INDEX_HEAD.size + len(entries)
        chunk = ChunkIndex(
            chunk_length=len(record),
            chunk_start_offset=self._file.size,
            compression=self._compression,
            compressed_size=len(packed),
            message_end_time=high,
            message_index_length=at - behind,
            message_index_offsets=places,
            message_start_time=low,
            uncompressed_size=len(data),
        )
        self._file.append(b"".join(parts))

        # Only what is in the file is counted.
        chunk.write(self._indexes)
        self._first_time = min(self._first_time, low) if self._chunks else low
        self._last_time = max(self._last_time, high)
        self._chunks += 1
        for number, count, _ in found:
            self._counts[number] = self._counts.get(number, 0) + count

    # -- channels

    def _describe(self, described: RecordBuilder, name: ChannelName) -> None:
        schema, encoding = 0, name.message_encoding
        if not name.kind:
            its = self._types(name.key, name.encoding, name.schema)
            encoding = MESSAGE_ENCODINGS.get(its.encoding) or encoding
            schema = self._schema(described, its) if its.name else 0
        number = len(self._channels) + 2  # behind that of the details
        self._channels[name] = number
        self._add_channel(described, Channel(number, name.key, encoding, name.metadata(self._capture), schema))

    def _schema(self, described: RecordBuilder, its: DeclaredType) -> int:
        """The schema of that name, with its text if the data space declares it."""
        wanted = (its.name, its.language, its.text)
        number = self._schemas.get(wanted)
        if number is None:
            number = self._schemas[wanted] = len(self._schemas) + 1
            record = _bytes(Schema(id=number, data=its.text, encoding=its.language, name=its.name))
            described.write(record)
            self._known[Opcode.SCHEMA].write(record)
        return number

    def _add_channel(self, described: RecordBuilder, channel: Channel) -> None:
        record = _bytes(channel)
        described.write(record)
        self._known[Opcode.CHANNEL].write(record)

    def _add_metadata(self, name: str, facts: dict[str, str]) -> None:
        record = _bytes(Metadata(name, facts))
        index = MetadataIndex(offset=self._file.size, length=len(record), name=name)
        self._file.append(record)
        self._metadata.append(index)


def _names(batch: pa.RecordBatch) -> tuple[Any, list[ChannelName]]:
    """The names of channels in a batch, and which of them each row has."""
    keys, encodings, schemas = (pc.dictionary_encode(batch.column(name)) for name in ("key", "encoding", "schema"))
    kinds = numbers_in(batch.column("kind"), np.uint8).astype(np.int64)
    # No index has more than 20 bits, since a batch has not so many rows.
    codes = (numbers_in(keys.indices, np.int32).astype(np.int64) << 1 | kinds) << 40
    codes |= numbers_in(encodings.indices, np.int32).astype(np.int64) << 20
    codes |= numbers_in(pc.fill_null(schemas.indices, -1), np.int32).astype(np.int64) + 1
    distinct, rows = np.unique(codes, return_inverse=True)
    texts, numbers, known = keys.dictionary.to_pylist(), encodings.dictionary.to_pylist(), [None]
    known += schemas.dictionary.to_pylist()
    names = [
        ChannelName(texts[code >> 41], code >> 40 & 1, numbers[code >> 20 & 0xFFFFF], known[code & 0xFFFFF])
        for code in distinct.tolist()
    ]
    return rows, names


def _bytes(record: McapRecord) -> bytes:
    builder = RecordBuilder()
    record.write(builder)
    return _taken(builder)


def _taken(builder: Any) -> bytes:
    """What was written, which the builder forgets."""
    found: bytes = builder.end()
    return found


def _messages(batch: pa.RecordBatch, channels: Any, first: int, arrivals: Any, times: Any) -> pa.Array:
    """The records of all messages, behind one another: what stands before each payload, joined with it."""
    rows = batch.num_rows
    payloads = batch.column("payload")
    heads = np.empty(rows, HEAD)
    heads["opcode"] = Opcode.MESSAGE
    heads["length"] = numbers_in(pc.binary_length(payloads), np.int32) + (HEAD.itemsize - 9)
    heads["channel"] = channels
    heads["sequence"] = np.arange(first, first + rows, dtype=np.uint32)
    heads["log_time"] = arrivals
    heads["publish_time"] = times
    places = np.arange(0, HEAD.itemsize * (rows + 1), HEAD.itemsize, dtype=np.int32)
    before = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(places), pa.py_buffer(heads)])
    return pc.binary_join_element_wise(before, payloads, pa.scalar(b""))
