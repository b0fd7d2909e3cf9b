"""A thousand calls at once over real nodes: each ends as it should, and nothing is left of any of them."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from elea.uprotocol import (
    ANY_UURI,
    CallOptions,
    PendingCall,
    RpcClient,
    RpcServer,
    UAttributes,
    UCode,
    UMessage,
    UPayload,
    UStatusError,
    UTransportZenoh,
    UUri,
    new_uuid,
)
from elea.uprotocol.communication.answering import Request, success
from tests.interop.inbox import eventually
from tests.interop.test_uprotocol import SERVER, answered, client_of, locator

__all__ = ["locator"]

pytestmark = pytest.mark.interop

SERVICE = "//host2/CD/4/0"
ECHO, FAILING, BROKEN, SILENT, LATE, TWICE, OTHER_ID, REFUSED, NOBODY, NO_METHOD = range(0x10, 0x1A)
EACH = 100
SHORT = CallOptions(ttl=1500)
LONG = CallOptions(ttl=60_000)


def method(resource: int) -> UUri:
    return UUri.parse(SERVICE).with_resource(resource)


class Service:
    """Methods that answer in every way there is."""

    def __init__(self, transport: UTransportZenoh) -> None:
        self._transport = transport
        self._late: list[UMessage] = []
        self.server = RpcServer(transport, workers=4, authorize=self._authorize)
        self.server.register_endpoint(None, ECHO, lambda _, __, payload: payload)
        self.server.register_endpoint(None, FAILING, self._fail)
        self.server.register_endpoint(None, BROKEN, lambda *_: 1 / 0)  # type: ignore[arg-type]
        self.server.register_endpoint(None, REFUSED, lambda *_: "nobody gets this")
        listeners = {SILENT: self._ignore, LATE: self._late.append, TWICE: self._twice, OTHER_ID: self._other}
        for resource, listener in listeners.items():
            transport.register_listener(ANY_UURI, method(resource), listener)

    def _ignore(self, message: UMessage) -> None:
        """No answer at all."""

    def _authorize(self, attributes: UAttributes) -> UCode:
        sink = attributes.sink
        return UCode.UNAUTHENTICATED if sink is not None and sink.resource_id == REFUSED else UCode.OK

    def _fail(self, *_: object) -> None:
        raise UStatusError(UCode.OUT_OF_RANGE, "too far")

    def _twice(self, message: UMessage) -> None:
        for text in ("first", "second"):
            self._transport.send(success(message.attributes, text))

    def _other(self, message: UMessage) -> None:
        """An answer to a call that nobody made."""
        self._transport.send(success(message.attributes._replace(id=new_uuid()), "for whom?"))

    def answer_late(self) -> int:
        """Answers without a time to live, which the transport would drop: the client has to."""
        for message in self._late:
            response = success(message.attributes, "late")
            self._transport.send(UMessage(response.attributes._replace(ttl=None), response.payload))
        return len(self._late)


@pytest.fixture
def service(locator: str) -> Iterator[Service]:
    with client_of(elea, locator) as session, UTransportZenoh(session, SERVICE) as transport:
        made = Service(transport)
        yield made
        made.server.close()


@pytest.fixture
def transport(locator: str) -> Iterator[UTransportZenoh]:
    with client_of(elea, locator) as session, UTransportZenoh(session, "//host1/403AB/3/0") as opened:
        yield opened


def outcome(client: RpcClient, resource: int, number: int) -> UCode | str:
    """How one call ends."""
    options = LONG if resource in (ECHO, FAILING, BROKEN, TWICE, REFUSED) else SHORT
    uri = method(0 if resource == NO_METHOD else resource)
    try:
        found = client.invoke_method(uri, str(number), options)
    except UStatusError as error:
        return error.code
    assert found is not None
    return found.to_text()


def left_over() -> Counter[str]:
    gc.collect()
    kept = (PendingCall, Request)
    return Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, kept))


def others() -> Counter[str]:
    """Threads by name, but for those of loops, which come and go as there is work."""
    names = [thread.name for thread in threading.enumerate()]
    return Counter(name for name in names if not name.startswith("elea-loop"))


def test_a_thousand_calls_at_once_end_as_they_should(
    transport: UTransportZenoh, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "elea.uprotocol")  # tracebacks that pytest keeps hold requests
    before = others()
    kinds = (ECHO, FAILING, BROKEN, SILENT, LATE, TWICE, OTHER_ID, REFUSED, NOBODY, NO_METHOD)
    found: dict[int, list[UCode | str]] = {kind: [] for kind in kinds}
    with RpcClient(transport) as client:
        eventually(lambda: answered(client, method(ECHO)), "the server is known")
        threads = [
            threading.Thread(target=lambda kind=kind, number=number: found[kind].append(outcome(client, kind, number)))
            for number in range(EACH)
            for kind in kinds
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        late = service.answer_late()
        # The second answers, those to other calls, and the late ones.
        eventually(lambda: client.unmatched == EACH + EACH + late, "nobody waits for these")

        assert sorted(found[ECHO]) == sorted(str(number) for number in range(EACH))
        assert found[TWICE] == ["first"] * EACH
        assert {kind: set(found[kind]) for kind in kinds if kind not in (ECHO, TWICE)} == {
            FAILING: {UCode.OUT_OF_RANGE},
            BROKEN: {UCode.INTERNAL},
            SILENT: {UCode.DEADLINE_EXCEEDED},
            LATE: {UCode.DEADLINE_EXCEEDED},
            OTHER_ID: {UCode.DEADLINE_EXCEEDED},
            REFUSED: {UCode.UNAUTHENTICATED},
            NOBODY: {UCode.DEADLINE_EXCEEDED},  # a client of a router is not told who is there
            NO_METHOD: {UCode.INVALID_ARGUMENT},
        }
        assert {len(one) for one in found.values()} == {EACH}
        assert late == EACH
        assert (client.pending, service.server.pending, service.server.timed_out) == (0, 0, 0)
        assert (service.server.failed, service.server.unsent) == (EACH, 0)
        assert sum(transport.dropped.values()) == 0
    service._late.clear()
    assert left_over() == {}
    assert others() - before == Counter({"elea-uprotocol": 4})


def test_calls_of_a_server_that_is_killed_end_by_themselves(transport: UTransportZenoh, locator: str) -> None:
    slow = "import time\ndef answer(_, __, payload):\n    time.sleep(0.005)\n    return payload\n"
    code = slow + SERVER.replace('lambda *_: "alive"', "answer")
    child = subprocess.Popen([sys.executable, "-c", code % locator], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with RpcClient(transport) as client:
            uri = method(0xB)
            eventually(lambda: answered(client, uri), "the server answers")
            options = CallOptions(ttl=3000)
            pending = [client.start(uri, str(number), options) for number in range(400)]
            assert pending[0].result() == UPayload.text("0")
            child.kill()
            child.wait()
            results = [_result(call) for call in pending[1:]]
            assert _result(client.start(uri, "gone", CallOptions(ttl=50))) is UCode.DEADLINE_EXCEEDED
            answers = [number for number, one in enumerate(results, 1) if one == UPayload.text(str(number))]
            ends = Counter(one for one in results if not isinstance(one, UPayload))
            assert set(ends) == {UCode.DEADLINE_EXCEEDED}
            assert len(answers) + ends.total() == 399
            assert (client.pending, client.unmatched) == (0, 0)
            del pending
            assert left_over() == {}
    finally:
        child.kill()
        child.wait()
        child.stdout.close()  # type: ignore[union-attr]


def _result(call: PendingCall) -> Any:
    try:
        return call.result()
    except UStatusError as error:
        return error.code
