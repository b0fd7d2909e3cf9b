"""What the papers claim, measured on our bytes; prints the table of docs/early-figures.md.

    python -m tests.simulation.figures            prints it
    python -m tests.simulation.figures --write    puts it into the page

Spec: zenoh-2018 section 8.
"""

from __future__ import annotations

import argparse
import io
import sys
import tokenize
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import elea
from elea.protocol.early.generation import GENERATIONS, ZENOH2018
from elea.protocol.early.numbered import stream_entry, vle
from elea.protocol.early.session import Session
from elea.protocol.early.terms import Offer
from elea.tiny import Client, publisher, resource, subscriber
from elea.tiny.client import CLOSED
from elea.tiny.sleep import save
from elea.wire.primitives import read_nat
from tests.unit.tiny.broker import Broker

__all__ = ["Trip", "batch_overhead", "core_lines", "open_session", "scenario", "stream_overhead", "table", "tiny_state"]

PAGE = Path("docs/early-figures.md")
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
CORE = ("protocol/early", "wire/early.py", "wire/markers.py")
"""Codec, session, channels, declarations; generated code is not counted, nor what Zenoh 1.x has too."""

BROKER = ("protocol/early/announcements.py", "protocol/early/names.py", "protocol/early/pulls.py")
"""What only a broker needs of it."""

BIG = bytes(range(250)) * 2


# -- bytes on the wire -------------------------------------------------------------------------------------------------


def stream_overhead(sn: int, id: int = 2, size: int = 1, **fields: Any) -> int:
    """Bytes of a StreamData that are not payload."""
    message = ZENOH2018.messages.StreamData(sn, id, bytes(size), reliable=True, **fields)
    return len(ZENOH2018.encode(message)) - size


def batch_overhead(count: int, size: int = 1, sn: int = 0) -> int:
    """Bytes of a BatchedData that are not payload."""
    message = ZENOH2018.messages.BatchedData(sn, 2, (bytes(size),) * count, reliable=True)
    return len(ZENOH2018.encode(message)) - size * count


# -- 20 bytes ----------------------------------------------------------------------------------------------------------


class Trip(NamedTuple):
    """What a whole conversation took."""

    packets: int
    octets: int
    largest: int
    """Bytes given to the link at once, at most."""
    lost: int


class _Pipe:
    """One direction of a stream that takes 20 bytes at a time, cut into packets again at its end."""

    def __init__(self) -> None:
        self._rest = b""

    def cut(self, chunk: bytes) -> Iterator[bytes]:
        self._rest += chunk
        while self._rest:
            try:
                size, at = read_nat(self._rest[:10], 0, "zenoh2018")
            except IndexError:
                return
            if len(self._rest) < at + size:
                return
            packet, self._rest = self._rest[at : at + size], self._rest[at + size :]
            yield packet


class _Line:
    """A tiny client and a broker over a link of 20 bytes, in virtual time."""

    def __init__(self, dialect: str, *, chunked: bool, loss: float, seed: int) -> None:
        # Packets of a stream may be larger than its chunks, so a longer name fits them (Z18-FRM-08).
        self.client = Client(
            b"device", dialect, mtu=64 if chunked else 20, sn_bits=7, window=48, lease=0.0, streamed=chunked
        )
        self.broker = Broker(dialect, mtu=64 if chunked else 20, window=48)
        self.now = 0.0
        self.packets = self.octets = self.largest = self.lost = 0
        self.samples: list[bytes] = []
        self.kinds: list[str] = []
        self._chunked = chunked
        self._pipe = _Pipe()
        self._loss = loss
        self._chance = Random(seed)

    def until(self, done: Callable[[], Any]) -> None:
        while not done():
            if not self._exchange() and not done():
                due = self.broker.session.next_deadline()
                self.now = max(self.now + 0.001, min(self.client.deadline(), 1e18 if due is None else due))
                self.broker.session.on_deadline(self.now)
            assert self.now < 1000, "stuck"

    def _exchange(self) -> bool:
        forth = self.client.poll(self.now)
        for packet in self._carried(forth):
            for one in self._pipe.cut(packet) if self._chunked else (packet,):
                self.broker.receive(one, self.now)
        back = self.broker.session.to_send(self.now)
        if self._chunked:
            back = [vle(len(packet)) + packet for packet in back]
        for packet in self._carried(back):
            for event in self.client.receive(packet, self.now):
                self.kinds.append(event.kind)
                if event.kind == "sample":
                    self.samples.append(event.payload)
        return bool(forth or back)

    def _carried(self, packets: list[bytes]) -> Iterator[bytes]:
        for packet in packets:
            for at in range(0, len(packet), 20 if self._chunked else 1 << 20):
                chunk = packet[at : at + 20] if self._chunked else packet
                self.packets += 1
                self.octets += len(chunk)
                self.largest = max(self.largest, len(chunk))
                if self._chance.random() < self._loss:
                    self.lost += 1
                else:
                    yield chunk


