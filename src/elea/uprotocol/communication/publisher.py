"""`Publisher`: tells everybody who listens to a topic of this entity."""

from __future__ import annotations

from elea.model.limits import UPROTOCOL_KEYS
from elea.uprotocol.communication.calloptions import PLAIN, CallOptions
from elea.uprotocol.message import UMessage
from elea.uprotocol.payload import IntoPayload, into_payload
from elea.uprotocol.transport import LocalUriProvider, PreparedMessages, UTransport

__all__ = ["Publisher", "publish_message"]


def publish_message(
    who: LocalUriProvider, resource_id: int, payload: IntoPayload, options: CallOptions | None
) -> UMessage:
    """The message that says something on a topic of this entity."""
    given = options or PLAIN
    data, form = into_payload(payload)
    return UMessage.publish(
        who.get_resource(resource_id),
        data,
        form,
        id=given.id,
        ttl=given.ttl,
        priority=given.sent_priority,
        traceparent=given.traceparent,
    )


class Publisher:
    """Publishes on the topics of this entity.

    ::

        Publisher(transport).publish(0x8001, UPayload.json({"speed": 50}))
    """

    def __init__(self, transport: UTransport) -> None:
        self._transport = transport
        self._prepared: dict[tuple[int, int, CallOptions | None], PreparedMessages] = {}

    def publish(self, resource_id: int, payload: IntoPayload = None, options: CallOptions | None = None) -> None:
        """Publish on the topic `resource_id`.

        Raises:
            UStatusError: INVALID_ARGUMENT: it is no topic, or the options are wrong; UNAVAILABLE: no session.
        """
        data, form = into_payload(payload)
        key = resource_id, form, options
        prepared = self._prepared.get(key)
        if prepared is None:
            message = publish_message(self._transport, resource_id, payload, options)
            prepared = self._transport.prepare(message.attributes)
            if len(self._prepared) >= UPROTOCOL_KEYS:
                self._prepared.clear()
            self._prepared[key] = prepared
        prepared.send(data, None if options is None else options.id)
