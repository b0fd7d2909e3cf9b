"""Two early sessions over a bad network, in virtual time: one run for each seed.

    python -m tests.simulation.early --seeds 10000

Everything is drawn from the seed: dialect, length of numbers (4 to 63 bits), MTU, window, loss from 0 to 60 %, bursts
of it, duplicates, delay up to 2 s with datagrams overtaking each other, and what both ends send: samples of 1 byte to
64 KiB. A run fails if a reliable channel does not bring exactly what was sent in order, a best-effort channel anything
but a part of it in order, if nothing moves any more, or if something is still held when everything has arrived. What
was drawn is told at the end.
"""

from __future__ import annotations

import argparse
import heapq
import sys
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from elea.protocol.early.generation import GENERATIONS, Generation
from elea.protocol.early.numbered import Entry, stream_entry, write_entry
from elea.protocol.early.session import Arrived, Ended, Session
from elea.protocol.early.terms import Offer

__all__ = ["Run", "run_seed"]

PATIENCE: Final = 200_000.0
"""Virtual seconds after which a run that has not ended is stuck."""

MOST_STEPS: Final = 200_000
NAME: Final = b"zenoh://a/b"


class Weather:
    """What a network does to datagrams, in one direction."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.loss = chance.choice((0.0, chance.uniform(0, 0.1), chance.uniform(0, 0.6)))
        self.duplicate = chance.choice((0.0, chance.uniform(0, 0.3)))
        self.delay = 10 ** chance.uniform(-4, 0.3)
        self.jitter = chance.choice((0.0, 0.2, 1.0)) * self.delay
        self.delay = min(self.delay, 2.0 - self.jitter) if self.delay + self.jitter > 2.0 else self.delay
        self.burst = chance.choice((0.0, chance.uniform(0, 0.05)))
        """How likely it is that a burst begins, in which everything is lost."""
        self._in_burst = 0

    @property
    def longest(self) -> float:
        return max(self.delay, 0.0) + self.jitter

    def arrivals(self, now: float) -> list[float]:
        """When the copies of a datagram arrive."""
        chance = self.chance
        if self._in_burst:
            self._in_burst -= 1
            return []
        if chance.random() < self.burst:
            self._in_burst = chance.randrange(1, 8)
            return []
        copies = 2 if chance.random() < self.duplicate else 1
        came = [now + max(self.delay, 0.0) + chance.uniform(0, self.jitter) for _ in range(copies)]
        return [when for when in came if chance.random() >= self.loss]


class End:
    """One of the two nodes: its session, and what it has sent and got."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.sent: dict[bool, list[Any]] = {True: [], False: []}
        self.got: dict[bool, list[Any]] = {True: [], False: []}
        self.script: list[tuple[float, Entry, bool, int]] = []
        self.migrations: list[float] = []
        self.ended: Ended | None = None
        self.due = float("inf")


