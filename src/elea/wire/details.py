"""Samples as they travel through a node (`RawSample`), and their details packed into bytes.

The compact form is that of the 1.x message body before its payload. So samples of 1.x cross a node untouched, and what
few look at is decoded when somebody does. Every other dialect makes it with `pack` and reads it with `unpack`; nobody
above the wire knows what is in it. None stands for a put without any details, which is what nearly all samples are.
"""

from __future__ import annotations

from typing import Final

from elea.model.details import Details, Source
from elea.model.encoding import Encoding
from elea.model.node_id import NodeId
from elea.model.qos import SampleKind
from elea.model.timestamp import Timestamp
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import read_del, read_put, read_timestamp, write_del, write_put, write_timestamp

__all__ = [
    "DEFAULT_QOS",
    "STAMPED",
    "STAMPED_PUT",
    "Parts",
    "RawSample",
    "attachment_of",
    "has_timestamp",
    "is_deletion",
    "pack",
    "pack_attachment",
    "pack_parts",
    "read_stamp",
    "unpack",
    "unpack_parts",
    "write_stamp",
]

RawSample = tuple[int, int, bytes, int, "bytes | None", bytes]
"""Header, scope and suffix (how its session names the key; 0, 0 and b"" within a process), QoS, details, payload.
A deletion has no payload: it is b"", for nothing says its size."""

Parts = tuple[bool, "tuple[int, bytes] | None", int, "bytes | None", "bytes | None", "Source | None"]
"""Whether it is a deletion, timestamp (NTP64, id), encoding (id, schema), attachment, source."""

DEFAULT_QOS: Final = 5
DELETION: Final = 0x02
STAMPED: Final = 0x20
"""The bit of the first byte of packed details that tells of a timestamp, which then follows it."""
STAMPED_PUT: Final = 0x21
"""The first byte of the details of a put that has a timestamp and nothing else."""

ATTACHED: Final = 0x81
"""That of a put with extensions, and neither timestamp nor encoding."""
_ATTACHMENT: Final = 0x43
"""The header of an attachment behind which there is no other extension."""
_ATTACHED_HEADS: Final = tuple(bytes((ATTACHED, _ATTACHMENT, size)) for size in range(0x80))

PUT: Final = SampleKind.PUT
DELETE: Final = SampleKind.DELETE
BYTES: Final = Encoding.ZENOH_BYTES
PLAIN: Final = Details()


def pack(details: Details) -> bytes | None:
    """The compact form of details; None if they say nothing."""
    stamp, encoding = details.timestamp, details.encoding
    return pack_parts(
        details.kind is DELETE,
        None if stamp is None else (stamp.ntp64, stamp.id.data),
        encoding.id,
        encoding.schema,
        details.attachment,
        details.source,
    )


def pack_parts(
    is_deletion: bool,
    stamp: tuple[int, bytes] | None,
    encoding: int,
    schema: bytes | None,
    attachment: bytes | None,
    source: Source | None,
) -> bytes | None:
    """The same for those who have columns, not values."""
    time = None if stamp is None else m.Timestamp(stamp[0], stamp[1])
    who = None if source is None else m.SourceInfo(source[0], source[1], source[2])
    out = bytearray()
    if is_deletion:
        write_del(out, m.Del(time, who, attachment))
        return bytes(out)
    chosen = m.Encoding(encoding, schema) if encoding or schema is not None else None
    write_put(out, m.Put(b"", time, chosen, who, False, attachment))
    # Behind them stands the size of the empty payload.
    return bytes(out[:-1]) if len(out) > 2 else None


def pack_attachment(attachment: bytes) -> bytes:
    """The same for a put with an attachment and nothing else."""
    size = len(attachment)
    if size < 0x80:
        return _ATTACHED_HEADS[size] + attachment
    if size < 0x4000:
        return bytes((ATTACHED, _ATTACHMENT, size & 0x7F | 0x80, size >> 7)) + attachment
    packed = pack_parts(False, None, 0, None, attachment, None)
    assert packed is not None
    return packed


def unpack(meta: bytes | None) -> Details:
    """The details that were packed.

    Raises:
        DecodeError: the bytes came from another node, and what they say makes no sense.
    """
    if meta is None:
        return PLAIN
    deletion, stamp, encoding, schema, attachment, source = unpack_parts(meta)
    timestamp = None
    if stamp is not None and stamp[1].strip(b"\0"):  # a timestamp of nobody is none
        timestamp = Timestamp(stamp[0], NodeId(stamp[1]))
    chosen = Encoding.of(encoding, schema) if encoding or schema is not None else BYTES
    return Details(DELETE if deletion else PUT, chosen, timestamp, attachment, source)


def unpack_parts(meta: bytes) -> Parts:
    """The same for those who want columns, not values."""
    if is_deletion(meta):
        gone = read_del(meta, 1, meta[0])[0]
        return True, _stamp(gone.timestamp), 0, None, gone.attachment, _source(gone.source_info)
    # An empty payload stands in: the reader wants one.
    put = read_put(meta + b"\0", 1, meta[0])[0]
    id, schema = 0, None
    if put.encoding is not None:
        id, schema = put.encoding.id, put.encoding.schema
    return False, _stamp(put.timestamp), id, schema, put.attachment, _source(put.source_info)


def attachment_of(meta: bytes | None) -> bytes | None:
    """The attachment alone; None if there is none.

    Raises:
        DecodeError: as `unpack`.
    """
    if meta is None:
        return None
    # Whoever attaches something mostly says nothing else: then it is all that is behind its size.
    if meta[0] == ATTACHED and len(meta) > 3 and meta[1] == _ATTACHMENT:
        size = meta[2]
        if size < 0x80:
            if len(meta) == size + 3:
                return meta[3:]
        elif 0 < meta[3] < 0x80 and len(meta) == (size & 0x7F | meta[3] << 7) + 4:
            return meta[4:]
    return unpack_parts(meta)[4]


def is_deletion(meta: bytes | None) -> bool:
    """Whether the sample is a deletion."""
    return meta is not None and meta[0] & 0x1F == DELETION


def has_timestamp(meta: bytes | None) -> bool:
    """Whether the sample has a timestamp."""
    return meta is not None and meta[0] & STAMPED != 0


def read_stamp(meta: bytes) -> tuple[int, bytes, int]:
    """The timestamp of a sample that has one (NTP64, id), and where in `meta` it ends."""
    stamp, end = read_timestamp(meta, 1)
    return stamp.ntp64, stamp.id, end


def write_stamp(stamp: Timestamp) -> bytes:
    """A timestamp alone, as messages have it."""
    out = bytearray()
    write_timestamp(out, m.Timestamp(stamp.ntp64, stamp.id.data))
    return bytes(out)


def _stamp(stamp: m.Timestamp | None) -> tuple[int, bytes] | None:
    return None if stamp is None else (stamp.ntp64, stamp.id)


def _source(source: m.SourceInfo | None) -> Source | None:
    return None if source is None else (source.zid, source.eid, source.sn)
