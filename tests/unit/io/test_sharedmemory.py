"""Memory that two processes share: places, doors, and what a reader must not believe."""

from __future__ import annotations

import fcntl
import os
import random
import socket
from collections import deque
from collections.abc import Iterator

import pytest

from elea.io.sharedmemory import (
    PATIENCE_SECONDS,
    SMALLEST,
    MemoryHandover,
    Pool,
    SharedIn,
    SharedOut,
    has_memory,
    shares_machine,
)
from elea.model.errors import RuleBroken
from elea.model.limits import MEMORY_BYTES, MEMORY_PENDING
from elea.wire import compiled

pytestmark = pytest.mark.skipif(not has_memory(), reason="the system has no memory to hand over")

NODE = os.urandom(16)
POOL = 4 * SMALLEST


class Ends:
    """Both ends of one memory."""

    def __init__(self, node: bytes) -> None:
        self.door = MemoryHandover(node)
        self.tokens: list[bytes] = []
        self.pool = Pool(POOL)
        self.out = SharedOut(node, self.pool, self.tokens.append)
        assert self.out.room(1) == 0  # now it is offered, and nobody has it yet
        found = self.door.take(self.tokens[0])
        assert found is not None
        self.into = found

    def lay(self, payload: bytes) -> tuple[int, int]:
        size = self.out.room(len(payload))
        assert size > 0
        return self.out.lay(payload[:size]), size


