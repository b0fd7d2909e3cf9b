"""`elea up`: messages against entities of the library, through a real broker; and what bytes mean."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import elea as zenoh
from elea.uprotocol import (
    Publisher,
    RpcServer,
    UAttributes,
    UCode,
    UMessage,
    UMessageType,
    UPayload,
    UPayloadFormat,
    UStatusError,
    UTransportZenoh,
    UUri,
    new_uuid,
)
from tests.unit.cli.conftest import Elea
from tests.unit.cli.running import Running, start_broker

VECTORS = Path(__file__).parents[2] / "vectors" / "uprotocol"
TOPIC = "//vcu.my_vin/10AB/3/8001"
METHOD = "//vcu.my_vin/10AB/3/B"
PHONE = "//phone/1/1/0"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def locator() -> Iterator[str]:
    broker, where = start_broker()
    with broker:
        yield where


@pytest.fixture
def vehicle(locator: str) -> Iterator[UTransportZenoh]:
    config = zenoh.Config.from_json5(f'{{mode: "client", connect: {{endpoints: ["{locator}"]}}}}')
    with zenoh.open(config) as session, UTransportZenoh(session, "//vcu.my_vin/10AB/3/0") as transport:
        yield transport


def listening(*words: str) -> Running:
    """A subscriber that is ready."""
    running = Running("up", "sub", *words)
    running.wait_for_error("listening")
    return running


def seen(sub: Running, send: Callable[[], object]) -> dict[str, Any]:
    """Sends until the subscriber, which says nothing with --json, prints something."""
    for _ in range(100):
        send()
        if not sub._lines.empty():
            return sub.form()
        time.sleep(0.05)
    raise AssertionError("the subscriber saw nothing")


# -- pub, sub ----------------------------------------------------------------------------------------------------------


def test_what_pub_publishes_sub_prints(elea: Elea, locator: str) -> None:
    with listening(TOPIC, "-n", "2", "-e", locator) as sub:
        first = elea("up", "pub", TOPIC, '{"speed": 50}', "--format", "json", "-e", locator)
        second = elea("up", "pub", TOPIC, "-e", locator)

        lines = [sub.line(), sub.line()]

        assert sub.end() == 0
    assert first == (0, f"publish  {TOPIC}  13 B\n", "")
    assert second.status == 0
    assert lines[0].split()[1:] == ["publish", TOPIC, "json", '{"speed":', "50}"]
    assert lines[1].split()[1:] == ["publish", TOPIC, "(no", "payload)"]


def test_pub_notifies_one_entity(elea: Elea, locator: str) -> None:
    with listening("--to", PHONE, "-n", "1", "-e", locator) as sub:
        words = (TOPIC, "1b5b", "--hex", "--format", "raw", "--to", PHONE, "--ttl", "60000", "--priority", "cs3")
        result = elea("up", "pub", *words, "-e", locator, "--json")

        line = sub.line()

        assert sub.end() == 0
    assert json.loads(result.out) == {"type": "notification", "source": TOPIC, "sink": PHONE, "size": 2}
    assert line.split()[1:] == ["notification", TOPIC, "→", PHONE, "raw", "1b", "5b", "(2", "octets)"]
    assert "\x1b" not in line


def test_sub_json_has_every_attribute_that_is_there(locator: str, vehicle: UTransportZenoh) -> None:
    message = UMessage.notification(
        UUri.parse(TOPIC), UUri.parse(PHONE), b"\xff", UPayloadFormat.RAW, ttl=60_000, priority=4, traceparent=TRACE
    )
    with Running("up", "sub", "--all", "--json", "-e", locator) as sub:
        form = seen(sub, lambda: vehicle.send(message))

        assert sub.stop() == 0
    assert str(form.pop("time")).startswith("20")
    assert form == {
        "type": "notification",
        "source": TOPIC,
        "sink": PHONE,
        "priority": "cs3",
        "format": "raw",
        "id": str(message.attributes.id),
        "ttl": 60_000,
        "traceparent": TRACE,
        "hex": "ff",
    }


def test_sub_counts_what_is_no_message(locator: str, vehicle: UTransportZenoh) -> None:
    with listening("-n", "1", "-e", locator) as sub:
        vehicle.session.put("up/vcu.my_vin/10AB/0/3/8001/{}/{}/{}/{}/{}", "no attachment")
        Publisher(vehicle).publish(0x8001, "a message")

        assert "a message" in sub.line()
        assert sub.wait_for_error("no valid messages").endswith("1 attachment")
        assert sub.end() == 0


# -- call --------------------------------------------------------------------------------------------------------------


def serve(_: int, attributes: UAttributes, payload: UPayload | None) -> UPayload:
    if payload is None:
        raise UStatusError(UCode.NOT_FOUND, "no such door")
    assert attributes.token == "key"
    return UPayload.json({"opened": payload.to_text()})


def test_call_prints_the_answer(elea: Elea, locator: str, vehicle: UTransportZenoh) -> None:
    with RpcServer(vehicle) as server:
        server.register_endpoint(None, 0xB, serve)
        plain = elea("up", "call", METHOD, "left", "--token", "key", "--as", PHONE, "-e", locator)
        found = elea("up", "call", METHOD, "left", "--token", "key", "--ttl", "5000", "-e", locator, "--json")
        form = json.loads(found.out)

        assert (plain.status, plain.out) == (0, '{"opened": "left"}\n')
        assert form.pop("milliseconds") > 0
        assert form == {"method": METHOD, "code": "ok", "format": "json", "value": '{"opened": "left"}'}


def test_call_that_fails_tells_code_and_problem(elea: Elea, locator: str, vehicle: UTransportZenoh) -> None:
    with RpcServer(vehicle) as server:
        server.register_endpoint(None, 0xB, serve)
        result = elea("up", "call", METHOD, "-e", locator, "--json")

    assert result.status == 1
    assert json.loads(result.out)["code"] == "not-found"
    assert "no such door" in result.err


def test_call_of_a_method_that_nobody_serves(elea: Elea, locator: str) -> None:
    """A router decides who gets what; between peers it is known that nobody does."""
    through_router = elea("up", "call", "//nobody/1/1/1", "--ttl", "200", "-e", locator)
    config = zenoh.Config.from_json5('{mode: "peer", listen: {endpoints: ["tcp/127.0.0.1:0"]}}')
    config.insert_json5("scouting/multicast/enabled", "false")
    with zenoh.open(config) as session:
        there = str(session.info.locators()[0])
        to_peer = elea("up", "call", "//nobody/1/1/1", "-e", there, "-m", "peer", "--no-multicast-scouting")

    assert through_router.status == 1
    assert "DEADLINE_EXCEEDED" in through_router.err
    assert to_peer.status == 3
    assert "nobody listens to //nobody/1/1/1" in to_peer.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("pub", "//vcu/10AB/3"), "//vcu/10AB/3"),
        (("pub", "//vcu/10AB/3/B"), "must be in 8000..FFFE"),
        (("pub", "/10AB/3/8001"), "needs an authority"),
        (("pub", "//vcu/10AB/3/8001", "xyz", "--hex"), "not hex"),
        (("call", TOPIC), "must be in 1..7FFF"),
        (("call", METHOD, "--as", "//*/1/1/0"), "authority"),
        (("sub", "//vcu/1/1/1"), "without a sink filter"),
    ],
)
def test_what_cannot_be_sent_is_wrong_usage(elea: Elea, locator: str, words: tuple[str, ...], problem: str) -> None:
    result = elea("up", *words, "-e", locator)

    assert result.status == 2
    assert problem in result.err


def test_without_a_network_nobody_is_reached(elea: Elea) -> None:
    assert elea("up", "pub", TOPIC, "x", "-e", "tcp/127.0.0.1:1").status == 3


# -- decode ------------------------------------------------------------------------------------------------------------

MESSAGE = UMessage.publish(UUri.parse(TOPIC), b"50", UPayloadFormat.TEXT, id=new_uuid(lambda: 1_735_689_600_000))


def test_decode_shows_attachments_of_all_vectors(elea: Elea) -> None:
    vectors = json.loads((VECTORS / "uattributes.json").read_text())
    lines = "\n".join(one["attachment"] for one in vectors["vectors"]).encode()

    result = elea("up", "decode", "--json", stdin=lines)

    forms = [json.loads(line) for line in result.lines]
    assert len(forms) == len(vectors["vectors"]) > 0
    for form, vector in zip(forms, vectors["vectors"], strict=True):
        assert form["kind"] == "attachment"
        assert form["id"] == vector["attributes"]["id"]
        assert form["type"] == UMessageType(vector["attributes"]["type"]).name.lower()


def test_decode_tells_what_is_wrong_with_bad_attachments(elea: Elea) -> None:
    vectors = json.loads((VECTORS / "uattributes.json").read_text())["bad_attachments"]
    lines = [one["attachment"] or "0x" for one in vectors]

    result = elea("up", "decode", "--kind", "attachment", "--json", *lines)

    forms = [json.loads(line) for line in result.lines]
    assert result.status == 1
    assert len(forms) == len(vectors) > 0
    assert all(form["problem"] for form in forms)


@pytest.mark.parametrize(
    ("data", "kind"),
    [(MESSAGE.to_bytes(), "message"), (MESSAGE.attributes.to_bytes(), "attributes")],
    ids=["message", "attributes"],  # the bytes hold a new identifier in every process
)
def test_decode_knows_messages_from_attributes(elea: Elea, data: bytes, kind: str) -> None:
    result = elea("up", "decode", data.hex(" "), "--json")
    chosen = elea("up", "decode", data.hex(" "), "--kind", kind, "--json")

    form = json.loads(result.out)
    assert result.status == 0
    assert (form["kind"], form["source"], form["time"]) == (kind, TOPIC, "2025-01-01T00:00:00.000000000Z")
    assert form.get("value") == ("50" if kind == "message" else None)
    assert chosen.out == result.out


def test_decode_for_people_says_what_breaks_a_rule(elea: Elea) -> None:
    attributes = UAttributes(new_uuid(lambda: (1 << 48) - 1), 9, UUri("a\x1b[2J", 1, 1, 0x8000))

    result = elea("up", "decode", attributes.to_bytes().hex(), "--kind", "attributes")

    assert result.status == 1
    assert "\x1b" not in result.out
    assert any(line.startswith("type ") and line.endswith(" 9") for line in result.lines)
    assert result.lines[-1].startswith("problem ")


def test_decode_shows_the_addresses_of_a_key(elea: Elea) -> None:
    keys = ("up/vcu/10AB/0/3/80CD/{}/{}/{}/{}/{}", "up/phone/1/0/1/0/vcu/CD/0/4/B", "up/x", "zz")

    result = elea("up", "decode", "--json", *keys)

    published, request, short, not_hex = (json.loads(line) for line in result.lines)
    assert published == {"kind": "key", "source": "//vcu/10AB/3/80CD"}
    assert request == {"kind": "key", "source": "//phone/1/1/0", "sink": "//vcu/CD/4/B"}
    assert short["error"] == "NO_KEY"
    assert not_hex["error"] == "NOT_HEX"
    assert result.status == 1


def test_decode_shows_the_parts_of_an_address(elea: Elea) -> None:
    addresses = ("//vcu/1A40101/1/8000", "up:/CD/4/B", "//*/FFFFFFFF/FF/0", "//vcu/1/1")

    result = elea("up", "decode", "--json", *addresses)

    topic, method, anybody, short = (json.loads(line) for line in result.lines)
    assert topic == {
        "kind": "address", "address": "//vcu/1A40101/1/8000", "authority": "vcu", "type": "101", "instance": "1A4",
        "version": "1", "resource": "8000", "is": "topic", "key": "up/vcu/101/1A4/1/8000/{}/{}/{}/{}/{}",
    }  # fmt: skip
    assert (method["address"], method["is"], "key" in method) == ("/CD/4/B", "method", False)
    assert (anybody["is"], anybody["wildcards"]) == ("entity", "authority type instance version")
    assert anybody["key"] == "up/*/*/*/*/*/*/*/*/*/0"
    assert (short["error"], result.status) == ("NO_ADDRESS", 1)


@pytest.mark.parametrize("as_json", [False, True])
def test_sub_says_the_whole_address_of_a_sender_that_leaves_out_its_authority(
    vehicle: UTransportZenoh, locator: str, as_json: bool
) -> None:
    short = UMessage.publish(UUri.parse("/10AB/3/8001"), b"50", UPayloadFormat.TEXT)
    if as_json:
        with Running("up", "sub", "-n", "1", "--json", "-e", locator) as sub:
            form = seen(sub, lambda: vehicle.send(short))
        assert (form["source"], form["origin"]) == ("/10AB/3/8001", TOPIC)
        return
    with listening("-n", "1", "-e", locator) as sub:
        vehicle.send(short)
        assert f"{TOPIC}  text  50" in sub.line()
