"""Conduits, the two channels of each, and round trips (§5.8 to §5.10, §5.15)."""

from __future__ import annotations

from typing import Any

from elea.conformance.registry import Failed, NotApplicable, check
from elea.conformance.talk import Endpoint, Talk

__all__: list[str] = []


def listening(endpoint: Endpoint, **fields: Any) -> tuple[Talk, Talk, bytes]:
    """A subscriber, somebody who writes, and the name between them."""
    name = endpoint.name("channel")
    subscriber = endpoint.opened(**fields)
    subscriber.subscribed(2, name)
    return subscriber, endpoint.opened(), name


@check("Z18-CON-01", "Z18-REL-01")
def the_channels_of_a_conduit_have_numbers_of_their_own(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.StreamData(0, 2, b"", False), talk.m.StreamData(1, 2, b"", False))
        talk.say(talk.m.StreamData(0, 2, b"", True, True))
        talk.hear("AckNack", lambda one: one.sn == 1 and one.mask is None)


@check("Z18-CON-02")
def an_explicit_conduit_0_is_conduit_0(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.StreamData(0, 2, b"", True, True), before=b"\x13\x00")
        answer = talk.hear_decorated("AckNack", lambda one: one.sn == 1)
        if answer.markers:
            raise Failed("its answer is on another conduit")


@check("Z18-CON-03", "Z18-ERR-03")
def a_message_on_an_unsupported_conduit_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        count = talk.conduits()
        marker = endpoint.generation.encode(talk.m.Conduit(count, False))
        talk.say(talk.m.StreamData(0, 2, b"", True), before=marker)
        talk.closed(255)


