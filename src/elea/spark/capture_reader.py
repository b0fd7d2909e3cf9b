"""What executors do with captures: files to Arrow batches of rows, piece by piece.

A large file is several tasks. TCP is put together by connection, so a task cannot start in the middle of a file: each
task reads the whole file and takes the connections whose number falls to it. Reading the headers of a packet costs a
tenth of decoding what is in it; a file of one connection gains nothing from being split.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from elea.model.errors import CaptureError, DecodeError
from elea.spark.saidfirst import says_first

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.spark.capture_messages import Message
    from elea.wire.detecting import MixedTraffic
    from elea.wire.pcap import Flow

__all__ = ["CaptureOptions", "CapturePart", "CaptureReader"]

PASSED_OVER: Final = "PASSED_OVER"
"""Begins the `error` of packets that are not Zenoh's as far as one can tell: they never end a query."""

BATCH_ROWS: Final = 4_096
BATCH_BYTES: Final = 1 << 23
"""Payloads and forms of a batch; a row more may be as large as a message can be."""


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """The options of `format("zenoh.capture")`, checked."""

    files: tuple[str, ...]
    dialects: tuple[str, ...]
    ports: frozenset[int]
    every_port: bool
    fail_fast: bool
    split_bytes: int


@dataclass
class CapturePart(InputPartition):
    """The connections of one file that fall to one of `parts` tasks."""

    file: str
    part: int
    parts: int

    def keeps(self, connection: Flow) -> bool:
        """Whether a connection is of this part; the same in every process."""
        ends = b"%b %d %b %d" % connection
        return zlib.crc32(ends) % self.parts == self.part


@says_first
class CaptureReader(DataSourceReader):
    """Reads captures; made by the driver, used by executors."""

    MOST_PARTS: Final = 64

    def __init__(self, schema: StructType, options: CaptureOptions) -> None:
        self._schema = schema
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """A task a file, several for a large one."""
        from os.path import getsize

        made: list[InputPartition] = []
        for file in self._options.files:
            parts = min(self.MOST_PARTS, max(1, -(-getsize(file) // self._options.split_bytes)))
            made += [CapturePart(file, part, parts) for part in range(parts)]
        return made

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part."""
        from pyspark.sql.pandas.types import to_arrow_schema

        assert isinstance(partition, CapturePart)
        schema = to_arrow_schema(self._schema, timezone="UTC")
        rows: list[Message] = []
        cost = 0
        for row in self._rows(partition, "json" in schema.names):
            if self._options.fail_fast and row.error is not None and not row.error.startswith(PASSED_OVER):
                raise CaptureError(partition.file, row.packet, row.error)
            rows.append(row)
            cost += len(row.payload or b"") + len(row.json or "") + len(row.octets or b"")
            if len(rows) == BATCH_ROWS or cost > BATCH_BYTES:
                yield _batch(schema, partition.file, rows)
                rows, cost = [], 0
        if rows:
            yield _batch(schema, partition.file, rows)

    def _rows(self, part: CapturePart, forms: bool) -> Iterator[Message]:
        from elea.spark.capture_files import opened
        from elea.spark.capture_messages import Messages
        from elea.wire import dialect_named
        from elea.wire.detecting import MixedTraffic
        from elea.wire.traffic import Ports

        options = self._options
        dialects = [dialect_named(name) for name in options.dialects]
        ports = Ports(options.ports, every=options.every_port)
        traffic = MixedTraffic(dialects, ports, part.keeps if part.parts > 1 else None)
        messages = Messages(options.ports, forms=forms)
        damage: str | None = None
        try:
            with opened(part.file) as capture:
                for detected in traffic.units(capture):
                    yield from messages.rows(detected)
        except DecodeError as error:
            damage = f"{error.code}: {error}"
        except (OSError, EOFError, zlib.error) as error:
            damage = f"UNREADABLE: {error}"
        if part.part == 0:
            # Every part has read the headers of all packets; one of them tells.
            yield from _notes(traffic, damage)


def _notes(traffic: MixedTraffic, damage: str | None) -> Iterator[Message]:
    """What is wrong with the file itself, and with packets of which nobody knows whether they were Zenoh's."""
    from elea.spark.capture_messages import Message

    counters = traffic.counters
    lost = {"IP fragments": counters.fragments, "packets with broken headers": counters.malformed}
    problems = [f"{PASSED_OVER}: {count} {what}" for what, count in lost.items() if count]
    for problem in [*([damage] if damage else []), *problems]:
        yield Message(None, counters.packets, None, error=problem)


def _batch(schema: pa.Schema, file: str, rows: list[Message]) -> pa.RecordBatch:
    import pyarrow as pa

    columns: list[Any] = []
    values = dict(zip(type(rows[0])._fields, zip(*rows, strict=True), strict=True))
    for field in schema:
        if field.name == "file":
            columns.append(pa.repeat(pa.scalar(file, field.type), len(rows)))
        else:
            columns.append(pa.array(values[field.name], field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
