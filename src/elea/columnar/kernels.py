"""The loops over bytes, as Numba compiles them: reading runs of PUSH messages into rows, and gathering regions.

A kernel takes what is ordinary and stops before the first message that is not, without a verdict: the reader of
`elea.wire.zenoh1.samples` and the codec judge that one, so there is one judge of what is malformed. Both are also what
these loops are tested against. Reading takes 20 ns a message, where the reader in Python takes 360.

Imported by `elea.columnar.compiled` only. Compiling takes 2 s and is done once: what comes out is kept on disk, and a
process that finds it there needs 0.2 s besides the import of Numba, which takes 0.4 s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numba
import numpy as np
from numba import types

from elea.columnar import rows as k

__all__ = ["gather", "scan"]

F = TypeVar("F", bound=Callable[..., Any])

njit: Any = numba.njit

# Numba must see which number is signed: mixed ones become floats.
signed: Any = np.int64
unsigned: Any = np.uint64

OCTETS: Final = types.Array(types.uint8, 1, "C", readonly=True)
OWN: Final = types.uint8[::1]
TABLE: Final = types.int64[:, ::1]
NUMBERS: Final = types.int64[::1]
PLACES: Final = types.int32[::1]
HASHES: Final = types.uint64[::1]

_PRIME: Final = 0x100000001B3


def loop(*signature: Any) -> Callable[[F], F]:
    """Compile a function; it lets other threads run meanwhile."""

    def compiled(function: F) -> F:
        found: F = njit(*signature, cache=True, nogil=True)(function)
        return found

    return compiled


@loop()
def _natural(buf: Any, at: int, size: int, limit: int) -> tuple[Any, int]:
    """A natural of 1.x below 2^limit, and the offset behind it: 0 if it ends too late or is too large."""
    value = unsigned(0)
    shift = unsigned(0)
    while at < size:
        octet = unsigned(buf[at])
        at += 1
        if shift == unsigned(56):
            value |= octet << shift
        else:
            value |= (octet & unsigned(0x7F)) << shift
            if octet > unsigned(127):
                shift += unsigned(7)
                continue
        if limit < 64 and value >> unsigned(limit):
            return unsigned(0), 0
        return value, at
    return unsigned(0), 0


@loop()
def _details(buf: Any, at: int, size: int, body: int, kind: int, row: Any) -> int:
    """Timestamp, encoding and extensions of a body; returns where they end, 0 if anything about them is unusual."""
    if body & 0x20:
        stamp, at = _natural(buf, at, size, 64)
        if at == 0:
            return 0
        long, at = _natural(buf, at, size, 8)
        length = signed(long)
        if at == 0 or length < 1 or length > 16 or at + length > size:
            return 0
        row[k.NTP64] = signed(stamp)
        row[k.STAMP] = at
        row[k.STAMP + 1] = length
        at += length
    if body & 0x40:
        stem, at = _natural(buf, at, size, 32)
        if at == 0:
            return 0
        row[k.ENCODING] = signed(stem >> unsigned(1))
        if stem & unsigned(1):
            long, at = _natural(buf, at, size, 8)
            length = signed(long)
            if at == 0 or at + length > size:
                return 0
            row[k.SCHEMA] = at
            row[k.SCHEMA + 1] = length
            at += length
    again = body > 127
    while again:
        if at >= size:
            return 0
        ext = signed(buf[at])
        again = ext > 127
        ext &= 0x7F
        if ext != 0x41 and ext != (0x43 if kind == 1 else 0x42):
            return 0
        long, at = _natural(buf, at + 1, size, 32)
        length = signed(long)
        if at == 0 or at + length > size:
            return 0
        end = at + length
        if ext == 0x41:
            if length == 0:
                return 0
            short = (signed(buf[at]) >> 4) + 1
            row[k.SOURCE] = at + 1
            row[k.SOURCE + 1] = short
            entity, at = _natural(buf, at + 1 + short, end, 32)
            if at == 0:
                return 0
            number, at = _natural(buf, at, end, 32)
            if at != end:
                return 0
            row[k.SOURCE_EID] = signed(entity)
            row[k.SOURCE_SN] = signed(number)
        else:
            row[k.ATTACHMENT] = at
            row[k.ATTACHMENT + 1] = length
        at = end
    return at


@loop(
    types.int64(
        OCTETS, types.int64, TABLE, NUMBERS, PLACES, NUMBERS, HASHES, TABLE, OWN, PLACES, types.int64, types.uint64,
        types.int64, types.int64, types.int64, types.int64,
    )
)  # fmt: skip
def scan(
    buf: Any,
    at: int,
    rows: Any,
    answer: Any,
    slots: Any,
    heads: Any,
    hashes: Any,
    regions: Any,
    arena: Any,
    groups: Any,
    longest: int,
    seed: Any,
    stop: int,
    frame: int,
    sn: int,
    mask: int,
) -> int:
    """Read messages from `at` into `rows`; returns where the first one starts that is not read.

    Names (header bits, scope, suffix) have codes, found in a table with open addressing (`seed` is a secret, so that
    nobody can choose names that share a place); `groups` says where samples of
    a name go, 0 for those that are not wanted as columns. A run is of one group. `answer[k.STOPPED]` is `NEW_NAME` if a
    name without a code stopped it, `OTHER_GROUP` if one of another group did, else 0.

    Messages end at `stop`. Unless `frame` is -1, batches with their lengths follow there: those of one FRAME with that
    header, whose number is the one after `sn`, are read too, and `answer` tells in which of them it stopped.
    """
    size = stop
    count = 0
    frames = 0
    places = len(slots) - 1
    group = -1
    last, last_head, last_at, last_length = -1, -1, 0, 0
    any_more, any_qos, stopped = False, 0, 0
    while count < len(rows):
        if at >= size:
            if frame < 0 or at + 4 > len(buf) or signed(buf[at + 2]) != frame:
                break
            end = at + 2 + (signed(buf[at]) | signed(buf[at + 1]) << 8)
            if end > len(buf):
                break
            number, first = _natural(buf, at + 3, end, 32)
            if first == 0 or signed(number) != (sn + 1) & mask:
                break
            at, size, sn = first, end, (sn + 1) & mask
            frames += 1
            continue
        start = at
        header = signed(buf[at])
        if header & 0x1F != 0x1D:
            break
        scope, at = _natural(buf, at + 1, size, 16)
        if at == 0:
            at = start
            break
        suffix_at = at
        length = 0
        if header & 0x20:
            long, at = _natural(buf, at, size, 16)
            length = signed(long)
            if at == 0 or length > longest or at + length > size:
                at = start
                break
            suffix_at = at
            at += length
        qos = 5
        if header & 0x80:
            if at + 2 > size or buf[at] != 0x21 or buf[at + 1] > 127:
                at = start
                break
            qos = signed(buf[at + 1])
            at += 2
        if at >= size:
            at = start
            break
        body = signed(buf[at])
        kind = body & 0x1F
        at += 1
        if (kind != 1 and kind != 2) or (kind == 2 and body & 0x40):
            at = start
            break
        row = rows[count]
        more = body != 1
        if more:
            for index in range(k.PLAIN_WIDTH, k.WIDTH):
                row[index] = -1
            row[k.ENCODING] = 0
            at = _details(buf, at, size, body, kind, row)
            if at == 0:
                at = start
                break
        paid = 0
        if kind == 1:
            long, at = _natural(buf, at, size, 32)
            if at == 0 or signed(long) > size - at:
                at = start
                break
            paid = signed(long)
        # The name, which is mostly that of the message before.
        head = signed(scope) << 8 | header & 0x60
        same = head == last_head and length == last_length
        if same:
            for index in range(length):
                if buf[suffix_at + index] != buf[last_at + index]:
                    same = False
                    break
        if not same:
            hashed = (seed ^ unsigned(head)) * unsigned(_PRIME)
            for index in range(length):
                hashed = (hashed ^ unsigned(buf[suffix_at + index])) * unsigned(_PRIME)
            hashed ^= hashed >> unsigned(29)
            slot = signed(hashed & unsigned(places))
            found = -1
            while slots[slot] >= 0:
                code = slots[slot]
                if hashes[code] == hashed and heads[code] == head and regions[code, 1] == length:
                    kept = regions[code, 0]
                    equal = True
                    for index in range(length):
                        if arena[kept + index] != buf[suffix_at + index]:
                            equal = False
                            break
                    if equal:
                        found = code
                        break
                slot = (slot + 1) & places
            if found < 0:
                # Where it is to be put, for `Scanner`.
                answer[k.SLOT], answer[k.HASH] = slot, signed(hashed)
                answer[k.HEADER], answer[k.SCOPE], answer[k.SUFFIX], answer[k.LENGTH] = (
                    header,
                    signed(scope),
                    suffix_at,
                    length,
                )
                stopped, at = k.NEW_NAME, start
                break
            if group < 0:
                group = groups[found]
            if groups[found] != group or group == 0:
                stopped, at = k.OTHER_GROUP, start
                break
            last, last_head, last_at, last_length = found, head, suffix_at, length
        row[k.CODE] = last
        row[k.FLAGS] = qos | (k.KIND if kind == 2 else 0) | (k.MORE if more else 0)
        row[k.PAYLOAD] = at
        row[k.PAYLOAD + 1] = paid
        any_more |= more
        any_qos |= qos
        at += paid
        count += 1
    answer[k.ROWS] = count
    answer[k.STOPPED] = stopped
    answer[k.AT] = at
    answer[k.ANY_MORE] = any_more
    answer[k.ANY_QOS] = any_qos
    answer[k.GROUP] = group
    answer[k.STOP], answer[k.FRAMES], answer[k.SN] = size, frames, sn
    return at


@loop(types.int64(OCTETS, TABLE, types.int64, OWN, types.int64, PLACES, types.int64))
def gather(buf: Any, rows: Any, column: int, out: Any, used: int, offsets: Any, first: int) -> int:
    """Copy the regions of a column behind each other into `out`, which has `used` bytes; returns how many it has then.

    `offsets[first]` is where the first one starts; a region that is none has no bytes.
    """
    for index in range(len(rows)):
        offsets[first + index] = used
        at = rows[index, column]
        if at >= 0:
            length = rows[index, column + 1]
            # Indices without a sign cannot count from the end, so the loop becomes a wide copy: 15 instead of 1.2 GB/s.
            source, target = unsigned(at), unsigned(used)
            for step in range(unsigned(length)):
                out[target + step] = buf[source + step]
            used += length
    offsets[first + len(rows)] = used
    return used
