"""Messages whose payload lies in shared memory, between a sender and a receiver that share nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pushes import push_of

from elea.model.errors import RuleBroken
from elea.model.qos import Role
from elea.protocol.zenoh1 import Agreement, Receiver
from elea.protocol.zenoh1.memoryref import OAM_MEMORY, OutMemory
from elea.protocol.zenoh1.sender import Sender
from elea.wire.primitives import Unknown
from elea.wire.zenoh1.batch import encode_batch
from elea.wire.zenoh1.codec import read_network_message, write_network_message
from elea.wire.zenoh1.messages import BodyForm, Fragment, NetworkMessage, Push, Put, TransportOam, WireExpr
from elea.wire.zenoh1.samples import Pushed

AGREEMENT = Agreement(
    peer_id=b"\xa1",
    peer_role=Role.ROUTER,
    batch_size=4096,
    sn_mask=0x3FFF,
    qos=True,
    lowlatency=False,
    compression=False,
    patch=1,
    own_sn=9,
    peer_sn=9,
    own_lease=10.0,
    peer_lease=10.0,
)
WORTH = 1_000
TOKEN = bytes(range(16))


class Heap:
    """Both ends of a memory that has the rooms it is told, and else as much as is asked for."""

    def __init__(self, rooms: list[int]) -> None:
        self.rooms = rooms
        self.laid: dict[int, bytes] = {}

    def room(self, size: int) -> int:
        return min(size, self.rooms.pop(0)) if self.rooms else size

    def lay(self, payload: bytes | memoryview) -> int:
        position = 1 << 60 | len(self.laid)
        self.laid[position] = bytes(payload)
        return position

    def fetch(self, position: int, size: int) -> bytes:
        if len(self.laid.get(position, b"")) != size:
            raise RuleBroken("elea-memory", "drop-link", "no such place")
        return self.laid.pop(position)


class Taken:
    """A sink that keeps samples as messages."""

    def __init__(self) -> None:
        self.messages: list[NetworkMessage] = []

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        while at < len(buf):
            message, at = read_network_message(buf, at)
            self.messages.append(message)
        return at

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        self.messages.append(push_of(sample))

    def closed(self, reason: int, whole_session: bool) -> None: ...


def message(number: int, size: int) -> Push:
    return Push(WireExpr(7, suffix=f"key/{number}"), Put(number.to_bytes(2, "little") * (size // 2)))


def parts(sent: Push) -> list[bytes]:
    out = bytearray()
    write_network_message(out, sent)
    assert isinstance(sent.body, Put)
    size = len(sent.body.payload)
    return [bytes(out[: len(out) - size]), bytes(out[len(out) - size :])]


def ends(heap: Heap) -> tuple[Sender, Receiver, Taken]:
    sender, receiver = Sender(AGREEMENT, prefix=False), Receiver(AGREEMENT, 0.0)
    sender.share(heap, WORTH)
    receiver.on_memory = lambda token: heap if token == TOKEN else None
    sink = Taken()
    receiver.receive(sender.announcement(TOKEN), 0.0, sink)
    assert receiver.ignored == 0
    return sender, receiver, sink


@given(
    st.lists(st.integers(0, 40_000).map(lambda size: size & ~1), max_size=12),
    st.lists(st.sampled_from((-1, 0, 2, 999, 5_000, 1 << 20)), max_size=20),
    st.integers(0, 15),
)
def test_messages_arrive_whatever_of_them_has_a_place(sizes: list[int], rooms: list[int], conduit: int) -> None:
    heap = Heap(rooms)
    sender, receiver, sink = ends(heap)
    sent = [message(number, size) for number, size in enumerate(sizes)]
    queue = [part for each in sent for part in parts(each)]

    while queue:
        batches, count, octets = sender.take(conduit, queue, 0)
        assert octets == sum(map(len, queue[:count]))
        assert bool(batches) == bool(count)
        del queue[:count]
        for batch in batches:
            receiver.receive(b"".join(batch), 0.0, sink)

    assert sink.messages == sent
    assert receiver.fragments_lost == receiver.missing == 0
    assert not heap.laid


def test_a_large_payload_is_not_in_the_batch_and_not_copied() -> None:
    sender, receiver, sink = ends(heap := Heap([]))
    before, payload = parts(message(1, 50_000))

    [batch], _, _ = sender.take(11, [before, payload], len(before) + len(payload))

    assert sum(map(len, batch)) < 100
    assert heap.laid == {1 << 60: payload}
    laid = next(iter(heap.laid.values()))
    received: list[Pushed] = []
    sink.sample = lambda sample, priority, reliable: received.append(sample)  # type: ignore[method-assign]
    receiver.receive(b"".join(batch), 0.0, sink)
    assert received[0][-1] is laid


def test_only_messages_with_a_payload_worth_it_are_laid() -> None:
    sender, _, _ = ends(heap := Heap([]))

    sender.take(11, [bytes(3_000), b""], 3_000)  # several samples joined have no payload of their own
    sender.take(11, [b"", bytes(WORTH - 1)], WORTH - 1)

    assert not heap.laid


@pytest.mark.parametrize("terms", [{"compression": True}, {"lowlatency": True}, {"patch": 0}])
def test_sessions_of_another_kind_lay_nothing(terms: dict[str, int]) -> None:
    sender = Sender(replace(AGREEMENT, batch_size=65_535, **terms))  # type: ignore[arg-type]
    heap: OutMemory = Heap([])
    sender.share(heap, WORTH)

    batches, _, _ = sender.take(11, parts(message(1, 50_000)), 0)

    assert sum(len(piece) for batch in batches for piece in batch) > 200
    assert not heap.laid  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", [b"\1", bytes(15), bytes(17), bytes(8) + b"\5" + bytes(7)])
def test_a_place_that_is_none_breaks_the_link(place: bytes) -> None:
    _, receiver, sink = ends(Heap([]))
    batch = encode_batch((Fragment(9, b"\x1d", reliable=True, first=True, unknown=(Unknown(0x4E, place),)),))

    with pytest.raises(RuleBroken, match="elea-memory"):
        receiver.receive(batch, 0.0, sink)


def test_nodes_that_share_no_memory_pass_over_what_is_said_of_it() -> None:
    receiver, sink = Receiver(AGREEMENT, 0.0), Taken()
    whole = b"".join(parts(message(3, 10)))

    receiver.receive(encode_batch((TransportOam(BodyForm.ZBufForm, OAM_MEMORY, body=TOKEN),)), 0.0, sink)
    fragment = Fragment(9, whole, reliable=True, first=True, unknown=(Unknown(0x4E, bytes(16)),))
    receiver.receive(encode_batch((fragment,)), 0.0, sink)

    assert receiver.ignored == 1
    assert sink.messages == [message(3, 10)]


def test_an_unknown_token_shares_nothing() -> None:
    receiver, sink = Receiver(AGREEMENT, 0.0), Taken()
    receiver.on_memory = lambda token: None
    for body in (TOKEN, b"", 5, None):
        form = BodyForm.ZBufForm if isinstance(body, bytes) else BodyForm.Z64Form if body else BodyForm.UnitForm
        receiver.receive(encode_batch((TransportOam(form, OAM_MEMORY, body=body),)), 0.0, sink)

    receiver.receive(
        encode_batch((Fragment(9, b"".join(parts(message(3, 10))), reliable=True, first=True),)), 0.0, sink
    )
    assert sink.messages == [message(3, 10)]
