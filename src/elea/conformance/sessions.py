"""Sessions, liveliness, properties (§5.5, §5.6)."""

from __future__ import annotations

from elea.conformance.registry import Failed, NotApplicable, check
from elea.conformance.talk import Endpoint, nat

__all__: list[str] = []

LONGEST_LEASE = 15.0
"""Seconds that a check waits for a keep-alive; whoever promises less often is not waited for."""


@check("Z18-SES-02", "Z18-SES-07")
def open_is_answered_by_accept_with_both_pids(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        if not 1 <= len(talk.accept.acceptPid) <= 16:
            raise Failed(f"its pid has {len(talk.accept.acceptPid)} bytes")
        if talk.accept.acceptPid == talk.pid:
            raise Failed("it gives our pid as its own")


@check("Z18-SES-02")
def a_repeated_open_is_accepted_again(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        for _ in range(3):
            talk.say(talk.m.Open(1, talk.pid, 0, ()))
            talk.hear("Accept")


@check("Z18-SES-03")
def an_open_after_traffic_begins_anew(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened(properties=((14, b"1"),)) as talk:
        talk.subscribed(2, name)
        restarted = talk
        for _ in range(5):
            restarted.say(talk.m.Open(1, talk.pid, 0, (), (talk.m.Property(14, b"2"),)))
            if restarted.hears("Accept"):
                break
            if restarted.is_over:  # a connection holds one session: the next one needs another
                restarted = endpoint.talk()
        else:
            raise Failed("no Accept came for the new session")
        with restarted:
            restarted.pid, restarted.accept = talk.pid, restarted.accept or talk.accept
            restarted.sn[True] = restarted.expected = 0
            # The old resource is forgotten: another name for its id is no conflict.
            restarted.declared(talk.m.ResourceDecl(2, name + b"/other"))


@check("Z18-SES-04")
def pids_of_1_and_16_bytes_are_accepted(endpoint: Endpoint) -> None:
    for size in (1, 16):
        with endpoint.talk() as talk:
            talk.pid = (talk.pid * 2)[-size:]
            talk.open()


@check("Z18-SES-04", "Z18-SES-05", "Z18-ERR-03")
def a_pid_of_17_bytes_is_refused(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Open(1, b"x" * 17, 0, ()))
        talk.closed(5)


@check("Z18-SES-04", "Z18-ERR-02", "Z18-ERR-03")
def an_open_without_a_pid_is_refused(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.send(b"\x03\x01\x00\x00\x00")
        talk.closed(5)


@check("Z18-SES-05")
def another_version_is_refused(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Open(2, talk.pid, 0, ()))
        talk.closed(2)


@check("Z18-SES-05")
def the_version_is_looked_at_before_the_length_of_numbers(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Open(2, talk.pid, 0, (), (talk.m.Property(4, nat(3)),)))
        talk.closed(2)


@check("Z18-SES-06")
def numbers_of_4_to_63_bits_are_accepted(endpoint: Endpoint) -> None:
    for bits in (4, 7, 14, 28, 63):
        with endpoint.opened(bits=bits) as talk:
            for one in talk.accept.properties or ():
                if one.id == 4 and one.value[:1] != nat(bits):
                    raise Failed(f"asked for {bits} bits, got property {one.value.hex()}")
            talk.alive()


@check("Z18-SES-05", "Z18-SES-06")
def other_lengths_of_numbers_are_refused(endpoint: Endpoint) -> None:
    for bits in (3, 64):
        with endpoint.talk() as talk:
            talk.say(talk.m.Open(1, talk.pid, 0, (), (talk.m.Property(4, nat(bits)),)))
            talk.closed(4)


@check("Z18-SES-08", "Z18-SES-09")
def close_is_answered_by_close(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.Close(talk.pid, 0))
        if talk.hear("Close", patience=2.0).pid != talk.accept.acceptPid:
            raise Failed("Close has another pid than Accept")
        talk.accept = None


@check("Z18-SES-08")
def close_without_a_session_is_not_answered(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Close(talk.pid, 0))
        talk.silent()


@check("Z18-SES-10")
def messages_without_a_pid_belong_to_the_connection_they_come_over(endpoint: Endpoint) -> None:
    with endpoint.opened() as one, endpoint.opened() as other:
        one.declared(one.m.PublisherDecl(2))
        other.say(other.m.Synch(0, True, True))
        other.hear("AckNack", lambda answer: answer.sn == 0)


@check("Z18-SES-12")
def what_comes_without_a_session_has_no_effect(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Declare(0, (talk.m.CommitDecl(1),), sync=True))
        talk.say(talk.m.WriteData(0, endpoint.name("a"), b"x", True, True))
        talk.say(talk.m.Synch(0, True, True))
        talk.silent("AckNack", "Declare")


@check("Z18-SES-13")
def declarations_end_with_the_session(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as publisher:
        publisher.declared(publisher.m.ResourceDecl(2, name), publisher.m.PublisherDecl(2))
        with endpoint.opened() as subscriber:
            subscriber.subscribed(2, name)
            publisher.hear("Declare", lambda one: "SubscriberDecl" in str(one))
        publisher.hear("Declare", lambda one: "ForgetSubscriberDecl" in str(one))


@check("Z18-LIV-01", "Z18-LIV-02", module="discovery")
def silence_for_a_lease_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened(lease=5) as talk:
        talk.hear("Close", patience=endpoint.patience + 1.5)


@check("Z18-LIV-02", module="discovery")
def any_message_renews_the_lease(endpoint: Endpoint) -> None:
    with endpoint.opened(lease=10) as talk:
        for _ in range(7):
            talk.silent("Close")
            talk.say(talk.m.KeepAlive(talk.pid))
        talk.alive()


@check("Z18-LIV-03", module="discovery")
def it_says_something_within_its_own_lease(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        lease = talk.accept.lease / 10
        if not lease:
            raise NotApplicable("it promises nothing")
        if lease > LONGEST_LEASE:
            raise NotApplicable(f"its lease is {lease:g} s, and nobody waits for that here")
        pid = talk.hear("KeepAlive", patience=lease).pid
        if pid != talk.accept.acceptPid:
            raise Failed("KeepAlive has another pid than Accept")


@check("Z18-PRP-01", "Z18-PRP-02")
def unknown_properties_and_an_empty_list_are_ignored(endpoint: Endpoint) -> None:
    with endpoint.opened(properties=((98, b"x"), (99, b""))):
        pass
    with endpoint.talk() as talk:
        octets = endpoint.generation.encode(talk.m.Open(1, talk.pid, 0, ()))
        talk.send(bytes([octets[0] | 0x20]) + octets[1:] + b"\0")
        talk.hear("Accept")


@check("Z18-PRP-02", "Z18-PRP-03")
def bytes_behind_the_value_of_a_property_are_ignored(endpoint: Endpoint) -> None:
    with endpoint.opened(properties=((4, b"\x07more"),)) as talk:
        talk.alive()
        talk.say(talk.m.Synch(128, True, True))
        talk.closed(255)  # 7 bits it is


@check("Z18-PRP-02")
def a_property_that_is_too_short_is_refused(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Open(1, talk.pid, 0, (), (talk.m.Property(4, b""),)))
        talk.closed(5)


@check("Z18-PRP-04")
def of_two_properties_the_first_counts(endpoint: Endpoint) -> None:
    with endpoint.opened(properties=((4, b"\x07"), (4, b"\x03"))) as talk:
        talk.alive()
