"""A session with a neighbour: in which order the messages of one batch take effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elea.io.dispatch import DispatchQueue, Mailbox
from elea.io.link import Octets
from elea.io.linkerrors import LinkClosed
from elea.io.loop import Loop
from elea.io.outbox import Batch, Outbox
from elea.model.qos import Role
from elea.node.node import Node
from elea.node.zenoh1.encoder import Zenoh1Encoder
from elea.node.zenoh1.face import Zenoh1Face
from elea.protocol.zenoh1.terms import Agreement
from elea.space.face import Subject
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import write_network_message
from elea.wire.zenoh1.samples import Pushed


class Aside(Loop):
    """A loop whose leader deals with every link aside: what it leaves for handlers is brought by others, at once."""

    def __init__(self) -> None:
        super().__init__("test")
        self.is_aside = False
        self.dispatch = DispatchQueue(lambda bring: bring())

    def share(self) -> None:
        self.is_aside = True

    def is_led_here(self) -> bool:
        return not self.is_aside


class Nowhere:
    """A link that takes nothing."""

    local = remote = "nowhere"
    mtu = 65_535
    streamed = reliable = True
    held = drains = closed = False
    on_arrival: Callable[[], None] | None = None

    def send(self, data: Octets | Sequence[Octets]) -> None:
        raise LinkClosed(self.remote)

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        return 0

    def receive_ready(self, view: memoryview) -> int:
        return -1

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        pass


class Store:
    """Keeps samples, and notes which it has when it is asked."""

    durability = "transient"

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.had: list[list[str]] = []

    def keep(self, pieces: Sequence[tuple[str, Sequence[Pushed]]], arrival_ns: int) -> None:
        self.kept += (key for key, _ in pieces)

    def asked(self, _: object) -> None:
        self.had.append(list(self.kept))


def frame(key: int, queue: list[bytes], queued: int, most: int) -> tuple[Sequence[Batch], int, int]:
    return [(b"".join(queue),)], len(queue), queued


def session_with(node: Node) -> Zenoh1Face:
    agreement = Agreement(b"\2", Role.CLIENT, 65_535, (1 << 28) - 1, True, False, False, 1, 0, 0, 10.0, 10.0)
    outbox = Outbox(Nowhere(), frame, node.loop, room=60_000, on_blocked=lambda _: None)
    face = Zenoh1Face(node, agreement, Subject(b"\2", Role.CLIENT), outbox, Zenoh1Encoder(node.loop, node.stamper))
    with node.lock:
        node.space.add_face(face)
    return face


def batch_of(*messages: m.NetworkMessage) -> bytes:
    out = bytearray()
    for message in messages:
        write_network_message(out, message)
    return bytes(out)


def test_a_get_sees_what_was_put_before_it_in_its_batch_though_another_thread_brings_it() -> None:
    loop, store = Aside(), Store()
    node = Node(b"\1", Role.ROUTER, loop, timestamping=True)
    node.local.keep("kept/**", store)
    node.local.answer("kept/**", Mailbox(store.asked), complete=True)
    face = session_with(node)
    put, delete = (m.Push(m.WireExpr(0, True, f"kept/{n}"), body) for n, body in ((1, m.Put(b"x")), (2, m.Del())))
    get, again = (m.Request(number, m.WireExpr(0, True, "kept/*"), m.Query()) for number in (1, 2))

    # Messages are read in runs, or one by one: a get is the end of a run of puts, but not of a deletion.
    face.network(batch_of(put, get, delete, again), 0, 5, True)

    assert store.had == [["kept/1"], ["kept/1", "kept/2"]]
    loop.close()
