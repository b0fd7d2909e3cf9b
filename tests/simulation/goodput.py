"""What a reliable channel brings where datagrams are lost, in virtual time: the machines alone, no core in the way.

    python -m tests.simulation.goodput

One machine sends samples of 1000 bytes as fast as its window lets it; a datagram takes 5 ms, is lost with some chance
in either direction, and may be overtaken. What arrives in a virtual second is compared with what the window allows: it
is under way once a round trip, and what is not lost of it arrives. Bytes of both directions are compared with those
that have arrived.
"""

from __future__ import annotations

import argparse
import heapq
from random import Random
from typing import Any, Final, NamedTuple

from elea.model.limits import EARLY_WINDOW_BYTES
from elea.protocol.early.generation import ZENOH2018
from elea.protocol.early.numbered import stream_entry
from elea.protocol.early.session import Arrived, Session
from elea.protocol.early.terms import Offer

__all__ = ["Goodput", "goodput", "limit"]

SIZE: Final = 1_000
DELAY: Final = 0.005
LOSSES: Final = (0.0, 0.01, 0.05, 0.1, 0.3)
MTUS: Final = (1_472, 16_384)
"""Of an Ethernet, and what Elea nodes send each other over loopback."""

QUEUED: Final = 2_000
FIRST: Final = 0.5
"""Virtual seconds that are not counted: until the round trip is known."""


class Goodput(NamedTuple):
    """What one run brought."""

    rate: float
    """Samples a virtual second."""
    wire: float
    """Bytes of all datagrams by those of the samples."""


def limit(loss: float) -> float:
    """Samples a second that the window allows."""
    return EARLY_WINDOW_BYTES / SIZE / (2 * DELAY) * (1 - loss)


def goodput(loss: float, *, mtu: int = MTUS[0], seconds: float = 5.0, seed: int = 0, jitter: float = 0.0) -> Goodput:
    """Send for some virtual seconds."""
    chance = Random(seed)
    ends = [
        Session(ZENOH2018, Offer(pid, lease=0.0, sn_bits=21, lifetime=2.0, mtu=mtu, patience=1e6), initiates=not index)
        for index, pid in enumerate((b"sender", b"receiver"))
    ]
    payload = bytes(SIZE)
    arriving: list[tuple[float, int, int, bytes]] = []
    now, order, got, octets = 0.0, 0, 0, 0
    opened = None
    began: tuple[float, int, int] | None = None
    ends[0].open(now)
    while opened is None or now < opened + FIRST + seconds:
        if ends[0].is_open:
            opened = now if opened is None else opened
            queue = ends[0].conduit().queue(True)
            while len(queue) < 2 * QUEUED:
                queue += stream_entry(2, payload, reliable=True)
        for side, end in enumerate(ends):
            for packet in end.to_send(now):
                octets += len(packet)
                if chance.random() >= loss:
                    order += 1
                    heapq.heappush(arriving, (now + DELAY + chance.random() * jitter, order, 1 - side, packet))
        dues = [due for due in (end.next_deadline() for end in ends) if due is not None]
        coming = arriving[0][0] if arriving else float("inf")
        now = max(now, min([coming, *dues]))
        if began is None and opened is not None and now >= opened + FIRST:
            began = now, got, octets
        if arriving and arriving[0][0] <= now:
            _, _, side, packet = heapq.heappop(arriving)
            events = ends[side].receive(packet, now)
            got += sum(map(_samples, events))
        for end in ends:
            end.on_deadline(now)
    assert began is not None
    since, before, written = began
    return Goodput((got - before) / (now - since), (octets - written) / max(1, (got - before) * SIZE))


def _samples(event: Any) -> int:
    if not isinstance(event, Arrived):
        return 0
    payload = event.message.payload
    return len(payload) if isinstance(payload, tuple) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="virtual ones (5)")
    parser.add_argument("--losses", type=float, nargs="*", default=LOSSES)
    parser.add_argument("--mtus", type=int, nargs="*", default=MTUS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jitter", type=float, default=0.0, help="seconds by which datagrams overtake each other")
    args = parser.parse_args()
    print("| mtu | lost each way | samples/s, 1000 B | window's limit | by it | bytes by samples |")
    print("|---:|---:|---:|---:|---:|---:|")
    for mtu in args.mtus:
        for loss in args.losses:
            seeds = range(args.seeds)
            runs = [goodput(loss, mtu=mtu, seconds=args.seconds, seed=one, jitter=args.jitter) for one in seeds]
            rate = sum(one.rate for one in runs) / len(runs)
            wire = sum(one.wire for one in runs) / len(runs)
            print(
                f"| {mtu} | {loss:.0%} | {rate:,.0f} | {limit(loss):,.0f} | {rate / limit(loss):.2f}× | {wire:.2f}× |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
