"""uProtocol over real nodes: Elea with Elea through routers of both libraries, and against eclipse-zenoh alone.

`Foreign` is written from the rules of the seed, with eclipse-zenoh and the protobuf library: it shares no code with
`elea.uprotocol`.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from elea.uprotocol import (
    ANY_UURI,
    CallOptions,
    RpcClient,
    RpcServer,
    UCode,
    UMessage,
    UPayload,
    UPayloadFormat,
    UStatusError,
    UTransportZenoh,
    UUri,
)
from elea.uprotocol.services import LastMessages
from tests.interop.inbox import Inbox, eventually, free_port
from tests.interop.network import configuration
from tests.unit.uprotocol.descriptors import message_class

pytestmark = pytest.mark.interop

METHOD = UUri.parse("//host2/CD/4/B")
TOPIC = UUri.parse("//host1/403AB/3/8001")
ATTRIBUTES = message_class("uprotocol.v1.UAttributes")


@pytest.fixture(params=["elea", "zenoh"])
def locator(request: pytest.FixtureRequest) -> Iterator[str]:
    """A router of each library."""
    lib: Any = importlib.import_module(request.param)
    place = f"tcp/127.0.0.1:{free_port()}"
    with lib.open(configuration(lib, {"mode": "router", "listen/endpoints": [place]})):
        yield place


def client_of(lib: Any, locator: str) -> Any:
    return lib.open(configuration(lib, {"mode": "client", "connect/endpoints": [locator], "listen/endpoints": []}))


@pytest.fixture
def client(locator: str) -> Iterator[UTransportZenoh]:
    with client_of(elea, locator) as session:
        yield UTransportZenoh(session, "//host1/403AB/3/0")


@pytest.fixture
def server(locator: str) -> Iterator[UTransportZenoh]:
    with client_of(elea, locator) as session:
        yield UTransportZenoh(session, "//host2/CD/4/0")


def answered(client: RpcClient, method: UUri) -> bool:
    try:
        client.invoke_method(method, None, CallOptions(ttl=200))
    except UStatusError:
        return False
    return True


def test_all_four_types_through_a_router(client: UTransportZenoh, server: UTransportZenoh) -> None:
    published, noted = Inbox(), Inbox()
    server.register_listener(TOPIC, None, published)
    server.register_listener(TOPIC, server.get_source(), noted)
    with RpcServer(server) as serving, RpcClient(client) as calling:
        serving.register_endpoint(None, 0xB, lambda _, attributes, payload: payload)
        eventually(lambda: answered(calling, METHOD), "the server is known")
        messages = [
            UMessage.publish(TOPIC, b"50", UPayloadFormat.TEXT, ttl=60_000),
            UMessage.notification(TOPIC, server.get_source(), b"note", UPayloadFormat.TEXT),
        ]

        for message in messages:
            client.send(message)
        pending = [calling.start(METHOD, str(number)) for number in range(1000)]

        assert [call.result() for call in pending] == [UPayload.text(str(number)) for number in range(1000)]
        assert [published.one(), noted.one()] == messages
        assert (calling.pending, serving.pending) == (0, 0)


class Foreign:
    """The rules of the seed once more, with eclipse-zenoh alone."""

    def __init__(self, locator: str, authority: str) -> None:
        self.zenoh: Any = importlib.import_module("zenoh")
        self.session = client_of(self.zenoh, locator)
        self.authority = authority
        self.inbox = Inbox()

    def half(self, authority: str, entity: int, version: int, resource: int) -> str:
        parts = ((entity & 0xFFFF, 0xFFFF), (entity >> 16, 0xFFFF), (version, 0xFF), (resource, 0xFFFF))
        return "/".join([authority or self.authority, *("*" if part == wild else f"{part:X}" for part, wild in parts)])

    def key(self, source: Any, sink: Any = None) -> str:
        return f"up/{self.half(*source)}/{'/'.join(['{}'] * 5) if sink is None else self.half(*sink)}"

    def attributes(self, kind: int, source: Any, sink: Any = None, **more: Any) -> Any:
        made = ATTRIBUTES(type=kind, **more)
        made.id.msb = int(time.time() * 1000) << 16 | 0x7000 | int.from_bytes(os.urandom(1))
        made.id.lsb = 1 << 63 | int.from_bytes(os.urandom(7))
        for uri, parts in ((made.source, source), (made.sink, sink)):
            if parts is not None:
                uri.authority_name, uri.ue_id, uri.ue_version_major, uri.resource_id = parts
        return made

    def put(self, source: Any, sink: Any, attributes: Any, payload: bytes) -> None:
        attachment = b"\x01" + attributes.SerializeToString()
        self.session.put(self.key(source, sink), payload, attachment=attachment)

    def subscribe(self, source: Any, sink: Any, call: Any) -> None:
        self.session.declare_subscriber(self.key(source, sink), call)

    def read(self, sample: Any) -> Any:
        data = sample.attachment.to_bytes()
        assert data[0] == 1
        return ATTRIBUTES.FromString(data[1:])


FOREIGN_TOPIC = ("", 0x0005_00AB, 1, 0x8002)
OUR_TOPIC = ("host1", 0x0004_03AB, 3, 0x8001)
OURSELVES = ("host1", 0x0004_03AB, 3, 0)
FOREIGN_SELF = ("host9", 0x0005_00AB, 1, 0)
FOREIGN_METHOD = ("host9", 0x0005_00AB, 1, 0x77)
EVERYBODY = ("*", 0xFFFF_FFFF, 0xFF, 0xFFFF)


@pytest.fixture
def foreign(locator: str) -> Iterator[Foreign]:
    other = Foreign(locator, "host9")
    yield other
    other.session.close()


def test_publish_and_notify_with_an_independent_implementation(client: UTransportZenoh, foreign: Foreign) -> None:
    ours, theirs = Inbox(), Inbox()
    foreign.subscribe(OUR_TOPIC, None, theirs)
    client.register_listener(UUri.parse("//host9/500AB/1/8002"), None, ours)
    client.register_listener(ANY_UURI, client.get_source(), ours)
    message = UMessage.publish(TOPIC, b"50", UPayloadFormat.TEXT, ttl=60_000, priority=7)

    def exchanged() -> bool:
        client.send(message)
        foreign.put(FOREIGN_TOPIC, None, foreign.attributes(1, FOREIGN_TOPIC, payload_format=7), b"hello")
        time.sleep(0.05)
        return bool(ours.drain()) and bool(theirs.drain())

    eventually(exchanged, "both sides know of each other")
    client.send(message)
    foreign.put(FOREIGN_TOPIC, OURSELVES, foreign.attributes(4, FOREIGN_TOPIC, OURSELVES, ttl=60_000), b"")

    sample = theirs.one()
    assert foreign.read(sample).SerializeToString() == message.attributes.to_bytes()
    assert (sample.payload.to_bytes(), int(sample.priority)) == (b"50", 1)
    noted = ours.until(lambda got: got.sink is not None and got.attributes.ttl == 60_000)
    assert all(got.payload == b"hello" for got in noted)
    assert sum(client.dropped.values()) == 0


def test_calls_with_an_independent_implementation(client: UTransportZenoh, foreign: Foreign) -> None:
    """They call us and we call them; an answer without ttl and payload is understood."""

    def serve(sample: Any) -> None:
        request = foreign.read(sample)
        assert (request.type, request.priority, request.ttl) == (2, 5, 2000)
        back = (request.source.authority_name, request.source.ue_id, request.source.ue_version_major, 0)
        wrong = sample.payload.to_bytes() == b"fail"
        more = {"commstatus": 7} if wrong else {"payload_format": 7}
        response = foreign.attributes(3, FOREIGN_METHOD, back, priority=5, reqid=request.id, **more)
        foreign.put(FOREIGN_METHOD, back, response, b"" if wrong else sample.payload.to_bytes().upper())

    foreign.subscribe(EVERYBODY, FOREIGN_METHOD, serve)
    method = UUri.parse("//host9/500AB/1/77")
    options = CallOptions(ttl=2000)
    with RpcClient(client) as calling, RpcServer(client) as serving:
        eventually(lambda: _ask(calling, method, options) == UPayload.text("HELLO"), "they answer")
        with pytest.raises(UStatusError) as caught:
            calling.invoke_method(method, "fail", options)
        serving.register_endpoint(None, 0x22, lambda _, attributes, payload: "answer")
        answers = Inbox()
        foreign.subscribe(EVERYBODY, FOREIGN_SELF, answers)
        ours = (*OURSELVES[:3], 0x22)

        def called() -> Any:
            request = foreign.attributes(2, FOREIGN_SELF, ours, priority=5, ttl=5000)
            foreign.put(FOREIGN_SELF, ours, request, b"")
            time.sleep(0.05)
            found = [foreign.read(sample) for sample in answers.drain()]
            return [one for one in found if one.reqid == request.id]

        (response,) = eventually(called, "we answer")

    assert caught.value.code is UCode.PERMISSION_DENIED
    assert (response.type, response.priority, response.ttl, response.payload_format) == (3, 5, 5000, 7)
    assert response.HasField("commstatus") is False


def _ask(client: RpcClient, method: UUri, options: CallOptions) -> UPayload | None:
    try:
        return client.invoke_method(method, "hello", options)
    except UStatusError:
        return None


SERVER = """
import sys, threading
import elea
from elea.uprotocol import RpcServer, open
config = elea.Config.from_json5('{mode: "client", connect: {endpoints: ["%s"]}}')
config.insert_json5("scouting/multicast/enabled", "false")
with open(config, "//host2/CD/4/0") as transport, RpcServer(transport) as server:
    server.register_endpoint(None, 0xB, lambda *_: "alive")
    print("ready", flush=True)
    threading.Event().wait()
