"""Samples of the wire to records of the store and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from elea.store.record import DEL, PUT, Record
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import read_timestamp
from elea.wire.zenoh1.samples import Pushed, details, split_body

__all__ = ["body_of", "pushed_of", "records_of_run"]

STAMPED_PUT: Final = 0x21


def records_of_run(key: str, run: Sequence[Pushed], arrival_ns: int) -> list[Record]:
    """The records of samples of one key, all of which have a timestamp."""
    found: list[Record] = []
    for _, _, _, qos, meta, payload in run:
        assert meta is not None
        if meta[0] == STAMPED_PUT:  # nothing but a timestamp: nearly every sample
            stamp, _ = read_timestamp(meta, 1)
            found.append(
                Record(
                    key, payload, stamp.ntp64, stamp.id, arrival_ns, PUT, 0, None, None, None, None, None, False, qos
                )
            )
        else:
            found.append(_record(key, details(meta, payload), qos, arrival_ns))
    return found


def _record(key: str, body: m.Put | m.Del, qos: int, arrival_ns: int) -> Record:
    stamp, source = body.timestamp, body.source_info
    assert stamp is not None
    encoding = body.encoding if isinstance(body, m.Put) else None
    return Record(
        key,
        body.payload if isinstance(body, m.Put) else b"",
        stamp.ntp64,
        stamp.id,
        arrival_ns,
        PUT if isinstance(body, m.Put) else DEL,
        0 if encoding is None else encoding.id,
        None if encoding is None else encoding.schema,
        body.attachment,
        None if source is None else source.zid,
        None if source is None else source.eid,
        None if source is None else source.sn,
        False,
        qos,
    )


def body_of(record: Record) -> m.Put | m.Del:
    """A record as the body of a message."""
    stamp = m.Timestamp(record.ntp64, record.stamp_id)
    source = None
    if record.source_id is not None and record.source_eid is not None and record.source_sn is not None:
        # A number of 1.x has 32 bits, one of the store 64.
        source = m.SourceInfo(record.source_id, record.source_eid, record.source_sn & 0xFFFF_FFFF)
    if record.kind == DEL:
        return m.Del(stamp, source, record.attachment)
    encoding = m.Encoding(record.encoding, record.schema) if record.encoding or record.schema else None
    return m.Put(record.payload, stamp, encoding, source, attachment=record.attachment)


def pushed_of(record: Record) -> Pushed:
    """A record as a sample on its way."""
    return 0, 0, b"", record.qos, *split_body(body_of(record))
