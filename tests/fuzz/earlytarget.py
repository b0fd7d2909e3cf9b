"""Packets for open sessions of the early dialects: for the machines of a broker, and for a tiny client.

An input is a row of packets, each behind one byte of its size; between two of them a moment passes. Whatever they are,
a session takes them or ends; it raises nothing, says only what can be decoded, holds no more than its limits, and says
Close at most once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from elea.model.limits import EARLY_AHEAD, EARLY_DECLARED, EARLY_PENDING
from elea.protocol.early.generation import GENERATIONS
from elea.protocol.early.neighbour import Neighbour
from elea.protocol.early.session import Arrived, Ended, Session
from elea.protocol.early.terms import Offer
from elea.tiny import Client
from elea.tiny.client import CLOSED
from tests.fuzz import corpus
from tests.fuzz.laws import require
from tests.fuzz.target import Target

__all__ = ["session_target", "tiny_target"]

MTU = 200
STEP = 0.07
"""Seconds between two packets: some timers run in most inputs."""


class Talk(NamedTuple):
    """What came of an input."""

    said: list[bytes]
    held: int
    """Messages that wait for others, and declarations for their commit."""
    is_over: bool
    ends: int


def packets(data: bytes) -> Iterator[bytes]:
    """The packets of an input."""
    at = 0
    while at < len(data):
        size = data[at]
        yield data[at + 1 : at + 1 + size]
        at += 1 + size


def session_target(dialect: str) -> Target:
    """The machines of a broker, with a session open."""
    generation = GENERATIONS[dialect]
    opening = generation.encode(generation.messages.Open(1, b"fuzz", 10, ()))

    def decode(data: bytes) -> Talk:
        offer = Offer(b"broker", lease=1.0, conduits=4, commit_mode=2, is_broker=True, mtu=MTU, window=8)
        session = Session(generation, offer, initiates=False)
        neighbour = Neighbour(session, is_wanted=lambda space, subject: True)
        events: list[Any] = list(neighbour.receive(opening, 0.0))
        said: list[bytes] = session.to_send(0.0)
        now = 0.0
        for packet in packets(data):
            now += STEP
            if not session.is_open:
                break
            events += neighbour.receive(packet, now) if packet else ()
            events += session.on_deadline(now)
            said += session.to_send(now)
        for event in events:
            if isinstance(event, Arrived):
                neighbour.names.origin(event.space, event.message)
        ahead = [len(one.receiver) + len(one.reliable.held) for one in session.conduits.values()]
        declared = [sum(len(space.table(kind)) for space in neighbour.theirs.spaces.values()) for kind in KINDS]
        require(max(declared, default=0) <= EARLY_DECLARED, "declarations are bounded", declared)
        held = max([neighbour.theirs.pending, *ahead], default=0)
        return Talk(said, held, not session.is_open, sum(isinstance(one, Ended) for one in events))

    return Target(
        f"{dialect}-session", decode, _law(dialect), (), lambda: _seeds(dialect), lambda: corpus.tokens(dialect), 8_192
    )


KINDS = ("resource", "selection", "publisher", "subscriber")


def tiny_target(dialect: str) -> Target:
    """A device with a session open."""
    generation = GENERATIONS[dialect]
    accept = generation.encode(generation.messages.Accept(b"tiny", b"broker", 10))

    def decode(data: bytes) -> Talk:
        client = Client(b"tiny", dialect, mtu=MTU, lease=1.0)
        client.open(0.0)
        said = client.poll(0.0)
        events = client.receive(accept, 0.0)
        client.write(b"a", b"x", 0.0)
        now = 0.0
        for packet in packets(data):
            now += STEP
            if client.state == CLOSED:
                break
            events += client.receive(packet, now) if packet else []
            said += client.poll(now)
            events += client.taken()
        require(len(client.wanted) <= 256, "what a client remembers is bounded", len(client.wanted))
        held = max(len(client._ahead), len(client._held), len(client._results))
        require(held <= 8, "a client holds no more than its window", held)
        return Talk(said, held, client.state == CLOSED, sum(event.kind == "closed" for event in events))

    return Target(
        f"{dialect}-tiny", decode, _law(dialect), (), lambda: _seeds(dialect), lambda: corpus.tokens(dialect), 8_192
    )


def _law(dialect: str) -> Any:
    codec = GENERATIONS[dialect].codec

    def law(data: bytes, talk: Talk) -> None:
        closes = 0
        for packet in talk.said:
            require(0 < len(packet) <= MTU, "no packet is above the MTU", len(packet))
            found = codec.decode_packet(packet)
            require(codec.encode_packet(found) == packet, "what is said is canonical", packet.hex())
            closes += sum(type(one.message).__name__ == "Close" for one in found.messages)
        require(closes <= 1, "Close is said once", closes)
        require(talk.ends <= 1, "a session ends once", talk.ends)
        require(talk.held <= max(EARLY_AHEAD, EARLY_PENDING), "what waits is bounded", talk.held)

    return law


def _seeds(dialect: str) -> Sequence[bytes]:
    """Packets of the vectors alone and in rows, with numbers that follow each other where they have some."""
    found = [data for data in corpus.seeds(dialect, "packet") if 0 < len(data) < 256]
    alone = [bytes([len(data)]) + data for data in found]
    rows = [b"".join(alone[at : at + 6]) for at in range(0, len(alone), 5)]
    generation = GENERATIONS[dialect]
    m = generation.messages
    name = f"{generation.scheme}a/b".encode()
    talk = [
        m.Declare(0, (m.ResourceDecl(2, name), m.PublisherDecl(2), m.CommitDecl(1)), True),
        m.StreamData(1, 2, b"x", True, True),
        m.WriteData(2, name, b"y", True),
        m.WriteData(0, name, b"z"),
        m.BatchedData(3, 2, (b"1", b"2"), True),
        m.Synch(5, True, True, 1),
        m.AckNack(1, 3),
        m.Declare(4, (m.SubscriberDecl(2, m.SubscriptionModeId.PushModeId),), committed=True),
        generation.pull(2, most=3)._replace(sn=5, sync=True),
        generation.ping(7),
        m.KeepAlive(b"fuzz"),
        m.Close(b"fuzz", 0),
    ]
    octets = [generation.encode(one) for one in talk]
    whole = b"".join(bytes([len(one)]) + one for one in octets)
    pieces = b"".join(
        bytes([len(one)]) + one
        for one in (b"\x52\x00\x02" + generation.encode(m.StreamData(sn, 2, b"ab", True, sn == 1)) for sn in (0, 1))
    )
    return [*alone, *rows, whole, pieces]
