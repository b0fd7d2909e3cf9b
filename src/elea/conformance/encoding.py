"""Bytes, packets and markers (§5.1 to §5.3, §5.20)."""

from __future__ import annotations

from elea.conformance.registry import Failed, check
from elea.conformance.talk import Endpoint, nat
from elea.model.limits import MAX_PACKET

__all__: list[str] = []


@check("Z18-VLE-01", "Z18-RTT-01")
def naturals_of_every_length_are_understood(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        for hash in (0, 127, 128, 16383, 16384, 65535):
            talk.ping(hash)


@check("Z18-VLE-02", "Z18-ERR-02")
def a_natural_above_64_bits_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(b"\x0c" + b"\xff" * 9 + b"\x02")
        talk.closed(255)


@check("Z18-VLE-03", "Z18-ERR-02")
def a_padded_natural_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(b"\x0c\x82\x00")
        talk.closed(255)


@check("Z18-VLE-04", "Z18-FRM-06", "Z18-ERR-02")
def a_message_that_is_cut_off_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(b"\x0c\x82")
        talk.closed(255)


@check("Z18-ENC-01", "Z18-FRM-01")
def several_messages_of_one_packet_are_all_understood(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(endpoint.generation.ping(1), endpoint.generation.ping(2))
        talk.pong(1)
        talk.pong(2)


@check("Z18-ENC-02")
def undefined_flags_are_ignored(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        octets = bytearray(endpoint.generation.encode(talk.m.Open(1, talk.pid, 0, ())))
        octets[0] |= 0xC0
        talk.send(bytes(octets))
        talk.hear("Accept")


@check("Z18-ENC-03")
def a_count_that_nothing_can_fill_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(b"\x06\x00" + nat(1 << 62) + b"\x01")
        talk.closed(255)


@check("Z18-ENC-04", "Z18-ERR-02", "Z18-ERR-04")
def garbage_without_a_session_is_dropped(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.send(b"\x1f\xff\xff\x00")
        talk.silent()
    with endpoint.opened() as talk:
        talk.alive()


@check("Z18-FRM-02", link="stream")
def packets_are_cut_by_their_sizes(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        packet = endpoint.generation.encode(talk.m.Open(1, talk.pid, 0, ()))
        for byte in nat(len(packet)) + packet:
            talk.send_raw(bytes([byte]))
        talk.hear("Accept")
        ping = endpoint.generation.encode(endpoint.generation.ping(7))
        talk.send_raw((nat(len(ping)) + ping) * 2)
        for _ in range(2):
            talk.pong(7)


@check("Z18-FRM-03", link="stream")
def a_size_of_0_makes_a_direction_unbounded(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        ping = endpoint.generation.encode(endpoint.generation.ping(300))
        talk.send_raw(b"\0" + ping[:1])
        talk.send_raw(ping[1:])
        talk.pong(300)


@check("Z18-FRM-04", link="stream")
def a_frame_above_the_limit_is_refused(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send_raw(nat(MAX_PACKET + 1))
        talk.closed(255)


@check("Z18-FRM-07", link="datagram")
def an_empty_datagram_is_ignored(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(b"")
        talk.alive()


@check("Z18-FRM-07", "Z18-ERR-02")
def messages_before_an_error_keep_their_effect(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(endpoint.generation.encode(endpoint.generation.ping(9)) + b"\x1f")
        talk.pong(9)
        talk.closed(255)


@check("Z18-MRK-01")
def markers_out_of_order_end_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.StreamData(0, 2, b"x", True), before=b"\x12\x00\x13\x00")
        talk.closed(255)


@check("Z18-MRK-02", "Z18-CON-02")
def a_marker_is_for_one_message(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.needs_conduits(2)
        # One message on conduit 1, and one on 0: both channels are at 0, so both are acknowledged with 1.
        talk.say(
            talk.m.Synch(0, True, True),
            talk.m.StreamData(0, 2, b"", True, True),
            before=b"\x93",
        )
        talk.hear_decorated("AckNack", lambda one: one.sn == 1)
        talk.alive()


@check("Z18-MRK-03")
def a_packet_that_ends_after_a_marker_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(b"\x12\x00")
        talk.closed(255)


@check("Z18-MRK-04")
def a_fragment_is_data(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.Synch(0, True), before=b"\x12\x00")
        talk.closed(255)


@check("Z18-MRK-05", "Z18-CON-06")
def both_forms_of_a_conduit_are_the_same(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.needs_conduits(2)
        talk.say(talk.m.StreamData(0, 2, b"", True, True), before=b"\x93")
        assert_conduit(talk.hear_decorated("AckNack", lambda one: one.sn == 1).markers, 1)
        talk.say(talk.m.StreamData(1, 2, b"", True, True), before=b"\x13\x01")
        assert_conduit(talk.hear_decorated("AckNack", lambda one: one.sn == 2).markers, 1)


def assert_conduit(markers: object, id: int) -> None:
    ids = [one.id for one in markers if type(one).__name__ == "Conduit"]  # type: ignore[attr-defined]
    if ids != [id]:
        raise Failed(f"the AckNack is of conduit {ids or [0]}, not {id}")


@check("Z18-ERR-01", "Z18-ERR-02")
def an_unknown_message_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(b"\x1f")
        talk.closed(255)


@check("Z18-ERR-01", "Z18-ERR-02")
def a_reserved_message_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(b"\x0a")
        talk.closed(255)


@check("Z18-ERR-01")
def an_unknown_declaration_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.send(b"\x06\x00\x01\x1e")
        talk.closed(255)