class Run:
    """One run, from opening to the moment when nothing is held any more.

    Args:
        wide: all lengths of numbers at every MTU, and samples from 1 byte; the first seeds that found something were
            drawn from less, and stay what they were.
    """

    def __init__(self, seed: int, *, wide: bool = True) -> None:
        self.seed = seed
        self.wide = wide
        self.now = 0.0
        self.octets = 0
        self.useful = 0
        chance = self.chance = Random(seed)
        self.generation: Generation = chance.choice(list(GENERATIONS.values()))
        self.bits = chance.randrange(4, 64) if wide else chance.choice((4, 5, 6, 7, 8, 11, 14, 14, 16, 28, 32, 63))
        self.mtu = chance.choice((20, 40, chance.randrange(24, 1472), 1472, 1472, 65535))
        if self.mtu < 40 and not wide:
            self.bits = min(self.bits, 14)
        self.weather = (Weather(chance), Weather(chance))
        lifetime = max(one.longest for one in self.weather)
        conduits = chance.choice((1, 1, 2, 5))
        self.conduits = conduits

        def offer(pid: bytes) -> Offer:
            return Offer(
                pid,
                lease=0.0,
                sn_bits=self.bits,
                conduits=conduits,
                batches=chance.random() < 0.5,
                nonce=b"n" if self.mtu >= 40 else None,
                mtu=self.mtu,
                window=chance.choice((2, 8, 64, 2048)),
                lifetime=lifetime,
                patience=PATIENCE,
                open_retries=100_000,
                accept_resends=100_000,
            )

        pids = (b"a", b"b") if self.mtu < 40 else (b"aaaaaaaa", b"bbbbbbbb")
        self.ends = (
            End(Session(self.generation, offer(pids[0]), initiates=True)),
            End(Session(self.generation, offer(pids[1]), initiates=False)),
        )
        self._events: list[tuple[float, int, int, Any]] = []
        self._order = 0
        self._hush = float("inf")
        for end in self.ends:
            self._write_script(end)

    def _write_script(self, end: End) -> None:
        chance = self.chance
        count = chance.choice((1, 5, 30, 200))
        if max(one.longest for one in self.weather) > 0.5 and self.bits < 8:
            count = min(count, 30)
        largest = self._largest(end.session.offer.window)
        when = 0.0
        for number in range(count):
            when += chance.choice((0.0, chance.expovariate(50.0)))
            reliable = chance.random() < 0.7
            if self.wide:
                size = min(largest, chance.choice((1, chance.randrange(1, 5), 64, int(10 ** chance.uniform(0, 4.9)))))
                size = min(largest, 65_536) if chance.random() < 0.02 else size
            else:
                size = max(5, min(int(10 ** chance.uniform(0, 4.9)), largest, 65_536 if chance.random() < 0.2 else 64))
            payload = (number.to_bytes(4, "big") + bytes([number & 0xFF]) * size)[-size:]
            conduit = 0 if self.conduits == 1 or chance.random() < 0.7 else chance.randrange(self.conduits)
            if chance.random() < 0.3 and self.mtu >= 80:
                entry = write_entry(NAME, payload, reliable=reliable)
            else:
                entry = stream_entry(chance.choice((2, 4)), payload, reliable=reliable)
            end.script.append((when, entry, reliable, conduit))

    def _largest(self, window: int) -> int:
        """A sample that can be sent whatever it is called: in one packet, or in fragments that fit the window."""
        window = min(window, max(1, (1 << (self.bits - 1)) // 2))
        if self.wide:
            number = -(-self.bits // 7)
            mark = 2 * number + 6 + (self.conduits > 1)  # header, marker and its count, id, length
            name = len(NAME) + 1 if self.mtu >= 80 else 0
            alone = self.mtu - number - 3 - (self.conduits > 1) - name - (self.mtu > 140) - 1
            return min(65_536, 60 * self.mtu, max(alone, (self.mtu - mark - name - 2) * window))
        piece = (
            self.mtu
            - (9 if self.bits < 8 else 11 if self.bits < 15 else 22 if self.bits < 33 else 34)
            - (self.conduits > 1)
        )
        return min(65_536, 60 * self.mtu, (piece - 12 if self.mtu >= 80 else piece) * window)

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Raises AssertionError if something is wrong."""
        self.ends[0].session.open(0.0)
        opened = set()
        for _ in range(MOST_STEPS):
            for side in (0, 1):
                self._flush(side)
            for side, end in enumerate(self.ends):
                if end.session.is_open and side not in opened:
                    opened.add(side)
                    for when, entry, reliable, conduit in end.script:
                        self._push(self.now + when, side + 2, entry, reliable, conduit)
            if not self._next():
                break
            assert self.now < PATIENCE, f"stuck at {self.now:.0f} s"
        else:
            raise AssertionError(f"more than {MOST_STEPS} steps")
        self._judge()

    def _push(self, when: float, kind: int, *what: Any) -> None:
        self._order += 1
        heapq.heappush(self._events, (when, self._order, kind, what))

    def _flush(self, side: int) -> None:
        end = self.ends[side]
        for packet in end.session.to_send(self.now):
            assert len(packet) <= self.mtu, f"a packet of {len(packet)} octets, above the MTU of {self.mtu}"
            self.octets += len(packet)
            for when in self.weather[side].arrivals(self.now):
                self._push(when, 1 - side, packet)
        due = end.session.next_deadline()
        end.due = float("inf") if due is None else due

    def _next(self) -> bool:
        """Go on to what happens next; False if nothing will, or only idle talk."""
        if not self._events and all(end.session.is_settled and end.session.is_open for end in self.ends):
            return False
        coming = self._events[0][0] if self._events else float("inf")
        due = min(end.due for end in self.ends)
        if coming == due == float("inf"):
            raise AssertionError(f"nothing will ever happen: {[end.session.state for end in self.ends]}")
        self.now = max(self.now, min(coming, due))
        if coming <= due:
            _, _, kind, what = heapq.heappop(self._events)
            self._happen(kind, what)
        else:
            for end in self.ends:
                if end.due <= self.now:
                    self._take(end, end.session.on_deadline(self.now))
        return True

    def _happen(self, kind: int, what: Sequence[Any]) -> None:
        if kind < 2:
            end = self.ends[kind]
            self._take(end, end.session.receive(what[0], self.now))
            return
        entry, reliable, conduit = what
        end = self.ends[kind - 2]
        end.sent[reliable].append((conduit, entry[1]))
        self.useful += len(entry[1])
        end.session.send(entry, reliable=reliable, conduit=conduit)

    def _take(self, end: End, events: Sequence[Any]) -> None:
        for event in events:
            if isinstance(event, Ended):
                raise AssertionError(f"the session ended: {event}")
            if isinstance(event, Arrived):
                message = event.message
                listed = message.payload if isinstance(message.payload, tuple) else (message.payload,)
                end.got[event.reliable] += [(event.conduit, payload) for payload in listed]

    # -- judging ------------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        for side, end in enumerate(self.ends):
            other = self.ends[1 - side]
            for conduit in range(self.conduits):
                sent, got = _of(end.sent[True], conduit), _of(other.got[True], conduit)
                refused = end.session.conduits[conduit].reliable.oversized if conduit in end.session.conduits else 0
                assert not refused, "a message was too large for the script's own bounds"
                assert got == sent, f"reliable: {len(got)} of {len(sent)} messages, or in another order"
                sent, got = _of(end.sent[False], conduit), _of(other.got[False], conduit)
                assert _is_part(got, sent), "best effort: twice, or out of order"
            for one in end.session.conduits.values():
                assert not one.reliable.held
                assert not one.reliable.held_bytes
                assert not len(one.receiver)
                assert not one.receiver.lost
                assert not one._pieces.octets, "something is left over"
                assert not one.receiver.barriers


def _of(listed: Sequence[Any], conduit: int) -> list[bytes]:
    return [payload for on, payload in listed if on == conduit]


def _is_part(part: Sequence[bytes], whole: Sequence[bytes]) -> bool:
    rest = iter(whole)
    return all(any(one == other for other in rest) for one in part)


def run_seed(seed: int, *, wide: bool = True) -> Run:
    """One run; an AssertionError names the seed."""
    run = Run(seed, wide=wide)
    try:
        run.run()
    except AssertionError as error:
        told = f"{run.generation.name}, {run.bits} bits, mtu {run.mtu}, at {run.now:.3f} s"
        raise AssertionError(f"seed {seed} ({told}): {error}") from error
    return run


class Drawn:
    """What some runs had to do with."""

    def __init__(self) -> None:
        self.bits: set[int] = set()
        self.dialects: set[str] = set()
        self.loss = self.delay = self.duplicates = 0.0
        self.smallest, self.largest = 1 << 30, 0
        self.samples = self.octets = self.bursts = 0

    def add(self, run: Run) -> None:
        self.bits.add(run.bits)
        self.dialects.add(run.generation.name)
        self.octets += run.octets
        for weather in run.weather:
            self.loss = max(self.loss, weather.loss)
            self.delay = max(self.delay, weather.longest)
            self.duplicates = max(self.duplicates, weather.duplicate)
            self.bursts += weather.burst > 0
        for end in run.ends:
            sizes = [len(entry[1]) for _, entry, _, _ in end.script]
            self.samples += len(sizes)
            self.smallest, self.largest = min(self.smallest, *sizes), max(self.largest, *sizes)

    def __str__(self) -> str:
        return (
            f"{' and '.join(sorted(self.dialects))}, numbers of {min(self.bits)} to {max(self.bits)} bits "
            f"({len(self.bits)} lengths), loss up to {self.loss:.0%}, bursts in {self.bursts} directions, "
            f"duplicates up to {self.duplicates:.0%}, delay up to {self.delay:.2f} s; "
            f"{self.samples} samples of {self.smallest} to {self.largest} bytes, {self.octets} bytes in packets"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--narrow", action="store_true", help="the draws of the first seeds that found something")
    args = parser.parse_args()
    failed = 0
    drawn = Drawn()
    for seed in range(args.first, args.first + args.seeds):
        try:
            drawn.add(run_seed(seed, wide=not args.narrow))
        except AssertionError as error:
            failed += 1
            print(error, flush=True)
        if (seed + 1) % 1000 == 0:
            print(f"{seed + 1 - args.first} seeds, {failed} failed", file=sys.stderr)
    print(f"{args.seeds} seeds, {failed} failed")
    print(drawn)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
