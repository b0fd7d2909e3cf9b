"""`Notifier`: tells one entity, and listens to what one is told."""

from __future__ import annotations

from elea.uprotocol.communication.calloptions import PLAIN, CallOptions
from elea.uprotocol.message import UMessage
from elea.uprotocol.payload import IntoPayload, into_payload
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.transport import ListenerFunction, LocalUriProvider, UListener, UTransport
from elea.uprotocol.uuri import UUri

__all__ = ["Notifier", "check_topic", "notification_message"]


def check_topic(topic: UUri) -> None:
    """Raises UStatusError(INVALID_ARGUMENT) unless it is one topic."""
    if topic.wildcards or not topic.is_topic:
        raise UStatusError(UCode.INVALID_ARGUMENT, f"{topic} is not one topic: no wildcards, resource 8000..FFFE")


def notification_message(
    who: LocalUriProvider, resource_id: int, destination: UUri, payload: IntoPayload, options: CallOptions | None
) -> UMessage:
    """The message that tells `destination` something."""
    given = options or PLAIN
    data, form = into_payload(payload)
    return UMessage.notification(
        who.get_resource(resource_id),
        destination,
        data,
        form,
        id=given.id,
        ttl=given.ttl,
        priority=given.sent_priority,
        traceparent=given.traceparent,
    )


class Notifier:
    """Sends notifications of this entity, and receives those for it."""

    def __init__(self, transport: UTransport) -> None:
        self._transport = transport

    def notify(
        self, resource_id: int, destination: UUri, payload: IntoPayload = None, options: CallOptions | None = None
    ) -> None:
        """Tell the entity `destination` (resource 0) what happened at the topic `resource_id`.

        Raises:
            UStatusError: INVALID_ARGUMENT: an address is wrong, or an option; UNAVAILABLE: no session.
        """
        self._transport.send(notification_message(self._transport, resource_id, destination, payload, options))

    def start_listening(self, topic: UUri, listener: UListener | ListenerFunction) -> None:
        """Tell `listener` of notifications from `topic` to this entity.

        Raises:
            UStatusError: INVALID_ARGUMENT: not one topic; RESOURCE_EXHAUSTED: too many listeners.
        """
        check_topic(topic)
        self._transport.register_listener(topic, self._transport.get_source(), listener)

    def stop_listening(self, topic: UUri, listener: UListener | ListenerFunction) -> None:
        """Tell it no more.

        Raises:
            UStatusError: NOT_FOUND: it does not listen.
        """
        check_topic(topic)
        self._transport.unregister_listener(topic, self._transport.get_source(), listener)
