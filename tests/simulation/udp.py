"""Samples over UDP and a relay that loses 30 % each way, repeats 5 % and reorders 25 %: what arrives, at what cost?

    python -m tests.simulation.udp --samples 100000
    python -m tests.simulation.udp --samples 100000 --broker

Without `--broker` two machines of `elea.protocol.early` talk to each other. With it a device (the machine again)
publishes to a broker, a real node, of which a subscriber gets the samples. All of them must arrive once and in order;
what both have written, acknowledgements and repetitions included, is compared with the samples and the headers of
their messages.
"""

from __future__ import annotations

import argparse
import select
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import elea
from elea.protocol.early.generation import GENERATIONS
from elea.protocol.early.neighbour import Neighbour
from elea.protocol.early.numbered import stream_entry, vle
from elea.protocol.early.session import Arrived, Ended, Session
from elea.protocol.early.terms import Offer
from tests.simulation.relay import LossyRelay

__all__ = ["Account", "Node", "main", "numbered", "through_a_broker", "through_a_relay"]

SN_BITS: Final = 21
LIFETIME: Final = 2.0
ID: Final = 2
QUEUED: Final = 2_000
"""Samples that wait for the window: enough to fill it, and no more."""


class Node:
    """A session over a UDP socket."""

    def __init__(self, dialect: str, *, initiates: bool, batches: bool) -> None:
        offer = Offer(
            b"sender" if initiates else b"receiver",
            sn_bits=SN_BITS,
            lifetime=LIFETIME,
            batches=batches,
            nonce=b"1" if initiates else None,
            patience=60.0,
        )
        self.session = Session(GENERATIONS[dialect], offer, initiates=initiates)
        self.neighbour = Neighbour(self.session)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(("127.0.0.1", 0))
        self.peer: tuple[str, int] | None = None
        self.got: list[bytes] = []
        self.wanted = False

    def step(self) -> None:
        """Take what has come, look at the time, and send what is due."""
        while select.select([self.socket], [], [], 0)[0]:
            packet, source = self.socket.recvfrom(65_536)
            self.peer = self.peer or source
            for event in self.neighbour.receive(packet, time.monotonic()):
                self._take(event)
            self._flush()  # at once, as a node does: what is missing is known sooner
        for event in self.session.on_deadline(time.monotonic()):
            self._take(event)
        self._flush()

    def _flush(self) -> None:
        for packet in self.session.to_send(time.monotonic()):
            assert self.peer is not None
            self.socket.sendto(packet, self.peer)

    def _take(self, event: Any) -> None:
        if isinstance(event, Ended):
            raise AssertionError(f"the session ended: {event}")
        if isinstance(event, Arrived):
            payload = event.message.payload
            self.got += payload if isinstance(payload, tuple) else (payload,)
        elif getattr(event, "kind", "") == "subscriber":
            self.wanted = True

    @property
    def due(self) -> float:
        due = self.session.next_deadline()
        return 0.05 if due is None else min(0.05, max(0.0, due - time.monotonic()))


class Weather(NamedTuple):
    """What the relay does to datagrams."""

    loss: float = 0.3
    duplicates: float = 0.05
    reordering: float = 0.25
    seed: int = 0


class Account:
    """What it took."""

    def __init__(self, samples: Sequence[bytes], relay: LossyRelay, seconds: float) -> None:
        # Header, number, id, size: of a StreamData each (section 8); batches save some of it.
        numbers = sum(len(vle(sn)) for sn in range(len(samples)))
        self.useful = sum(len(one) + len(vle(len(one))) + 2 for one in samples) + numbers
        self.octets = sum(relay.octets)
        self.ratio = self.octets / self.useful
        self.seconds = seconds
        self._relay = relay

    def __str__(self) -> str:
        relay = self._relay
        return (
            f"{self.octets} bytes in {sum(relay.datagrams)} datagrams ({relay.octets[1]} bytes of them back) for "
            f"{self.useful} bytes of samples and headers: {self.ratio:.2f} times; {relay.lost} lost, {relay.repeated} "
            f"repeated, {relay.reordered} reordered; {self.seconds:.1f} s"
        )


