"""Frames taken together are what they are one by one, whatever stands in them, and however many there are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from elea.model.errors import DecodeError, Truncated
from elea.model.qos import Role
from elea.model.values import replaced
from elea.protocol.zenoh1.terms import Agreement
from elea.protocol.zenoh1.transport import Receiver
from elea.wire.zenoh1.batch import FIRST_NETWORK_ID
from elea.wire.zenoh1.codec import read_network_message, write_network_message
from elea.wire.zenoh1.frames import Frames
from elea.wire.zenoh1.messages import Declare, DeclareFinal, NetworkMessage, Push, Put, WireExpr
from elea.wire.zenoh1.samples import Pushed
from tests.unit.columnar.reading import messages_of, scanner

AGREEMENT = Agreement(
    peer_id=b"\xa1", peer_role=Role.ROUTER, batch_size=65535, sn_mask=0x3FFF, qos=True, lowlatency=False,
    compression=False, patch=1, own_sn=0, peer_sn=120, own_lease=10.0, peer_lease=8.0,
)  # fmt: skip
SCANNER = scanner()
REFUSED = 7
"""The scope of a key whose samples somebody else is to get, so that they do not become columns."""


class Codec:
    """A sink that reads everything with the codec."""

    def __init__(self) -> None:
        self.taken: list[NetworkMessage] = []
        self.closes: list[int] = []

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        try:
            while at < len(buf) and buf[at] & 0x1F >= FIRST_NETWORK_ID:
                message, at = read_network_message(buf, at)
                self.taken.append(
                    Push(message.wire_expr, message.body, qos=5) if isinstance(message, Push) else message
                )
        except IndexError:
            raise Truncated("zenoh1", len(buf)) from None
        return at

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        raise AssertionError("no fragments here")

    def closed(self, reason: int, whole_session: bool) -> None:
        self.closes.append(reason)


class Columns(Codec):
    """One that reads frames together, as far as a scanner takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.by_scanner = 0
        self._names: dict[str, tuple[int, int, bytes]] = {}
        SCANNER.forget()

    def _find(self, header: int, scope: int, suffix: bytes) -> tuple[str, Any] | None:
        name = f"{header & 0x60} {scope} {suffix.hex()}"
        self._names[name] = header, scope, suffix
        return None if scope == REFUSED else (name, "taker")

    def frames(self, buf: bytes, at: int, frames: Frames) -> tuple[int, Frames]:
        more = 0
        while at < len(buf):
            at, block, _, _ = SCANNER.scan(buf, at, 1, self._find, frames)
            frames = SCANNER.stopped
            more += frames.more
            if block is None:
                break
            self.by_scanner += len(block)
            self.taken += messages_of(block, self._names)
        return at, frames._replace(more=more)


def messages(*numbers: int) -> bytes:
    """Samples of these scopes; 0 is a message that is none."""
    out = bytearray()
    for number in numbers:
        message = Push(WireExpr(number, True, None), Put(bytes(number))) if number else Declare(DeclareFinal())
        write_network_message(out, message)
    return bytes(out)


def batch(header: int, sn: int, body: bytes) -> bytes:
    number = bytes((sn,)) if sn < 128 else bytes((sn & 0x7F | 0x80, sn >> 7))
    octets = bytes((header,)) + number + body
    return len(octets).to_bytes(2, "little") + octets


def outcome(receiver: Receiver, sink: Codec, error: str) -> dict[str, Any]:
    counted = ("batches", "octets", "frames", "duplicates", "missing", "closed", "ignored")
    return {
        "taken": sink.taken,
        "closes": sink.closes,
        "error": error,
        "last": receiver._last if not error else None,
        **{name: getattr(receiver, name) for name in (() if error else counted)},
    }


