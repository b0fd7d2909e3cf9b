"""Logs out of and into files: an Arrow IPC stream, or one JSON object a line."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import pyarrow as pa

from elea.model.errors import StoreError
from elea.store.log import Log
from elea.store.reading import Range
from elea.store.record import Record, Stored

__all__ = ["export_arrow", "export_json", "import_arrow", "import_json"]

ROWS_AT_ONCE: Final = 8192

Watch = Callable[[int], None]
"""Samples done so far."""


def export_arrow(log: Log, wanted: Range, out: BinaryIO) -> int:
    """Write a range as an Arrow IPC stream; the octets written."""
    size = 0
    for message in log.read_ipc(wanted):
        out.write(message)
        size += len(message)
    return size


def export_json(log: Log, wanted: Range, out: BinaryIO) -> int:
    """Write a range as lines of JSON; the samples written."""
    count = 0
    for stored in log.read(wanted):
        out.write(json.dumps(json_form(stored)).encode() + b"\n")
        count += 1
    return count


def import_arrow(log: Log, source: BinaryIO, watch: Watch) -> int:
    """Append the samples of an Arrow IPC stream with the columns of `SCHEMA`; those that are new."""
    count = 0
    try:
        stream = pa.ipc.open_stream(source)
        for batch in stream:
            if batch.num_rows:
                count += log.append_arrow(batch).rows
                watch(count)
    except pa.ArrowException as error:
        raise StoreError(f"not a whole Arrow IPC stream: {error}; {count} samples were stored before") from error
    return count


def import_json(log: Log, source: BinaryIO, watch: Watch) -> int:
    """Append the samples of lines of JSON, as `export_json` writes them; those that are new."""
    count = 0
    for records in _chunks(source):
        count += log.append(records).rows
        watch(count)
    return count


def json_form(stored: Stored) -> dict[str, object]:
    """A sample as JSON: octets in base64, what is None left out."""
    form: dict[str, object] = {"position": stored.position}
    for name, value in stored.record._asdict().items():
        if value is not None:
            form[name] = base64.b64encode(value).decode() if isinstance(value, bytes) else value
    return form


_OCTETS: Final = {"payload", "stamp_id", "schema", "attachment", "source_id"}


def _chunks(source: BinaryIO) -> Iterator[list[Record]]:
    records: list[Record] = []
    for number, line in enumerate(source, start=1):
        if line.strip():
            records.append(_record(line, number))
        if len(records) == ROWS_AT_ONCE:
            yield records
            records = []
    if records:
        yield records


def _record(line: bytes, number: int) -> Record:
    try:
        form = json.loads(line)
        form.pop("position", None)
        fields: dict[str, Any] = dict(form)
        for name in _OCTETS & fields.keys():
            fields[name] = base64.b64decode(fields[name])
        return Record(**fields)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"line {number} is no sample: {error}") from error
