"""Logs out of and into files: an Arrow IPC stream, or one JSON object a line."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.model import keyexpr
from elea.model.errors import ArrowRefused, StampAhead, StoreError
from elea.model.jsontext import read_json
from elea.model.limits import CLOCK_DRIFT_NS, ENCODING_SCHEMA_BYTES, MAX_MESSAGE, NODE_ID_BYTES
from elea.model.timestamp import Hlc, ns_from_ntp64
from elea.store.columns import SCHEMA, check_batch, fields_of, from_fields
from elea.store.entrance import read_file
from elea.store.log import Log
from elea.store.logreads import Range
from elea.store.record import DEL, PUT, Record, Stored
from elea.store.stamps import check_stamps, restamped

__all__ = ["Times", "export_arrow", "export_json", "import_arrow", "import_json"]

ROWS_AT_ONCE: Final = 8192

LINE_BYTES: Final = 2 * MAX_MESSAGE
"""A sample as a line of JSON: the largest payload in base64, an attachment, a key."""

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


class Times:
    """What an import does with timestamps that are too far ahead of the time of this machine.

    Args:
        clock: gives other ones, above all of the log.
        restamp: whether they get another one; if not, they are refused. Their arrival is then now.
    """

    def __init__(self, log: Log, clock: Hlc, now_ns: int, *, restamp: bool) -> None:
        self.restamped = 0
        self._clock = clock
        self._now_ns = now_ns
        self._limit = clock.limit(now_ns)
        self._restamp = restamp
        clock.follow(log.newest)

    def judged(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Samples as they may be stored.

        Raises:
            StampAhead: some of them may not.
        """
        times, ids = check_stamps(batch)
        newest = pc.max(times).as_py()
        if newest is None or newest <= self._limit:
            return batch
        if not self._restamp:
            row = pc.index(times, pa.scalar(newest, pa.uint64())).as_py()
            raise StampAhead(batch.column("key")[row].as_py(), ns_from_ntp64(newest) - self._now_ns, CLOCK_DRIFT_NS)
        ahead = pc.greater(times, pa.scalar(self._limit, pa.uint64()))
        reserve = partial(self._clock.reserve, self._now_ns)
        times, ids, count = restamped(times, ids, self._limit, reserve, self._clock.id.data)
        self.restamped += count
        now = pa.scalar(self._clock.arrival(self._now_ns), pa.int64()).cast(SCHEMA.field("arrival").type)
        arrivals = pc.if_else(ahead, now, batch.column("arrival").cast(SCHEMA.field("arrival").type))
        found = {name: batch.column(name) for name in batch.schema.names}
        found |= {"ntp64": times, "stamp_id": ids, "arrival": arrivals}
        return pa.RecordBatch.from_arrays(list(found.values()), names=list(found))


def import_arrow(log: Log, source: BinaryIO, watch: Watch, times: Times) -> int:
    """Append the samples of an Arrow IPC stream with the columns of `SCHEMA`; those that are new."""
    count = 0
    try:
        for batch in read_file(source):
            if batch.num_rows:
                _check_samples(batch)
                count += _appended(log, times, check_batch(batch), count)
                watch(count)
    except ArrowRefused as error:
        raise ArrowRefused(error.what, f"{error.problem}; {count} samples were stored before") from error
    return count


def _check_samples(batch: pa.RecordBatch) -> None:
    """Refuse what no broker would have stored.

    Raises:
        StoreError: a key is none, or a kind is neither put nor deletion.
    """
    if "key" not in batch.schema.names:
        return  # `check_batch` says so
    for key in pc.unique(batch.column("key")).to_pylist():
        try:
            _check_key(key)
        except ValueError as error:
            raise StoreError(f"nothing of the batch is stored: {error}") from error
    if "kind" in batch.schema.names and not set(pc.unique(batch.column("kind")).to_pylist()) <= {PUT, DEL}:
        raise StoreError("nothing of the batch is stored: kind is 0 for a put or 1 for a deletion")


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise ValueError("a key is no text")
    keyexpr.check(key)
    if "*" in key:
        raise ValueError(f"key {key[:80]!r} has wildcards")


def import_json(log: Log, source: BinaryIO, watch: Watch, times: Times) -> int:
    """Append the samples of lines of JSON, as `export_json` writes them; those that are new."""
    count = 0
    for records in _chunks(source):
        count += _appended(log, times, from_fields(fields_of(records), 0), count)
        watch(count)
    return count


def _appended(log: Log, times: Times, batch: pa.RecordBatch, before: int) -> int:
    try:
        return log.append_arrow(times.judged(batch)).rows
    except StampAhead as error:
        error.stored = before
        raise


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
    for number, line in enumerate(iter(partial(source.readline, LINE_BYTES + 1), b""), start=1):
        if len(line) > LINE_BYTES:
            raise StoreError(f"line {number} has more than {LINE_BYTES} bytes: no sample is that large")
        if line.strip():
            records.append(_record(line, number))
        if len(records) == ROWS_AT_ONCE:
            yield records
            records = []
    if records:
        yield records


_NUMBERS: Final = {
    "ntp64": (1 << 64) - 1,
    "arrival_ns": (1 << 63) - 1,
    "encoding": (1 << 16) - 1,
    "source_eid": (1 << 32) - 1,
    "source_sn": (1 << 64) - 1,
    "qos": 255,
}


def _checked(record: Record) -> Record:
    """A record of a file: what it says of itself has the right types and bounds, and its key is one.

    Raises:
        ValueError: something has not.
    """
    for name, value in record._asdict().items():
        most = _NUMBERS.get(name)
        if value is None and name in _OPTIONAL:
            continue
        if name in _OCTETS and not isinstance(value, bytes):
            raise ValueError(f"{name} is no base64")
        if most is not None and (type(value) is not int or not 0 <= value <= most):
            raise ValueError(f"{name} is {value!r:.40}, not a whole number up to {most}")
    _check_key(record.key)
    if record.kind not in (PUT, DEL) or type(record.once) is not bool:
        raise ValueError("kind is 0 for a put or 1 for a deletion, once is true or false")
    if not 1 <= len(record.stamp_id) <= NODE_ID_BYTES or len(record.schema or b"") > ENCODING_SCHEMA_BYTES:
        raise ValueError("stamp_id has 1 to 16 bytes, schema up to 255")
    return record


_OPTIONAL: Final = {"schema", "attachment", "source_id", "source_eid", "source_sn"}


def _record(line: bytes, number: int) -> Record:
    try:
        form = read_json(line)
        form.pop("position", None)
        fields: dict[str, Any] = dict(form)
        for name in _OCTETS & fields.keys():
            fields[name] = base64.b64decode(fields[name], validate=True)
        return _checked(Record(**fields))
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"line {number} is no sample: {error}") from error