def one_by_one(stream: bytes) -> dict[str, Any]:
    receiver, sink, error, at = Receiver(AGREEMENT, 0.0), Codec(), "", 0
    try:
        while at < len(stream):
            end = at + 2 + int.from_bytes(stream[at : at + 2], "little")
            receiver.receive(stream[at + 2 : end], 1.0, sink)
            at = end
    except DecodeError as problem:
        error = type(problem).__name__
    return outcome(receiver, sink, error)


def together(stream: bytes) -> tuple[dict[str, Any], int]:
    receiver, sink, error, at = Receiver(AGREEMENT, 0.0), Columns(), "", 0
    try:
        while at < len(stream):
            size = receiver.frames_in(memoryview(stream)[at:])
            if size:
                receiver.receive_frames(stream[at : at + size], 1.0, sink)
                at += size
            else:
                end = at + 2 + int.from_bytes(stream[at : at + 2], "little")
                receiver.receive(stream[at + 2 : end], 1.0, sink)
                at = end
    except DecodeError as problem:
        error = type(problem).__name__
    return outcome(receiver, sink, error), sink.by_scanner


BODIES = st.lists(st.integers(0, 9), max_size=6).map(lambda numbers: messages(*numbers))
ENDS = st.sampled_from(
    [b"", b"", b"", b"\x04", b"\x03\x05", b"\x9d", messages(9)[:-1], b"\x25\x01" + messages(3), b"\x00"]
)
STEPS = st.sampled_from([1, 1, 1, 1, 1, 1, 2, 0, -1])
HEADERS = st.sampled_from([0x25, 0x25, 0x25, 0x25, 0x05])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(HEADERS, STEPS, BODIES, ENDS), min_size=1, max_size=12))
@example([(0x25, 1, messages(1, 2), b"")] * 20)
@example([(0x25, 1, messages(1), b""), (0x25, 1, messages(1), messages(9)[:-1]), (0x25, 1, messages(2), b"")])
@example([(0x25, 1, messages(1), b""), (0x25, 1, messages(1), b"\x03\x05"), (0x25, 1, messages(2), b"")])
def test_frames_together_are_what_they_are_one_by_one(parts: list[tuple[int, int, bytes, bytes]]) -> None:
    sns, stream = {0x25: 119, 0x05: 119}, b""
    for header, step, body, end in parts:
        sns[header] = sns[header] + step & 0x3FFF
        stream += batch(header, sns[header], body + end)

    assert together(stream)[0] == one_by_one(stream)


def test_a_scanner_goes_from_frame_to_frame() -> None:
    stream = b"".join(batch(0x25, 120 + n, messages(1, 2, 3)) for n in range(100))

    found, by_scanner = together(stream)

    assert by_scanner == len(found["taken"]) == 300
    assert (found["frames"], found["batches"], found["octets"]) == (100, 100, len(stream) - 200)


def test_numbers_go_round() -> None:
    stream = b"".join(batch(0x25, 120 + n & 0x3FFF, messages(1)) for n in range(0x4100))

    found, by_scanner = together(stream)

    assert by_scanner == found["frames"] == 0x4100
    assert (found["missing"], found["duplicates"]) == (0, 0)


def test_what_is_not_whole_yet_is_left() -> None:
    whole = batch(0x25, 120, messages(1)) + batch(0x25, 121, messages(2))
    receiver = Receiver(AGREEMENT, 0.0)

    for cut in range(len(batch(0x25, 122, messages(3)))):
        assert receiver.frames_in(memoryview(whole + batch(0x25, 122, messages(3))[:cut])) == len(whole)
    assert receiver.frames_in(memoryview(whole + batch(0xA5, 122, messages(3)))) == len(whole)
    assert receiver.frames_in(memoryview(batch(0x26, 120, b"fragment") + whole)) == 0


@pytest.mark.parametrize("changed", [{"lowlatency": True}, {"compression": True}])
def test_sessions_without_plain_frames_take_none_together(changed: dict[str, bool]) -> None:
    receiver = Receiver(replaced(AGREEMENT, **changed), 0.0)

    assert receiver.frames_in(memoryview(batch(0x25, 120, messages(1)))) == 0