def through_a_relay(
    samples: Sequence[bytes],
    dialect: str = "zenoh2018",
    *,
    batches: bool = True,
    weather: Weather = Weather(),  # noqa: B008 - a value
    patience: float = 600.0,
) -> Account:
    """Send samples from one machine to another; AssertionError if they do not arrive as they were sent."""
    sender, receiver = (Node(dialect, initiates=initiates, batches=batches) for initiates in (True, False))
    try:
        with LossyRelay(receiver.socket.getsockname(), **weather._asdict()) as relay:
            sender.peer = ("127.0.0.1", relay.port)
            begun = time.monotonic()
            sender.session.open(begun)

            def step() -> None:
                for node in (sender, receiver):
                    node.step()
                waiting = [sender.socket, receiver.socket]
                select.select(waiting, [], [], min(sender.due, receiver.due))

            _send_all(sender, samples, step, begun + patience)
            _await(lambda: len(receiver.got) >= len(samples), step, begun + patience)
            _judge(receiver.got, samples)
            return Account(samples, relay, time.monotonic() - begun)
    finally:
        sender.socket.close()
        receiver.socket.close()


def through_a_broker(
    samples: Sequence[bytes],
    dialect: str = "zenoh2018",
    *,
    batches: bool = True,
    weather: Weather = Weather(),  # noqa: B008 - a value
    patience: float = 600.0,
) -> Account:
    """The same to a broker, from which a subscriber gets them."""
    config = elea.Config.from_json5(
        f"""{{mode: "router", listen: {{endpoints: ["udp/127.0.0.1:0?dialect={dialect}"]}},
             scouting: {{multicast: {{enabled: false}}}}}}"""
    )
    got: list[bytes] = []
    sender = Node(dialect, initiates=True, batches=batches)
    try:
        with elea.open(config) as broker, broker.declare_subscriber("a/b", lambda one: got.append(bytes(one.payload))):
            port = int(str(broker.info.locators()[0]).partition("?")[0].rpartition(":")[2])
            with LossyRelay(("127.0.0.1", port), **weather._asdict()) as relay:
                sender.peer = ("127.0.0.1", relay.port)
                begun = time.monotonic()
                sender.session.open(begun)

                def step() -> None:
                    sender.step()
                    select.select([sender.socket], [], [], sender.due)

                _await(lambda: sender.session.is_open, step, begun + patience)
                messages, name = sender.session.generation.messages, f"{sender.session.generation.scheme}a/b"
                sender.neighbour.declare([messages.ResourceDecl(ID, name.encode()), messages.PublisherDecl(ID)])
                _await(lambda: sender.wanted, step, begun + patience)
                _send_all(sender, samples, step, begun + patience)
                _await(lambda: len(got) >= len(samples), step, begun + patience)
                _judge(got, samples)
                return Account(samples, relay, time.monotonic() - begun)
    finally:
        sender.socket.close()


def _send_all(sender: Node, samples: Sequence[bytes], step: Callable[[], None], end: float) -> None:
    """Send all samples, and wait until they are acknowledged."""
    sent = 0
    _await(lambda: sender.session.is_open, step, end)
    queue = sender.session.conduit().queue(True)
    while sent < len(samples) or not sender.session.is_settled:
        for payload in samples[sent : sent + max(0, QUEUED - len(queue) // 2)]:
            sender.session.send(stream_entry(ID, payload, reliable=True))
            sent += 1
        step()
        assert time.monotonic() < end, f"{sent} of {len(samples)} samples sent, and no end"


def _await(condition: Callable[[], object], step: Callable[[], None], end: float) -> None:
    while not condition():
        step()
        assert time.monotonic() < end, "not in time"


def _judge(got: Sequence[bytes], samples: Sequence[bytes]) -> None:
    assert len(got) == len(samples), f"{len(got)} of {len(samples)} samples"
    assert list(got) == list(samples), "other samples, or in another order"


def numbered(count: int, size: int) -> list[bytes]:
    """Samples that are all different."""
    return [(b"%d" % number).rjust(size, b".") for number in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--dialect", choices=sorted(GENERATIONS), default="zenoh2018")
    parser.add_argument("--loss", type=float, default=0.3)
    parser.add_argument("--most", type=float, default=2.2, help="times the bytes of samples and headers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--broker", action="store_true", help="to a broker, instead of machine to machine")
    parser.add_argument("--no-batches", action="store_true", help="each sample is a StreamData")
    args = parser.parse_args()
    samples = numbered(args.samples, args.size)
    run = through_a_broker if args.broker else through_a_relay
    account = run(samples, args.dialect, batches=not args.no_batches, weather=Weather(args.loss, seed=args.seed))
    print(f"{args.samples} samples of {args.size} bytes arrived once and in order")
    print(account)
    return 0 if account.ratio <= args.most else 1


if __name__ == "__main__":
    sys.exit(main())
