"""The core services: subscriptions with their rules, and the last message of topics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.uprotocol import (
    CallOptions,
    RpcClient,
    Subscriber,
    UAttributes,
    UCode,
    UMessage,
    UMessageType,
    UPayload,
    UPayloadFormat,
    UStatusError,
    UTransportZenoh,
    UUri,
    key_of,
    new_uuid,
)
from elea.uprotocol.attachment import write_attachment
from elea.uprotocol.core import usubscription as us
from elea.uprotocol.core import utwin as ut
from elea.uprotocol.core.protomessage import ProtoMessage
from elea.uprotocol.payload import wrap_any
from elea.uprotocol.services import USubscription, UTwin, subscriptionledger, utwin
from tests.interop.inbox import Inbox
from tests.unit.uprotocol.entities import FakeClock, alone, entity

TOPIC = UUri.parse("//vcu/10AB/3/8001")
SHORT = CallOptions(ttl=500)


@pytest.fixture
def session() -> Iterator[elea.Session]:
    with elea.open(alone()) as opened:
        yield opened


@pytest.fixture
def app(session: elea.Session) -> UTransportZenoh:
    return entity(session, "//vcu/1234/1/0")


def ask(client: RpcClient, method: int, request: ProtoMessage, kind: type[Any], authority: str = "vcu") -> Any:
    answer = client.invoke_method(us.service_uri(authority, method), UPayload.protobuf(request))
    assert answer is not None
    assert answer.format == UPayloadFormat.PROTOBUF
    return kind.from_bytes(answer.data)


def states(inbox: Inbox, count: int) -> list[tuple[str, us.State]]:
    found = [us.Update.from_bytes(message.payload) for message in inbox.take(count)]
    return [(str(one.subscriber.uri), us.State(one.status.state)) for one in found if one.subscriber and one.status]


def test_a_subscriber_subscribes_and_is_told_of_changes(app: UTransportZenoh, session: elea.Session) -> None:
    published, changes = Inbox(), Inbox()

    with USubscription(entity(session, "//vcu/1/1/0")) as service, Subscriber(app) as subscriber:
        state = subscriber.subscribe(TOPIC, published, lambda topic, status: changes((topic, status.state)))
        app.send(UMessage.publish(TOPIC, b"50", UPayloadFormat.TEXT))
        got = published.one()
        counted = len(service)
        subscriber.unsubscribe(TOPIC, published)

        assert (state, got.payload, counted, len(service)) == (us.State.SUBSCRIBED, b"50", 1, 0)
    assert changes.one() == (TOPIC, us.State.SUBSCRIBED)


def test_a_subscriber_without_a_service(app: UTransportZenoh) -> None:
    published = Inbox()
    with Subscriber(app) as subscriber:
        with pytest.raises(UStatusError, match="UNAVAILABLE"):
            subscriber.subscribe(TOPIC, published, options=SHORT)
        app.send(UMessage.publish(TOPIC, b"1", UPayloadFormat.TEXT))
    with Subscriber(app, service=None) as local:
        local.subscribe(TOPIC, published)
        app.send(UMessage.publish(TOPIC, b"2", UPayloadFormat.TEXT))

        assert published.one().payload == b"2"
        local.unsubscribe(TOPIC, published)


def test_one_change_handler_a_topic(app: UTransportZenoh, session: elea.Session) -> None:
    with USubscription(entity(session, "//vcu/1/1/0")), Subscriber(app) as subscriber:
        subscriber.subscribe(TOPIC, print, lambda *_: None)

        with pytest.raises(UStatusError) as caught:
            subscriber.subscribe(TOPIC, repr, lambda *_: None)

    assert caught.value.code is UCode.ALREADY_EXISTS


def test_subscriptions_are_kept_found_and_told(app: UTransportZenoh, session: elea.Session) -> None:
    told = Inbox()
    observer = entity(session, "//vcu/99/1/0")
    observer.register_listener(us.service_uri("vcu", us.SUBSCRIPTION_CHANGE), observer.get_source(), told)

    with USubscription(entity(session, "//vcu/1/1/0")), RpcClient(app) as client, RpcClient(observer) as watching:
        ask(watching, us.REGISTER_FOR_NOTIFICATIONS, us.NotificationsRequest(topic=TOPIC), us.NotificationsResponse)
        for _ in range(2):  # the second changes nothing and is told to nobody
            answer = ask(client, us.SUBSCRIBE, us.SubscriptionRequest(topic=TOPIC), us.SubscriptionResponse)
            assert (answer.status.state, answer.topic) == (us.State.SUBSCRIBED, TOPIC)
        of_topic = ask(
            client, us.FETCH_SUBSCRIBERS, us.FetchSubscribersRequest(topic=TOPIC), us.FetchSubscribersResponse
        )
        mine = us.FetchSubscriptionsRequest(subscriber=us.SubscriberInfo(uri=UUri.parse("/1234/1/0")))
        subscriptions = ask(client, us.FETCH_SUBSCRIPTIONS, mine, us.FetchSubscriptionsResponse).subscriptions
        by_topic = ask(
            client,
            us.FETCH_SUBSCRIPTIONS,
            us.FetchSubscriptionsRequest(topic=UUri.parse("/10AB/3/8001")),
            us.FetchSubscriptionsResponse,
        ).subscriptions
        for _ in range(2):
            ask(client, us.UNSUBSCRIBE, us.UnsubscribeRequest(topic=TOPIC), us.UnsubscribeResponse)
        ask(watching, us.UNREGISTER_FOR_NOTIFICATIONS, us.NotificationsRequest(topic=TOPIC), us.NotificationsResponse)
        ask(client, us.SUBSCRIBE, us.SubscriptionRequest(topic=TOPIC), us.SubscriptionResponse)

    assert [one.uri for one in of_topic.subscribers] == [app.get_source()]
    assert [(one.topic, one.status.state) for one in subscriptions] == [(TOPIC, us.State.SUBSCRIBED)]
    assert by_topic == subscriptions
    me = str(app.get_source())
    assert states(told, 2) == [(me, us.State.SUBSCRIBED), (me, us.State.UNSUBSCRIBED)]
    assert told.drain() == []


@pytest.mark.parametrize("method", [us.SUBSCRIBE, us.UNSUBSCRIBE, us.FETCH_SUBSCRIBERS, us.FETCH_SUBSCRIPTIONS, 6, 7])
@pytest.mark.parametrize(
    "topic", [None, "//*/10AB/3/8001", "//vcu/FFFF/3/8001", "//vcu/1/FF/8001", "//vcu/1/1/FFFF", "//vcu/1/1/5"]
)
def test_what_is_not_one_topic_is_refused(
    app: UTransportZenoh, session: elea.Session, method: int, topic: str | None
) -> None:
    kinds = {
        us.SUBSCRIBE: us.SubscriptionRequest,
        us.UNSUBSCRIBE: us.UnsubscribeRequest,
        us.FETCH_SUBSCRIBERS: us.FetchSubscribersRequest,
        us.FETCH_SUBSCRIPTIONS: us.FetchSubscriptionsRequest,
    }
    request = kinds.get(method, us.NotificationsRequest)(topic=None if topic is None else UUri.parse(topic))

    with (
        USubscription(entity(session, "//vcu/1/1/0")),
        RpcClient(app) as client,
        pytest.raises(UStatusError) as caught,
    ):
        client.invoke_method(us.service_uri("vcu", method), UPayload.protobuf(request))

    assert caught.value.code is UCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "text",
        UPayload(b"\xff\xff", UPayloadFormat.PROTOBUF),
        UPayload(wrap_any("a.B", b""), UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY),
        UPayload(bytes.fromhex("0a0418900320"), UPayloadFormat.PROTOBUF),
    ],
)
def test_what_is_no_request_is_refused(
    app: UTransportZenoh, session: elea.Session, payload: UPayload | str | None
) -> None:
    with (
        USubscription(entity(session, "//vcu/1/1/0")),
        RpcClient(app) as client,
        pytest.raises(UStatusError) as caught,
    ):
        client.invoke_method(us.service_uri("vcu", us.SUBSCRIBE), payload)

    assert caught.value.code is UCode.INVALID_ARGUMENT


def test_a_wrapped_request_gets_a_wrapped_answer(app: UTransportZenoh, session: elea.Session) -> None:
    """Clients in Rust wrap their requests in Any."""
    request = us.SubscriptionRequest(topic=TOPIC)
    wrapped = UPayload(
        wrap_any(request.DESCRIPTOR.full_name, request.to_bytes()), UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY
    )

    with USubscription(entity(session, "//vcu/1/1/0")), RpcClient(app) as client:
        answer = client.invoke_method(us.service_uri("vcu", us.SUBSCRIBE), wrapped)

    assert answer is not None
    assert answer.format == UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY
    response = answer.unpack(us.SubscriptionResponse)
    assert response is not None
    assert response.topic == TOPIC


def test_subscriptions_expire(app: UTransportZenoh, session: elea.Session) -> None:
    clock = FakeClock()
    told = Inbox()
    app.register_listener(us.service_uri("vcu", us.SUBSCRIPTION_CHANGE), app.get_source(), told)

    def until(milliseconds: int) -> us.SubscriptionRequest:
        when = us.Timestamp(seconds=milliseconds // 1000, nanos=milliseconds % 1000 * 1_000_000)
        return us.SubscriptionRequest(topic=TOPIC, attributes=us.SubscribeAttributes(expire=when))

    with USubscription(entity(session, "//vcu/1/1/0"), clock=clock) as service, RpcClient(app) as client:
        late = ask(client, us.SUBSCRIBE, until(clock.now - 1), us.SubscriptionResponse)
        ask(client, us.SUBSCRIBE, until(clock.now + 500), us.SubscriptionResponse)
        ask(client, us.SUBSCRIBE, until(clock.now + 1500), us.SubscriptionResponse)  # another end is taken up
        clock.now += 1000
        still = ask(client, us.FETCH_SUBSCRIBERS, us.FetchSubscribersRequest(topic=TOPIC), us.FetchSubscribersResponse)
        clock.now += 1000
        over = ask(client, us.FETCH_SUBSCRIBERS, us.FetchSubscribersRequest(topic=TOPIC), us.FetchSubscribersResponse)

        assert (late.status.state, len(still.subscribers), len(over.subscribers)) == (us.State.UNSUBSCRIBED, 1, 0)
        assert len(service) == 0
    assert [state for _, state in states(told, 2)] == [us.State.SUBSCRIBED, us.State.UNSUBSCRIBED]


def test_subscriptions_outlive_the_service(app: UTransportZenoh, session: elea.Session, tmp_path: Path) -> None:
    path = tmp_path / "subscriptions.json"
    with USubscription(entity(session, "//vcu/1/1/0"), path=path), RpcClient(app) as client:
        ask(client, us.SUBSCRIBE, us.SubscriptionRequest(topic=TOPIC), us.SubscriptionResponse)
        ask(client, us.REGISTER_FOR_NOTIFICATIONS, us.NotificationsRequest(topic=TOPIC), us.NotificationsResponse)

    with USubscription(entity(session, "//vcu/1/1/0"), path=path) as service:
        assert len(service) == 1
    path.write_text(path.read_text()[:-5])
    with pytest.raises(UStatusError) as caught:
        USubscription(entity(session, "//vcu/1/1/0"), path=path)
    assert caught.value.code is UCode.DATA_LOSS


def test_only_a_subscription_service_may_reset(app: UTransportZenoh, session: elea.Session) -> None:
    other = entity(session, "//cloud/0/3/0")
    with USubscription(entity(session, "//vcu/1/1/0")) as service, RpcClient(app) as client, RpcClient(other) as peer:
        ask(client, us.SUBSCRIBE, us.SubscriptionRequest(topic=TOPIC), us.SubscriptionResponse)
        with pytest.raises(UStatusError) as caught:
            ask(client, us.RESET, us.ResetRequest(), us.ResetResponse)
        before = len(service)
        ask(peer, us.RESET, us.ResetRequest(), us.ResetResponse)

        assert (before, len(service)) == (1, 0)
    assert caught.value.code is UCode.PERMISSION_DENIED


def test_subscriptions_have_a_limit(
    app: UTransportZenoh, session: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptionledger, "UPROTOCOL_SUBSCRIPTIONS", 1)
    with USubscription(entity(session, "//vcu/1/1/0")), RpcClient(app) as client:
        ask(client, us.SUBSCRIBE, us.SubscriptionRequest(topic=TOPIC), us.SubscriptionResponse)
        with pytest.raises(UStatusError) as caught:
            ask(client, us.SUBSCRIBE, us.SubscriptionRequest(topic=TOPIC.with_resource(0x8002)), ProtoMessage)

    assert caught.value.code is UCode.RESOURCE_EXHAUSTED


def test_the_last_messages_of_topics(app: UTransportZenoh, session: elea.Session) -> None:
    """Here a queryable answers as a storage does; tests/interop has it with a broker."""
    clock = FakeClock()
    stored: dict[str, elea.Sample] = {}
    session.declare_subscriber("up/**", lambda sample: stored.__setitem__(str(sample.key_expr), sample))

    def answer(query: elea.Query) -> None:
        with query:
            sample = stored.get(str(query.key_expr))
            if sample is not None:
                query.reply(sample.key_expr, sample.payload, attachment=sample.attachment)

    session.declare_queryable("up/**", answer)
    topics = [TOPIC.with_resource(0x8000 + number) for number in range(4)]
    messages = [
        UMessage.publish(topics[0], b"old", UPayloadFormat.TEXT),
        UMessage.publish(topics[0], b"new", UPayloadFormat.TEXT),
        UMessage.publish(topics[1], b"expired", UPayloadFormat.TEXT, ttl=10, id=new_uuid(clock)),
    ]

    with UTwin(entity(session, "//vcu/1/1/0")), RpcClient(app) as client:
        for message in messages:
            app.send(message)
        wanted = (*topics[:3], UUri.parse("//vcu/10AB/3/FFFF"), UUri.parse("/10AB/3/8000"))
        request = ut.GetLastMessagesRequest(topics=ut.UUriBatch(uris=wanted))
        answered = client.invoke_method(ut.service_uri("vcu", ut.GET_LAST_MESSAGES), UPayload.protobuf(request))
        assert answered is not None
        responses = ut.GetLastMessagesResponse.from_bytes(answered.data).responses
        too_many = ut.GetLastMessagesRequest(topics=ut.UUriBatch(uris=topics * 100))
        with pytest.raises(UStatusError, match="INVALID_ARGUMENT"):
            client.invoke_method(ut.service_uri("vcu", 1), UPayload.protobuf(too_many))

    codes = [one.status and one.status.code for one in responses]
    assert codes == [UCode.OK, UCode.NOT_FOUND, UCode.NOT_FOUND, UCode.INVALID_ARGUMENT, UCode.OK]
    assert [one.topic for one in responses] == list(wanted)
    assert responses[0].message == responses[4].message == messages[1]


def test_answers_of_the_twin_are_bounded(
    app: UTransportZenoh, session: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(utwin, "UTWIN_BYTES", 10)
    topics = [TOPIC.with_resource(0x8000 + number) for number in range(3)]
    messages = {key_of(one, None, ""): UMessage.publish(one, b"12345678", UPayloadFormat.TEXT) for one in topics}

    def answer(query: elea.Query) -> None:
        with query:
            message = messages[str(query.key_expr)]
            query.reply(query.key_expr, message.payload or b"", attachment=write_attachment(message.attributes))

    session.declare_queryable("up/vcu/**", answer)
    request = UPayload.protobuf(ut.GetLastMessagesRequest(topics=ut.UUriBatch(uris=topics)))
    with UTwin(entity(session, "//vcu/1/1/0")) as twin, RpcClient(app) as client:
        answered = client.invoke_method(ut.service_uri("vcu", ut.GET_LAST_MESSAGES), request)
        late = twin._answer(1, UAttributes(ttl=None), request)

    assert answered is not None
    codes = [one.status and one.status.code for one in ut.GetLastMessagesResponse.from_bytes(answered.data).responses]
    assert codes == [UCode.OK, UCode.RESOURCE_EXHAUSTED, UCode.RESOURCE_EXHAUSTED]
    over = [one.status and one.status.code for one in ut.GetLastMessagesResponse.from_bytes(late.data).responses]
    assert over == [UCode.DEADLINE_EXCEEDED] * 3


def test_a_request_that_is_too_large_is_not_read(app: UTransportZenoh, session: elea.Session) -> None:
    large = UPayload(us.SubscriptionRequest(topic=TOPIC).to_bytes() + b"\x72\x00" * 40_000, UPayloadFormat.PROTOBUF)
    too_large = pytest.raises(UStatusError, match="80016 bytes is above the limit of 65536")
    with USubscription(entity(session, "//vcu/1/1/0")), RpcClient(app) as client, too_large as caught:
        client.invoke_method(us.service_uri("vcu", us.SUBSCRIBE), large)

    assert caught.value.code is UCode.INVALID_ARGUMENT


def test_a_time_before_1970_is_over(app: UTransportZenoh, session: elea.Session) -> None:
    long_ago = us.SubscribeAttributes(expire=us.Timestamp(seconds=(1 << 64) - 5))
    with USubscription(entity(session, "//vcu/1/1/0")) as service, RpcClient(app) as client:
        request = us.SubscriptionRequest(topic=TOPIC, attributes=long_ago)
        response = ask(client, us.SUBSCRIBE, request, us.SubscriptionResponse)

        assert (response.status.state, len(service)) == (us.State.UNSUBSCRIBED, 0)


def test_who_cannot_be_told_is_subscribed_all_the_same(app: UTransportZenoh, session: elea.Session) -> None:
    transport = entity(session, "//vcu/1/1/0")
    send = transport.send

    def refuse(message: UMessage, *, wait: bool = True) -> None:
        if message.type == UMessageType.NOTIFICATION:
            raise UStatusError(UCode.UNAVAILABLE, "no room")
        send(message, wait=wait)

    transport.send = refuse  # type: ignore[method-assign]
    with USubscription(transport) as service, RpcClient(app) as client:
        response = ask(client, us.SUBSCRIBE, us.SubscriptionRequest(topic=TOPIC), us.SubscriptionResponse)

        assert (response.status.state, len(service), service.untold) == (us.State.SUBSCRIBED, 1, 1)