@check("Z18-CON-04", "Z18-CON-06")
def a_conduit_begins_with_number_0(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.needs_conduits(2)
        talk.say(talk.m.StreamData(1, 2, b"", True, True), before=b"\x93")
        answer = talk.hear_decorated("AckNack", lambda one: one.sn == 0 and one.mask == 0)
        if [one.id for one in answer.markers] != [1]:
            raise Failed("the AckNack is not of conduit 1")


@check("Z18-CON-07", "Z18-CON-08", "Z18-CON-09", dialect="zenoh2018")
def what_migrates_waits_for_the_old_conduit(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        writer.needs_conduits(2)
        # Number 0 of conduit 0 is still missing when conduit 1 takes over behind it.
        migrate = writer.m.Migrate(0, 0, (1 << 14) - 1)
        second = writer.m.WriteData(0, name, b"second", True, True)
        writer.send(b"\x93" + endpoint.generation.encode(migrate) + b"\x93" + endpoint.generation.encode(second))
        subscriber.silent("StreamData", "WriteData")
        writer.write(name, b"first")
        subscriber.gets(b"first", b"second")


@check("Z18-BEC-01", "Z18-BEC-02")
def best_effort_never_goes_back(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        for sn in (0, 5, 3, 5, 6):
            writer.say(writer.m.WriteData(sn, name, b"%d" % sn, False))
        subscriber.gets(b"0", b"5", b"6")


@check("Z18-BEC-03")
def a_synch_of_best_effort_says_what_comes_next(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        writer.say(writer.m.WriteData(0, name, b"a", False))
        writer.say(writer.m.Synch(10, False))
        writer.say(writer.m.WriteData(5, name, b"old", False), writer.m.WriteData(10, name, b"b", False))
        subscriber.gets(b"a", b"b")
        writer.silent("AckNack")


@check("Z18-REL-01", "Z18-REL-13", "Z18-DAT-06")
def reliable_messages_are_delivered_once_and_in_order(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        for sn in (0, 2, 1, 2, 0, 3):
            writer.say(writer.m.WriteData(sn, name, b"%d" % sn, True))
        for _ in range(2):  # who keeps nothing that comes early has to be told again
            writer.say(*(writer.m.WriteData(sn, name, b"%d" % sn, True, sn == 3) for sn in range(4)))
        subscriber.gets(b"0", b"1", b"2", b"3")
        subscriber.silent("StreamData", "WriteData", "BatchedData")


@check("Z18-REL-02")
def not_more_than_a_window_is_sent_without_an_acknowledgement(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint, bits=4)
    with subscriber, writer:
        subscriber.acknowledges = False
        for number in range(20):
            writer.write(name, b"%d" % number)
        numbers = {message.sn for message in subscriber.heard("StreamData", "WriteData", "BatchedData")}
        if not numbers:
            raise Failed("no sample came")
        if len(numbers) > 6:
            raise Failed(f"numbers {sorted(numbers)} are under way, and a window is of at most 6")


@check("Z18-REL-03", "Z18-REL-06")
def a_message_that_asks_for_it_is_acknowledged_at_once(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.StreamData(0, 2, b"", True, True))
        talk.hear("AckNack", lambda one: one.sn == 1 and one.mask is None)


@check("Z18-REL-04", "Z18-REL-13")
def what_is_missing_is_asked_for(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.StreamData(2, 2, b"", True, True))
        found = talk.hear("AckNack")
        if found.sn != 0 or found.mask is None:
            raise Failed(f"{found} does not ask for number 0")
        talk.say(talk.m.StreamData(0, 2, b"", True, False), talk.m.StreamData(1, 2, b"", True, False))
        talk.say(talk.m.StreamData(2, 2, b"", True, True))
        talk.hear("AckNack", lambda one: one.sn == 3 and one.mask is None)


@check("Z18-REL-05", "Z18-REL-07")
def what_is_asked_for_is_sent_again(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        subscriber.acknowledges = False
        writer.write(name, b"again")
        first = subscriber.sample()[1]
        for _ in range(5):  # it may be ignored three times in a row
            subscriber.say(subscriber.m.AckNack(first.sn, 0))
        again = subscriber.sample()[1]
        if (again.sn, again.payload) != (first.sn, b"again"):
            raise Failed(f"{again} is not what was asked for")
        if not again.sync:
            raise Failed("a repetition that does not ask for an acknowledgement")


@check("Z18-REL-08", "Z18-REL-10")
def a_sender_says_what_is_not_acknowledged(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        subscriber.acknowledges = False
        writer.write(name, b"x")
        sample = subscriber.sample()[1]
        synch = subscriber.hear("Synch", lambda one: one.reliable, patience=endpoint.patience + 1.0)
        if not synch.sync or (synch.sn, synch.count) != (sample.sn + 1, 1):
            raise Failed(f"{synch}, with number {sample.sn} under way")


@check("Z18-REL-08", "Z18-ERR-03")
def a_synch_with_a_count_that_cannot_be_is_ignored(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.Synch(5, True, True, 0), talk.m.Synch(5, True, True, 1 << 13))
        talk.say(talk.m.StreamData(0, 2, b"", True, True))
        talk.hear("AckNack", lambda one: one.sn == 1)


@check("Z18-REL-09")
def the_first_synch_says_where_a_channel_begins(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.Synch(100, True, True))
        talk.hear("AckNack", lambda one: one.sn == 100)
        talk.say(talk.m.StreamData(100, 2, b"", True, True))
        talk.hear("AckNack", lambda one: one.sn == 101)


@check("Z18-REL-11")
def a_synch_makes_it_ask_for_what_it_lacks(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.StreamData(0, 2, b"", True, True))
        talk.hear("AckNack", lambda one: one.sn == 1)
        talk.say(talk.m.Synch(3, True, True, 2))
        found = talk.hear("AckNack", lambda one: one.sn == 1)
        if found.mask is None:
            raise Failed(f"{found} asks for nothing, and 1 and 2 are missing")
        talk.say(talk.m.Synch(3, True, True))  # they are gone
        talk.hear("AckNack", lambda one: one.sn == 3 and one.mask is None)


@check("Z18-REL-12")
def an_acknowledgement_of_what_was_never_sent_is_answered_by_synch(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.AckNack(77))
        talk.hear("Synch", lambda one: one.reliable)


@check("Z18-REL-14", "Z18-ERR-03")
def a_number_out_of_range_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened(bits=7) as talk:
        talk.say(talk.m.StreamData(128, 2, b"", True))
        talk.closed(255)


@check("Z18-RTT-01", module="discovery")
def a_ping_is_answered_before_and_during_a_session(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.ping(7)
        talk.open()
        talk.ping(65535)


@check("Z18-RTT-01", module="discovery")
def a_pong_that_nobody_asked_for_is_ignored(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(endpoint.generation.pong(99))
        talk.alive()


@check("Z18-RTT-02")
def round_trips_are_measured_while_something_is_under_way(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        subscriber.acknowledges = False
        writer.write(name, b"x")
        ping = "Ping" if endpoint.generation.has_pull_ids else "PingPong"
        try:
            subscriber.hear(ping, lambda one: not getattr(one, "ispong", False), patience=endpoint.patience + 1.0)
        except Failed:
            raise NotApplicable("it does not measure round trips by pings") from None
