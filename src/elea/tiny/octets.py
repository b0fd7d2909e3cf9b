"""Bytes of the early dialects, written and read by hand: naturals, declarations; and what a client tells.

Spec: zenoh-2018 §2.3, §5.1, §5.7.
"""

__all__ = [
    "ACCEPT",
    "ACK_NACK",
    "BATCHED",
    "BINDING",
    "BIT5",
    "BIT6",
    "BIT7",
    "CLOSE",
    "COMMIT",
    "CONDUIT",
    "DECLARE",
    "FORGET",
    "FORGET_SUBSCRIBER",
    "FRAG",
    "HELLO",
    "KEEP_ALIVE",
    "OPEN_ID",
    "PING",
    "PONG",
    "PUBLISHER",
    "PULL",
    "RELIABLE",
    "RESOURCE",
    "RESULT",
    "RSPACE",
    "SELECTION",
    "STREAM",
    "SUBSCRIBER",
    "SYNC",
    "SYNCH",
    "WRITE",
    "Broken",
    "Event",
    "forget",
    "publisher",
    "read_sized",
    "read_vle",
    "resource",
    "selection",
    "sized",
    "subscriber",
    "vle",
]

# Messages, declarations and flags (§2.3).
HELLO, OPEN_ID, ACCEPT, CLOSE, DECLARE, STREAM, BATCHED, WRITE, PULL = 2, 3, 4, 5, 6, 7, 8, 9, 11
PING, PONG, SYNCH, ACK_NACK, KEEP_ALIVE, FRAG, CONDUIT, RSPACE = 12, 13, 14, 15, 16, 18, 19, 24
RESOURCE, PUBLISHER, SUBSCRIBER, SELECTION, BINDING, COMMIT, RESULT, FORGET = 1, 2, 3, 4, 5, 6, 7, 8
FORGET_SUBSCRIBER = 10
BIT5, BIT6, BIT7 = 0x20, 0x40, 0x80
SYNC, RELIABLE = BIT5, BIT6


class Broken(Exception):
    """What came cannot be: the session ends with this reason."""

    def __init__(self, reason: int = 255) -> None:
        Exception.__init__(self, reason)
        self.reason = reason


class Event:
    """Something that happened, by `kind`:

    `opened`; `closed` (status: the reason); `declared` (status, id: the first that failed); `sample` (id, prid, name,
    payload: an id of 0 means that it came by name); `end` of a pull (id); `resource` (id, name: what the other node
    calls `prid` in samples that are pulled by wildcards).
    """

    __slots__ = ("id", "kind", "name", "payload", "prid", "status")

    def __init__(
        self, kind: str, id: int = 0, prid: int = 0, name: bytes = b"", payload: bytes = b"", status: int = 0
    ) -> None:
        self.kind = kind
        self.id = id
        self.prid = prid
        self.name = name
        self.payload = payload
        self.status = status

    def __repr__(self) -> str:
        told = f"id={self.id}, prid={self.prid}, name={self.name!r}, payload={self.payload!r}, status={self.status}"
        return f"Event({self.kind!r}, {told})"


# -- bytes -----------------------------------------------------------------------------------------------------------


def vle(value: int) -> bytes:
    """A natural (Z18-VLE-01)."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(data: bytes) -> bytes:
    return vle(len(data)) + data


def read_vle(buf: bytes, at: int) -> "tuple[int, int]":
    """A natural and where it ends; too long, padded or cut off is `Broken` or an IndexError."""
    value = shift = 0
    while True:
        byte = buf[at]
        at += 1
        if shift == 63 and byte > 1:
            raise Broken
        value |= (byte & 127) << shift
        if byte < 128:
            if not byte and shift:
                raise Broken
            return value, at
        shift += 7


def read_sized(buf: bytes, at: int) -> "tuple[bytes, int]":
    size, at = read_vle(buf, at)
    if size > len(buf) - at:
        raise Broken
    return bytes(buf[at : at + size]), at + size


def resource(rid: int, name: bytes) -> bytes:
    """A declaration for `Client.declare`: an even id stands for a name."""
    return bytes([RESOURCE]) + vle(rid) + sized(name)


def selection(sid: int, query: bytes) -> bytes:
    """An odd id stands for a selection."""
    return bytes([SELECTION]) + vle(sid) + sized(query)


def publisher(id: int, durability: int = 0) -> bytes:
    """Durability: 0 volatile, or what the name says; 1 transient, 2 persistent: acknowledged when it is on disk."""
    if durability:
        return bytes([PUBLISHER | BIT5]) + vle(id) + bytes([1, 8, 1, durability])
    return bytes([PUBLISHER]) + vle(id)


def subscriber(id: int, mode: int = 1, window: "tuple[int, int, int] | None" = None) -> bytes:
    """Modes: 1 push, 2 pull, 3 periodic push, 4 periodic pull, which need (origin, period, duration) in ms."""
    if (window is None) != (mode < 3):
        raise ValueError("a periodic subscriber needs a window, another has none")
    out = bytes([SUBSCRIBER]) + vle(id) + vle(mode)
    for value in window or ():
        out += vle(value)
    return out


def forget(declaration: bytes) -> bytes:
    """What takes back a declaration made by one of the functions above."""
    kinds = {RESOURCE: 8, PUBLISHER: 9, SUBSCRIBER: 10, SELECTION: 11}
    return bytes([kinds[declaration[0] & 0x1F]]) + vle(read_vle(declaration, 1)[0])
