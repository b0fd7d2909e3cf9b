"""Whole sessions of the early dialects against a real broker, in virtual time: packets after a proper Open.

Byte 0 chooses dialect and kind of link, then each packet has its length before it. Whatever comes, the broker ends the
session by the rules or goes on with it, holds nothing when the link is gone, and serves the next node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any, Final

from elea.protocol.early.generation import XRCE2017, ZENOH2018, Generation
from elea.protocol.early.numbered import vle
from elea.testing import Network
from elea.testing.linkend import End
from elea.testing.simnode import Node
from tests.fuzz import corpus
from tests.fuzz.laws import require
from tests.fuzz.target import Target

__all__ = ["broker_target"]

GENERATIONS: Final = (ZENOH2018, XRCE2017)
MOST: Final = 32
"""Packets of one input."""


class _Far:
    """The other end of a link: nobody reads it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def send(self, side: int, data: bytes, form: Any) -> None:
        """Nobody is there."""

    def closed(self, side: int) -> None:
        """Nobody cares."""


@cache
def _broker() -> tuple[Network, Node]:
    net = Network(seed=1, trace_limit=1)
    broker = net.router("broker")
    broker.declare_subscriber("**", lambda sample: None)
    broker.declare_queryable("a/**", lambda query: query.reply("a/b", b"stored"))
    return net, broker


_numbers = count(1)


def packets_of(data: bytes) -> tuple[Generation, bool, list[bytes]]:
    """Dialect, whether the link is a stream, and the packets."""
    first = data[0] if data else 0
    found: list[bytes] = []
    at = 1
    while at < len(data) and len(found) < MOST:
        size = data[at]
        found.append(data[at + 1 : at + 1 + size])
        at += 1 + size
    return GENERATIONS[first & 1], bool(first & 2), found


def broker_target() -> Target:
    """Sessions of both dialects, over streams and datagrams."""

    def decode(data: bytes) -> list[Any]:
        net, broker = _broker()
        generation, streamed, packets = packets_of(data)
        links = broker._runtime.links
        end = End(_Far(next(_numbers)), 0, ("fuzz", "broker"), mtu=1472, streamed=streamed)
        links.accept(end, generation.name)
        connections = [one for one in links.all() if one.link is end]
        opening = generation.encode(generation.messages.Open(1, b"fuzz", 10, ()))
        for packet in (opening, *packets):
            if packet and not end.closed:
                end.arrive(vle(len(packet)) + packet if streamed else packet)
                net.run(0.001)
        net.run(0.5)
        end.close()
        for one in connections:
            one.close()
        net.run(0.01)
        return connections

    def law(data: bytes, connections: list[Any]) -> None:
        _, broker = _broker()
        for one in connections:
            require("internal error" not in str(one.error), "a broken rule has a name", one.error)
        require(not broker._runtime.links.connections, "no session is left", broker._runtime.links.connections)
        with broker._node.lock:
            left = [face for face in broker._node.space.faces() if face is not broker._node.local]
        require(not left, "nothing is left in the space", left)

    def seeds() -> list[bytes]:
        found = []
        for which, generation in enumerate(GENERATIONS):
            packets = [one for one in corpus.seeds(generation.name, "packet") if len(one) < 200]
            rows = [packets[at : at + 3] for at in range(0, len(packets), 3)] + [_talk(generation)]
            found += [_input(which | 2 * (at & 1), row) for at, row in enumerate(rows)]
        return found

    def tokens() -> list[bytes]:
        return [*corpus.tokens("zenoh2018"), b"zenoh://a/*#transient", b"zenoh://a$ls", b"xrce://**?{x>1}"]

    return Target("early-broker", decode, law, (), seeds, tokens, max_size=2_048, repeats=False, room=4 << 30)


def _input(first: int, packets: Sequence[bytes]) -> bytes:
    return bytes([first]) + b"".join(bytes([len(packet)]) + packet for packet in packets)


def _talk(generation: Generation) -> list[bytes]:
    """A session that uses most of what there is."""
    m, scheme = generation.messages, generation.scheme.encode()
    declared = (
        m.ResourceDecl(2, scheme + b"a/b#transient", (m.Property(6, b"\1"),)),
        m.ResourceDecl(4, scheme + b"a/*"),
        m.SelectionDecl(1, scheme + b"a/**?{x>1}"),
        m.PublisherDecl(2),
        m.SubscriberDecl(4, 1),
        m.SubscriberDecl(1, 2),
        m.CommitDecl(1),
    )
    batched = m.BatchedData(2, 2, (b"x", b"y"), True)
    return [
        generation.encode(message)
        for message in (
            m.Declare(0, declared, sync=True),
            m.StreamData(1, 2, b'{"x": 2}', True),
            batched,
            m.WriteData(0, scheme + b"a/c", b"z"),
            m.Synch(3, True, True),
            m.AckNack(1, 3),
            generation.pull(1, most=2)._replace(sn=3),
            generation.ping(7),
            m.KeepAlive(b"fuzz"),
            m.Declare(4, (m.ForgetSubscriberDecl(4), m.ForgetSelectionDecl(1), m.CommitDecl(2))),
            m.Close(b"fuzz", 0),
        )
    ]
