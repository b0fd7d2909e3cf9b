"""`Subscriber`: subscribes this entity to topics of others: at the uSubscription service, and on the transport."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from elea.model.errors import DecodeError
from elea.uprotocol.communication.calloptions import CallOptions
from elea.uprotocol.communication.notifier import check_topic
from elea.uprotocol.communication.rpcclient import RpcClient
from elea.uprotocol.core import usubscription as core
from elea.uprotocol.core.protomessage import ProtoMessage
from elea.uprotocol.message import UMessage
from elea.uprotocol.payload import UPayload
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.transport import ListenerFunction, UListener, UTransport
from elea.uprotocol.uuri import UUri

__all__ = ["ChangeHandler", "Changes", "Subscriber", "answer_of", "check_subscribed"]

ChangeHandler = Callable[[UUri, core.SubscriptionStatus], object]
"""`handler(topic, status)` is called when the state of a subscription changes."""

P = TypeVar("P", bound=ProtoMessage)


class Subscriber:
    """Receives what is published on topics.

    Every authority has a uSubscription service (`elea.uprotocol.services.USubscription`), which is told first; without
    one nothing is subscribed. Where none is wanted, `service=None` leaves it out.
    """

    def __init__(self, transport: UTransport, *, service: UUri | str | None = "own") -> None:
        """Subscribe to nothing yet.

        Args:
            service: the entity of the uSubscription service, `own` for that of our authority, None for none.
        """
        self._transport = transport
        self._service = core.service_uri(transport.get_authority()) if isinstance(service, str) else service
        self._client = None if self._service is None else RpcClient(transport)
        self._changes = Changes()
        self._listens = False
        self._lock = threading.Lock()

    def subscribe(
        self,
        topic: UUri,
        listener: UListener | ListenerFunction,
        change_handler: ChangeHandler | None = None,
        options: CallOptions | None = None,
    ) -> core.State:
        """Tell `listener` of what is published on `topic`; the state of the subscription.

        Raises:
            UStatusError: INVALID_ARGUMENT (not one topic), ALREADY_EXISTS (another change handler is there), what the
                service said, or DEADLINE_EXCEEDED and UNAVAILABLE if there is none.
        """
        check_topic(topic)
        state = core.State.SUBSCRIBED
        if change_handler is not None:
            self._changes.add(topic, change_handler)
        if self._client is not None and self._service is not None:
            self._listen()
            request = UPayload.protobuf(core.SubscriptionRequest(topic=topic))
            try:
                answer = self._client.invoke_method(self._service.with_resource(core.SUBSCRIBE), request, options)
                state = check_subscribed(topic, answer_of(answer, core.SubscriptionResponse))
            except UStatusError:
                self._changes.remove(topic)
                raise
        self._transport.register_listener(topic, None, listener)
        return state

    def unsubscribe(
        self, topic: UUri, listener: UListener | ListenerFunction, options: CallOptions | None = None
    ) -> None:
        """Tell it no more.

        Raises:
            UStatusError: INVALID_ARGUMENT (not one topic), NOT_FOUND (it is not subscribed), or what the service said.
        """
        check_topic(topic)
        self._transport.unregister_listener(topic, None, listener)
        self._changes.remove(topic)
        if self._client is not None and self._service is not None:
            request = UPayload.protobuf(core.UnsubscribeRequest(topic=topic))
            self._client.invoke_method(self._service.with_resource(core.UNSUBSCRIBE), request, options)

    def close(self) -> None:
        """Listen to changes and answers no more; what was subscribed on the transport stays so."""
        if self._client is not None:
            self._client.close()
        if self._listens and self._service is not None:
            self._listens = False
            source = self._service.with_resource(core.SUBSCRIPTION_CHANGE)
            self._transport.unregister_listener(source, self._transport.get_source(), self._changes.arrived)

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self) -> None:
        """To what the service tells us of changes."""
        with self._lock:
            if not self._listens and self._service is not None:
                source = self._service.with_resource(core.SUBSCRIPTION_CHANGE)
                self._transport.register_listener(source, self._transport.get_source(), self._changes.arrived)
                self._listens = True


class Changes:
    """Who wants to know of changes to which subscription."""

    def __init__(self) -> None:
        self._handlers: dict[UUri, ChangeHandler] = {}

    def add(self, topic: UUri, handler: ChangeHandler) -> None:
        """One more.

        Raises:
            UStatusError: ALREADY_EXISTS: the topic has another one.
        """
        if self._handlers.setdefault(topic, handler) is not handler:
            raise UStatusError(UCode.ALREADY_EXISTS, f"{topic} has another change handler")

    def remove(self, topic: UUri) -> None:
        """One less."""
        self._handlers.pop(topic, None)

    def arrived(self, message: UMessage) -> None:
        """A notification of the service."""
        update = _update(message)
        if update is not None and update.topic is not None and update.status is not None:
            handler = self._handlers.get(update.topic)
            if handler is not None:
                handler(update.topic, update.status)


def _update(message: UMessage) -> core.Update | None:
    if message.payload is None:
        return None
    return UPayload(message.payload, message.attributes.payload_format).unpack(core.Update)


def answer_of(payload: UPayload | None, kind: type[P]) -> P:
    """The message that a core service answers with.

    Raises:
        UStatusError: INTERNAL: it is another one.
    """
    found = None
    try:
        found = None if payload is None else payload.unpack(kind)
    except (DecodeError, UStatusError):
        found = None
    if found is None:
        # An empty message has no bytes, and then some leave out the payload.
        if payload is None or not payload.data:
            return kind()
        raise UStatusError(UCode.INTERNAL, f"the service answered something else than a {kind.__name__}")
    return found


def check_subscribed(topic: UUri, response: core.SubscriptionResponse) -> core.State:
    """The state of a subscription that was asked for.

    Raises:
        UStatusError: FAILED_PRECONDITION: the service has not subscribed us.
    """
    status = response.status
    state = core.State.UNSUBSCRIBED if status is None or status.state > 3 else core.State(status.state)
    if state not in (core.State.SUBSCRIBED, core.State.SUBSCRIBE_PENDING):
        told = "" if status is None else status.message
        raise UStatusError(UCode.FAILED_PRECONDITION, f"{topic} is not subscribed: {told or state.name}")
    return state
