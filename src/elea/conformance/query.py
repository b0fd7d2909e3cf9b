"""Resources, selections, bindings, meta resources, durability (§5.7, §5.16, §5.17): the module Query."""

from __future__ import annotations

from elea.conformance.data import ends, pull
from elea.conformance.registry import Failed, NotApplicable, check
from elea.conformance.talk import Endpoint, Talk

__all__: list[str] = []


@check("Z18-DCL-07", module="query")
def resources_have_even_ids_and_selections_odd_ones(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        talk.status(5, talk.m.ResourceDecl(3, name))
        talk.status(5, talk.m.SelectionDecl(2, name))
        talk.declared(talk.m.ResourceDecl(2, name), talk.m.SelectionDecl(3, name))


@check("Z18-DCL-08", module="query")
def a_resource_cannot_change(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        talk.declared(talk.m.ResourceDecl(2, name))
        if talk.status(2, talk.m.ResourceDecl(2, name + b"/b")).id != 2:
            raise Failed("the result does not name id 2")
        talk.status(2, talk.m.ResourceDecl(2, name, (talk.m.Property(6, b"\0"),)))


@check("Z18-DCL-09", "Z18-DCL-10", module="query")
def a_resource_may_be_declared_again_and_under_another_id(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        for id in (2, 2, 4):
            talk.declared(talk.m.ResourceDecl(id, name))


@check("Z18-DCL-13", "Z18-SEL-01", "Z18-SEL-02", module="query")
def selections_are_read(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        talk.declared(
            talk.m.SelectionDecl(3, name + b"/**#{transient,persistent}"), talk.m.SelectionDecl(5, name + b"#?")
        )
        talk.status(5, talk.m.SelectionDecl(7, name + b"?{"))


@check("Z18-DCL-14", module="query")
def a_binding_is_another_name_of_a_selection(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        m = talk.m
        talk.status(5, m.BindingDecl(3, 5))
        talk.declared(m.SelectionDecl(3, name), m.BindingDecl(3, 5))
        talk.declared(m.SelectionDecl(7, name + b"/b"))
        talk.status(2, m.BindingDecl(3, 7))
        talk.declared(m.SubscriberDecl(5, m.SubscriptionModeId.PushModeId))


@check("Z18-DCL-15", module="query")
def forgetting_a_resource_ends_its_subscribers(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as subscriber, endpoint.opened() as writer:
        subscriber.subscribed(2, name)
        subscriber.declared(subscriber.m.ForgetResourceDecl(2))
        writer.write(name, b"x")
        writer.alive()
        subscriber.silent("StreamData", "WriteData")


@check("Z18-SEL-04", "Z18-RES-04", module="query")
def a_subscriber_of_a_selection_gets_what_matches(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as subscriber, endpoint.opened() as writer:
        m = subscriber.m
        subscriber.declared(m.SelectionDecl(3, name + b"/?"), m.SubscriberDecl(3, m.SubscriptionModeId.PushModeId))
        for last in (b"/bc", b"/", b"/b"):
            writer.write(name + last, last)
        subscriber.gets(b"/b")


@check("Z18-RES-01", "Z18-RES-02", "Z18-ERR-03", module="query")
def names_that_cannot_be_are_refused(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        for wrong in (b"nothing", name + b"//b", name + b"/", name + b"/{x}", name + b" b", name + b"/\xff"):
            talk.status(5, talk.m.ResourceDecl(2, wrong))
        talk.declared(talk.m.ResourceDecl(2, name + b"#{transient,other}"))


@check("Z18-RES-03", module="query")
def wildcards_match_characters(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as subscriber, endpoint.opened() as writer:
        subscriber.subscribed(2, name + b"/**/z*")
        for last in (b"/z", b"/x/y", b"/x/y/z1"):
            writer.write(name + last, last)
        subscriber.gets(b"/x/y/z1")


@check("Z18-RES-06", module="query")
def properties_of_a_resource_can_be_pulled(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        talk.status(5, talk.m.ResourceDecl(4, name + b"/property"))
        talk.declared(talk.m.ResourceDecl(4, name, (talk.m.Property(99, b"mine"),)))
        talk.declared(talk.m.SelectionDecl(3, name + b"/property"))
        message = endpoint.generation.pull(3)
        talk.say(message._replace(sn=talk.number(), sync=True))
        payload = talk.sample()[1].payload
        if b"mine" not in payload:
            raise Failed(f"{payload!r} does not hold the property")


@check("Z18-DUR-01", module="query")
def tags_and_property_8_must_agree(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        talk.status(5, talk.m.ResourceDecl(2, name + b"#transient", (talk.m.Property(8, b"\x02"),)))
        talk.declared(talk.m.ResourceDecl(2, name + b"#transient", (talk.m.Property(8, b"\x01"),)))


@check("Z18-DUR-02", module="query")
def tags_select_durable_resources(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as subscriber, endpoint.opened() as writer:
        subscriber.subscribed(2, name + b"/*#{transient,persistent}")
        writer.write(name + b"/b", b"volatile")
        writer.write(name + b"/c#transient", b"transient")
        subscriber.gets(b"transient")


def gets_what_is_kept(talk: Talk, payload: bytes) -> None:
    """A stored sample comes. If not, that is a fault only of who says that it keeps what is durable (Z18-SCO-01)."""
    try:
        talk.gets(payload)
    except Failed:
        with talk.endpoint.talk() as other:
            other.say(other.m.Scout(0b1111))
            if other.hear("Hello").mask & 2:
                raise
        raise NotApplicable("nothing is kept, and its Hello has no bit for durability") from None


@check("Z18-DUR-03", "Z18-DUR-04", "Z18-DUR-05", module="query")
def a_durable_subscriber_finds_what_was_written_before(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as writer:
        writer.write(name + b"#transient", b"kept")
        writer.alive()
    with endpoint.opened() as subscriber:
        subscriber.subscribed(2, name + b"#transient")
        gets_what_is_kept(subscriber, b"kept")


@check("Z18-PUL-03", "Z18-DUR-03", module="query")
def a_pull_of_a_selection_asks_the_store(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as writer, endpoint.opened() as puller:
        writer.write(name + b"#transient", b"kept")
        writer.alive()
        puller.declared(puller.m.ResourceDecl(2, name + b"#transient"))
        pull(puller)
        gets_what_is_kept(puller, b"kept")
        ends(puller)


@check("Z18-MET-01", module="query", dialect="zenoh2018")
def children_and_ids_of_a_resource_can_be_pulled(endpoint: Endpoint) -> None:
    name = endpoint.name("a")
    with endpoint.opened() as talk:
        talk.declared(talk.m.ResourceDecl(2, name + b"/b"), talk.m.ResourceDecl(4, name + b"/c"))
        for sid, meta, wanted in ((3, b"$ls", name + b"/b"), (5, b"/b$id", b"\x02")):
            talk.declared(talk.m.SelectionDecl(sid, name + meta))
            message = endpoint.generation.pull(sid)
            talk.say(message._replace(sn=talk.number(), sync=True))
            payload = talk.sample()[1].payload
            if wanted not in payload:
                raise Failed(f"{meta!r} gives {payload!r}, without {wanted!r}")
            talk.sample()  # its end
