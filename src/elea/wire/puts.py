"""Acknowledged samples in one request: the payload of `@store/puts`, octets to samples and back.

    version 1 · nodes 1 · samples 2 · node ids (length 1, octets)
    44 octets a sample: flags 1 · node of the source 1 · node of the time 1 · 0 1 · encoding 4 · entity 4 · number 8
                        time 8 · octets of key 4 · payload 4 · schema 4 · attachment 4
    key, payload, schema and attachment of the first sample, of the second, …

All numbers are little-endian. Nodes are written once, and the fixed parts of all samples lie together, so that one call
reads them: 0.5 µs a sample, where a request of its own takes 180. What counts for a whole request (durability,
priority) is no part of it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from elea.model.errors import EncodeError, Malformed, Oversize, TrailingBytes, Truncated
from elea.model.limits import NODE_ID_BYTES, PUTS_SAMPLES

__all__ = ["Given", "read_puts", "write_puts"]

Given = tuple[bytes, bytes | None, int, bytes | None, bytes | None, int, bytes | None, bytes, int, int]
"""A sample: key, payload (None: a deletion), encoding, its schema, attachment, NTP64 time and the node that gave it
(None if it has no time), and source: node, entity, number."""

DIALECT: Final = "puts"
VERSION: Final = 1
DEL: Final = 1
TIMED: Final = 2
SCHEMA: Final = 4
ATTACHED: Final = 8
MAX_NODES: Final = 255

_HEAD: Final = struct.Struct("<BBH")
_SAMPLE: Final = struct.Struct("<BBBBIIQQIIII")


def write_puts(samples: Sequence[Given]) -> bytes:
    """The octets of 1 to `PUTS_SAMPLES` samples.

    Raises:
        EncodeError: there are more, or a value is too large for its field.
    """
    if not 1 <= len(samples) <= PUTS_SAMPLES:
        raise EncodeError("puts", f"{len(samples)} samples; a request has 1 to {PUTS_SAMPLES}")
    nodes: dict[bytes, int] = {}
    heads: list[bytes] = []
    parts: list[bytes] = []
    try:
        for key, payload, encoding, schema, attachment, ntp64, stamp_id, source_id, entity, number in samples:
            source = nodes.setdefault(source_id, len(nodes))
            flags, stamp, schema_size, attachment_size = 0, 0, 0, 0
            parts.append(key)
            if payload is None:
                flags, payload = DEL, b""
            parts.append(payload)
            if stamp_id is not None:
                flags |= TIMED
                stamp = nodes.setdefault(stamp_id, len(nodes))
            if schema is not None:
                flags |= SCHEMA
                schema_size = len(schema)
                parts.append(schema)
            if attachment is not None:
                flags |= ATTACHED
                attachment_size = len(attachment)
                parts.append(attachment)
            heads.append(
                _SAMPLE.pack(
                    flags, source, stamp, 0, encoding, entity, number, ntp64,
                    len(key), len(payload), schema_size, attachment_size,
                )
            )  # fmt: skip
        head = _HEAD.pack(VERSION, len(nodes), len(samples))
    except struct.error as error:
        raise EncodeError("puts", str(error)) from error
    ids = [bytes((len(id),)) + id for id in nodes]
    return b"".join([head, *ids, *heads, *parts])


def read_puts(data: bytes) -> list[Given]:
    """The samples of a request. What their keys and encodings mean is not looked at.

    Raises:
        Truncated, TrailingBytes, Oversize, Malformed: it has another form.
    """
    if len(data) < _HEAD.size:
        raise Truncated(DIALECT, 0, _HEAD.size, len(data))
    version, node_count, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise Malformed(DIALECT, 0, f"version {version}, this node knows {VERSION}")
    if count > PUTS_SAMPLES:
        raise Oversize(DIALECT, 2, "number of samples", count, PUTS_SAMPLES)
    if not count:
        raise Malformed(DIALECT, 2, "no samples")
    nodes, start = _read_nodes(data, node_count)
    at = start + count * _SAMPLE.size
    if at > len(data):
        raise Truncated(DIALECT, start, at - start, len(data) - start)
    found: list[Given] = []
    for (
        flags, source, stamp, zero, encoding, entity, number, ntp64,
        key_size, payload_size, schema_size, attachment_size,
    ) in _SAMPLE.iter_unpack(data[start:at]):  # fmt: skip
        if flags > 15 or zero or source >= node_count or stamp >= node_count:
            raise Malformed(DIALECT, start + len(found) * _SAMPLE.size, "flags or nodes that there are not")
        end = at + key_size
        key = data[at:end]
        at = end + payload_size
        payload = data[end:at]
        if flags == 0 and not schema_size and not attachment_size and not ntp64:  # nearly every sample
            found.append((key, payload, encoding, None, None, 0, None, nodes[source], entity, number))
            continue
        if (
            (payload_size and flags & DEL)
            or (schema_size and not flags & SCHEMA)
            or (attachment_size and not flags & ATTACHED)
            or ((ntp64 or stamp) and not flags & TIMED)
        ):
            raise Malformed(DIALECT, start + len(found) * _SAMPLE.size, "a part that its flags deny")
        end = at + schema_size
        schema = data[at:end] if flags & SCHEMA else None
        at = end + attachment_size
        attachment = data[end:at] if flags & ATTACHED else None
        found.append(
            (
                key, None if flags & DEL else payload, encoding, schema, attachment,
                ntp64, nodes[stamp] if flags & TIMED else None, nodes[source], entity, number,
            )
        )  # fmt: skip
    # A size beyond the end only made slices shorter, so one look is enough.
    if at > len(data):
        raise Truncated(DIALECT, len(data), at - len(data), 0)
    if at < len(data):
        raise TrailingBytes(DIALECT, at, f"{len(data) - at} octets behind the last sample")
    return found


def _read_nodes(data: bytes, count: int) -> tuple[list[bytes], int]:
    """The node ids, and where they end."""
    nodes: list[bytes] = []
    at = _HEAD.size
    for _ in range(count):
        if at >= len(data):
            raise Truncated(DIALECT, at)
        size = data[at]
        id = data[at + 1 : at + 1 + size]
        if not 1 <= size <= NODE_ID_BYTES:
            raise Malformed(DIALECT, at, f"a node id of {size} octets; it has 1 to {NODE_ID_BYTES}")
        if len(id) < size:
            raise Truncated(DIALECT, at + 1, size, len(id))
        if not id[-1]:
            raise Malformed(DIALECT, at, "a node id that ends in 0")
        nodes.append(id)
        at += 1 + size
    return nodes, at