"""


def test_a_server_that_dies(client: UTransportZenoh, locator: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", SERVER % locator], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with RpcClient(client) as calling:
            eventually(lambda: answered(calling, METHOD), "the server answers")
            child.kill()
            child.wait()

            with pytest.raises(UStatusError) as caught:
                calling.invoke_method(METHOD, None, CallOptions(ttl=300))

            assert caught.value.code in (UCode.DEADLINE_EXCEEDED, UCode.UNAVAILABLE)
            assert calling.pending == 0
    finally:
        child.kill()
        child.wait()
        child.stdout.close()  # type: ignore[union-attr]


def test_the_twin_reads_what_a_broker_keeps() -> None:
    storage = {"storages": {"up": {"key_expr": "up/**", "volume": "memory"}}}
    place = f"tcp/127.0.0.1:{free_port()}"
    entries = {"mode": "router", "listen/endpoints": [place], "plugins/storage_manager": storage}
    with elea.open(configuration(elea, entries)), client_of(elea, place) as session:
        transport = UTransportZenoh(session, "//host1/403AB/3/0")
        last = LastMessages(transport)
        message = UMessage.publish(TOPIC, b"50", UPayloadFormat.TEXT)
        with pytest.raises(UStatusError, match="NOT_FOUND"):
            last.of(TOPIC)

        transport.send(message)

        assert eventually(lambda: _last(last), "the broker keeps it") == message


def _last(last: LastMessages) -> UMessage | None:
    try:
        return last.of(TOPIC)
    except UStatusError:
        return None
