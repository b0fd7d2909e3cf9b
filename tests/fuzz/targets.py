"""What is attacked: one target per decoder."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final
from zlib import crc32

from elea.model.errors import DecodeError, NotationError
from elea.notation.check import check as check_definitions
from elea.notation.parser import parse
from elea.wire import dialect_named
from elea.wire.early import Codec, Decorated, Packet, PacketStream
from elea.wire.pcap import Gap, PacketCounters, Piece, Reassembler, Segment, Start, parse_packet, read_capture
from tests.fuzz import corpus
from tests.fuzz.arrowtarget import arrow_target, payload_target
from tests.fuzz.brokertarget import broker_target
from tests.fuzz.capturetarget import capture_target
from tests.fuzz.earlytarget import session_target, tiny_target
from tests.fuzz.foreigntexts import content_target, rules_target, selector_target
from tests.fuzz.jsonpayload import json_payload_target
from tests.fuzz.jsontarget import json_target
from tests.fuzz.keytarget import key_target
from tests.fuzz.laws import check_pushes, read_run, require
from tests.fuzz.mcaptarget import mcap_target
from tests.fuzz.putstarget import puts_target
from tests.fuzz.storetargets import answers_target, import_target, requests_target
from tests.fuzz.target import Target
from tests.fuzz.typedtargets import cdr_target, descriptor_target, protobuf_target, schema_target
from tests.fuzz.uprotocoltarget import uprotocol_target

__all__ = ["TARGETS", "feed"]

EARLY: Final = ("zenoh2018", "xrce2017")

SAMPLED: Final = 32
"""One input in so many is also dissected and shown as JSON, which takes ten times as long as decoding it."""


# -- units of a dialect -----------------------------------------------------------------------------------------------


def _unit(name: str, dialect: str, unit: str, seeds: Callable[[], Sequence[bytes]] | None = None) -> Target:
    found = dialect_named(dialect)

    def decode(data: bytes) -> object:
        return found.decode(unit, data)

    def law(data: bytes, value: object) -> None:
        encoded = found.encode(unit, value)
        again = found.decode(unit, encoded)
        require(again == value, "decode(encode(decode(x))) is decode(x)", again, value)
        if crc32(data) % SAMPLED == 0 and len(data) < 4_096:
            json.dumps(found.to_json(unit, value))
            errors = [field.error for field in found.dissect(unit, data) if field.error is not None]
            require(not errors, "the dissection has no error where the decoder has none", errors)

    return Target(
        name,
        decode,
        law,
        (DecodeError,),
        seeds or (lambda: corpus.seeds(dialect, unit)),
        lambda: corpus.tokens(dialect),
    )


def _refused_units(name: str, dialect: str, unit: str) -> Target:
    """Every unit that is refused must be refused at the same place by the dissection."""
    plain = _unit(name, dialect, unit)
    found = dialect_named(dialect)

    def decode(data: bytes) -> object:
        try:
            return found.decode(unit, data)
        except DecodeError as error:
            if crc32(data) % SAMPLED or len(data) > 4_096:
                raise
            return error

    def law(data: bytes, value: object) -> None:
        if not isinstance(value, DecodeError):
            plain.law(data, value)
            return
        last = found.dissect(unit, data)[-1].error
        same = last is not None and (last.code, last.at) == (value.code, value.at)
        require(same, "the dissection ends in the decoder's error", last, value)

    return Target(name, decode, law, (DecodeError,), plain.seeds, plain.tokens)


def _batch_streams() -> list[bytes]:
    batches = corpus.seeds("zenoh1", "batch")
    framed = [struct.pack("<H", len(data)) + data for data in batches]
    return [*framed, *(a + b for a, b in zip(framed, framed[3:], strict=False))]


def _compressed() -> list[bytes]:
    zenoh1 = dialect_named("zenoh1")
    found = list(corpus.seeds("zenoh1", "compressed"))
    for data in corpus.seeds("zenoh1", "batch"):
        found.append(b"\0" + data)
        try:
            found.append(zenoh1.encode("compressed", zenoh1.decode("batch", data * 3)))
        except DecodeError:
            continue
    return found


def _packet_streams(dialect: str) -> list[bytes]:
    found: list[bytes] = list(corpus.seeds(dialect, "stream"))
    for data in corpus.seeds(dialect, "packet"):
        if 0 < len(data) < 128:
            found += [bytes([len(data)]) + data, b"\0" + data]
    return found


# -- the hot path of zenoh1 -------------------------------------------------------------------------------------------


def _pushes() -> Target:
    def seeds() -> list[bytes]:
        zenoh1 = dialect_named("zenoh1")
        found = [data for data in corpus.seeds("zenoh1", "message") if data[:1] and data[0] & 0x1F == 0x1D]
        for data in corpus.seeds("zenoh1", "batch"):
            try:
                frames: Any = zenoh1.decode("batch", data)
            except DecodeError:
                continue
            found += [zenoh1.encode("message", item) for frame in frames for item in getattr(frame, "messages", ())]
        return list(dict.fromkeys(found))

    return Target("zenoh1-pushes", read_run, check_pushes, (), seeds, lambda: corpus.tokens("zenoh1"))


# -- streams of the early dialects in pieces --------------------------------------------------------------------------

Outcome = tuple[list[Packet], list[Decorated], "tuple[str, int] | None"]


def feed(codec: Codec, parts: Sequence[bytes]) -> Outcome:
    """What a stream gives: sized packets, loose messages, and the error it ends with."""
    reader = PacketStream(codec)
    sized: list[Packet] = []
    loose: list[Decorated] = []
    try:
        for part in parts:
            before = reader.sized
            given = reader.feed(part)
            new = reader.sized - before
            sized += given[:new]
            loose += [message for packet in given[new:] for message in packet.messages]
        reader.close()
    except DecodeError as error:
        return sized, loose, (error.code, error.at)
    return sized, loose, None


def _split() -> Target:
    """Octets 0 and 1 choose the dialect and the cuts, the rest is the stream."""

    def decode(data: bytes) -> Outcome:
        return feed(_codec(data), [data[2:]])

    def law(data: bytes, whole: Outcome) -> None:
        sized, loose, error = feed(_codec(data), _cut(data[2:], sum(data[1:2])))
        require(error == whole[2], "the error does not depend on the cuts", error, whole[2])
        require((sized, loose) == whole[:2], "the messages do not depend on the cuts", sized, loose)

    def seeds() -> list[bytes]:
        return [
            bytes([which, 7 * number & 0xFF]) + data
            for which, dialect in enumerate(EARLY)
            for number, data in enumerate(_packet_streams(dialect))
        ]

    def tokens() -> list[bytes]:
        return [*corpus.tokens("zenoh2018"), *corpus.tokens("xrce2017")]

    # Crumbs of a large message end in the limit on reading again, which is no matter of cuts.
    return Target("early-split", decode, law, (), seeds, tokens, max_size=4_096)


def _codec(data: bytes) -> Codec:
    found: Any = dialect_named(EARLY[data[0] & 1 if data else 0])
    codec: Codec = found.codec
    return codec


def _cut(data: bytes, how: int) -> list[bytes]:
    """Pieces of 1 to 7 octets by turns, as `how` says; even single octets."""
    steps = [1 + (how >> shift) % 7 for shift in range(6)] if how else [1]
    parts, at, turn = [], 0, 0
    while at < len(data):
        parts.append(data[at : at + steps[turn % len(steps)]])
        at += steps[turn % len(steps)]
        turn += 1
    return parts


# -- captures ---------------------------------------------------------------------------------------------------------


def _capture() -> Target:
    def decode(data: bytes) -> list[Any]:
        counters, streams = PacketCounters(), Reassembler(flows=8, pending=4_096, total=8_192)
        events: list[Any] = []
        for packet in read_capture(io.BytesIO(data)):
            found = parse_packet(packet, counters)
            if isinstance(found, Segment):
                events += streams.feed(found)
            elif found is not None:
                events.append(found)
        events += streams.finish()
        return [counters, streams, *events]

    def law(data: bytes, events: list[Any]) -> None:
        counters, streams = events[:2]
        sorts = counters.datagrams + counters.segments + counters.fragments + counters.malformed + counters.other
        require(counters.packets == sorts, "every packet is counted once", counters)
        places: dict[object, int] = {}
        size = 0
        for event in events[2:]:
            if isinstance(event, Start):
                places[event.flow] = 0
            elif isinstance(event, Piece | Gap):
                length = len(event.data) if isinstance(event, Piece) else event.size
                require(length > 0, "pieces and gaps are not empty", event)
                require(places[event.flow] == event.at, "a stream has no hole without a gap", event)
                places[event.flow] += length
                size += len(event.data) if isinstance(event, Piece) else 0
        require(size <= len(data), "streams hold no more octets than their capture", size)
        require(streams._cost == 0, "nothing is held when all is given out", streams._cost)

    def seeds() -> list[bytes]:
        from tests.unit.wire import frames

        talk = frames.conversation(bytes(range(40)), size=9)
        mixed = [talk[0], talk[2], talk[1], talk[2], *talk[3:], frames.datagram(b"abc"), frames.segment(b"x", seq=5)]
        sixth = frames.ethernet(frames.ipv6(frames.udp(b"abc"), 17))
        found = [frames.pcap(some) for some in (talk, mixed, [sixth], [])]
        found += [frames.pcapng(some, order=order) for some in (talk, mixed, [sixth]) for order in "<>"]
        return found

    def tokens() -> list[bytes]:
        numbers = [struct.pack(order + "I", n) for order in "<>" for n in (0, 1, 2, 3, 6, 12, 28, 32, 0xFFFF, 1 << 31)]
        ends = [
            b"\x81\x00",
            b"\x08\x00",
            b"\x86\xdd",
            b"\x45\x00",
            b"\x60\x00",
            b"\x0a\x0d\x0d\x0a",
            b"\x4d\x3c\x2b\x1a",
        ]
        return [*numbers, *ends, b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d"]

    return Target("pcap", decode, law, (DecodeError,), seeds, tokens, repeats=False)


# -- definitions ------------------------------------------------------------------------------------------------------


def _notation() -> Target:
    def decode(data: bytes) -> object:
        text = data.decode("utf-8", "replace")
        return check_definitions(parse(text, dialect="fuzz", extended=len(data) % 8 != 0))

    def law(data: bytes, value: object) -> None:
        text = data.decode("utf-8", "replace")
        again = check_definitions(parse(text + "\n-- a comment", dialect="fuzz", extended=len(data) % 8 != 0))
        require(again == value, "a comment changes nothing", again)

    return Target(
        "notation", decode, law, (NotationError,), corpus.definition_seeds, lambda: corpus.NOTATION_TOKENS, 8_192
    )


def _all() -> list[Target]:
    return [
        _refused_units("zenoh1-batch", "zenoh1", "batch"),
        _refused_units("zenoh1-scouting", "zenoh1", "scouting"),
        _unit("zenoh1-stream", "zenoh1", "stream", _batch_streams),
        _unit("zenoh1-compressed", "zenoh1", "compressed", _compressed),
        _refused_units("zenoh1-lowlatency", "zenoh1", "lowlatency"),
        _pushes(),
        _refused_units("zenoh2018-packet", "zenoh2018", "packet"),
        _unit("zenoh2018-stream", "zenoh2018", "stream", lambda: _packet_streams("zenoh2018")),
        _refused_units("xrce2017-packet", "xrce2017", "packet"),
        _unit("xrce2017-stream", "xrce2017", "stream", lambda: _packet_streams("xrce2017")),
        _split(),
        broker_target(),
        *(session_target(dialect) for dialect in EARLY),
        *(tiny_target(dialect) for dialect in EARLY),
        json_target(),
        key_target(),
        puts_target(),
        uprotocol_target(),
        _capture(),
        capture_target(),
        mcap_target(),
        arrow_target(),
        payload_target(),
        json_payload_target(),
        requests_target(),
        answers_target(),
        import_target(),
        selector_target(),
        content_target(),
        rules_target(),
        schema_target(),
        cdr_target(),
        protobuf_target(),
        descriptor_target(),
        _notation(),
    ]


TARGETS: Final[dict[str, Target]] = {target.name: target for target in _all()}
