"""Transactions, publishers, subscribers (§5.7): the module Discovery."""

from __future__ import annotations

from elea.conformance.registry import Failed, check
from elea.conformance.talk import Endpoint

__all__: list[str] = []


@check("Z18-DCL-01", "Z18-DCL-03", module="discovery")
def a_transaction_has_a_result_and_an_acknowledgement(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        listed = (talk.m.PublisherDecl(2), talk.m.CommitDecl(77))
        talk.say(talk.m.Declare(talk.number(), listed, sync=True))
        found = talk.result(77)
        if (found.status, found.id) != (0, None):
            raise Failed(f"{found} is no success")
        talk.alive()


@check("Z18-DCL-02", module="discovery")
def nothing_holds_before_the_commit(endpoint: Endpoint) -> None:
    subscriber, writer = endpoint.opened(), endpoint.opened()
    with subscriber, writer:
        name = endpoint.name("a")
        m = subscriber.m
        listed = (m.ResourceDecl(2, name), m.SubscriberDecl(2, m.SubscriptionModeId.PushModeId))
        subscriber.say(m.Declare(subscriber.number(), listed, sync=True))
        subscriber.alive()
        writer.write(name, b"too early")
        writer.alive()
        subscriber.silent("Declare", "StreamData", "WriteData")
        if subscriber.declare(commit=3).status:
            raise Failed("the commit did not succeed")
        writer.write(name, b"now")
        subscriber.gets(b"now")


@check("Z18-DCL-02", "Z18-DCL-06", module="discovery")
def a_transaction_holds_as_a_whole_or_not_at_all(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        found = talk.status(5, talk.m.ResourceDecl(2, name), talk.m.ResourceDecl(3, name))
        if found.id != 3:
            raise Failed(f"the result names {found.id}, and 3 is to blame")
        talk.declared(talk.m.ResourceDecl(2, name + b"/other"))  # 2 is free


@check("Z18-DCL-04", "Z18-ERR-03", module="discovery")
def a_commit_that_is_not_the_last_ends_the_session(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.Declare(0, (talk.m.CommitDecl(1), talk.m.PublisherDecl(2))))
        talk.closed(255)


@check("Z18-DCL-05", module="discovery")
def committed_declarations_have_no_result(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.say(talk.m.Declare(talk.number(), (talk.m.PublisherDecl(2),), sync=True, committed=True))
        talk.alive()
        talk.silent("Declare", wanted=lambda one: "ResultDecl" in str(one))


@check("Z18-DCL-05", "Z18-SES-09", "Z18-ERR-03", module="discovery")
def committed_declarations_that_cannot_be_end_the_session(endpoint: Endpoint) -> None:
    for wrong in ("PublisherDecl", "CommitDecl"):
        with endpoint.opened() as talk:
            talk.say(talk.m.Declare(0, (getattr(talk.m, wrong)(0),), committed=True))
            talk.closed(6)


@check("Z18-DCL-07", "Z18-ERR-03", module="discovery")
def ids_that_cannot_be_are_refused(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.status(5, talk.m.PublisherDecl(0))
        talk.status(5, talk.m.PublisherDecl(1 << 63))
        talk.declared(talk.m.PublisherDecl((1 << 63) - 2))


@check("Z18-DCL-09", module="discovery")
def declaring_again_and_forgetting_the_unknown_succeed(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        for _ in range(2):
            talk.declared(talk.m.PublisherDecl(2))
        talk.declared(talk.m.ForgetPublisherDecl(998), talk.m.ForgetSubscriberDecl(998))


@check("Z18-DCL-11", module="discovery")
def a_commit_of_nothing_succeeds(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.declared()
        talk.say(talk.m.Declare(talk.number(), (talk.m.ResultDecl(200, 0),), sync=True))
        talk.alive()


@check("Z18-DCL-12", module="discovery")
def one_commit_may_follow_another(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        for commit in (1, 2):
            talk.say(talk.m.Declare(talk.number(), (talk.m.PublisherDecl(2 * commit), talk.m.CommitDecl(commit))))
        talk.result(1)
        talk.result(2)


@check("Z18-DCL-15", module="discovery")
def a_forgotten_subscriber_gets_nothing(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as subscriber, endpoint.opened() as writer:
        subscriber.subscribed(2, name)
        writer.write(name, b"1")
        subscriber.gets(b"1")
        subscriber.declared(subscriber.m.ForgetSubscriberDecl(2))
        writer.write(name, b"2")
        writer.alive()
        subscriber.silent("StreamData", "WriteData")


@check("Z18-DCL-16", module="discovery")
def resources_without_a_name_are_known_by_their_ids(endpoint: Endpoint) -> None:
    id = 0x10_0000 + 2 * (hash(endpoint.name("")) & 0xFFFF)
    with endpoint.opened() as subscriber, endpoint.opened() as publisher:
        subscriber.declared(subscriber.m.SubscriberDecl(id, subscriber.m.SubscriptionModeId.PushModeId))
        publisher.declared(publisher.m.PublisherDecl(id))
        publisher.say(publisher.m.StreamData(publisher.number(), id, b"x", True, True))
        message = subscriber.sample()[1]
        if (getattr(message, "id", None), message.payload) != (id, b"x"):
            raise Failed(f"{message} is not of id {id}")
        publisher.status(2, publisher.m.ResourceDecl(id, endpoint.name("late")))


@check("Z18-DCL-16", module="discovery")
def a_selection_that_nobody_declared_is_refused(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.status(5, talk.m.PublisherDecl(999))


@check("Z18-DCL-17", "Z18-ERR-03", module="discovery")
def windows_that_cannot_be_are_refused(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        mode = talk.m.SubscriptionModeId.PeriodicPushModeId
        for period, duration in ((100, 100), (100, 200), (100, 0)):
            talk.status(5, talk.m.SubscriberDecl(2, mode, talk.m.SubscriberDeclParams(0, period, duration)))
        talk.declared(talk.m.SubscriberDecl(2, mode, talk.m.SubscriberDeclParams(0, 16384, 16383)))


@check("Z18-DCL-17", "Z18-DAT-09", module="discovery")
def a_periodic_subscriber_gets_samples_in_its_windows_only(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as subscriber, endpoint.opened() as writer:
        m = subscriber.m
        window = m.SubscriberDeclParams(1500, 16384, 400)
        mode = m.SubscriptionModeId.PeriodicPushModeId
        subscriber.declared(m.ResourceDecl(2, name), m.SubscriberDecl(2, mode, window))
        writer.write(name, b"1")
        writer.write(name, b"2")
        subscriber.silent("StreamData", "WriteData")
        message = subscriber.hear("StreamData", patience=endpoint.patience + 2.0)
        if message.payload != b"1":
            raise Failed(f"{message.payload!r} came first")
        subscriber.gets(b"2")


@check("Z18-DCL-18", module="discovery")
def another_mode_replaces_a_subscriber(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as subscriber, endpoint.opened() as writer:
        subscriber.subscribed(2, name, 2)
        subscriber.declared(subscriber.m.SubscriberDecl(2, subscriber.m.SubscriptionModeId.PushModeId))
        writer.write(name, b"pushed")
        subscriber.gets(b"pushed")


@check("Z18-PRP-02", "Z18-RES-05", module="discovery")
def a_property_that_cannot_be_is_refused(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.status(5, talk.m.PublisherDecl(2, (talk.m.Property(6, b"\x02"),)))