def scenario(dialect: str = "zenoh2018", *, chunked: bool = False, loss: float = 0.0, seed: int = 1) -> Trip:
    """Open, declare, samples of 1 and 500 bytes both ways, pull, close; AssertionError if anything is missing."""
    line = _Line(dialect, chunked=chunked, loss=loss, seed=seed)
    client, broker = line.client, line.broker
    client.open(0.0)
    line.until(lambda: client.is_open)
    name = b"xrce://a" if dialect == "xrce2017" else b"zenoh://a"
    client.declare(resource(2, name + b"/name/of/some/length" if chunked else name), publisher(2), subscriber(2))
    client.declare(subscriber(4, 2))
    line.until(lambda: client.is_settled and client.wanted)
    for payload in (b"1", BIG):
        assert client.put(2, payload, line.now)
        broker.session.send(stream_entry(2, payload, reliable=True))
        line.until(lambda: client.is_settled and broker.session.is_settled)
    assert client.pull(4, line.now, 9)
    line.until(lambda: len(line.samples) == 5 and client.is_settled and broker.session.is_settled)
    client.close(line.now)
    line.until(lambda: client.state == CLOSED)
    assert broker.payloads() == [b"1", BIG]
    assert line.samples == [b"1", BIG, b"1", b"2", b"3"]
    assert line.kinds.count("end") == (dialect == "zenoh2018")
    return Trip(line.packets, line.octets, line.largest, line.lost)


# -- state -------------------------------------------------------------------------------------------------------------


def tiny_state() -> tuple[int, int, int, int]:
    """A client with 7-bit numbers and 8 places of 20 bytes: saved, as Python objects; then with all places full."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    client = Client(b"device", mtu=20, sn_bits=7, window=8)
    client.open(0.0)
    client.poll(0.0)
    client.receive(bytes.fromhex("0406") + b"device" + bytes.fromhex("016200"), 0.0)
    client.taken()
    client.wanted.append(2)
    idle = len(save(client)), tracemalloc.get_traced_memory()[0] - before
    for _ in range(8):
        assert client.put(2, bytes(16), 0.0)
    client.poll(0.0)
    full = len(save(client)), tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return *idle, *full


def open_session() -> int:
    """Bytes of Python objects of one session of the full machine, open and idle."""

    def opened() -> tuple[Session, Session]:
        one, other = (Session(ZENOH2018, Offer(pid, lease=0.0), initiates=pid == b"one") for pid in (b"one", b"other"))
        one.open(0.0)
        for _ in range(3):
            for packet in one.to_send(0.0):
                other.receive(packet, 0.0)
            for packet in other.to_send(0.0):
                one.receive(packet, 0.0)
        return one, other

    kept = [opened()]  # what the first one makes for all
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept += [opened() for _ in range(10)]
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert all(one.is_open and other.is_open for one, other in kept)
    return used // 20


# -- code --------------------------------------------------------------------------------------------------------------


def core_lines(parts: tuple[str, ...] = CORE) -> int:
    """Lines of code: not blank, no comment, no docstring."""
    root = Path(elea.__path__[0])
    files = [file for part in parts for file in ([root / part] if part.endswith(".py") else (root / part).glob("*.py"))]
    return sum(_lines(file.read_text(encoding="utf-8")) for file in files)


def _lines(source: str) -> int:
    passed = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_docstring = token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.NL)
        if token.type not in passed and not is_docstring:
            lines.update(range(token.start[0], token.end[0] + 1))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    return len(lines)


# -- the table ---------------------------------------------------------------------------------------------------------


def table() -> str:
    """All of it, as it stands in the page."""
    rows = [
        ("StreamData, numbers of 7 bits, every number", "4 bytes", f"{_spread(range(128))} bytes"),
        ("StreamData, numbers of 14 bits", "4 bytes", _long_numbers()),
        *(
            (f"BatchedData of {count}, a sample", f"{(3 + count) / count:.3f}", f"{batch_overhead(count) / count:.3f}")
            for count in (1, 2, 10, 100, 127, 128, 1000)
        ),
    ]
    for dialect in GENERATIONS:
        for chunked, loss in ((False, 0.0), (False, 0.2), (True, 0.0)):
            trip = scenario(dialect, chunked=chunked, loss=loss)
            link = "chunks of a stream" if chunked else f"datagrams, {loss:.0%} lost" if loss else "datagrams"
            found = f"{_about(trip.packets, 1)} of at most {trip.largest} bytes, {_about(trip.octets)} bytes in all"
            rows.append((f"MTU 20, {dialect}, {link}", "works", found))
    saved, _, full, _ = tiny_state()
    rows += [
        ("State of a session of `elea.tiny`, 7-bit numbers, saved", "a few kilobytes", f"{saved} bytes"),
        ("the same with 8 packets of 20 bytes under way", "", f"{full} bytes"),
        ("Lines of the core", "about 2500", _below(core_lines() - core_lines(BROKER))),
        ("what only a broker has besides", "", _below(core_lines(BROKER))),
        ("Lines of `elea.tiny`", "", _below(core_lines(("tiny",)))),
    ]
    lines = ["| figure | papers | measured |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _about(count: int, digits: int = 2) -> str:
    """In hundreds or tens, so that not every change of a line is one of the page."""
    return f"about {round(count, -digits)}"


def _below(lines: int) -> str:
    return f"below {(lines // 250 + 1) * 250}"


def _spread(numbers: range) -> str:
    found = sorted({stream_overhead(sn) for sn in numbers})
    return " or ".join(str(one) for one in found)


def _long_numbers() -> str:
    found = [stream_overhead(sn) for sn in range(1 << 14)]
    return f"4 bytes for {found.count(4)} numbers, 5 for {found.count(5)}"


def page(text: str) -> str:
    """The page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table())
        idle, full = tiny_state()[1::2]
        print(f"As Python objects: a tiny client {idle} bytes, with 8 packets {full}; a session {open_session()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
