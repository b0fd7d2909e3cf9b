"""Batches cut off what was received, and kept while the buffer is not theirs; real links are in `test_link.py`."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

import pytest

from elea.io.batchreader import LARGE, BatchReader
from elea.io.linkerrors import BatchTooLarge, LinkClosed
from tests.unit.io.ends import prefixed


class Arriving:
    """A link that brings what it is given, one piece at a time."""

    local = remote = "arriving"
    mtu = 65_535
    reliable = True
    held = drains = closed = False
    on_arrival: Callable[[], None] | None = None

    def __init__(self, *pieces: bytes, streamed: bool = True) -> None:
        self.streamed = streamed
        self.on_arrival: Callable[[], None] | None = None
        self.pieces = deque(pieces)
        self.is_over = False

    def receive_ready(self, view: memoryview) -> int:
        if not self.pieces:
            return 0 if self.is_over or self.closed else -1
        piece = self.pieces.popleft()
        count = min(len(piece), len(view))
        view[:count] = piece[:count]
        if count < len(piece):
            self.pieces.appendleft(piece[count:])
        return count

    def fileno(self) -> int:
        return -1

    def send(self, data: object) -> None:
        raise AssertionError("nothing is sent")

    def try_send(self, data: object) -> int:
        raise AssertionError("nothing is sent")

    def close(self) -> None:
        self.closed = True


class Buffer:
    """What the leader lends to the link that it reads."""

    def __init__(self, size: int = 1 << 18) -> None:
        self.octets = bytearray(size)
        self.view = memoryview(self.octets)

    def spoil(self) -> None:
        """As another link does that is read next."""
        self.octets[:] = b"\xee" * len(self.octets)

    def receive(self, reader: BatchReader) -> int:
        return reader.receive(self.octets, self.view)


def taken(reader: BatchReader) -> list[bytes]:
    found = []
    while (batch := reader.cut()) is not None:
        found.append(bytes(batch))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_batches_come_whole_however_they_are_cut_and_whoever_uses_the_buffer_between(seed: int) -> None:
    rng = random.Random(seed)
    batches = [rng.randbytes(rng.choice((0, 1, 2, 300, LARGE - 1, LARGE, 65_535))) for _ in range(100)]
    stream = b"".join(map(prefixed, batches))
    cuts = sorted(rng.randrange(len(stream)) for _ in range(rng.choice((0, 3, 500))))
    link = Arriving(*(stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) if a < b))
    reader, buffer, got = BatchReader(link), Buffer(), list[bytes]()

    while link.pieces:
        assert buffer.receive(reader) == 1
        got += taken(reader)
        reader.keep()
        buffer.spoil()

    assert got == batches
    assert not reader.has_kept
    assert buffer.receive(reader) == -1


def test_nothing_and_the_end_are_told_apart() -> None:
    link = Arriving()
    reader, buffer = BatchReader(link), Buffer()

    assert buffer.receive(reader) == -1
    link.is_over = True
    assert buffer.receive(reader) == 0


def test_end_inside_a_batch_is_an_error_unless_the_link_was_closed_here() -> None:
    for closed in (False, True):
        link = Arriving(b"\x09\x00abc")
        reader, buffer = BatchReader(link), Buffer()
        assert buffer.receive(reader) == 1
        assert taken(reader) == []
        reader.keep()
        link.is_over = True

        if closed:
            link.close()
            assert buffer.receive(reader) == 0
        else:
            with pytest.raises(LinkClosed, match="inside a batch, 5 bytes"):
                buffer.receive(reader)


def test_what_was_not_taken_is_kept_and_comes_before_what_follows() -> None:
    link = Arriving(b"".join(map(prefixed, (b"one", b"two", b"three"))), prefixed(b"four"))
    reader, buffer = BatchReader(link), Buffer()
    assert buffer.receive(reader) == 1
    assert reader.cut() == b"one"
    assert reader.has_more

    reader.keep()
    assert reader.has_kept
    assert not reader.has_more
    buffer.spoil()
    reader.load(buffer.octets, buffer.view)
    assert reader.cut() == b"two"
    reader.keep()
    buffer.spoil()
    assert buffer.receive(reader) == 1

    assert taken(reader) == [b"three", b"four"]


def test_kept_octets_survive_a_look_that_finds_nothing() -> None:
    link = Arriving(prefixed(b"whole")[:4])
    reader, buffer = BatchReader(link), Buffer()
    assert buffer.receive(reader) == 1
    assert taken(reader) == []
    reader.keep()

    for _ in range(3):
        assert buffer.receive(reader) == -1
        buffer.spoil()
    link.pieces.append(prefixed(b"whole")[4:])
    assert buffer.receive(reader) == 1

    assert taken(reader) == [b"whole"]


def test_large_batches_are_views_and_their_users_are_told_before_the_buffer_changes() -> None:
    link = Arriving(prefixed(bytes(LARGE)) + prefixed(bytes(LARGE - 1)))
    reader, buffer = BatchReader(link), Buffer()
    seen: list[bytes] = []
    assert buffer.receive(reader) == 1
    large, small = reader.cut(), reader.cut()
    assert isinstance(large, memoryview)
    assert isinstance(small, bytes)
    reader.settle = lambda: seen.append(bytes(large[:1]))

    reader.keep()
    buffer.spoil()

    assert seen == [b"\0"]
    assert small == bytes(LARGE - 1)


def test_prefix_may_change_between_two_batches() -> None:
    link = Arriving(prefixed(b"first") + prefixed(b"second", 4))
    reader, buffer = BatchReader(link), Buffer()
    assert buffer.receive(reader) == 1

    assert reader.cut() == b"first"
    reader.prefix = 4
    assert reader.cut() == b"second"
    assert reader.cut() is None


def test_whole_batches_may_be_taken_as_they_are() -> None:
    link = Arriving(b"".join(map(prefixed, (b"one", b"two", b"three"))))
    reader, buffer = BatchReader(link), Buffer()
    assert buffer.receive(reader) == 1
    assert reader.cut() == b"one"

    assert bytes(reader.waiting) == prefixed(b"two") + prefixed(b"three")
    reader.pass_over(len(prefixed(b"two")))

    assert taken(reader) == [b"three"]


@pytest.mark.parametrize("width", [2, 4])
def test_announcement_above_the_limit_is_refused_before_it_arrives(width: int) -> None:
    reader, buffer = (
        BatchReader(Arriving(prefixed(bytes(10), width) + (11).to_bytes(width, "little")), limit=10),
        Buffer(),
    )
    reader.prefix = width
    assert buffer.receive(reader) == 1

    assert reader.cut() == bytes(10)
    with pytest.raises(BatchTooLarge) as caught:
        reader.cut()

    assert (caught.value.size, caught.value.limit) == (11, 10)


def test_each_datagram_is_one_batch() -> None:
    link = Arriving(b"one", b"two", bytes(11), streamed=False)
    reader, buffer = BatchReader(link, limit=10), Buffer()

    for expected in (b"one", b"two"):
        assert buffer.receive(reader) == 1
        assert taken(reader) == [expected]
        reader.keep()
    with pytest.raises(BatchTooLarge):
        buffer.receive(reader)


def test_datagram_that_was_not_taken_is_kept() -> None:
    reader, buffer = BatchReader(Arriving(b"one", streamed=False)), Buffer()
    assert buffer.receive(reader) == 1

    reader.keep()
    buffer.spoil()
    reader.load(buffer.octets, buffer.view)

    assert taken(reader) == [b"one"]
