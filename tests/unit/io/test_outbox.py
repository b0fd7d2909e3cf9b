"""The outbox: nothing lost, nothing out of order, urgent first, bounds kept, every drop counted."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import pytest

from elea.io.lane import Patience
from elea.io.link import Octets
from elea.io.linkerrors import REASON_UNRESPONSIVE, LinkClosed, LinkStalled
from elea.io.loop import Flushable, Loop
from elea.io.outbox import CONTROL_BATCHES, Frame, Outbox
from elea.testing.timeline import Timeline, VirtualLoop
from tests.unit.io.ends import (
    PATIENCE,
    bare,
    in_thread,
    outbox_for,
    own_threads,
    pair,
    prefixed,
    read_batches,
    repeat,
    until,
)

ROOM = 1_000


def framed(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[bytes]], int, int]:
    """Batches of at most ROOM octets, each beginning with its conduit."""
    count = size = 0
    while count < min(len(queue), most):
        more = len(queue[count]) + len(queue[count + 1])
        if count and size + more > ROOM:
            break
        size, count = size + more, count + 2
    data = b"".join(queue[:count])
    return [[prefixed(bytes([key]) + data[at : at + ROOM])] for at in range(0, size, ROOM)], count, size


class Valve:
    """A link to nowhere that takes octets only while it is open, and says when it does so again."""

    local = remote = "valve"
    mtu = 65_535
    reliable = True
    held = drains = False
    on_arrival: Callable[[], None] | None = None

    def __init__(self, loop: Loop, *, streamed: bool = True) -> None:
        self.loop = loop
        self.streamed = streamed
        self.on_arrival: Callable[[], None] | None = None
        self.closed = False
        self.took: list[bytes] = []
        self.portion = 1 << 30
        self.blocked = False
        self._open = threading.Event()
        self._outbox: Outbox | None = None

    def outbox(self, frame: Frame, **options: Any) -> Outbox:
        """The one whose octets it takes."""
        self._outbox = Outbox(self, frame, self.loop, room=ROOM, on_blocked=self.on_blocked, **options)
        return self._outbox

    def open(self) -> None:
        self._open.set()
        if self.blocked:
            self._is_writable()

    def on_blocked(self, blocked: bool) -> None:
        self.blocked = blocked
        if blocked and self._open.is_set():  # it took a portion
            self._is_writable()

    def _is_writable(self) -> None:
        assert self._outbox is not None
        self.loop.soon(self._outbox.on_writable)

    def shut(self) -> None:
        self._open.clear()

    def send(self, data: Octets | Sequence[Octets]) -> None:
        self._open.wait()
        if self.closed:
            raise LinkClosed(self.remote)
        self.took.append(_whole(data))

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        if self.closed:
            raise LinkClosed(self.remote)
        if not self._open.is_set():
            return 0
        whole = _whole(data)[: self.portion]
        self.took.append(whole)
        return len(whole)

    def receive_ready(self, view: memoryview) -> int:
        return 0 if self.closed else -1

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self.closed = True
        self._open.set()

    def batches(self) -> list[bytes]:
        """What was taken, cut by prefix."""
        data, found = b"".join(self.took), []
        while data:
            size = 2 + int.from_bytes(data[:2], "little")
            found.append(data[2:size])
            data = data[size:]
        return found


def _whole(data: Octets | Sequence[Octets]) -> bytes:
    return bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(data)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL, "elea.io")
    yield
    assert until(lambda: not own_threads(), 3)


@pytest.fixture
def valve(loop: Loop) -> Valve:
    return Valve(loop)


@pytest.fixture
def outbox(valve: Valve) -> Iterator[Outbox]:
    box = valve.outbox(framed, queue_bytes=5_000, wait_before_close=0.05)
    yield box
    box.close()


def put(outbox: Outbox, data: bytes, key: int = 5, droppable: bool = False) -> bool:
    return outbox.put(key, (data[:1], data[1:]), len(data), droppable)


# -- sending ------------------------------------------------------------------------------------------------------


def test_idle_link_sends_in_the_thread_of_the_caller(valve: Valve, outbox: Outbox) -> None:
    valve.open()
    time.sleep(0.001)

    put(outbox, b"hello")

    assert valve.batches() == [b"\x05hello"]
    assert not own_threads()


def test_busy_link_collects_messages_into_batches(valve: Valve, outbox: Outbox) -> None:
    for number in range(9):
        put(outbox, bytes([number]) * 300)
    valve.open()

    assert outbox.flush(PATIENCE)
    sizes = [len(batch) - 1 for batch in valve.batches()]
    assert sum(sizes) == 9 * 300
    assert max(sizes) == 900
    assert outbox.messages == 9
    assert outbox.octets == sum(map(len, valve.took))
    assert outbox.batches == len(valve.batches())


def test_full_batch_is_sent_by_the_caller(valve: Valve, outbox: Outbox) -> None:
    valve.open()
    outbox.last_sent = time.monotonic() + 60  # as if the link had just been used

    for _ in range(3):
        put(outbox, bytes(400))

    assert until(lambda: sum(map(len, valve.batches())) >= 1_200)


def test_messages_that_follow_at_once_are_left_to_the_leader_after_a_few(valve: Valve, outbox: Outbox) -> None:
    valve.open()
    outbox.last_sent = time.monotonic() + 60

    for _ in range(3):
        put(outbox, b"at once")
        outbox.last_sent = time.monotonic() + 60
    assert not own_threads()
    put(outbox, b"later")

    assert until(lambda: valve.batches() == [b"\x05at once"] * 3 + [b"\x05later"])
    assert own_threads()


def test_a_message_never_overtakes_a_more_urgent_one_that_was_put_before_it(valve: Valve) -> None:
    """A declaration and the sample that relies on it, put by another thread while this one makes batches."""
    later = [(1, b"declaration"), (5, b"sample")]

    def interrupted(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[bytes]], int, int]:
        while later:
            urgency, message = later.pop(0)
            box.push(urgency, (message[:1], message[1:]), len(message))
        return framed(key, queue, queued, most)

    box = valve.outbox(interrupted)
    valve.open()
    put(box, b"first")

    assert box.flush(PATIENCE)
    assert valve.batches() == [b"\x05first", b"\x01declaration", b"\x05sample"]
    box.close()


def test_messages_wait_for_another_end_that_is_behind(valve: Valve) -> None:
    behind = [3]

    def slow(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[bytes]], int, int]:
        if behind[0]:
            behind[0] -= 1
            return [], 0, 0
        return framed(key, queue, queued, most)

    outbox = valve.outbox(slow)
    valve.open()
    put(outbox, b"first")

    assert until(lambda: valve.batches() == [b"\x05first"])
    assert behind == [0]
    outbox.close()


def test_an_outbox_that_is_told_asks_no_more_until_then(valve: Valve) -> None:
    windows = {1: 1, 2: 10}
    asked: list[int] = []

    def windowed(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[bytes]], int, int]:
        asked.append(key)
        if not windows[key]:
            return [], 0, 0
        windows[key] -= 1
        return [[prefixed(bytes([key]) + queue[0])]], 2, len(queue[0]) + len(queue[1])

    outbox = valve.outbox(windowed, told=True)
    valve.open()
    for key, message in ((1, b"a"), (1, b"b"), (2, b"c"), (2, b"d")):
        outbox.put(key, (message, b""), 1, False)
    assert until(lambda: b"".join(valve.took) == b"".join(prefixed(one) for one in (b"\1a", b"\2c", b"\2d")))
    outbox.put(1, (b"e", b""), 1, False)
    count = len(asked)
    time.sleep(0.05)
    assert len(asked) <= count + 1, "nobody polls"
    assert not outbox.flush(0.0), "something waits"

    windows[1] = 5
    outbox.reopen()
    assert until(lambda: b"".join(valve.took).endswith(prefixed(b"\1b") + prefixed(b"\1e")))
    assert outbox.flush(PATIENCE)


class CountingLoop(Loop):
    """Knows how often it was asked to flush something."""

    asked = 0

    def flush_soon(self, flushable: Flushable) -> None:
        self.asked += 1
        super().flush_soon(flushable)


def test_who_waits_for_a_window_looks_once() -> None:
    loop = CountingLoop("counting")
    valve = Valve(loop)
    is_open = threading.Event()

    def windowed(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[bytes]], int, int]:
        return framed(key, queue, queued, most) if is_open.is_set() else ([], 0, 0)

    outbox = valve.outbox(windowed, told=True, queue_bytes=100)
    valve.open()
    outbox.put(1, (bytes(100), b""), 100, False)
    waiting = in_thread(lambda: outbox.put(1, (b"last", b""), 4, False))
    waiting.join(0.3)
    assert waiting.is_alive()
    assert loop.asked <= 3, "neither it nor the leader looks again and again"

    is_open.set()
    outbox.reopen()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    assert outbox.flush(PATIENCE)
    outbox.close()
    loop.close()


def test_messages_larger_than_a_batch_are_written_together_on_a_busy_link() -> None:
    timeline = Timeline()
    valve = Valve(VirtualLoop(timeline, "test"))
    outbox = valve.outbox(framed, queue_bytes=20_000)
    valve.open()
    messages = [bytes([number]) * 2_500 for number in range(9)]

    writes = []
    for message in messages:
        assert put(outbox, message)
        writes.append(len(valve.took))

    assert writes == [1, 2, 3, 3, 3, 3, 4, 4, 4]  # a few at once, then as many as half the bound holds
    assert timeline.step(0.0)
    assert len(valve.took) == 5
    assert b"".join(batch[1:] for batch in valve.batches()) == b"".join(messages)
    outbox.close()


def test_messages_larger_than_a_batch_are_written_at_once_on_an_idle_link() -> None:
    timeline = Timeline()
    valve = Valve(VirtualLoop(timeline, "test"))
    outbox = valve.outbox(framed, queue_bytes=20_000)
    valve.open()

    for number in range(9):
        timeline.now += 1.0
        assert put(outbox, bytes([number]) * 2_500)
        assert len(valve.took) == number + 1
    outbox.close()


def test_leader_that_wrote_what_it_was_called_for_looks_no_further() -> None:
    """Else every message that follows would wait for its next look, and never be written by its own thread again."""
    timeline = Timeline()
    valve = Valve(VirtualLoop(timeline, "test"))
    outbox = valve.outbox(framed)
    valve.open()
    for _ in range(4):
        put(outbox, b"until there is no credit")
    while timeline.step(0.0):
        pass

    looks = []
    for _ in range(3):
        put(outbox, b"more")
        looks.append(0)
        while timeline.step(0.0):
            looks[-1] += 1

    assert looks == [1, 1, 1]
    assert len(valve.took) == 4 + 3
    outbox.close()


def test_express_message_does_not_wait_for_others(valve: Valve, outbox: Outbox) -> None:
    valve.open()
    outbox.last_sent = time.monotonic() + 60
    outbox._asleep = False  # the leader is thought to look after it, so that nothing but the caller can send

    put(outbox, b"waits")
    assert valve.batches() == []
    outbox.put_now(5, (b"express", b""), 7, False)

    assert valve.batches() == [b"\x05waitsexpress"]


def test_urgent_conduits_go_first(valve: Valve, outbox: Outbox) -> None:
    for key in (9, 3, 14, 3, 0):
        put(outbox, bytes([key]) * 10, key)
    valve.open()

    assert outbox.flush(PATIENCE)
    order = [batch[0] for batch in valve.batches()]
    rest = order[1:]  # the first was on its way before the others came
    assert rest == sorted(rest)


def test_urgent_message_overtakes_the_rest_of_a_large_one(valve: Valve, outbox: Outbox) -> None:
    held = outbox.hold()
    assert outbox.push(9, (bytes(ROOM), bytes(29 * ROOM)), 30 * ROOM)
    assert outbox.push(9, (b"another", b""), 7)
    outbox.let_go(held)
    put(outbox, b"urgent", key=1)
    valve.open()

    assert outbox.flush(PATIENCE)
    order = [batch[0] for batch in valve.batches()]
    assert order.index(1) < 10
    assert order.count(9) == 31


def test_control_batches_go_before_everything(valve: Valve, outbox: Outbox) -> None:
    put(outbox, b"first", key=1)
    put(outbox, b"second", key=1)
    assert outbox.control(prefixed(b"keep alive"))
    valve.open()

    assert outbox.flush(PATIENCE)
    assert valve.batches().index(b"keep alive") <= 1


def test_control_batches_are_bounded(outbox: Outbox) -> None:
    answers = [outbox.control(prefixed(b"x")) for _ in range(CONTROL_BATCHES * 2)]

    assert answers[0]
    assert not answers[-1]


@pytest.mark.parametrize("portion", [1, 7, 999])
def test_what_the_kernel_does_not_take_follows_later(valve: Valve, outbox: Outbox, portion: int) -> None:
    valve.portion = portion
    valve.open()

    for number in range(20):
        put(outbox, bytes([number]) * 250)

    assert outbox.flush(PATIENCE)
    assert b"".join(batch[1:] for batch in valve.batches()) == b"".join(bytes([number]) * 250 for number in range(20))


def test_link_that_was_blocked_forgets_nothing_afterwards(valve: Valve, outbox: Outbox) -> None:
    for _ in range(5):
        put(outbox, b"blocked")
    assert not outbox.flush(0.01)  # the leader has looked, and can do nothing
    valve.open()
    assert until(lambda: len(outbox._order) == 1 and not outbox.queued(5), 1)

    for number in range(20):
        outbox.last_sent = time.monotonic() + 60
        put(outbox, bytes([number]))
        assert until(lambda: not outbox.queued(5), 1)


def test_datagrams_stay_apart(loop: Loop) -> None:
    valve = Valve(loop, streamed=False)
    outbox = valve.outbox(framed)
    put(outbox, bytes(3 * ROOM))
    put(outbox, b"x")
    valve.open()

    assert outbox.flush(PATIENCE)
    assert [len(batch) for batch in valve.took] == [ROOM + 3] * 3 + [4]
    outbox.close()


# -- overflow -----------------------------------------------------------------------------------------------------


def test_droppable_message_waits_shortly_and_is_dropped_and_counted(valve: Valve, outbox: Outbox) -> None:
    accepted = 0
    while put(outbox, bytes(500), droppable=True):
        accepted += 1

    assert 10 <= accepted <= 10 + 2 * 4  # what waits, and what was framed before the link got stuck
    assert outbox.queued(5) <= 5_000
    assert outbox.losses.counts == {"full": 1, "closed": 0, "refused": 0, "oversized": 0}
    assert outbox.waited == 1
    valve.open()
    assert outbox.flush(PATIENCE)
    assert outbox.messages == accepted


def test_other_conduits_have_their_own_bound(valve: Valve, outbox: Outbox) -> None:
    while put(outbox, bytes(500), droppable=True):
        pass

    assert put(outbox, bytes(500), key=0, droppable=True)
    assert outbox.queued(0) == 500
    assert outbox.queued(15) == 0


def test_message_that_must_not_be_dropped_ends_a_stalled_link(valve: Valve) -> None:
    broken: list[LinkClosed] = []
    outbox = valve.outbox(framed, queue_bytes=5_000, wait_before_close=0.05, on_broken=broken.append)
    start = time.monotonic()
    with pytest.raises(LinkStalled) as caught:
        repeat(lambda: put(outbox, bytes(500)))

    assert 0.05 <= time.monotonic() - start < PATIENCE
    assert caught.value.reason == REASON_UNRESPONSIVE
    assert valve.closed
    assert until(lambda: broken)
    assert until(lambda: outbox.losses.counts["closed"] == 10)
    with pytest.raises(LinkClosed):
        put(outbox, b"more")
    outbox.close()
    assert len(broken) == 1


def test_message_that_must_not_be_dropped_waits_for_room(valve: Valve, outbox: Outbox) -> None:
    outbox._wait_before_close = PATIENCE

    def open_when_somebody_waits() -> None:
        until(lambda: outbox.waited)
        valve.open()

    opener = in_thread(open_when_somebody_waits)
    for _ in range(50):
        assert put(outbox, bytes(500))
    opener.join()

    assert outbox.flush(PATIENCE)
    assert outbox.waited >= 1
    assert outbox.messages == 50


def test_leader_that_passes_on_never_waits(valve: Valve, outbox: Outbox) -> None:
    while outbox.pass_on(5, (bytes(500), b""), 500, 1):
        pass

    start = time.monotonic()
    assert not outbox.pass_on(5, (b"x", b""), 1, 1)
    assert time.monotonic() - start < PATIENCE / 2  # waiting would take 5 s
    assert (outbox.losses.counts, outbox.waited) == ({"full": 2, "closed": 0, "refused": 0, "oversized": 0}, 0)
    assert outbox.pass_on(4, (b"other conduit", b""), 13, 1)

    outbox.close()
    assert not outbox.pass_on(5, (b"x", b""), 1, 1)
    assert not outbox.pass_on(6, (b"x", b""), 1, 1)


def test_what_can_neither_wait_nor_be_lost_is_taken_up_to_eight_times_the_bound(valve: Valve, outbox: Outbox) -> None:
    taken = 0
    while outbox.push(5, (bytes(500), b""), 500):
        taken += 1

    assert 8 * 5_000 <= outbox.queued(5) < 8 * 5_000 + 500
    assert taken * 500 >= 8 * 5_000
    assert outbox.losses.counts["refused"] == 1
    assert outbox.push(4, (b"another conduit", b""), 15)


def test_droppable_message_in_fragments_waits_longer(valve: Valve, outbox: Outbox) -> None:
    outbox.patience = Patience(0.001, PATIENCE)  # far above what a loaded machine needs
    while put(outbox, bytes(500), droppable=True):
        pass
    outbox.octets += 1  # something has left since: waiting has a sense

    def open_when_two_have_waited() -> None:
        until(lambda: outbox.waited >= 2)
        valve.open()

    opener = in_thread(open_when_two_have_waited)
    assert put(outbox, bytes(outbox.room * 20), droppable=True)
    opener.join()


def test_who_waited_in_vain_is_followed_by_drops_at_once(valve: Valve, outbox: Outbox) -> None:
    while put(outbox, bytes(500), droppable=True):
        pass
    waited = outbox.waited

    assert not put(outbox, bytes(500), droppable=True)
    assert outbox.waited == waited
    outbox.octets += 1
    assert not put(outbox, bytes(500), droppable=True)
    assert outbox.waited == waited + 1


def test_drops_are_said_the_first_time_and_by_doubling_counts(
    valve: Valve, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "elea.io")
    outbox._name = lambda parts: f"key of {len(parts)} parts"
    while put(outbox, bytes(500), droppable=True):
        pass
    for _ in range(8):
        put(outbox, bytes(500), droppable=True)

    told = [record.getMessage() for record in caplog.records if "messages dropped" in record.getMessage()]
    assert [line.rpartition("=")[2] for line in told] == ["1", "2", "4", "8"]
    assert told[0].startswith(f"messages dropped: neighbour={outbox.link.remote} key=key of 2 parts reason=full ")


def test_message_larger_than_the_bound_is_sent(valve: Valve, outbox: Outbox) -> None:
    put(outbox, bytes(100_000))
    valve.open()

    assert outbox.flush(PATIENCE)
    assert sum(len(batch) - 1 for batch in valve.batches()) == 100_000


# -- the end ------------------------------------------------------------------------------------------------------


def test_flush_gives_up_in_time(valve: Valve, outbox: Outbox) -> None:
    put(outbox, b"stuck")

    assert not outbox.flush(0.02)
    valve.open()
    assert outbox.flush(PATIENCE)
    outbox.close()
    assert not outbox.flush(1)


def test_close_wakes_callers_that_wait(valve: Valve, outbox: Outbox) -> None:
    outbox._wait_before_close = PATIENCE
    ended: list[LinkClosed] = []

    def fill() -> None:
        try:
            while True:
                put(outbox, bytes(500))
        except LinkClosed as error:
            ended.append(error)

    threads = [in_thread(fill) for _ in range(3)]
    assert until(lambda: len(outbox._waiters) == 3)

    start = time.monotonic()
    outbox.close(3)
    for thread in threads:
        thread.join(PATIENCE)

    assert time.monotonic() - start < PATIENCE / 2
    assert [error.reason for error in ended] == [3, 3, 3]
    assert outbox.losses.counts["closed"] >= 10


def test_broken_link_is_told_once_and_from_another_thread(valve: Valve) -> None:
    told: list[threading.Thread] = []
    outbox = valve.outbox(framed, on_broken=lambda _: told.append(threading.current_thread()))
    valve.open()
    time.sleep(0.001)
    valve.close()

    put(outbox, b"lost")

    assert until(lambda: told)
    assert told[0] is not threading.current_thread()
    with pytest.raises(LinkClosed):
        put(outbox, b"x")
    with pytest.raises(LinkClosed):
        outbox.control(b"x")


def test_fault_in_framing_ends_the_link(valve: Valve) -> None:
    def faulty(key: int, queue: list[bytes], queued: int, most: int) -> NoReturn:
        raise RuntimeError("bug")

    outbox = valve.outbox(faulty)
    valve.open()
    time.sleep(0.001)

    with pytest.raises(RuntimeError):
        put(outbox, b"x")

    assert valve.closed
    with pytest.raises(LinkClosed, match="RuntimeError: bug"):
        put(outbox, b"x")


def test_fault_in_framing_ends_the_link_from_the_leader_too(valve: Valve) -> None:
    told: list[LinkClosed] = []

    def faulty(key: int, queue: list[bytes], queued: int, most: int) -> NoReturn:
        raise RuntimeError("bug")

    def listen(error: LinkClosed) -> None:
        told.append(error)
        raise ValueError("the owner has a bug as well")

    outbox = valve.outbox(faulty, on_broken=listen)
    outbox.last_sent = time.monotonic() + 60
    outbox._credit = 0

    put(outbox, b"x")

    assert until(lambda: told)
    assert valve.closed
    assert "RuntimeError: bug" in str(told[0])


def test_interrupted_write_ends_the_link(valve: Valve) -> None:
    def interrupted(key: int, queue: list[bytes], queued: int, most: int) -> NoReturn:
        raise KeyboardInterrupt

    outbox = valve.outbox(interrupted)
    valve.open()
    time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        put(outbox, b"x")

    assert valve.closed
    assert not outbox._right.locked()


# -- over real links, many threads --------------------------------------------------------------------------------


@pytest.fixture
def hasty() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.usefixtures("hasty")
def test_many_threads_lose_nothing_and_keep_their_order(threads: int, loop: Loop) -> None:
    count = 5_000
    with pair("tcp/127.0.0.1:0") as (near, far):
        got: list[bytes] = []
        reader = in_thread(lambda: read_batches(far, got.append))
        outbox = outbox_for(near, bare, loop, room=ROOM, queue_bytes=20_000)

        def publish(who: int) -> None:
            for number in range(count):
                put(outbox, bytes([who]) + number.to_bytes(4, "big"), key=who % 2)

        workers = [in_thread(lambda who=who: publish(who)) for who in range(threads)]  # type: ignore[misc]
        for worker in workers:
            worker.join(60)
        assert outbox.flush(PATIENCE)
        assert [outbox.queued(key) for key in (0, 1)] == [0, 0]
        outbox.close()
        reader.join(PATIENCE)

    data = b"".join(got)
    seen: dict[int, list[int]] = {}
    for at in range(0, len(data), 5):
        seen.setdefault(data[at], []).append(int.from_bytes(data[at + 1 : at + 5], "big"))
    assert seen == {who: list(range(count)) for who in range(threads)}


@pytest.mark.parametrize("message", [b"12345678", bytes(3 * ROOM)], ids=["small", "larger than a batch"])
def test_last_messages_of_a_burst_are_not_forgotten(message: bytes, loop: Loop) -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        got: list[bytes] = []
        reader = in_thread(lambda: read_batches(far, lambda batch: got.append(batch[1:])))
        outbox = outbox_for(near, framed, loop, room=ROOM)

        for burst in range(200):
            for _ in range(burst % 40):
                put(outbox, message)
            total = sum(number % 40 for number in range(burst + 1)) * len(message)
            assert until(lambda total=total: sum(map(len, got)) == total, 2)  # type: ignore[misc]

        outbox.close()
        reader.join(PATIENCE)


@pytest.mark.parametrize("locator", ["tcp/127.0.0.1:0", "unix"])
def test_slow_reader_holds_back_or_drops_within_bounds(
    locator: str, tmp_path_factory: pytest.TempPathFactory, loop: Loop
) -> None:
    if locator == "unix":
        locator = f"unixsock-stream/{tmp_path_factory.mktemp('u')}/a.sock"
    with pair(locator) as (near, far):
        outbox = outbox_for(near, framed, loop, room=ROOM, queue_bytes=100_000)
        sent = dropped = highest = 0
        end = time.monotonic() + 0.3
        while time.monotonic() < end or not dropped:
            if put(outbox, bytes(900), droppable=True):
                sent += 1
            else:
                dropped += 1
            highest = max(highest, outbox.queued(5))

        assert outbox.losses.counts["full"] == dropped > 0
        assert highest <= 100_000 + 900
        got = [0]
        reader = in_thread(lambda: read_batches(far, lambda batch: _add(got, len(batch) - 1)))
        assert outbox.flush(PATIENCE)
        assert until(lambda: got[0] == sent * 900)
        outbox.close()
        reader.join(PATIENCE)


def test_reader_thread_may_put_from_its_callback(loop: Loop) -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        boxes = [outbox_for(link, bare, loop, room=0) for link in (near, far)]
        count = [0]
        done = threading.Event()

        def answer(outbox: Outbox) -> Callable[[bytes], None]:
            def on_batch(batch: bytes) -> None:
                count[0] += 1
                if count[0] >= 2_000:
                    done.set()
                elif not done.is_set():
                    outbox.put(0, (batch, b""), len(batch), False)

            return on_batch

        threads = [
            in_thread(lambda link=link, box=box: read_batches(link, answer(box)))  # type: ignore[misc]
            for link, box in zip((near, far), boxes, strict=True)
        ]
        boxes[0].put(0, (b"ball", b""), 4, False)

        assert done.wait(PATIENCE)
        for box in boxes:
            box.close()
        for thread in threads:
            thread.join(PATIENCE)


def _add(total: list[int], count: int) -> None:
    total[0] += count
