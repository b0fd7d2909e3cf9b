"""The hot path of queries in Zenoh 1.x: REQUEST, RESPONSE and RESPONSE_FINAL to flat tuples, and from templates.

As in `samples`, the common shape of each message is read in one go, and anything out of the ordinary is left to the
generated codec, which is also the oracle these functions are tested against. Spec: zenoh-1 §8.4, §14.
"""

from __future__ import annotations

from typing import Final

from elea.model.errors import DecodeError
from elea.wire.primitives import long_z, write_z
from elea.wire.zenoh1.codec import DIALECT, write_entity_id, write_request_body
from elea.wire.zenoh1.messages import EntityId, Query
from elea.wire.zenoh1.samples import skip_details

__all__ = [
    "Requested",
    "Responded",
    "final_octets",
    "read_final",
    "read_request",
    "read_response",
    "reply_head",
    "request_octets",
    "request_tail",
    "response_head",
    "response_middle",
]

Requested = tuple[int, int, int, int, bytes, int, int, int, int, bytes]
"""Where it ends, header, id, scope, suffix, QoS, target, budget, timeout in ms (-1 for none), octets of the body."""

Responded = tuple[int, int, int, int, bytes, int, bytes, "bytes | None", bytes]
"""Where it ends, header, id, scope, suffix, QoS, octets of the responder (may be empty), and of the PUT as in `samples`
those before its payload (None if plain), payload."""

REQUEST: Final = 0x1C
RESPONSE: Final = 0x1B
RESPONSE_FINAL: Final = 0x1A
SUFFIX: Final = 0x20
SENDER: Final = 0x40
EXTENDED: Final = 0x80
QUERY: Final = 0x03
REPLY: Final = 0x04
PUT: Final = 0x01
EXT_QOS: Final = 0x21
EXT_TARGET: Final = 0x34
EXT_BUDGET: Final = 0x25
EXT_TIMEOUT: Final = 0x26
EXT_RESPONDER: Final = 0x43
DEFAULT_QOS: Final = 5
MAX_TARGET: Final = 2
MAX_CONSOLIDATION: Final = 3


def read_request(buf: bytes, at: int) -> Requested | None:
    """A query without payload, attachment and source; None if it is another message, which the codec reads."""
    try:
        header = buf[at]
        if header & 0x1F != REQUEST:
            return None
        number = buf[at + 1]
        at += 2
        if number > 127:
            number, at = long_z(buf, at, number, 32, DIALECT)
        scope = buf[at]
        at += 1
        if scope > 127:
            scope, at = long_z(buf, at, scope, 16, DIALECT)
        suffix = b""
        if header & SUFFIX:
            size = buf[at]
            at += 1
            if size > 127:
                size, at = long_z(buf, at, size, 16, DIALECT)
            suffix = buf[at : at + size]
            at += size
        qos, target, budget, timeout = DEFAULT_QOS, 0, -1, -1
        more = header >= EXTENDED
        while more:
            ext = buf[at]
            more = ext > 127
            ext &= 0x7F
            if ext == EXT_QOS and buf[at + 1] < 128:
                qos = buf[at + 1]
                at += 2
            elif ext == EXT_TIMEOUT:
                timeout, at = _number(buf, at + 1, 64)
            elif ext == EXT_TARGET and buf[at + 1] <= MAX_TARGET:
                target = buf[at + 1]
                at += 2
            elif ext == EXT_BUDGET:
                budget, at = _number(buf, at + 1, 32)
            else:
                return None
        start = at
        body = buf[at]
        at += 1
        if body & 0x9F != QUERY:
            return None
        if body & 0x20:
            if buf[at] > MAX_CONSOLIDATION:
                return None
            at += 1
        if body & 0x40:
            size, at = _number(buf, at, 16)
            # Not looked into: who wants the parameters decodes the body with the codec, which checks the text.
            at += size
        if at > len(buf):
            return None
        return at, header, number, scope, suffix, qos, target, budget, timeout, buf[start:at]
    except (IndexError, DecodeError):
        return None  # the codec finds the words for it


def read_response(buf: bytes, at: int) -> Responded | None:
    """A reply that is a PUT without extensions; None if it is another message, which the codec reads."""
    try:
        header = buf[at]
        if header & 0x1F != RESPONSE:
            return None
        number = buf[at + 1]
        at += 2
        if number > 127:
            number, at = long_z(buf, at, number, 32, DIALECT)
        scope = buf[at]
        at += 1
        if scope > 127:
            scope, at = long_z(buf, at, scope, 16, DIALECT)
        suffix = b""
        if header & SUFFIX:
            size = buf[at]
            at += 1
            if size > 127:
                size, at = long_z(buf, at, size, 16, DIALECT)
            suffix = buf[at : at + size]
            at += size
        qos, responder = DEFAULT_QOS, b""
        more = header >= EXTENDED
        while more:
            ext = buf[at]
            more = ext > 127
            ext &= 0x7F
            if ext == EXT_QOS and buf[at + 1] < 128:
                qos = buf[at + 1]
                at += 2
            elif ext == EXT_RESPONDER:
                size = buf[at + 1]
                at += 2
                if size > 127:
                    return None
                responder = buf[at : at + size]
                at += size
                if not responder:
                    return None
            else:
                return None
        if buf[at] != REPLY or buf[at + 1] & 0x9F != PUT:
            return None
        meta: bytes | None = None
        start = at + 1
        at += 2
        if buf[start] != PUT:
            at = skip_details(buf, at, buf[start])
            meta = buf[start:at]
        size = buf[at]
        at += 1
        if size > 127:
            size, at = long_z(buf, at, size, 32, DIALECT)
        end = at + size
        if end > len(buf):
            return None
        return end, header, number, scope, suffix, qos, responder, meta, buf[at:end]
    except (IndexError, DecodeError):
        return None  # the codec finds the words for it


