"""Samples, pulls, fragments, resource spaces (§5.11 to §5.14)."""

from __future__ import annotations

from typing import Any

from elea.conformance.channels import listening
from elea.conformance.registry import Failed, check
from elea.conformance.talk import Endpoint, Talk

__all__: list[str] = []


@check("Z18-DAT-01")
def a_publisher_is_told_who_listens_and_when_nobody_does(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as publisher, endpoint.opened() as subscriber:
        publisher.declared(publisher.m.ResourceDecl(2, name), publisher.m.PublisherDecl(2))
        publisher.silent("Declare")
        subscriber.subscribed(4, name)
        told = publisher.hear("Declare")
        if not told.committed or [(type(one).__name__, one.id) for one in told.declarations] != [("SubscriberDecl", 2)]:
            raise Failed(f"{told} is no committed SubscriberDecl of id 2")
        subscriber.declared(subscriber.m.ForgetSubscriberDecl(4))
        told = publisher.hear("Declare")
        if [(type(one).__name__, one.id) for one in told.declarations] != [("ForgetSubscriberDecl", 2)]:
            raise Failed(f"{told} is no ForgetSubscriberDecl of id 2")


@check("Z18-DAT-02", "Z18-DAT-05", "Z18-DAT-09")
def a_sample_by_name_reaches_subscribers(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        for payload in (b"one", b"", bytes(range(256))):
            writer.write(name, payload)
        subscriber.gets(b"one", b"", bytes(range(256)))


@check("Z18-DAT-03", "Z18-DCL-10")
def an_exact_subscriber_gets_samples_under_its_own_id(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        writer.write(name, b"x")
        kind, message = subscriber.sample()
        if kind != "StreamData" or (message.id, message.prid) != (2, None):
            raise Failed(f"{message} is no StreamData of id 2 without prid")


@check("Z18-DAT-03", "Z18-RES-03")
def a_subscriber_of_a_pattern_is_told_which_resource_it_is(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as subscriber, endpoint.opened() as writer:
        subscriber.subscribed(2, name + b"/*")
        writer.write(name + b"/b", b"by name")
        kind, message = subscriber.sample()
        if kind != "WriteData" or message.resource.partition(b"#")[0] != name + b"/b":
            raise Failed(f"{message} does not name the resource, which has no id")
        subscriber.declared(subscriber.m.ResourceDecl(4, name + b"/b"))
        writer.write(name + b"/b", b"by id")
        kind, message = subscriber.sample()
        if kind == "StreamData" and (message.id, message.prid) != (2, 4):
            raise Failed(f"{message} is not of id 2, resource 4")


@check("Z18-DAT-04")
def a_sample_of_a_pattern_is_dropped(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        writer.write(name + b"*", b"dropped")
        writer.alive()
        writer.write(name, b"kept")
        subscriber.gets(b"kept")


@check("Z18-DAT-07")
def the_samples_of_a_batch_are_all_delivered(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        writer.declared(writer.m.ResourceDecl(2, name), writer.m.PublisherDecl(2))
        writer.say(writer.m.BatchedData(writer.number(), 2, (b"1", b"2", b"3"), True, True))
        subscriber.gets(b"1", b"2", b"3")


@check("Z18-DAT-08")
def data_of_an_unknown_id_is_dropped(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.StreamData(talk.number(), 998, b"x", True, True))
        talk.say(talk.m.StreamData(talk.number(), 999, b"x", True, True))
        talk.alive()


@check("Z18-DAT-10")
def a_sample_does_not_come_back(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        talk.subscribed(2, name)
        talk.write(name, b"x")
        talk.alive()
        talk.silent("StreamData", "WriteData", "BatchedData")


# -- pulls -------------------------------------------------------------------------------------------------------------


def pulling(endpoint: Endpoint, *payloads: bytes) -> tuple[Talk, Talk, bytes]:
    """A pull subscriber with some samples in its queue."""
    name = endpoint.name("pulled")
    puller, writer = endpoint.opened(), endpoint.opened()
    puller.subscribed(2, name, 2)
    for payload in payloads:
        writer.write(name, payload)
    writer.alive()
    puller.silent("StreamData", "WriteData", "BatchedData")
    return puller, writer, name


def pull(talk: Talk, most: int | None = None, *, final: bool = False, pull_id: int = 1) -> None:
    message = talk.endpoint.generation.pull(2, most=most, final=final, pull_id=pull_id)
    talk.say(message._replace(sn=talk.number(), sync=True))


def ends(talk: Talk) -> None:
    """The end of a pull comes, in the dialect that has one; in the other nothing does."""
    if not talk.endpoint.generation.ends_pulls:
        talk.silent("StreamData", "BatchedData", "WriteData")
        return
    kind, message = talk.sample()
    if kind != "StreamData" or (message.id, message.prid) != (2, 0):
        raise Failed(f"{message} is not the end of the pull")


@check("Z18-PUL-01", "Z18-PUL-03", "Z18-PUL-04", "Z18-DCL-17")
def a_pull_brings_what_has_come_since(endpoint: Endpoint) -> None:
    puller, writer, _ = pulling(endpoint, b"1", b"2", b"3")
    with puller, writer:
        pull(puller)
        puller.gets(b"1", b"2", b"3")
        ends(puller)


@check("Z18-PUL-02", "Z18-PUL-06", "Z18-PUL-07", "Z18-PUL-08")
def a_pull_brings_as_many_as_it_asks_for(endpoint: Endpoint) -> None:
    puller, writer, _ = pulling(endpoint, b"1", b"2", b"3", b"4", b"5")
    with puller, writer:
        pull(puller, 2)
        puller.gets(b"1", b"2")
        puller.silent("StreamData")
        pull(puller, 65535)
        puller.gets(b"3", b"4", b"5")
        ends(puller)
        pull(puller, 1)
        ends(puller)


@check("Z18-PUL-05", "Z18-PUL-06", dialect="zenoh2018")
def a_final_pull_ends_after_what_it_brought(endpoint: Endpoint) -> None:
    puller, writer, _ = pulling(endpoint, b"1", b"2", b"3")
    with puller, writer:
        pull(puller, 1, final=True)
        puller.gets(b"1")
        ends(puller)


@check("Z18-PUL-05", "Z18-PUL-06", dialect="zenoh2018")
def a_cancelled_pull_brings_nothing_but_its_end(endpoint: Endpoint) -> None:
    puller, writer, _ = pulling(endpoint, b"1", b"2")
    with puller, writer:
        pull(puller, 1)
        puller.gets(b"1")
        pull(puller, final=True)
        ends(puller)


@check("Z18-PUL-02", "Z18-ERR-03")
def a_pull_of_0_samples_ends_the_session(endpoint: Endpoint) -> None:
    puller, writer, _ = pulling(endpoint)
    with puller, writer:
        pull(puller, 0)
        puller.closed(5)


@check("Z18-PUL-08", "Z18-ERR-03", dialect="xrce2017")
def pull_ids_of_1_to_15_are_supported_and_0_is_refused(endpoint: Endpoint) -> None:
    puller, writer, _ = pulling(endpoint, b"1", b"2")
    with puller, writer:
        pull(puller, 1, pull_id=1)
        puller.gets(b"1")
        pull(puller, 1, pull_id=15)
        puller.gets(b"2")
        pull(puller, 1, pull_id=0)
        puller.closed(5)


# -- fragments ---------------------------------------------------------------------------------------------------------


def fragment(talk: Talk, sn: int, name: bytes, payload: bytes, frag: Any, *, reliable: bool = True) -> None:
    before = talk.endpoint.generation.encode(frag)
    talk.say(talk.m.WriteData(sn, name, payload, reliable, reliable), before=before)


@check("Z18-FRG-02", "Z18-FRG-05", "Z18-FRG-06")
def fragments_are_put_together(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        for sn, piece in enumerate((b"one ", b"two ", b"six")):
            fragment(writer, sn, b"" if sn else name, piece, writer.m.Frag(0, 3))
        subscriber.gets(b"one two six")


@check("Z18-FRG-03")
def fragments_without_a_count_end_before_the_next_message(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        for sn, piece in enumerate((b"a", b"b")):
            fragment(writer, sn, b"" if sn else name, piece, writer.m.Frag(0))
        writer.sn[True] = 2
        writer.write(name, b"c")
        subscriber.gets(b"ab", b"c")


@check("Z18-FRG-03", "Z18-FRG-04")
def a_series_of_1_fragment_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        fragment(talk, 0, endpoint.name("a"), b"x", talk.m.Frag(0, 1))
        talk.closed(255)


@check("Z18-FRG-05")
def a_gap_discards_fragments_of_best_effort(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    with subscriber, writer:
        for sn in (0, 2):  # and number 1 is lost
            fragment(writer, sn, b"" if sn else name, b"x", writer.m.Frag(0, 3), reliable=False)
        writer.say(writer.m.WriteData(3, name, b"whole", False))
        subscriber.gets(b"whole")


@check("Z18-FRG-01", "Z18-FRG-02", "Z18-FRG-05")
def a_sample_larger_than_a_packet_arrives_whole(endpoint: Endpoint) -> None:
    subscriber, writer, name = listening(endpoint)
    large = bytes(number % 251 for number in range(5_000))
    with subscriber, writer:
        pieces = [large[at : at + 1_000] for at in range(0, len(large), 1_000)]
        for sn, piece in enumerate(pieces):
            fragment(writer, sn, b"" if sn else name, piece, writer.m.Frag(0, len(pieces)))
        found = b""
        while len(found) < len(large):
            found += subscriber.sample()[1].payload
        if found != large:
            raise Failed("the fragments are not what was sent")


# -- resource spaces ---------------------------------------------------------------------------------------------------


@check("Z18-RSP-01", dialect="zenoh2018")
def space_1_is_for_brokers(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.WriteData(0, endpoint.name("a"), b"x", True), before=b"\x98")
        talk.closed(255)


@check("Z18-RSP-02", "Z18-RSP-03", dialect="zenoh2018")
def an_id_means_something_else_in_another_space(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        name = endpoint.name("a")
        talk.declared(talk.m.ResourceDecl(2, name))
        found = talk.declare(talk.m.ResourceDecl(2, name + b"/other"), before=b"\xb8")
        if found.status not in (0, 6):
            raise Failed(f"status {found.status}, as if the spaces were one")
