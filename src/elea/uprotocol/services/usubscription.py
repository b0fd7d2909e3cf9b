"""`USubscription`: the subscription service (core.usubscription v3) of one authority.

It keeps who is subscribed to what, and tells them and whoever has asked for it when that changes. In one data space
every topic reaches everybody, whatever its authority, so there is nobody to forward a subscription to: a subscription
is SUBSCRIBED or it is not, never pending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from elea.model.errors import DecodeError
from elea.model.limits import UREQUEST_BYTES
from elea.model.logger import logger
from elea.uprotocol.attributes import UAttributes, UPayloadFormat
from elea.uprotocol.communication.rpcserver import RpcServer
from elea.uprotocol.core import usubscription as core
from elea.uprotocol.core.protomessage import ProtoMessage
from elea.uprotocol.message import UMessage
from elea.uprotocol.payload import UPayload, wrap_any
from elea.uprotocol.services.entity import ServiceEntity
from elea.uprotocol.services.subscriptionledger import Entry, SubscriptionLedger
from elea.uprotocol.status import InvalidUri, UCode, UStatusError
from elea.uprotocol.transport import UTransport
from elea.uprotocol.uuid7 import Clock, now_ms
from elea.uprotocol.uuri import UUri

__all__ = ["USubscription", "in_format_of", "request_of"]

_log = logger("elea.uprotocol")

P = TypeVar("P", bound=ProtoMessage)
Answer = Callable[[UUri, UPayload], ProtoMessage]


class USubscription:
    """Serves `//authority/0/3/…` on a transport of that authority.

    ::

        with USubscription(transport, path="subscriptions.json"):
            …
    """

    def __init__(self, transport: UTransport, *, path: str | Path | None = None, clock: Clock = now_ms) -> None:
        """Begin to serve.

        Args:
            path: the file that keeps subscriptions across restarts; in memory only without it.

        Raises:
            UStatusError: ALREADY_EXISTS (the transport serves it already), DATA_LOSS (the file is damaged).
        """
        self._ledger = SubscriptionLedger(None if path is None else Path(path))
        self._clock = clock
        self.untold = 0
        """Notifications of changes that could not be sent."""

        self._lock = threading.Lock()
        self._entity = ServiceEntity(transport, core.service_uri(transport.get_authority()))
        self._server = RpcServer(self._entity)
        for resource, answer in self._methods().items():
            self._server.register_endpoint(None, resource, self._handler(answer))

    def __len__(self) -> int:
        return len(self._ledger)

    def close(self) -> None:
        """Serve no more."""
        self._server.close()

    def __enter__(self) -> USubscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _methods(self) -> dict[int, Answer]:
        return {
            core.SUBSCRIBE: self._subscribe,
            core.UNSUBSCRIBE: self._unsubscribe,
            core.FETCH_SUBSCRIPTIONS: self._fetch_subscriptions,
            core.FETCH_SUBSCRIBERS: self._fetch_subscribers,
            core.REGISTER_FOR_NOTIFICATIONS: self._register,
            core.UNREGISTER_FOR_NOTIFICATIONS: self._unregister,
            core.RESET: self._reset,
        }

    def _handler(self, answer: Answer) -> Callable[[int, UAttributes, UPayload | None], UPayload]:
        def handle(_: int, attributes: UAttributes, payload: UPayload | None) -> UPayload:
            assert attributes.source is not None
            given = payload or UPayload(b"", UPayloadFormat.PROTOBUF)
            with self._lock:
                self._expire()
                return in_format_of(given, answer(attributes.source, given))

        return handle

    # -- the methods

    def _subscribe(self, who: UUri, payload: UPayload) -> ProtoMessage:
        request = request_of(payload, core.SubscriptionRequest)
        topic = self._topic(request.topic)
        attributes = request.attributes
        expire = None if attributes is None else attributes.expire
        expires = None if expire is None else _signed(expire.seconds) * 1000 + expire.nanos // 1_000_000
        entry = Entry(expires, None if attributes is None else attributes.sample_period_ms)
        if expires is not None and self._clock() > expires:
            return _response(topic, core.State.UNSUBSCRIBED, "the subscription would have expired already")
        if self._ledger.subscribe(topic, who, entry):
            self._tell(topic, who, core.State.SUBSCRIBED)
        return _response(topic, core.State.SUBSCRIBED)

    def _unsubscribe(self, who: UUri, payload: UPayload) -> ProtoMessage:
        topic = self._topic(request_of(payload, core.UnsubscribeRequest).topic)
        if self._ledger.unsubscribe(topic, who):
            self._tell(topic, who, core.State.UNSUBSCRIBED)
        return core.UnsubscribeResponse()

    def _fetch_subscribers(self, _: UUri, payload: UPayload) -> ProtoMessage:
        topic = self._topic(request_of(payload, core.FetchSubscribersRequest).topic)
        found = self._ledger.found(topic=topic)
        return core.FetchSubscribersResponse(subscribers=tuple(core.SubscriberInfo(uri=who) for _, who, _ in found))

    def _fetch_subscriptions(self, _: UUri, payload: UPayload) -> ProtoMessage:
        request = request_of(payload, core.FetchSubscriptionsRequest)
        if request.subscriber is not None:
            who = request.subscriber.uri
            if who is None or who.wildcards:
                raise UStatusError(UCode.INVALID_ARGUMENT, f"subscriber {who} is not one entity")
            found = self._ledger.found(subscriber=who.with_authority(self._entity.get_authority()))
        else:
            found = self._ledger.found(topic=self._topic(request.topic))
        return core.FetchSubscriptionsResponse(subscriptions=tuple(_subscription(*one) for one in found))

    def _register(self, who: UUri, payload: UPayload) -> ProtoMessage:
        self._ledger.observe(self._topic(request_of(payload, core.NotificationsRequest).topic), who)
        return core.NotificationsResponse()

    def _unregister(self, who: UUri, payload: UPayload) -> ProtoMessage:
        self._ledger.forget_observer(self._topic(request_of(payload, core.NotificationsRequest).topic), who)
        return core.NotificationsResponse()

    def _reset(self, who: UUri, _: UPayload) -> ProtoMessage:
        if who.ue_type != 0:
            raise UStatusError(UCode.PERMISSION_DENIED, f"only uSubscription services may reset another, not {who}")
        self._ledger.clear()
        return core.ResetResponse()

    # -- what changes

    def _expire(self) -> None:
        for topic, who in self._ledger.expired(self._clock()):
            self._tell(topic, who, core.State.UNSUBSCRIBED)

    def _tell(self, topic: UUri, who: UUri, state: core.State) -> None:
        """Notify the subscriber and whoever has registered."""
        update = core.Update(
            topic=topic, subscriber=core.SubscriberInfo(uri=who), status=core.SubscriptionStatus(state=state)
        )
        source = self._entity.get_resource(core.SUBSCRIPTION_CHANGE)
        for sink in dict.fromkeys((who, *self._ledger.observers(topic))):
            data, form = UPayload.protobuf(update)
            try:
                self._entity.send(UMessage.notification(source, sink, data, form))
            except UStatusError as error:
                # It is subscribed all the same; a notification may be lost on its way, too.
                self.untold += 1
                _log.warning("change not told: to=%s problem=%s untold=%d", sink, error, self.untold)

    def _topic(self, topic: UUri | None) -> UUri:
        if topic is None or topic.wildcards or not topic.is_topic:
            raise UStatusError(UCode.INVALID_ARGUMENT, f"{topic} is not one topic: no wildcards, resource 8000..FFFE")
        return topic.with_authority(self._entity.get_authority())


def _signed(number: int) -> int:
    """A number that protobuf has with a sign, such as seconds before 1970."""
    return number - (1 << 64) if number >> 63 else number


def request_of(payload: UPayload, kind: type[P]) -> P:
    """The message of a request, wrapped or not.

    Raises:
        UStatusError: INVALID_ARGUMENT: it is another one.
    """
    if len(payload.data) > UREQUEST_BYTES:
        problem = f"a request of {len(payload.data)} bytes is above the limit of {UREQUEST_BYTES}"
        raise UStatusError(UCode.INVALID_ARGUMENT, problem)
    data = payload.message_bytes(kind.DESCRIPTOR.full_name)
    if data is None:
        problem = f"the payload is no {kind.DESCRIPTOR.full_name}, as protobuf or wrapped in Any"
        raise UStatusError(UCode.INVALID_ARGUMENT, problem)
    try:
        return kind.from_bytes(data)
    except (DecodeError, InvalidUri) as error:
        raise UStatusError(UCode.INVALID_ARGUMENT, f"the payload is no {kind.__name__}: {error}") from error


def in_format_of(request: UPayload, answer: ProtoMessage) -> UPayload:
    """An answer in the format of its request: Rust clients wrap messages in Any, Python ones do not."""
    if request.format == UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY:
        wrapped = wrap_any(answer.DESCRIPTOR.full_name, answer.to_bytes())
        return UPayload(wrapped, UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY)
    return UPayload(answer.to_bytes(), UPayloadFormat.PROTOBUF)


def _response(topic: UUri, state: core.State, told: str = "") -> core.SubscriptionResponse:
    return core.SubscriptionResponse(status=core.SubscriptionStatus(state=state, message=told), topic=topic)


def _subscription(topic: UUri, who: UUri, entry: Entry) -> core.Subscription:
    expires = entry.expires_ms
    expire = None if expires is None else core.Timestamp(seconds=expires // 1000, nanos=expires % 1000 * 1_000_000)
    return core.Subscription(
        topic=topic,
        subscriber=core.SubscriberInfo(uri=who),
        status=core.SubscriptionStatus(state=core.State.SUBSCRIBED),
        attributes=core.SubscribeAttributes(expire=expire, sample_period_ms=entry.sample_period_ms),
    )
