"""Samples to records of the store and back."""

from __future__ import annotations

from collections.abc import Sequence

from elea.content import SamplePredicate
from elea.store.record import DEL, PUT, Record
from elea.wire.details import STAMPED_PUT, RawSample, pack_parts, read_stamp, unpack_parts

__all__ = ["details_and_payload", "records_of_run", "sample_of", "takes_record"]


def records_of_run(key: str, run: Sequence[RawSample], arrival_ns: int) -> list[Record]:
    """The records of samples of one key, all of which have a timestamp."""
    found: list[Record] = []
    for _, _, _, qos, meta, payload in run:
        assert meta is not None
        if meta[0] == STAMPED_PUT:  # nothing but a timestamp: nearly every sample
            ntp64, id, _ = read_stamp(meta)
            found.append(Record(key, payload, ntp64, id, arrival_ns, PUT, 0, None, None, None, None, None, False, qos))
        else:
            found.append(_record(key, meta, payload, qos, arrival_ns))
    return found


def _record(key: str, meta: bytes, payload: bytes, qos: int, arrival_ns: int) -> Record:
    is_deletion, stamp, encoding, schema, attachment, source = unpack_parts(meta)
    assert stamp is not None
    return Record(
        key,
        payload,
        stamp[0],
        stamp[1],
        arrival_ns,
        DEL if is_deletion else PUT,
        encoding,
        schema,
        attachment,
        None if source is None else source[0],
        None if source is None else source[1],
        None if source is None else source[2],
        False,
        qos,
    )


def details_and_payload(record: Record) -> tuple[bytes | None, bytes]:
    """A record as a sample has it: packed details, payload. A deletion has none, whatever was stored with it."""
    source = None
    if record.source_id is not None and record.source_eid is not None and record.source_sn is not None:
        # A number of 1.x has 32 bits, one of the store 64.
        source = (record.source_id, record.source_eid, record.source_sn & 0xFFFF_FFFF)
    stamp = (record.ntp64, record.stamp_id)
    is_deletion = record.kind == DEL
    meta = pack_parts(is_deletion, stamp, record.encoding, record.schema, record.attachment, source)
    return meta, b"" if is_deletion else record.payload


def takes_record(where: SamplePredicate, record: Record) -> bool:
    """Whether a predicate holds for a record."""
    parts = (record.kind == DEL, (record.ntp64, record.stamp_id), record.encoding, record.schema, None, None)
    return where.takes_parts(record.key, record.payload, record.qos, parts)


def sample_of(record: Record) -> RawSample:
    """A record as a sample on its way."""
    return 0, 0, b"", record.qos, *details_and_payload(record)
