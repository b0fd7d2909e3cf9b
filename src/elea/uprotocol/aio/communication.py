"""Publisher, Notifier and Subscriber for asyncio."""

from __future__ import annotations

from elea.uprotocol.aio.rpcclient import RpcClient
from elea.uprotocol.aio.transport import UTransport
from elea.uprotocol.communication.calloptions import CallOptions
from elea.uprotocol.communication.notifier import check_topic, notification_message
from elea.uprotocol.communication.publisher import publish_message
from elea.uprotocol.communication.subscriber import ChangeHandler, Changes, answer_of, check_subscribed
from elea.uprotocol.core import usubscription as core
from elea.uprotocol.payload import IntoPayload, UPayload
from elea.uprotocol.status import UStatusError
from elea.uprotocol.transport import ListenerFunction, UListener
from elea.uprotocol.uuri import UUri

__all__ = ["Notifier", "Publisher", "Subscriber"]


class Publisher:
    """Publishes on the topics of this entity."""

    def __init__(self, transport: UTransport) -> None:
        self._transport = transport

    async def publish(self, resource_id: int, payload: IntoPayload = None, options: CallOptions | None = None) -> None:
        """Publish on the topic `resource_id`; errors as in `elea.uprotocol.Publisher`."""
        await self._transport.send(publish_message(self._transport, resource_id, payload, options))


class Notifier:
    """Sends notifications of this entity, and receives those for it."""

    def __init__(self, transport: UTransport) -> None:
        self._transport = transport

    async def notify(
        self, resource_id: int, destination: UUri, payload: IntoPayload = None, options: CallOptions | None = None
    ) -> None:
        """Tell the entity `destination` what happened; errors as in `elea.uprotocol.Notifier`."""
        await self._transport.send(notification_message(self._transport, resource_id, destination, payload, options))

    async def start_listening(self, topic: UUri, listener: UListener | ListenerFunction) -> None:
        """Tell `listener` of notifications from `topic` to this entity."""
        check_topic(topic)
        await self._transport.register_listener(topic, self._transport.get_source(), listener)

    async def stop_listening(self, topic: UUri, listener: UListener | ListenerFunction) -> None:
        """Tell it no more."""
        check_topic(topic)
        await self._transport.unregister_listener(topic, self._transport.get_source(), listener)


class Subscriber:
    """Receives what is published on topics; as `elea.uprotocol.Subscriber`."""

    def __init__(self, transport: UTransport, *, service: UUri | str | None = "own") -> None:
        self._transport = transport
        self._service = core.service_uri(transport.get_authority()) if isinstance(service, str) else service
        self._client = None if self._service is None else RpcClient(transport)
        self._changes = Changes()
        self._listens = False

    async def subscribe(
        self,
        topic: UUri,
        listener: UListener | ListenerFunction,
        change_handler: ChangeHandler | None = None,
        options: CallOptions | None = None,
    ) -> core.State:
        """Tell `listener` of what is published on `topic`; the state of the subscription."""
        check_topic(topic)
        state = core.State.SUBSCRIBED
        if change_handler is not None:
            self._changes.add(topic, change_handler)
        if self._client is not None and self._service is not None:
            await self._listen(self._service)
            request = UPayload.protobuf(core.SubscriptionRequest(topic=topic))
            try:
                answer = await self._client.invoke_method(self._service.with_resource(core.SUBSCRIBE), request, options)
                state = check_subscribed(topic, answer_of(answer, core.SubscriptionResponse))
            except UStatusError:
                self._changes.remove(topic)
                raise
        await self._transport.register_listener(topic, None, listener)
        return state

    async def unsubscribe(
        self, topic: UUri, listener: UListener | ListenerFunction, options: CallOptions | None = None
    ) -> None:
        """Tell it no more."""
        check_topic(topic)
        await self._transport.unregister_listener(topic, None, listener)
        self._changes.remove(topic)
        if self._client is not None and self._service is not None:
            request = UPayload.protobuf(core.UnsubscribeRequest(topic=topic))
            await self._client.invoke_method(self._service.with_resource(core.UNSUBSCRIBE), request, options)

    async def close(self) -> None:
        """Listen to changes and answers no more; what was subscribed on the transport stays so."""
        if self._client is not None:
            await self._client.close()
        if self._listens and self._service is not None:
            self._listens = False
            source = self._service.with_resource(core.SUBSCRIPTION_CHANGE)
            await self._transport.unregister_listener(source, self._transport.get_source(), self._changes.arrived)

    async def _listen(self, service: UUri) -> None:
        if not self._listens:
            self._listens = True
            source = service.with_resource(core.SUBSCRIPTION_CHANGE)
            await self._transport.register_listener(source, self._transport.get_source(), self._changes.arrived)
