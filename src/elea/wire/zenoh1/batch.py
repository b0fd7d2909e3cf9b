"""Batches of Zenoh 1.x: what a link carries at once, plain, compressed, or in low-latency form."""

from __future__ import annotations

from typing import Any, Final

from elea.model.errors import LocalProtocolError, Malformed, Oversize, Truncated
from elea.model.limits import MAX_BATCH
from elea.wire.zenoh1.codec import (
    DIALECT,
    read_network_message,
    read_transport_message,
    write_network_message,
    write_transport_message,
)
from elea.wire.zenoh1.messages import NetworkMessage, TransportMessage

__all__ = [
    "FIRST_NETWORK_ID",
    "BatchStream",
    "compress",
    "decode_batch",
    "decode_low_latency",
    "decompress",
    "encode_batch",
    "encode_low_latency",
]

COMPRESSED: Final = 0x01
FIRST_NETWORK_ID: Final = 0x19


def decode_batch(buf: bytes) -> tuple[TransportMessage, ...]:
    """Every transport message of a batch."""
    at = 0
    found: list[TransportMessage] = []
    while at < len(buf):
        try:
            item, at = read_transport_message(buf, at)
        except IndexError:
            raise Truncated(DIALECT, len(buf)) from None
        found.append(item)
    return tuple(found)


def encode_batch(messages: tuple[TransportMessage, ...]) -> bytes:
    """Transport messages back to back."""
    out = bytearray()
    for item in messages:
        write_transport_message(out, item)
    return bytes(out)


def decode_low_latency(buf: bytes) -> tuple[NetworkMessage | TransportMessage, ...]:
    """A batch of a low-latency session: bare network messages, or a transport message (keep alive, close)."""
    at = 0
    found: list[NetworkMessage | TransportMessage] = []
    while at < len(buf):
        try:
            if buf[at] & 0x1F >= FIRST_NETWORK_ID:
                item, at = read_network_message(buf, at)
                found.append(item)
            else:
                other, at = read_transport_message(buf, at)
                found.append(other)
        except IndexError:
            raise Truncated(DIALECT, len(buf)) from None
    return tuple(found)


def encode_low_latency(messages: tuple[NetworkMessage | TransportMessage, ...]) -> bytes:
    """The inverse of `decode_low_latency`."""
    from elea.wire.zenoh1.codec import _WRITE_NETWORK_MESSAGE

    out = bytearray()
    for item in messages:
        if type(item) in _WRITE_NETWORK_MESSAGE:
            write_network_message(out, item)  # type: ignore[arg-type]
        else:
            write_transport_message(out, item)  # type: ignore[arg-type]
    return bytes(out)


def decompress(data: bytes, limit: int = MAX_BATCH) -> bytes:
    """The plain batch behind a compression header, at most `limit` octets."""
    if not data:
        raise Truncated(DIALECT, 0)
    if not data[0] & COMPRESSED:
        return data[1:]
    block = _lz4()
    try:
        plain: bytes = block.decompress(data[1:], uncompressed_size=limit)
    except block.LZ4BlockError as error:
        if len(data) > limit:
            raise Oversize(DIALECT, 1, "compressed batch", len(data), limit) from error
        raise Malformed(DIALECT, 1, f"not an LZ4 block of at most {limit} octets") from error
    return plain


def compress(batch: bytes) -> bytes:
    """A batch with its compression header, compressed when that makes it smaller."""
    block = _lz4()
    squeezed: bytes = block.compress(batch, store_size=False)
    return b"\x01" + squeezed if len(squeezed) < len(batch) else b"\x00" + batch


def _lz4() -> Any:
    try:
        from lz4 import block
    except ImportError as error:
        raise LocalProtocolError(
            "batch compression needs LZ4: in a clone of Elea: pip install '.[compression]'"
        ) from error
    return block


class BatchStream:
    """Cuts a stream into batches by their length prefix, however it is split on the way."""

    def __init__(self, prefix: int = 2, limit: int = MAX_BATCH) -> None:
        self.prefix = prefix
        self.limit = limit
        self.consumed = 0
        self._pending = bytearray()
        self._held: Oversize | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Take more octets; returns the batches that became complete.

        Raises:
            Oversize: a batch above the limit. Batches before it in the same call are returned first: then the next
                call raises, whatever the split.
        """
        self._raise_held()
        pending = self._pending
        pending += data
        batches: list[bytes] = []
        at = 0
        while len(pending) - at >= self.prefix:
            size = int.from_bytes(pending[at : at + self.prefix], "little")
            if size > self.limit:
                self._held = Oversize(DIALECT, self.consumed + at, "batch", size, self.limit)
                if not batches:
                    self._raise_held()
                break
            end = at + self.prefix + size
            if end > len(pending):
                break
            batches.append(bytes(pending[at + self.prefix : end]))
            at = end
        del pending[:at]
        self.consumed += at
        return batches

    def close(self) -> None:
        """The stream has ended: raises Truncated if it did so inside a batch."""
        self._raise_held()
        if self._pending:
            raise Truncated(DIALECT, self.consumed + len(self._pending))

    def _raise_held(self) -> None:
        if self._held is not None:
            raise self._held
