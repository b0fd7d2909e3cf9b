"""Calls on a session of its own: answers, errors, deadlines, and that nothing is left of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

import elea
from elea.model.errors import OperationTimeout
from elea.uprotocol import (
    ANY_UURI,
    CallOptions,
    Notifier,
    Publisher,
    RpcClient,
    RpcServer,
    UAttributes,
    UCode,
    UMessage,
    UPayload,
    UPayloadFormat,
    UPriority,
    UStatus,
    UStatusError,
    UTransportZenoh,
    UUri,
    new_uuid,
)
from elea.uprotocol.communication import answering, calls, rpcserver
from elea.uprotocol.communication.answering import failure, success
from elea.uprotocol.payload import wrap_any
from tests.interop.inbox import Inbox, eventually
from tests.unit.uprotocol.entities import alone, entity

METHOD = UUri.parse("//host2/CD/4/B")
SHORT = CallOptions(ttl=500)


@pytest.fixture
def session() -> Iterator[elea.Session]:
    with elea.open(alone()) as opened:
        yield opened


@pytest.fixture
def client(session: elea.Session) -> Iterator[RpcClient]:
    with RpcClient(entity(session, "//host1/403AB/3/0")) as opened:
        yield opened
        assert opened.pending == 0


@pytest.fixture
def service(session: elea.Session) -> UTransportZenoh:
    return entity(session, "//host2/CD/4/0")


def echo(_: int, attributes: UAttributes, payload: UPayload | None) -> UPayload | None:
    return payload


def test_a_call_gives_what_the_method_returns(client: RpcClient, service: UTransportZenoh) -> None:
    seen: list[tuple[int, UAttributes, UPayload | None]] = []

    def answer(method: int, attributes: UAttributes, payload: UPayload | None) -> str:
        seen.append((method, attributes, payload))
        return "done"

    with RpcServer(service) as server:
        server.register_endpoint(None, 0xB, answer)
        result = client.invoke_method(METHOD, b"x", CallOptions(ttl=5000, token="t", permission_level=2))

    assert result == UPayload(b"done", UPayloadFormat.TEXT)
    method, attributes, payload = seen[0]
    assert (method, payload) == (0xB, UPayload(b"x", UPayloadFormat.RAW))
    assert (str(attributes.source), attributes.priority) == ("//host1/403AB/3/0", UPriority.CS4)
    assert (attributes.ttl, attributes.token, attributes.permission_level) == (5000, "t", 2)


@pytest.mark.parametrize("payload", [None, b"", "", "x"])
def test_absent_and_empty_payloads_are_told_apart(
    client: RpcClient, service: UTransportZenoh, payload: bytes | str | None
) -> None:
    with RpcServer(service) as server:
        server.register_endpoint(None, 0xB, echo)
        result = client.invoke_method(METHOD, payload)

    assert (None if result is None else result.data) == (payload.encode() if isinstance(payload, str) else payload)


def test_a_method_that_raises_is_answered_with_its_code(client: RpcClient, service: UTransportZenoh) -> None:
    responses = Inbox()
    service.register_listener(METHOD, ANY_UURI.with_resource(0), responses)

    def refuse(*_: object) -> None:
        raise UStatusError(UCode.NOT_FOUND, "no such light", (wrap_any("a.B", b"x"),))

    with RpcServer(service) as server:
        server.register_endpoint(None, 0xB, refuse)
        with pytest.raises(UStatusError) as caught:
            client.invoke_method(METHOD)

    assert caught.value.status == UStatus(UCode.NOT_FOUND, "no such light", (wrap_any("a.B", b"x"),))
    response = responses.one()
    assert response.attributes.commstatus == UCode.NOT_FOUND
    assert response.attributes.payload_format == UPayloadFormat.PROTOBUF
    assert UStatus.from_bytes(response.payload).code is UCode.NOT_FOUND


@pytest.mark.parametrize("broken", [lambda *_: 1 / 0, lambda *_: object()], ids=["raises", "returns nonsense"])
def test_a_method_that_breaks_is_internal(
    client: RpcClient, service: UTransportZenoh, broken: rpcserver.RequestHandler, caplog: pytest.LogCaptureFixture
) -> None:
    with RpcServer(service) as server:
        server.register_endpoint(None, 0xB, broken)
        with pytest.raises(UStatusError) as caught:
            client.invoke_method(METHOD)

    assert caught.value.code is UCode.INTERNAL
    assert "division" not in str(caught.value)
    assert "handler failed: method=//host2/CD/4/B" in caplog.text


def test_no_answer_in_time(client: RpcClient, service: UTransportZenoh) -> None:
    service.register_listener(ANY_UURI, METHOD, Inbox())
    began = time.monotonic()

    with pytest.raises(UStatusError, match="no answer from //host2/CD/4/B within 500 ms") as caught:
        client.invoke_method(METHOD, None, SHORT)

    assert caught.value.code is UCode.DEADLINE_EXCEEDED
    assert 0.495 <= time.monotonic() - began < 10


def test_a_late_answer_is_ignored(client: RpcClient, service: UTransportZenoh) -> None:
    requests = Inbox()
    service.register_listener(ANY_UURI, METHOD, requests)
    with pytest.raises(UStatusError, match="DEADLINE_EXCEEDED"):
        client.invoke_method(METHOD, None, CallOptions(ttl=1_000))  # time enough to get there
    request = requests.one().attributes

    # Without a time to live, as some libraries answer: with one it would have expired on its way.
    late = success(request, "late")
    service.send(UMessage(late.attributes._replace(ttl=None), late.payload))

    eventually(lambda: client.unmatched == 1, "the late answer has come")
    assert client.pending == 0


def test_a_repeated_answer_is_ignored(client: RpcClient, service: UTransportZenoh) -> None:
    def twice(message: UMessage) -> None:
        service.send(success(message.attributes, "first"))
        service.send(success(message.attributes, "second"))

    service.register_listener(ANY_UURI, METHOD, twice)

    assert client.invoke_method(METHOD) == UPayload.text("first")
    eventually(lambda: client.unmatched == 1, "the second answer has come")


def test_crossed_answers_find_their_calls(client: RpcClient, service: UTransportZenoh) -> None:
    requests = Inbox()
    service.register_listener(ANY_UURI, METHOD, requests)
    pending = [client.start(METHOD, str(number)) for number in range(10)]

    for request in reversed(requests.take(10)):
        service.send(success(request.attributes, UPayload(request.payload, UPayloadFormat.TEXT)))

    assert [call.result() for call in pending] == [UPayload.text(str(number)) for number in range(10)]


def test_a_thousand_calls_at_once(client: RpcClient, service: UTransportZenoh) -> None:
    with RpcServer(service, workers=4) as server:
        server.register_endpoint(None, 0xB, echo)
        pending = [client.start(METHOD, str(number)) for number in range(1000)]

        assert [call.result().to_text() for call in pending] == [str(number) for number in range(1000)]  # type: ignore[union-attr]
        assert (client.pending, server.pending) == (0, 0)


def test_calls_of_many_threads(client: RpcClient, service: UTransportZenoh) -> None:
    results: list[bool] = []

    def ask(number: int) -> None:
        for turn in range(20):
            text = f"{number}.{turn}"
            results.append(client.invoke_method(METHOD, text) == UPayload.text(text))

    with RpcServer(service) as server:
        server.register_endpoint(None, 0xB, echo)
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

    assert results == [True] * 320


def test_a_slow_method_is_answered_for(client: RpcClient, service: UTransportZenoh) -> None:
    """The server answers DEADLINE_EXCEEDED itself, and what the method returns afterwards goes nowhere."""
    responses, go_on = Inbox(), threading.Event()
    service.register_listener(METHOD, ANY_UURI.with_resource(0), responses)

    def slow(*_: object) -> str:
        go_on.wait(10)
        return "too late"

    with RpcServer(service, workers=1) as server:
        server.register_endpoint(None, 0xB, slow)
        call = client.start(METHOD, None, SHORT)
        eventually(lambda: server.timed_out == 1, "the server has given up")
        go_on.set()
        with pytest.raises(UStatusError, match="DEADLINE_EXCEEDED"):
            call.result()
        server.register_endpoint(None, 0xC, echo)
        client.invoke_method(METHOD.with_resource(0xC))

    told = [message.attributes.commstatus for message in responses.drain()]
    assert told in ([UCode.DEADLINE_EXCEEDED], [])  # it may have expired on its way, but there is no second one


def test_callers_cannot_make_a_server_keep_timers(session: elea.Session, service: UTransportZenoh) -> None:
    """A request that was answered leaves a timer until its time to live is over; there are few of them, however many
    lengths of time callers think of.
    """
    client = entity(session, "//host1/403AB/3/0")
    answers = Inbox()
    client.register_listener(METHOD, client.get_source(), answers)
    with RpcServer(service) as server:
        server.register_endpoint(None, 0xB, echo)
        for number in range(2000):
            client.send(UMessage.request(client.get_source(), METHOD, ttl=0xFFFF_FFFF - number * 2_000_003))
        answers.take(2000)

        assert server.pending == 0
        assert len(server._answerer._timeouts._queues) <= 256


@pytest.mark.parametrize("ttl", [1, 7, 15, 16, 17, 500, 10_000, 0xFFFF_FFFF])
def test_a_rounded_time_is_a_little_longer(ttl: int) -> None:
    assert ttl <= answering._rounded(ttl) <= ttl * 9 / 8 + 1


def test_a_response_without_ttl_is_received(client: RpcClient, service: UTransportZenoh) -> None:
    """Trap 4, the other side: the public Python library leaves it out."""

    def answer(message: UMessage) -> None:
        response = success(message.attributes, "no ttl")
        service.send(UMessage(response.attributes._replace(ttl=None), response.payload))

    service.register_listener(ANY_UURI, METHOD, answer)

    assert client.invoke_method(METHOD) == UPayload.text("no ttl")


def test_wrong_sinks(client: RpcClient, service: UTransportZenoh) -> None:
    with RpcServer(service) as server:
        server.register_endpoint(None, 0xB, echo)
        codes = []
        for method in ("//host2/CD/4/0", "//host2/CD/4/8000", "//*/CD/4/B", "//host2/CD/4/FFFF", "//host2/CD/4/C"):
            with pytest.raises(UStatusError) as caught:
                client.invoke_method(UUri.parse(method), None, SHORT)
            codes.append(caught.value.code)

    assert codes == [UCode.INVALID_ARGUMENT] * 4 + [UCode.UNAVAILABLE]


@pytest.mark.parametrize("options", [CallOptions(ttl=0), CallOptions(ttl=-1), CallOptions(priority=UPriority.CS3)])
def test_wrong_options(client: RpcClient, service: UTransportZenoh, options: CallOptions) -> None:
    service.register_listener(ANY_UURI, METHOD, Inbox())

    with pytest.raises(UStatusError) as caught:
        client.invoke_method(METHOD, None, options)

    assert caught.value.code is UCode.INVALID_ARGUMENT


def test_an_id_in_use_is_refused(client: RpcClient, service: UTransportZenoh) -> None:
    service.register_listener(ANY_UURI, METHOD, Inbox())
    options = CallOptions(ttl=200, id=new_uuid())
    first = client.start(METHOD, None, options)

    with pytest.raises(UStatusError) as caught:
        client.start(METHOD, None, options)

    assert caught.value.code is UCode.ALREADY_EXISTS
    first.cancel()
    with pytest.raises(UStatusError, match="CANCELLED"):
        first.result()


def test_too_many_calls_are_refused(
    client: RpcClient, service: UTransportZenoh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "UPROTOCOL_PENDING", 3)
    service.register_listener(ANY_UURI, METHOD, Inbox())
    pending = [client.start(METHOD, None, SHORT) for _ in range(3)]

    with pytest.raises(UStatusError) as caught:
        client.start(METHOD)

    assert caught.value.code is UCode.RESOURCE_EXHAUSTED
    for call in pending:
        with pytest.raises(UStatusError, match="DEADLINE_EXCEEDED"):
            call.result()


def test_who_waits_less_than_the_call_may_wait_again(client: RpcClient, service: UTransportZenoh) -> None:
    requests = Inbox()
    service.register_listener(ANY_UURI, METHOD, requests)
    call = client.start(METHOD)
    with pytest.raises(OperationTimeout):
        call.result(timeout=0.01)

    service.send(success(requests.one().attributes, "yes"))

    assert call.result(timeout=10) == UPayload.text("yes")


def test_a_closed_client_gives_up_its_calls(session: elea.Session, service: UTransportZenoh) -> None:
    service.register_listener(ANY_UURI, METHOD, Inbox())
    client = RpcClient(entity(session, "//host1/403AB/3/0"))
    call = client.start(METHOD)

    client.close()

    with pytest.raises(UStatusError) as caught:
        call.result()
    assert caught.value.code is UCode.CANCELLED
    with pytest.raises(UStatusError, match="CANCELLED"):
        client.start(METHOD)


def test_a_closed_transport_gives_up_its_calls(session: elea.Session, service: UTransportZenoh) -> None:
    service.register_listener(ANY_UURI, METHOD, Inbox())
    transport = entity(session, "//host1/403AB/3/0")
    client = RpcClient(transport)
    call = client.start(METHOD)

    transport.close()

    with pytest.raises(UStatusError, match="CANCELLED"):
        call.result()
    client.close()


def test_a_client_that_leaves_out_its_authority_is_answered(session: elea.Session, service: UTransportZenoh) -> None:
    """Trap 3: an address without authority is that of whoever reads it, so the answer would go to the server."""
    caller = entity(session, "//host1/403AB/3/0")
    answers = Inbox()
    caller.register_listener(ANY_UURI, UUri.parse("//host1/403AB/3/0"), answers)

    with RpcServer(service) as server:
        server.register_endpoint(None, 0xB, echo)
        caller.send(UMessage.request(UUri.parse("/403AB/3/0"), METHOD, b"x", UPayloadFormat.RAW, ttl=5000))
        answer = answers.one()

    assert (answer.payload, str(answer.sink)) == (b"x", "//host1/403AB/3/0")


def test_our_client_always_says_its_authority(client: RpcClient, session: elea.Session) -> None:
    """Trap 3, the other side: a method without authority is ours, and so is the source."""
    requests = Inbox()
    entity(session, "//host1/403AB/3/0").register_listener(ANY_UURI, UUri.parse("//host1/403AB/3/5"), requests)

    call = client.start(UUri.parse("/403AB/3/5"))
    request = requests.one()
    call.cancel()

    assert (str(request.source), str(request.sink)) == ("//host1/403AB/3/0", "//host1/403AB/3/5")


def test_endpoints(service: UTransportZenoh) -> None:
    server = RpcServer(service)
    server.register_endpoint(None, 0xB, echo)
    other = UUri.parse("//host1/403AB/3/0")

    def code(call: str, *arguments: object) -> UCode:
        with pytest.raises(UStatusError) as caught:
            getattr(server, call)(*arguments)
        return caught.value.code

    assert code("register_endpoint", None, 0xB, echo) is UCode.ALREADY_EXISTS
    assert code("register_endpoint", None, 0, echo) is UCode.INVALID_ARGUMENT
    assert code("register_endpoint", None, 0x8000, echo) is UCode.INVALID_ARGUMENT
    assert code("register_endpoint", None, 0x10000, echo) is UCode.INVALID_ARGUMENT
    assert code("register_endpoint", METHOD, 0xC, echo) is UCode.INVALID_ARGUMENT
    assert code("unregister_endpoint", None, 0xC, echo) is UCode.NOT_FOUND
    assert code("unregister_endpoint", None, 0xB, print) is UCode.NOT_FOUND
    assert code("unregister_endpoint", other, 0xB, echo) is UCode.NOT_FOUND
    server.unregister_endpoint(None, 0xB, echo)
    server.register_endpoint(other, 0xB, echo)
    server.close()


def test_only_the_origin_is_served(session: elea.Session, client: RpcClient, service: UTransportZenoh) -> None:
    with RpcServer(service) as server, RpcClient(entity(session, "//host9/1/1/0")) as stranger:
        server.register_endpoint(UUri.parse("//host1/403AB/3/0"), 0xB, echo)

        assert client.invoke_method(METHOD, "x") == UPayload.text("x")
        with pytest.raises(UStatusError, match="UNAVAILABLE"):
            stranger.invoke_method(METHOD, "x", SHORT)


def test_who_may_not_call_is_told(client: RpcClient, service: UTransportZenoh) -> None:
    def allowed(attributes: UAttributes) -> UCode:
        if attributes.token == "broken":
            raise RuntimeError("no idea")
        return UCode.OK if attributes.token == "secret" else UCode.UNAUTHENTICATED

    with RpcServer(service, authorize=allowed) as server:
        server.register_endpoint(None, 0xB, echo)

        assert client.invoke_method(METHOD, "x", CallOptions(token="secret")) == UPayload.text("x")
        for token, code in (("wrong", UCode.UNAUTHENTICATED), ("broken", UCode.PERMISSION_DENIED)):
            with pytest.raises(UStatusError) as caught:
                client.invoke_method(METHOD, "x", CallOptions(token=token))
            assert caught.value.code is code
        assert server.pending == 0


def test_a_server_without_room_says_so(
    client: RpcClient, service: UTransportZenoh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpcserver, "UPROTOCOL_CALLS", 1)
    go_on, inside = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        inside.set()
        go_on.wait(10)

    with RpcServer(service, workers=1) as server:
        server.register_endpoint(None, 0xB, slow)
        first = client.start(METHOD)
        assert inside.wait(10)
        second, third = client.start(METHOD), client.start(METHOD)
        with pytest.raises(UStatusError) as caught:
            third.result()
        go_on.set()
        assert (first.result(), second.result()) == (None, None)

    assert caught.value.code is UCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("status", "payload", "format", "expected"),
    [
        (5, None, 0, UStatus(UCode.NOT_FOUND, "//host2/CD/4/B answered NOT_FOUND")),
        (5, b"\xff", 2, UStatus(UCode.NOT_FOUND, "//host2/CD/4/B answered NOT_FOUND")),
        (5, b"text", 7, UStatus(UCode.NOT_FOUND, "//host2/CD/4/B answered NOT_FOUND")),
        (5, b"\x12\x02ok", 2, UStatus(UCode.NOT_FOUND, "//host2/CD/4/B answered NOT_FOUND")),
        (5, b"\x08\x07\x12\x02so", 2, UStatus(UCode.PERMISSION_DENIED, "so")),
        (5, wrap_any("uprotocol.v1.UStatus", b"\x08\x05\x12\x02so"), 1, UStatus(UCode.NOT_FOUND, "so")),
    ],
)
def test_errors_of_other_libraries_are_understood(
    status: int, payload: bytes | None, format: int, expected: UStatus
) -> None:
    """The public Python library sends no payload with an error, Rust wraps it."""
    request = UMessage.request(UUri.parse("//a/1/1/0"), METHOD, ttl=1).attributes
    attributes = failure(request, UStatus(UCode.NOT_FOUND)).attributes

    outcome = calls.outcome_of(UMessage(attributes._replace(commstatus=status, payload_format=format), payload))

    assert isinstance(outcome, UStatusError)
    assert outcome.status == expected


def test_publishing_and_notifying(session: elea.Session, service: UTransportZenoh) -> None:
    other = entity(session, "//host1/403AB/3/0")
    published, noted = Inbox(), Inbox()
    topic = UUri.parse("//host2/CD/4/8001")
    other.register_listener(topic, None, published)
    notifier = Notifier(other)
    notifier.start_listening(topic, noted)

    Publisher(service).publish(0x8001, UPayload.json({"speed": 50}), CallOptions(ttl=1000, priority=UPriority.CS2))
    Notifier(service).notify(0x8001, other.get_source(), "note")

    message = published.one()
    assert (message.payload, message.attributes.ttl, message.attributes.priority) == (b'{"speed": 50}', 1000, 3)
    assert (noted.one().payload, noted.drain(), published.drain()) == (b"note", [], [])
    notifier.stop_listening(topic, noted)
    with pytest.raises(UStatusError, match="NOT_FOUND"):
        notifier.stop_listening(topic, noted)
    for wrong in ("//host2/CD/4/FFFF", "//*/CD/4/8001", "//host2/CD/4/0"):
        with pytest.raises(UStatusError, match="INVALID_ARGUMENT"):
            notifier.start_listening(UUri.parse(wrong), noted)
    with pytest.raises(UStatusError, match="INVALID_ARGUMENT"):
        Publisher(service).publish(0xB)