@pytest.fixture
def ends() -> Iterator[Ends]:
    both = Ends(NODE)
    yield both
    both.out.close()
    both.door.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_what_is_laid_is_fetched(ends: Ends) -> None:
    payload = random.randbytes(70_000)

    place = ends.lay(payload)

    assert ends.into.fetch(*place) == payload
    assert (ends.out.payloads, ends.out.octets, ends.out.full) == (1, 70_000, 0)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_laid_over_what_is_not_fetched_yet(ends: Ends, seed: int) -> None:
    """Payloads of any size, fetched sooner or later: many laps, each payload as it was."""
    chance = random.Random(seed)
    waiting: deque[tuple[int, int, bytes]] = deque()
    laid = full = 0
    while laid < 40 * SMALLEST:
        payload = chance.randbytes(chance.choice((1, 5_000, 65_536, SMALLEST // 3, SMALLEST, 2 * SMALLEST)))
        size = ends.out.room(len(payload))
        if size > 0:
            waiting.append((ends.out.lay(payload[:size]), size, payload[:size]))
            laid += size
        else:
            full += 1
        while waiting and (size <= 0 or chance.random() < 0.6):
            position, size, payload = waiting.popleft()
            assert ends.into.fetch(position, size) == payload
    assert full
    assert ends.out.octets == laid


def test_an_empty_memory_is_used_from_its_beginning(ends: Ends) -> None:
    places = []
    for _ in range(3):
        places.append(ends.lay(bytes(100_000)))
        ends.into.fetch(*places[-1])

    assert [position % SMALLEST for position, _ in places] == [0, 0, 0]


def test_an_empty_memory_has_room_for_all_of_a_lap(ends: Ends) -> None:
    ends.into.fetch(*ends.lay(bytes(300_000)))

    for _ in range(3):
        ends.lay(bytes(SMALLEST // 3))


def test_a_payload_takes_no_more_than_half(ends: Ends) -> None:
    assert ends.out.room(10 * SMALLEST) == SMALLEST // 2


@pytest.mark.skipif(compiled(), reason="plain only: machine code takes no stand-in for the clock")
def test_a_full_memory_is_waited_for_while_its_reader_goes_on(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("elea.io.sharedmemory.monotonic", lambda: now)
    first = ends.lay(bytes(SMALLEST // 2))
    ends.lay(bytes(SMALLEST // 2))

    assert ends.out.room(30_000) == -1
    now += PATIENCE_SECONDS / 2
    assert ends.out.room(30_000) == -1
    now += PATIENCE_SECONDS
    assert ends.out.room(30_000) == 0
    assert ends.out.full == 1
    ends.into.fetch(*first)
    assert ends.out.room(30_000) == 30_000


def test_the_link_is_used_until_the_other_node_has_the_memory() -> None:
    door, tokens = MemoryHandover(NODE), list[bytes]()
    out = SharedOut(NODE, Pool(POOL), tokens.append)

    assert [out.room(20_000) for _ in range(3)] == [0, 0, 0]
    assert len(tokens) == 1
    into = door.take(tokens[0])
    assert into is not None
    assert out.room(20_000) == 20_000
    out.close()
    assert out.room(20_000) == 0
    door.close()


def test_memory_that_is_offered_while_the_link_ends_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    door, tokens, pool = MemoryHandover(NODE), list[bytes](), Pool(POOL)
    out = SharedOut(NODE, pool, tokens.append)
    send = socket.send_fds

    def late(*arguments: object) -> int:
        out.close()  # by another thread
        return send(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "send_fds", late)

    assert out.room(20_000) == 0
    assert not tokens
    assert pool.take() == SMALLEST
    door.close()


def test_nobody_is_offered_memory_whose_door_is_not_found() -> None:
    tokens: list[bytes] = []
    pool = Pool(POOL)
    out = SharedOut(os.urandom(16), pool, tokens.append)
    before = descriptors()

    assert out.room(20_000) == 0
    assert not tokens
    assert pool.take() == SMALLEST
    assert descriptors() == before


def test_a_pool_has_some_for_many_and_gets_it_back() -> None:
    pool = Pool(16 << 20)
    sizes = []
    while size := pool.take():
        sizes.append(size)

    assert sizes[0] == 4 << 20
    assert sum(sizes) <= 16 << 20
    assert len(sizes) >= 4
    assert min(sizes) >= SMALLEST
    for size in sizes:
        pool.give_back(size)
    assert pool.take() == 4 << 20


def test_memory_and_descriptors_are_given_back() -> None:
    before = descriptors()
    for _ in range(50):
        both = Ends(os.urandom(16))
        both.lay(bytes(20_000))
        both.out.close()
        both.door.close()
        assert both.pool.take() == SMALLEST
        del both

    assert descriptors() == before


def test_what_was_laid_can_be_fetched_when_the_writer_has_gone(ends: Ends) -> None:
    place = ends.lay(b"last words" * 2_000)

    ends.out.close()

    assert ends.into.fetch(*place) == b"last words" * 2_000


@pytest.mark.parametrize(
    ("position", "size"), [(0, SMALLEST + 1), (SMALLEST - 10, 11), (-1 & (1 << 64) - 1, 2), (5, 1 << 63), (99_999, 1)]
)
def test_places_that_are_none_break_the_link(ends: Ends, position: int, size: int) -> None:
    ends.into.fetch(*ends.lay(bytes(100_000)))

    with pytest.raises(RuleBroken, match="elea-memory"):
        ends.into.fetch(position, size)


def test_only_memory_that_cannot_shrink_is_taken() -> None:
    descriptor = os.memfd_create("loose", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, 4096 + SMALLEST)
    with pytest.raises(ValueError, match="sealed"):
        SharedIn(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize("size", [0, 4096, 4096 + MEMORY_BYTES + 1])
def test_memory_of_a_size_without_sense_is_not_taken(size: int) -> None:
    descriptor = os.memfd_create("odd", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    with pytest.raises(ValueError, match="bytes"):
        SharedIn(descriptor)
    os.close(descriptor)


def test_a_door_is_not_filled_by_those_who_bring_nothing(ends: Ends) -> None:
    before = descriptors()
    strangers = []
    for _ in range(5 * MEMORY_PENDING):
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            stranger.connect(f"\0elea/memory/{NODE.hex()}")
        except BlockingIOError:
            stranger.close()
        else:
            strangers.append(stranger)
        assert ends.door.take(bytes(16)) is None
    wrong = strangers.pop()
    wrong.send(b"x" * 7)
    assert ends.door.take(bytes(16)) is None

    assert descriptors() <= before + len(strangers) + 1 + MEMORY_PENDING
    other = SharedOut(NODE, Pool(POOL), ends.tokens.append)
    other.room(1)
    assert ends.door.take(ends.tokens[-1]) is not None
    for stranger in [*strangers, wrong]:
        stranger.close()
    other.close()


def test_memory_that_nobody_asks_for_gives_way(ends: Ends) -> None:
    before = descriptors()
    others = [SharedOut(NODE, Pool(POOL), ends.tokens.append) for _ in range(MEMORY_PENDING + 5)]
    for other in others:
        other.room(1)
        ends.door.take(bytes(16))
        other.close()

    assert descriptors() <= before + MEMORY_PENDING
    assert ends.door.take(ends.tokens[1]) is None
    assert ends.door.take(ends.tokens[-1]) is not None


def test_a_node_has_one_door() -> None:
    node = os.urandom(16)
    door = MemoryHandover(node)
    with pytest.raises(OSError, match="in use"):
        MemoryHandover(node)
    door.close()
    door.close()
    MemoryHandover(node).close()


def test_only_bare_streams_of_one_machine_share_memory() -> None:
    assert not shares_machine(object())


def test_memory_is_not_offered_to_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled():  # machine code does not look for what was put in its place
        return
    monkeypatch.setattr("elea.io.sharedmemory._same_user", lambda _: False)
    door, tokens, pool = MemoryHandover(NODE), list[bytes](), Pool(POOL)
    try:
        out = SharedOut(NODE, pool, tokens.append)
        assert out.room(1) == 0

        assert tokens == []
        assert pool.take() == Pool(POOL).take()  # it has its memory back
    finally:
        door.close()
