"""Frames: Arrow messages that carry their own checksum, and still are Arrow messages.

An encapsulated Arrow message is `FFFFFFFF`, the length of its metadata, the metadata, the body. Nothing forbids octets
behind the metadata's table, so the store puts its 80 octets there:

    magic 8 · CRC of the head 4 · length of the metadata 4 · length of the body 8 · CRC of the body 4 · rows 4
    first and last position 8+8 · least and greatest time 8+8 · least and greatest arrival 8+8

The head is everything before the body; its CRC counts itself as zero. A file of frames is therefore an Arrow IPC stream
that any Arrow tool opens, and a frame read from it can be sent on as it is. CRCs start from a secret number of the log:
a payload that looks like a frame is not taken for one when the reader looks for the end of a damaged stretch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from elea.model.limits import STORE_FRAME_HEAD_BYTES
from elea.store.checksum import crc32
from elea.store.columns import Facts

__all__ = ["BLOCK", "HEADER", "BadFrame", "Block", "bare", "check_body", "find_frames", "read_head", "seal"]

HEADER: Final = b"EleaSeg1"
"""The magic of the first frame of a file, the schema."""

BLOCK: Final = b"EleaBlk1"
"""The magic of a frame with samples."""

_PREFIX: Final = struct.Struct("<II")
_SEAL: Final = struct.Struct("<8sIIQIIqqQQqq")
_CRC_AT: Final = 8
_CONTINUATION: Final = 0xFFFFFFFF

Octets = bytes | memoryview


class BadFrame(Exception):
    """Octets that are no sound frame; never leaves the store."""


class Block(NamedTuple):
    """A frame in a file: where it is and what it holds."""

    offset: int
    head: int
    """Octets before the body."""

    body: int
    body_crc: int
    facts: Facts

    @property
    def size(self) -> int:
        """Octets in all."""
        return self.head + self.body

    @property
    def end(self) -> int:
        """The offset behind the frame."""
        return self.offset + self.head + self.body


def seal(message: Octets, magic: bytes, facts: Facts, *, salt: int, offset: int) -> tuple[list[Octets], Block]:
    """The parts of a frame, to be written one after the other at `offset`, and the block it makes."""
    view = memoryview(message)
    _, metadata = _PREFIX.unpack_from(view)
    body = view[_PREFIX.size + metadata :]
    body_crc = crc32(body, salt)
    sealed = metadata + _SEAL.size
    prefix = _PREFIX.pack(_CONTINUATION, sealed)
    table = view[_PREFIX.size : _PREFIX.size + metadata]
    span = (facts.first, facts.last, facts.min_ntp, facts.max_ntp, facts.min_arrival, facts.max_arrival)
    end = bytearray(_SEAL.pack(magic, 0, sealed, len(body), body_crc, facts.rows, *span))
    head_crc = crc32(end, crc32(table, crc32(prefix, salt)))
    struct.pack_into("<I", end, _CRC_AT, head_crc)
    head = bytes(prefix) + bytes(table) + bytes(end)
    return [head, body], Block(offset, len(head), len(body), body_crc, facts)


def head_size(data: Octets, at: int = 0) -> int:
    """Octets of the head of the frame that starts at `at`, as its first eight octets tell.

    Raises:
        BadFrame: no frame starts like this.
    """
    if len(data) - at < _PREFIX.size:
        raise BadFrame("fewer than 8 octets")
    mark, metadata = _PREFIX.unpack_from(data, at)
    if mark != _CONTINUATION or not _SEAL.size <= metadata <= STORE_FRAME_HEAD_BYTES:
        raise BadFrame("no frame starts here")
    return _PREFIX.size + int(metadata)


def read_head(data: Octets, *, offset: int, magic: bytes, salt: int, at: int = 0) -> Block:
    """The block whose head is at `at` in `data`, which is at `offset` in the file.

    Raises:
        BadFrame: with what is wrong.
    """
    size = head_size(data, at)
    head = bytearray(data[at : at + size])
    if len(head) < size:
        raise BadFrame(f"{size - len(head)} octets of its head are missing")
    place = size - _SEAL.size
    found, head_crc, metadata, body, body_crc, rows, first, last, *times = _SEAL.unpack_from(head, place)
    struct.pack_into("<I", head, place + _CRC_AT, 0)
    if crc32(head, salt) != head_crc:
        raise BadFrame("the checksum of its head is wrong")
    if found != magic or metadata != size - _PREFIX.size:
        raise BadFrame(f"a frame of another kind, {bytes(found)!r}")
    return Block(offset, size, body, body_crc, Facts(first, last, rows, *times))


def check_body(body: Octets, block: Block, salt: int) -> None:
    """Raises BadFrame if the body is not the one that was written."""
    if len(body) != block.body:
        raise BadFrame(f"{block.body - len(body)} octets of its body are missing")
    if crc32(body, salt) != block.body_crc:
        raise BadFrame("the checksum of its body is wrong")


def find_frames(data: Octets, start: int, *, offset: int, salt: int) -> Iterator[Block]:
    """Sound blocks that begin at or behind `start` in `data`, by looking for their magic; for damaged files only."""
    octets = bytes(data)
    at = start
    while (mark := octets.find(BLOCK, at)) >= 0:
        at = mark + 1
        if mark + _SEAL.size > len(octets):
            return
        metadata = struct.unpack_from("<I", octets, mark + 12)[0]
        begin = mark + _SEAL.size - metadata - _PREFIX.size
        if begin < start:
            continue
        try:
            block = read_head(octets, offset=offset + begin, magic=BLOCK, salt=salt, at=begin)
            check_body(octets[begin + block.head : begin + block.size], block, salt)
        except BadFrame:
            continue
        yield block
        at = begin + block.size


def bare(message: Octets) -> bytes:
    """A frame as the plain Arrow message it was before it was sealed, for readers elsewhere."""
    view = memoryview(message)
    head = head_size(view)
    prefix = _PREFIX.pack(_CONTINUATION, head - _PREFIX.size - _SEAL.size)
    return b"".join((prefix, view[_PREFIX.size : head - _SEAL.size], view[head:]))
