"""The transport on a session of its own: what is sent, what is delivered, what is dropped and why."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from elea.model.limits import UPROTOCOL_KEYS_PER_MESSAGE, UPROTOCOL_RECEIVED
from elea.uprotocol import ANY_UURI, UUID, UAttributes, UCode, UMessage, UPayloadFormat, UPriority, UStatusError, UUri
from elea.uprotocol import open as open_transport
from elea.uprotocol.attachment import read_known, write_attachment
from elea.uprotocol.message import ReceivedMessage
from elea.uprotocol.uuid7 import new_uuid
from tests.interop.inbox import Inbox, eventually
from tests.unit.uprotocol.entities import FakeClock, alone, entity

TOPIC = UUri.parse("//host1/10AB/3/80CD")
CLIENT = UUri.parse("//host1/10AB/3/0")
METHOD = UUri.parse("//host2/CD/4/B")
OTHER = UUri.parse("//host2/CD/4/0")
LAST = UUri.parse("//host1/10AB/3/FFFE")


@pytest.fixture
def session() -> Iterator[elea.Session]:
    with elea.open(alone()) as opened:
        yield opened


class Everything:
    """All that listeners of each kind get, up to a last message."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.inbox = Inbox()

    def listen(self, source: UUri, sink: UUri | None) -> None:
        self._transport.register_listener(source, sink, self.inbox)

    def until_last(self, sink: UUri | None = None) -> list[UMessage]:
        if sink is None:
            self._transport.send(UMessage.publish(LAST))
        else:
            self._transport.send(UMessage.notification(LAST, sink))
        return self.inbox.until(lambda message: message.source == LAST)


@pytest.mark.parametrize(
    "message",
    [
        UMessage.publish(TOPIC, b"x", UPayloadFormat.RAW),
        UMessage.publish(UUri.parse("/10AB/3/80CD"), b"", UPayloadFormat.TEXT),
        UMessage.publish(TOPIC, priority=UPriority.CS6, ttl=0),
        UMessage.notification(TOPIC, CLIENT, b"note", UPayloadFormat.TEXT, ttl=3_600_000),
        UMessage.request(CLIENT, METHOD, ttl=3_600_000, token="t", permission_level=3),
        UMessage.response(UMessage.request(CLIENT, METHOD, ttl=3_600_000).attributes, b"y", UPayloadFormat.RAW),
    ],
    ids=["publish", "publish without authority", "no payload", "notification", "request", "response"],
)
def test_a_message_arrives_as_it_was_sent(session: elea.Session, message: UMessage) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    inbox = Inbox()
    samples = Inbox()
    transport.register_listener(ANY_UURI, None if message.sink is None else ANY_UURI, inbox)
    session.declare_subscriber("up/**", samples)

    transport.send(message)

    got = inbox.one()
    assert got == message
    assert isinstance(got, ReceivedMessage)
    assert got.origin == (message.source and message.source.with_authority("host1"))
    sample = samples.one()
    assert sample.attachment.to_bytes() == b"\x01" + message.attributes.to_bytes()
    assert sample.payload.to_bytes() == (message.payload or b"")


