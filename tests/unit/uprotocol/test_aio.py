"""The asyncio twin: the same entities, awaited."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import elea
from elea.uprotocol import (
    ANY_UURI,
    CallOptions,
    UAttributes,
    UCode,
    UMessage,
    UPayload,
    UPayloadFormat,
    UStatusError,
    UTransportZenoh,
    UUri,
    aio,
    key_of,
)
from elea.uprotocol.aio import rpcserver, services
from elea.uprotocol.attachment import write_attachment
from elea.uprotocol.core import usubscription as us
from elea.uprotocol.core import utwin as ut
from elea.uprotocol.services import USubscription
from tests.unit.uprotocol.entities import alone

METHOD = UUri.parse("//host2/CD/4/B")
TOPIC = UUri.parse("//host2/CD/4/8001")
SHORT = CallOptions(ttl=500)


class Pair:
    """A client and a server on one session."""

    def __init__(self, session: elea.Session) -> None:
        self.session = session
        self.client = aio.UTransport(UTransportZenoh(session, "//host1/403AB/3/0"))
        self.server = aio.UTransport(UTransportZenoh(session, "//host2/CD/4/0"))


def run(test: Callable[[Pair], Coroutine[Any, Any, None]]) -> None:
    """Run a test in a loop of its own; nothing may be left in it."""

    async def main() -> None:
        pair = Pair(elea.open(alone()))
        async with asyncio.timeout(30):
            try:
                await test(pair)
            finally:
                await pair.client.close()
                await pair.server.close()
                pair.session.close()
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main(), debug=True)
    gc.collect()


async def echo(_: int, attributes: UAttributes, payload: UPayload | None) -> UPayload | None:
    await asyncio.sleep(0)
    return payload


def test_messages_come_to_functions_of_both_kinds() -> None:
    async def test(pair: Pair) -> None:
        plain: asyncio.Queue[UMessage] = asyncio.Queue()
        awaited: asyncio.Queue[UMessage] = asyncio.Queue()
        await pair.client.register_listener(TOPIC, None, plain.put_nowait)
        await pair.client.register_listener(TOPIC, None, plain.put_nowait)
        await pair.client.register_listener(TOPIC, None, awaited.put)

        await aio.Publisher(pair.server).publish(0x8001, "one")
        await pair.server.send(UMessage.publish(TOPIC, b"two", UPayloadFormat.TEXT))

        for queue in (plain, awaited):
            assert [(await queue.get()).payload for _ in range(2)] == [b"one", b"two"]
        await pair.client.unregister_listener(TOPIC, None, plain.put_nowait)
        with pytest.raises(UStatusError, match="NOT_FOUND"):
            await pair.client.unregister_listener(TOPIC, None, plain.put_nowait)
        await aio.Publisher(pair.server).publish(0x8001, "three")
        assert (await awaited.get()).payload == b"three"
        assert plain.empty()
        with pytest.raises(UStatusError, match="INVALID_ARGUMENT"):
            await pair.server.send(UMessage.publish(METHOD))

    run(test)


def test_receive_and_notify() -> None:
    async def test(pair: Pair) -> None:
        with pytest.raises(UStatusError, match="NOT_FOUND"):
            await pair.client.receive(TOPIC)
        await aio.Publisher(pair.server).publish(0x8001, "one")
        assert (await pair.client.receive(TOPIC, timeout=10)).payload == b"one"
        noted: asyncio.Queue[UMessage] = asyncio.Queue()
        notifier = aio.Notifier(pair.client)
        await notifier.start_listening(TOPIC, noted.put_nowait)
        await aio.Notifier(pair.server).notify(0x8001, pair.client.get_source(), "note")
        assert (await noted.get()).payload == b"note"
        await notifier.stop_listening(TOPIC, noted.put_nowait)

    run(test)


def test_a_thousand_calls_at_once() -> None:
    async def test(pair: Pair) -> None:
        async with aio.RpcClient(pair.client) as client, aio.RpcServer(pair.server) as server:
            await server.register_endpoint(None, 0xB, echo)

            calls = (client.invoke_method(METHOD, str(number)) for number in range(1000))
            answers = await asyncio.gather(*calls)

            assert answers == [UPayload.text(str(number)) for number in range(1000)]
            assert (client.pending, server.pending) == (0, 0)

    run(test)


def test_errors_have_their_codes() -> None:
    async def refuse(*_: object) -> None:
        raise UStatusError(UCode.ABORTED, "no")

    async def slow(*_: object) -> None:
        await asyncio.sleep(20)

    async def test(pair: Pair) -> None:
        async with aio.RpcClient(pair.client) as client, aio.RpcServer(pair.server) as server:
            await server.register_endpoint(None, 0xB, refuse)
            await server.register_endpoint(None, 0xC, slow)
            await server.register_endpoint(None, 0xD, lambda *_: 1 / 0)  # type: ignore[arg-type]
            codes = []
            for resource in (0xB, 0xC, 0xD, 0xE, 0, 0x8000):
                with pytest.raises(UStatusError) as caught:
                    await client.invoke_method(METHOD.with_resource(resource), None, SHORT)
                codes.append(caught.value.code)

            assert codes == [
                UCode.ABORTED,
                UCode.DEADLINE_EXCEEDED,
                UCode.INTERNAL,
                UCode.UNAVAILABLE,
                UCode.INVALID_ARGUMENT,
                UCode.INVALID_ARGUMENT,
            ]
            assert client.pending == 0
            with pytest.raises(UStatusError, match="ALREADY_EXISTS"):
                await server.register_endpoint(None, 0xB, echo)
            with pytest.raises(UStatusError, match="NOT_FOUND"):
                await server.unregister_endpoint(None, 0xB, echo)
            await server.unregister_endpoint(None, 0xB, refuse)

    run(test)


def test_a_cancelled_call_is_forgotten_and_a_closed_client_gives_up() -> None:
    async def test(pair: Pair) -> None:
        await pair.server.register_listener(ANY_UURI, METHOD, lambda _: None)
        client = aio.RpcClient(pair.client)
        cancelled = asyncio.create_task(client.invoke_method(METHOD))
        given_up = asyncio.create_task(client.invoke_method(METHOD))
        await asyncio.sleep(0.01)

        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        waiting = client.pending
        await client.close()
        with pytest.raises(UStatusError, match="CANCELLED"):
            await given_up

        assert (waiting, client.pending) == (1, 0)

    run(test)


def test_a_server_without_room_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpcserver, "UPROTOCOL_CALLS", 2)

    async def test(pair: Pair) -> None:
        go_on = asyncio.Event()

        async def slow(*_: object) -> None:
            await go_on.wait()

        async with aio.RpcClient(pair.client) as client, aio.RpcServer(pair.server) as server:
            await server.register_endpoint(None, 0xB, slow)
            calls = [asyncio.create_task(client.invoke_method(METHOD)) for _ in range(2)]
            await asyncio.sleep(0.01)
            with pytest.raises(UStatusError) as caught:
                await client.invoke_method(METHOD)
            go_on.set()
            await asyncio.gather(*calls)

            assert caught.value.code is UCode.RESOURCE_EXHAUSTED

    run(test)


def test_subscribing_at_a_service() -> None:
    async def test(pair: Pair) -> None:
        published: asyncio.Queue[UMessage] = asyncio.Queue()
        changes: asyncio.Queue[tuple[UUri, int]] = asyncio.Queue()
        with USubscription(UTransportZenoh(pair.session, "//host1/1/1/0")) as service:
            subscriber = aio.Subscriber(pair.client)
            state = await subscriber.subscribe(
                TOPIC, published.put_nowait, lambda topic, status: changes.put_nowait((topic, status.state))
            )
            await aio.Publisher(pair.server).publish(0x8001, "one")

            assert (state, (await published.get()).payload, len(service)) == (us.State.SUBSCRIBED, b"one", 1)
            assert await changes.get() == (TOPIC, us.State.SUBSCRIBED)
            await subscriber.unsubscribe(TOPIC, published.put_nowait)
            assert len(service) == 0
            await subscriber.close()

    run(test)


def test_open_and_close() -> None:
    async def main() -> None:
        async with aio.open(alone(), "//host1/403AB/3/0") as transport:
            await transport.send(UMessage.publish(transport.get_resource(0x8001)))
            assert transport.get_authority() == "host1"
            assert transport.dropped["expired"] == 0
        with pytest.raises(UStatusError, match="UNAVAILABLE"):
            await transport.send(UMessage.publish(transport.get_resource(0x8001)))

    asyncio.run(main(), debug=True)


def test_core_services() -> None:
    async def test(pair: Pair) -> None:
        kept: dict[str, UMessage] = {}

        def answer(query: elea.Query) -> None:
            with query:
                message = kept.get(str(query.key_expr))
                if message is not None:
                    attachment = write_attachment(message.attributes)
                    query.reply(query.key_expr, message.payload or b"", attachment=attachment)

        pair.server.inner.session.declare_queryable("up/**", answer)
        message = UMessage.publish(TOPIC, b"50", UPayloadFormat.TEXT)
        last = services.LastMessages(pair.client)
        with pytest.raises(UStatusError, match="NOT_FOUND"):
            await last.of(TOPIC)
        kept[key_of(TOPIC, None, "")] = message
        assert await last.of(TOPIC) == message
        async with services.USubscription(pair.server) as subscriptions, services.UTwin(pair.server):
            subscriber = aio.Subscriber(pair.client, service=us.service_uri(pair.server.get_authority()))
            assert await subscriber.subscribe(TOPIC, print) is us.State.SUBSCRIBED
            assert len(subscriptions) == 1
            request = UPayload.protobuf(ut.GetLastMessagesRequest(topics=ut.UUriBatch(uris=(TOPIC,))))
            async with aio.RpcClient(pair.client) as client:
                found = await client.invoke_method(ut.service_uri(pair.server.get_authority(), 1), request)
            await subscriber.close()
        assert found is not None
        assert [one.message for one in ut.GetLastMessagesResponse.from_bytes(found.data).responses] == [message]

    run(test)
