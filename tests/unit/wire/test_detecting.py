"""Captures of several dialects: who speaks which is found out, and parts of a capture make up the whole."""

from __future__ import annotations

import io
import json
import struct
from collections import Counter
from pathlib import Path

import pytest

from elea.model.errors import DecodeError
from elea.wire import DIALECTS, dialect_named
from elea.wire.detecting import Detected, MixedTraffic, connection_of
from elea.wire.pcap import Flow
from elea.wire.traffic import Ports, Traffic
from tests.unit.wire.frames import conversation, datagram, ethernet, ipv4, pcap, tcp

RECORDED = Path(__file__).parents[1] / "cli" / "recorded"
VECTORS = Path(__file__).parents[2] / "vectors"


def packets_of(dialect: str) -> list[bytes]:
    """Packets of the vectors of an early dialect."""
    cases = json.loads((VECTORS / dialect / "valid.json").read_text())
    return [bytes.fromhex(case["hex"]) for case in cases if case["unit"] == "packet" and case["hex"]]


def sized(packets: list[bytes]) -> bytes:
    return b"".join(bytes([len(packet)]) + packet for packet in packets if len(packet) < 128)


def found(frames: list[bytes], *names: str, **options: object) -> list[Detected]:
    traffic = MixedTraffic([dialect_named(name) for name in names or DIALECTS], **options)  # type: ignore[arg-type]
    return list(traffic.units(io.BytesIO(pcap(frames))))


def stream(data: bytes, port: int) -> list[bytes]:
    """A connection from `port`, from its first octet to its last."""
    frames = [tcp(b"", seq=0, flags="S", source=port), tcp(data, seq=1, source=port)]
    return [ethernet(ipv4(each, 6)) for each in [*frames, tcp(b"", seq=1 + len(data), flags="FA", source=port)]]


@pytest.mark.parametrize("name", ["plain", "compression", "lowlatency", "udp", "scouting"])
def test_real_captures_are_found_to_be_zenoh1(name: str) -> None:
    data = (RECORDED / f"{name}.pcap").read_bytes()

    mixed = list(MixedTraffic([dialect_named(each) for each in DIALECTS]).units(io.BytesIO(data)))

    assert [each.found for each in mixed] == list(Traffic(dialect_named("zenoh1")).units(io.BytesIO(data)))
    assert {each.dialect.name for each in mixed} == {"zenoh1"}
    assert [each.packet for each in mixed] == sorted(each.packet for each in mixed)


@pytest.mark.parametrize("name", ["zenoh2018", "xrce2017"])
def test_streams_and_datagrams_of_early_dialects_are_read(name: str) -> None:
    packets = packets_of(name)

    for frames in ([datagram(packet) for packet in packets], conversation(sized(packets), size=50)):
        mine = found(frames, name)
        assert {each.dialect.name for each in mine} == {name}
        assert [each.found.error for each in mine] == [None] * len(mine)
        guessed = found(frames)
        assert [each.found.data for each in guessed] == [each.found.data for each in mine]
        # Much of the two early dialects is the same; never is either taken for 1.x.
        assert {each.dialect.name for each in guessed} <= {"zenoh2018", "xrce2017"}


def test_connections_of_one_capture_may_speak_different_dialects() -> None:
    keep_alive = struct.pack("<H", 1) + b"\x04"
    early = sized(packets_of("zenoh2018"))
    apart = [stream(keep_alive, 1000), stream(early, 2000)]

    mixed = found([frame for pair in zip(*apart, strict=True) for frame in pair])

    assert {each.found.flow.source_port: each.dialect.name for each in mixed} == {1000: "zenoh1", 2000: "zenoh2018"}


def test_stream_of_no_dialect_is_shown_with_the_errors_of_the_first() -> None:
    mixed = found(stream(b"\xff" * 300, 1000))

    assert [(each.dialect.name, each.found.error is not None) for each in mixed] == [("zenoh1", True)]


def test_stream_is_not_held_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.wire.detecting.CAPTURE_HELD_BYTES", 100)
    traffic = MixedTraffic([dialect_named(each) for each in DIALECTS])
    frames = conversation((struct.pack("<H", 88) + b"\xff" * 88) * 100, size=90)

    units = traffic.units(io.BytesIO(pcap(frames)))

    assert next(units).dialect.name == "zenoh1"
    assert traffic.counters.packets < 5  # told when it is met, not at the end
    assert len(list(units)) == 99
    assert traffic._held == 0


def test_parts_of_a_capture_make_up_the_whole() -> None:
    frames = [frame for port in range(20) for frame in stream(struct.pack("<H", 1) + b"\x04", 1000 + port)]
    frames += [datagram(packet, source=3000 + i) for i, packet in enumerate(packets_of("zenoh2018"))]
    whole = Counter((each.packet, each.found) for each in found(frames))

    parts = [found(frames, keep=lambda flow, part=part: flow.source_port % 3 == part) for part in range(3)]

    assert sum((Counter((each.packet, each.found) for each in part) for part in parts), Counter()) == whole
    assert all(parts)


def test_answer_to_a_scout_is_known_where_the_scout_is_not_wanted() -> None:
    data = (RECORDED / "scouting.pcap").read_bytes()
    scouts: set[Flow] = set()

    def only_answers(connection: Flow) -> bool:
        scouts.add(connection)
        return 7446 not in (connection.source_port, connection.target_port)

    answers = list(MixedTraffic([dialect_named("zenoh1")], keep=only_answers).units(io.BytesIO(data)))

    assert len(scouts) > 1
    assert answers
    assert {each.found.unit for each in answers} == {"scouting"}


def test_damage_is_told_after_what_was_read() -> None:
    traffic = MixedTraffic([dialect_named(each) for each in DIALECTS])
    units = traffic.units(io.BytesIO(pcap(stream(struct.pack("<H", 1) + b"\x04", 1000))[:-5]))

    assert next(units).found.data == b"\x04"
    with pytest.raises(DecodeError, match="pcap"):
        list(units)


def test_datagrams_of_others_are_counted_not_shown() -> None:
    traffic = MixedTraffic([dialect_named(each) for each in DIALECTS], Ports(frozenset({7447})))

    assert list(traffic.units(io.BytesIO(pcap([datagram(b"\xfe" * 9, source=53, target=53)])))) == []
    assert traffic.passed_over == 1


def test_datagram_on_zenohs_port_that_nobody_can_read_is_shown() -> None:
    assert [each.found.data for each in found([datagram(b"\xfe" * 9)])] == [b"\xfe" * 9]


def test_datagram_that_was_not_captured_whole_is_an_error_and_other_packets_are_nothing() -> None:
    units = found([bytes(20), datagram(packets_of("zenoh2018")[0])[:-1]])

    assert [each.found.error and each.found.error.code for each in units] == ["TRUNCATED"]


def test_dialects_of_datagrams_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.wire.detecting.TCP_FLOWS", 2)
    traffic = MixedTraffic([dialect_named(each) for each in DIALECTS])
    frames = [datagram(packet, source=4000 + i) for i, packet in enumerate(packets_of("zenoh2018"))]

    units = list(traffic.units(io.BytesIO(pcap(frames))))

    assert len(units) == len(frames)
    assert len(traffic._datagrams) == 2


def test_connection_has_one_name_for_both_directions() -> None:
    flow = Flow(b"\x0a\0\0\2", 7447, b"\x0a\0\0\1", 40000)

    assert connection_of(flow) == connection_of(flow.reverse()) == flow.reverse()