def test_the_priority_is_seen_at_the_receiver(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    samples = Inbox()
    session.declare_subscriber("up/**", samples)

    for priority in UPriority:
        transport.send(UMessage.publish(TOPIC, priority=priority))

    assert [int(sample.priority) for sample in samples.take(8)] == [6, 7, 6, 5, 4, 3, 2, 1]


def test_a_megabyte_arrives_unchanged(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    inbox = Inbox()
    transport.register_listener(TOPIC, None, inbox)
    payload = bytes(range(256)) * 4096

    transport.send(UMessage.publish(TOPIC, payload, UPayloadFormat.RAW))

    assert inbox.one().payload == payload


def test_a_wildcard_sink_does_not_bring_publish_messages(session: elea.Session) -> None:
    """Trap 1: `*` matches `{}`."""
    transport = entity(session, "//host1/10AB/3/0")
    everything = Everything(transport)
    everything.listen(ANY_UURI, ANY_UURI)

    transport.send(UMessage.publish(TOPIC))
    transport.send(UMessage.notification(TOPIC, OTHER))

    assert [message.sink for message in everything.until_last(OTHER)] == [OTHER]


def test_no_sink_filter_brings_publish_messages_only(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    everything = Everything(transport)
    everything.listen(ANY_UURI, None)

    transport.send(UMessage.notification(TOPIC, OTHER))
    transport.send(UMessage.publish(TOPIC))

    assert [message.source for message in everything.until_last()] == [TOPIC]


def test_a_source_without_authority_is_matched_by_the_key(session: elea.Session) -> None:
    """Trap 2: the attributes travel as they are; only the key has the authority."""
    sender, receiver = entity(session, "//host1/10AB/3/0"), entity(session, "//host2/CD/4/0")
    inbox = Inbox()
    receiver.register_listener(TOPIC, None, inbox)
    message = UMessage.publish(UUri.parse("/10AB/3/80CD"))

    sender.send(message)

    got = inbox.one()
    assert (got, got.origin) == (message, TOPIC)


def put(session: elea.Session, attributes: UAttributes, *, key: str = "", version: int = 1) -> None:
    """Put a message as somebody would who does not check anything."""
    name = key or "up/host1/10AB/0/3/80CD/{}/{}/{}/{}/{}"
    session.put(name, b"", attachment=bytes((version,)) + attributes.to_bytes())


def test_what_is_no_message_is_dropped_and_counted(session: elea.Session, caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    transport = entity(session, "//host1/10AB/3/0", clock=clock)
    everything = Everything(transport)
    everything.listen(ANY_UURI, None)
    good = UMessage.publish(TOPIC, id=new_uuid(clock)).attributes

    with caplog.at_level(logging.WARNING, "elea.uprotocol"):
        session.put("up/host1/10AB/0/3/80CD/{}/{}/{}/{}/{}", b"no attachment")
        session.put("up/host1/10AB/0/3/80CD/{}/{}/{}/{}/{}", b"", attachment=b"\x01")
        put(session, good, version=0)
        put(session, good, version=2)
        put(session, good._replace(id=None))
        put(session, good._replace(source=CLIENT))
        put(session, good, key="up/host3/10AB/0/3/80CD/{}/{}/{}/{}/{}")
        put(session, good, key="up/host1/10AB/0/3/80CE/{}/{}/{}/{}/{}")
        session.delete("up/host1/10AB/0/3/80CD/{}/{}/{}/{}/{}", attachment=write_attachment(good))
        put(session, good)

        assert [message.source for message in everything.until_last()] == [TOPIC]
    assert transport.dropped == {"attachment": 4, "invalid": 2, "expired": 0, "key": 2, "deleted": 1}
    assert "reason=attachment" in caplog.text
    assert "version 2" in caplog.text
    assert "id missing" in caplog.text


def test_an_expired_message_is_not_delivered(session: elea.Session) -> None:
    clock = FakeClock()
    transport = entity(session, "//host1/10AB/3/0", clock=clock)
    everything = Everything(transport)
    everything.listen(ANY_UURI, None)
    made = clock.now
    message = UMessage.publish(TOPIC, ttl=1000, id=new_uuid(clock))
    forever = UMessage.publish(TOPIC, ttl=0, id=new_uuid(clock))

    clock.now = made + 1000
    transport.send(message)
    assert everything.inbox.one() == message
    clock.now = made + 1001
    transport.send(message)
    transport.send(forever)

    assert everything.until_last() == [forever]
    assert transport.dropped["expired"] == 1


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (UMessage(), "type missing"),
        (UMessage.publish(METHOD), "must be in 8000..FFFE"),
        (UMessage.notification(TOPIC, METHOD), "must be 0"),
        (UMessage.notification(TOPIC, ANY_UURI), "has a wildcard"),
        (UMessage.request(CLIENT, METHOD, ttl=0), "ttl of a request is 0"),
        (UMessage.request(CLIENT, METHOD, ttl=1, priority=UPriority.CS3), "below CS4"),
        (UMessage.publish(TOPIC, None, UPayloadFormat.RAW), "there is no payload"),
        (UMessage.publish(TOPIC, "text"), "not bytes"),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_message_is_not_sent(session: elea.Session, message: UMessage, problem: str) -> None:
    transport = entity(session, "//host1/10AB/3/0")

    with pytest.raises(UStatusError, match=problem) as caught:
        transport.send(message)

    assert caught.value.code is UCode.INVALID_ARGUMENT


def test_a_request_without_ttl_is_neither_sent_nor_delivered(session: elea.Session) -> None:
    """Trap 4: whoever calls would wait for ever, and whoever answers would never stop."""
    transport = entity(session, "//host1/10AB/3/0")
    everything = Everything(transport)
    everything.listen(ANY_UURI, OTHER.with_resource(0xFFFF))
    endless = UMessage.request(CLIENT, METHOD, ttl=1).attributes._replace(ttl=None)

    with pytest.raises(UStatusError, match="ttl of a request missing"):
        transport.send(UMessage(endless))
    put(session, endless, key="up/host1/10AB/0/3/0/host2/CD/0/4/B")

    assert everything.until_last(OTHER) == []
    assert transport.dropped["invalid"] == 1


def test_another_authority_may_be_forbidden(session: elea.Session) -> None:
    strict = entity(session, "//host1/10AB/3/0", own_source_only=True)

    strict.send(UMessage.publish(TOPIC))
    strict.send(UMessage.publish(UUri.parse("/10AB/3/80CD")))
    with pytest.raises(UStatusError, match="not of authority host1") as caught:
        strict.send(UMessage.publish(UUri.parse("//host9/10AB/3/80CD")))

    assert caught.value.code is UCode.PERMISSION_DENIED


def test_nobody_who_would_get_a_request_is_told_at_once(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")

    with pytest.raises(UStatusError, match="nobody listens to //host2/CD/4/B") as caught:
        transport.send(UMessage.request(CLIENT, METHOD, ttl=1000))

    assert caught.value.code is UCode.UNAVAILABLE


def test_the_same_listener_again_changes_nothing(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    first, second = Everything(transport), Everything(transport)
    for _ in range(2):
        first.listen(TOPIC.with_resource(0xFFFF), None)
    second.listen(TOPIC.with_resource(0xFFFF), None)

    transport.send(UMessage.publish(TOPIC))

    assert len(first.until_last()) == 1
    assert [message.source for message in second.inbox.take(2)] == [TOPIC, LAST]


def test_an_unregistered_listener_is_told_nothing(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    gone, stays = Inbox(), Everything(transport)
    transport.register_listener(ANY_UURI, None, gone)
    stays.listen(ANY_UURI, None)

    transport.unregister_listener(ANY_UURI, None, gone)
    transport.send(UMessage.publish(TOPIC))

    assert len(stays.until_last()) == 1
    assert gone.drain() == []
    with pytest.raises(UStatusError) as caught:
        transport.unregister_listener(ANY_UURI, None, gone)
    assert caught.value.code is UCode.NOT_FOUND


def test_unregistering_waits_for_a_call_under_way(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    inside, go_on, said = threading.Event(), threading.Event(), []

    def slow(_: UMessage) -> None:
        inside.set()
        go_on.wait(10)
        said.append("done")

    transport.register_listener(TOPIC, None, slow)
    transport.send(UMessage.publish(TOPIC))
    assert inside.wait(10)

    def end() -> None:
        transport.unregister_listener(TOPIC, None, slow)
        said.append("ended")

    ending = threading.Thread(target=end)
    ending.start()
    go_on.set()
    ending.join(10)

    assert said == ["done", "ended"]


def test_a_listener_may_unregister_itself(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    got = Inbox()

    def once(message: UMessage) -> None:
        transport.unregister_listener(TOPIC, None, once)
        got(message)

    transport.register_listener(TOPIC, None, once)
    transport.send(UMessage.publish(TOPIC))

    assert got.one().source == TOPIC


def test_a_listener_that_raises_stops_nobody(session: elea.Session, caplog: pytest.LogCaptureFixture) -> None:
    transport = entity(session, "//host1/10AB/3/0")

    class Broken:
        def on_receive(self, message: UMessage) -> None:
            raise RuntimeError("broken")

    broken, inbox = Broken(), Inbox()
    transport.register_listener(TOPIC, None, broken)
    transport.register_listener(TOPIC, None, inbox)

    transport.send(UMessage.publish(TOPIC))

    assert inbox.one().source == TOPIC
    assert "broken" in caplog.text


def test_listeners_have_limits(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0", max_listeners=3, max_listeners_per_filter=2)
    transport.register_listener(TOPIC, None, Inbox())
    transport.register_listener(TOPIC, None, Inbox())

    with pytest.raises(UStatusError, match="2 listeners have these filters") as per_filter:
        transport.register_listener(TOPIC, None, Inbox())
    transport.register_listener(ANY_UURI, None, Inbox())
    with pytest.raises(UStatusError, match="there are 3 listeners") as all_of_them:
        transport.register_listener(ANY_UURI, OTHER, Inbox())

    assert per_filter.value.code is all_of_them.value.code is UCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("call", ["register_listener", "unregister_listener"])
def test_filters_that_match_nothing_are_refused(session: elea.Session, call: str) -> None:
    transport = entity(session, "//host1/10AB/3/0")

    with pytest.raises(UStatusError) as caught:
        getattr(transport, call)(METHOD, None, print)

    assert caught.value.code is UCode.INVALID_ARGUMENT
    with pytest.raises(TypeError):
        transport.register_listener(TOPIC, None, 5)  # type: ignore[arg-type]


def test_receive_gives_what_has_come(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    with pytest.raises(UStatusError, match="no message from") as caught:
        transport.receive(TOPIC)
    assert caught.value.code is UCode.NOT_FOUND

    transport.send(UMessage.publish(TOPIC, b"1", UPayloadFormat.TEXT))

    assert transport.receive(TOPIC, timeout=10).payload == b"1"


def test_threads_that_receive_together_share_what_comes(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    payloads = Inbox()

    def receive() -> None:
        payloads(transport.receive(ANY_UURI, OTHER, timeout=20).payload)

    threads = [threading.Thread(target=receive) for _ in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(transport._received) == 1, "they receive")
    for number in range(8):
        transport.send(UMessage.notification(TOPIC, OTHER, bytes((number,)), UPayloadFormat.RAW))
    found = payloads.take(8)
    for thread in threads:
        thread.join()

    assert sorted(found) == [bytes((number,)) for number in range(8)]


def test_the_oldest_that_nobody_receives_are_forgotten(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    with pytest.raises(UStatusError, match="NOT_FOUND"):
        transport.receive(TOPIC)
    last = Inbox()
    transport.register_listener(TOPIC, None, last)

    for number in range(UPROTOCOL_RECEIVED + 5):
        transport.send(UMessage.publish(TOPIC, str(number).encode(), UPayloadFormat.TEXT))
    last.take(UPROTOCOL_RECEIVED + 5)

    assert transport.receive(TOPIC).payload == b"5"


def test_who_waits_to_receive_is_told_of_the_end(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    codes = Inbox()

    def receive() -> None:
        try:
            transport.receive(TOPIC, timeout=20)
        except UStatusError as error:
            codes(error.code)

    thread = threading.Thread(target=receive)
    thread.start()
    eventually(lambda: transport._received, "it receives")
    transport.close()
    thread.join()

    assert codes.one() is UCode.UNAVAILABLE
    with pytest.raises(UStatusError, match="UNAVAILABLE"):
        transport.receive(TOPIC)


def test_a_closed_transport_does_nothing() -> None:
    with open_transport(alone(), "//host1/10AB/3/0") as transport:
        transport.register_listener(TOPIC, None, print)
    transport.close()

    assert transport.session.is_closed()
    with pytest.raises(UStatusError, match="UNAVAILABLE"):
        transport.send(UMessage.publish(TOPIC))
    with pytest.raises(UStatusError, match="UNAVAILABLE"):
        transport.register_listener(TOPIC, None, print)


def test_a_transport_that_reaches_nobody_says_so() -> None:
    nowhere = alone(**{"mode": "client", "connect/endpoints": ["tcp/127.0.0.1:1"], "connect/timeout_ms": 0})

    with pytest.raises(UStatusError, match="no session") as caught:
        open_transport(nowhere, "//host1/10AB/3/0")

    assert caught.value.code is UCode.UNAVAILABLE


def test_prepared_messages_are_those_that_are_sent_one_by_one(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0")
    samples, asked = Inbox(), Inbox()
    session.declare_subscriber("up/**", samples)
    transport.register_listener(ANY_UURI, METHOD, asked)
    request = UMessage.request(CLIENT, METHOD, b"x", 6, ttl=60_000, token="t" * 200)
    messages = [
        UMessage.publish(TOPIC, b"50", UPayloadFormat.TEXT, ttl=60_000),
        UMessage.notification(TOPIC, CLIENT),
        request,
        UMessage.response(request.attributes, b"y", UPayloadFormat.RAW, code=UCode.ABORTED),
    ]

    for message in messages:
        transport.send(message)
        attributes = message.attributes
        transport.prepare(attributes).send(message.payload, attributes.id, attributes.reqid)

    found = samples.take(8)
    forms = [(str(one.key_expr), one.attachment.to_bytes(), one.payload.to_bytes(), one.priority) for one in found]
    assert forms[0::2] == forms[1::2]
    assert [asked.one(), asked.one()] == [request, request]


def test_what_cannot_be_prepared_or_sent_is_refused(session: elea.Session) -> None:
    transport = entity(session, "//host1/10AB/3/0", own_source_only=True)
    topic = transport.prepare(UMessage.publish(TOPIC, payload_format=UPayloadFormat.TEXT).attributes)
    answer = transport.prepare(
        UMessage.response(UMessage.request(OTHER, CLIENT.with_resource(5), ttl=1).attributes).attributes
    )

    def code(call: Any, *arguments: object, **more: object) -> UCode:
        with pytest.raises(UStatusError) as caught:
            call(*arguments, **more)
        return caught.value.code

    assert code(transport.prepare, UMessage.publish(METHOD).attributes) is UCode.INVALID_ARGUMENT
    assert code(transport.prepare, UMessage.publish(UUri.parse("//x/1/1/8000")).attributes) is UCode.PERMISSION_DENIED
    assert code(topic.send, None) is UCode.INVALID_ARGUMENT
    assert code(topic.send, "text") is UCode.INVALID_ARGUMENT
    assert code(topic.send, b"", UUID(1, 2)) is UCode.INVALID_ARGUMENT
    assert code(answer.send, None) is UCode.INVALID_ARGUMENT
    assert code(answer.send, None, None, UUID(1, 2)) is UCode.INVALID_ARGUMENT
    request = transport.prepare(UMessage.request(CLIENT, METHOD, ttl=1).attributes)
    assert code(request.send, None) is UCode.UNAVAILABLE
    transport.close()
    assert code(topic.send, b"") is UCode.UNAVAILABLE


def test_few_keys_of_attributes_are_remembered(session: elea.Session) -> None:
    """A publisher may leave out its authority, so any number of keys may have the same attributes."""
    receiver = entity(session, "//host1/10AB/3/0")
    inbox = Inbox()
    receiver.register_listener(ANY_UURI, None, inbox)
    message = UMessage.publish(UUri.parse("/10AB/3/80CE"))

    for number in range(3 * UPROTOCOL_KEYS_PER_MESSAGE):
        for _ in range(2):
            entity(session, f"//host{number}/10AB/3/0").send(message)
    inbox.take(6 * UPROTOCOL_KEYS_PER_MESSAGE)

    known = read_known(write_attachment(message.attributes))[2]
    assert known is not None
    assert 0 < len(known.keys) <= UPROTOCOL_KEYS_PER_MESSAGE