def read_final(buf: bytes, at: int) -> tuple[int, int, int] | None:
    """The end of the answers: where it ends, id, QoS; None if it is another message."""
    try:
        header = buf[at]
        if header & 0x1F != RESPONSE_FINAL:
            return None
        number = buf[at + 1]
        at += 2
        if number > 127:
            number, at = long_z(buf, at, number, 32, DIALECT)
        if header < EXTENDED:
            return at, number, DEFAULT_QOS
        if buf[at] != EXT_QOS or buf[at + 1] > 127:
            return None
        return at + 2, number, buf[at + 1]
    except (IndexError, DecodeError):
        return None  # the codec finds the words for it


def _number(buf: bytes, at: int, limit: int) -> tuple[int, int]:
    first = buf[at]
    if first < 128:
        return first, at + 1
    return long_z(buf, at + 1, first, limit, DIALECT)


# -- out --------------------------------------------------------------------------------------------------------------


def request_tail(key: str, qos: int, target: int, budget: int | None, timeout: int | None, body: Query) -> bytes:
    """Everything of a REQUEST behind its id; what precedes it is `request_octets`' business."""
    out = bytearray()
    _write_key(out, key)
    extensions = [
        (EXT_QOS, None if qos == DEFAULT_QOS else qos),
        (EXT_TARGET, target or None),
        (EXT_BUDGET, budget),
        (EXT_TIMEOUT, timeout),
    ]
    last = -1
    for header, value in extensions:
        if value is not None:
            last = len(out)
            out.append(header | EXTENDED)
            write_z(out, value, 64, "extension")
    if last >= 0:
        out[last] &= 0x7F
    write_request_body(out, body)
    first = REQUEST | SENDER | (SUFFIX if key else 0) | (EXTENDED if last >= 0 else 0)
    return bytes([first]) + bytes(out)


def request_octets(tail: bytes, number: int) -> bytes:
    """A REQUEST from what `request_tail` gave and its id."""
    return tail[:1] + _octets(number) + tail[1:]


def response_middle(key: str, qos: int, responder: tuple[bytes, int] | None) -> bytes:
    """What stands between the id and the size of the payload in a RESPONSE with a plain PUT, header first."""
    out = bytearray()
    _write_key(out, key)
    extended = 0
    if qos != DEFAULT_QOS:
        extended = EXTENDED
        out.append(EXT_QOS | (EXTENDED if responder is not None else 0))
        write_z(out, qos, 8, "qos")
    if responder is not None:
        extended = EXTENDED
        who = bytearray()
        write_entity_id(who, EntityId(responder[0], responder[1]))
        out.append(EXT_RESPONDER)
        write_z(out, len(who), 32, "responder")
        out += who
    out.append(REPLY)
    out.append(PUT)
    return bytes([RESPONSE | SENDER | (SUFFIX if key else 0) | extended]) + bytes(out)


def response_head(middle: bytes, number: int, size: int) -> bytes:
    """Everything before the payload of a RESPONSE with a plain PUT."""
    return middle[:1] + _octets(number) + middle[1:] + _octets(size)


def reply_head(middle: bytes, number: int, meta: bytes, size: int) -> bytes:
    """The same for a body whose octets before the payload are `meta`; a DEL has no payload, nor a size of it."""
    return middle[:1] + _octets(number) + middle[1:-1] + meta + (_octets(size) if meta[0] & 0x1F == PUT else b"")


def final_octets(number: int, qos: int) -> bytes:
    """A RESPONSE_FINAL."""
    if qos == DEFAULT_QOS:
        return b"\x1a" + _octets(number)
    return b"\x9a" + _octets(number) + (EXT_QOS | qos << 8).to_bytes(2, "little")


def _write_key(out: bytearray, key: str) -> None:
    out.append(0)
    if key:
        text = key.encode()
        write_z(out, len(text), 16, "suffix")
        out += text


def _octets(value: int) -> bytes:
    """A natural in its shortest form."""
    if value < 0x80:
        return value.to_bytes(1, "little")
    if value < 0x4000:
        return (value & 0x7F | 0x80 | value >> 7 << 8).to_bytes(2, "little")
    if value < 0x20_0000:
        return (value & 0x7F | (value & 0x3F80) << 1 | 0x8080 | value >> 14 << 16).to_bytes(3, "little")
    out = bytearray()
    write_z(out, value, 32, "number")
    return bytes(out)
