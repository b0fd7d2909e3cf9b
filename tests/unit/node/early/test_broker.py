"""Devices of both early dialects at a broker, over tcp and udp, together with nodes of Zenoh 1.x."""

from __future__ import annotations

import json

import pytest

import elea
from tests.unit.node.early.client import WAIT, EarlyClient
from tests.unit.node.early.conftest import locator_of
from tests.unit.node.storage.serving import eventually
from tests.unit.node.test_dialect import await_subscriber

BLOCK = elea.CongestionControl.BLOCK
LINKS = [(dialect, protocol) for dialect in ("zenoh2018", "xrce2017") for protocol in ("tcp", "udp")]


@pytest.mark.parametrize(("dialect", "protocol"), LINKS)
def test_samples_of_others_reach_a_device(
    router: elea.Session, robot: elea.Session, dialect: str, protocol: str
) -> None:
    with EarlyClient(locator_of(router, dialect, protocol)) as device:
        scheme = device.generation.scheme
        assert device.subscribe(2, f"{scheme}home/a") == 0
        assert device.subscribe(4, f"{scheme}house/?/t*") == 0
        await_subscriber(router, "house/1/temp")

        robot.put("home/a", "exact", congestion_control=BLOCK)
        for key in ("house/12/temp", "house/1/humidity", "house/1/temp"):
            robot.put(key, key, congestion_control=BLOCK)
        device.await_samples(2)

        exact, pattern = device.seen
        assert (type(exact).__name__, exact.id, exact.prid, exact.payload) == ("StreamData", 2, None, b"exact")
        assert (type(pattern).__name__, pattern.resource) == ("WriteData", f"{scheme}house/1/temp".encode())
        device.declare(device.m.ForgetSubscriberDecl(2))
        eventually(lambda: not router._node.route(router._node.local, "home/a").ways, "its end")


@pytest.mark.parametrize(("dialect", "protocol"), LINKS)
def test_samples_of_a_device_reach_others(
    router: elea.Session, robot: elea.Session, dialect: str, protocol: str
) -> None:
    with (
        robot.declare_subscriber("home/**") as subscriber,
        EarlyClient(locator_of(router, dialect, protocol)) as device,
    ):
        await_subscriber(router, "home/a")
        scheme = device.generation.scheme
        assert device.publish(2, f"{scheme}home/a") == 0
        device.until(lambda: device.announced)
        announced = device.announced[0]
        assert (announced.kind, announced.id, announced.now.mode) == ("subscriber", 2, 1)

        device.stream(2, b"by id")
        device.write_data(f"{scheme}home/b", b"by name")
        device.stream(2, b"in haste", reliable=False)
        device.step(0.0)

        got = [subscriber.handler.recv(timeout=WAIT) for _ in range(3)]
        assert sorted((str(one.key_expr), one.payload.to_bytes()) for one in got) == [
            ("home/a", b"by id"),
            ("home/a", b"in haste"),
            ("home/b", b"by name"),
        ]


def test_a_publisher_is_told_when_the_last_subscriber_goes(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        device.publish(2, "zenoh://home/a")
        device.talk(0.05)
        assert not device.announced, "nobody listens"

        first, second = robot.declare_subscriber("home/*"), robot.declare_subscriber("home/a")
        device.until(lambda: device.announced)
        first.undeclare()
        device.talk(0.05)
        assert [change.now is None for change in device.announced] == [False]

        second.undeclare()
        device.until(lambda: len(device.announced) == 2)
        assert device.announced[-1].now is None


def test_a_sample_does_not_come_back(router: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as one, EarlyClient(locator_of(router, "xrce2017", "udp"), b"other") as other:
        one.subscribe(2, "zenoh://a/b")
        other.subscribe(2, "xrce://a/b")

        one.write_data("zenoh://a/b", b"mine")
        one.step(0.0)
        other.await_samples(1)
        one.talk(0.05)

        assert (other.payloads(), one.payloads()) == ([b"mine"], [])


def test_a_resource_is_named_by_the_ids_of_who_gets_it(router: elea.Session, robot: elea.Session) -> None:
    """Z18-DAT-03: under the subscriber's id, with that of the resource where needed and known."""
    with EarlyClient(locator_of(router)) as device:
        m = device.m
        assert device.subscribe(4, "zenoh://a/*") == 0
        assert device.declare(m.ResourceDecl(2, b"zenoh://a/b"), m.SelectionDecl(3, b"zenoh://a/b")) == 0
        assert device.subscribe(3) == 0
        await_subscriber(router, "a/b")

        robot.put("a/b", "known", congestion_control=BLOCK)
        robot.put("a/c", "named", congestion_control=BLOCK)
        device.await_samples(3)

        told = [(getattr(one, "id", None), getattr(one, "prid", None)) for one in device.seen]
        assert sorted(told[:2]) == [(3, 2), (4, 2)]
        assert device.seen[2].resource == b"zenoh://a/c"


def test_a_predicate_chooses_samples_by_their_content(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        m = device.m
        named = (m.Property(1, bytes.fromhex("01 05") + b"limit" + bytes([1]) + b"2"),)
        assert device.declare(m.SelectionDecl(1, b"zenoh://a/*?{speed>limit}", properties=named)) == 0
        assert device.declare(m.ResourceDecl(2, b"zenoh://a/b")) == 0
        assert device.subscribe(1) == 0
        await_subscriber(router, "a/b")

        for payload in ('{"speed": 3}', '{"speed": 1}', "no fields", '{"speed": 2.5}'):
            robot.put("a/b", payload, congestion_control=BLOCK)
        robot.put("a/c", '{"speed": 9}', congestion_control=BLOCK)
        assert device.await_samples(3) == [b'{"speed": 3}', b'{"speed": 2.5}', b'{"speed": 9}']
        assert [getattr(one, "id", None) for one in device.seen] == [1, 1, None]

        for key, payload in (("kept/a", '{"speed": 3}'), ("kept/b", '{"speed": 1}')):
            robot.put(key, payload, congestion_control=BLOCK)
        eventually(lambda: len(list(robot.get("kept/*"))) == 2, "the storage")
        assert device.declare(m.SelectionDecl(3, b"zenoh://kept/*?{speed>2}")) == 0
        device.seen.clear()
        device.pull(3)
        device.until(lambda: any(getattr(one, "prid", None) == 0 for one in device.seen))
        assert device.payloads() == [b'{"speed": 3}', b""]


def test_a_predicate_may_ask_for_properties_of_the_resource(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device, EarlyClient(locator_of(router), b"lamps") as lamps:
        m = device.m
        for id, place in ((2, b"[0,1]"), (4, b"[9,9]")):
            named = bytes([1, 8]) + b"location" + bytes([5]) + place
            lamps.declare(m.ResourceDecl(id, b"zenoh://lamp/%d" % id, (m.Property(1, named),)), m.PublisherDecl(id))
        assert device.declare(m.SelectionDecl(1, b"zenoh://lamp/*?{inRange(property.location,[0,0],2)}")) == 0
        assert device.subscribe(1) == 0
        lamps.until(lambda: len(lamps.announced) == 2)

        for id in (4, 2):
            lamps.stream(id, b"%d" % id)
        lamps.step(0.0)

        assert device.await_samples(1) == [b"2"]


@pytest.mark.parametrize("text", [b"zenoh://a?{speed >}", b"zenoh://a?{unknown(1)}"])
def test_a_predicate_that_makes_no_sense_is_refused(router: elea.Session, text: bytes) -> None:
    with EarlyClient(locator_of(router)) as device:
        assert device.declare(device.m.SelectionDecl(1, text)) == 6
        assert device.declare(device.m.SelectionDecl(1, b"zenoh://a/b")) == 0
        named = (device.m.Property(1, b"\x05\x01"),)
        assert device.declare(device.m.SelectionDecl(3, b"zenoh://a?{x>1}", properties=named)) == 5


def test_the_admin_space_and_the_metrics_know_early_sessions(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router, "xrce2017", "udp")) as device:
        device.subscribe(2, "xrce://home/?/temp")
        root = f"@/{router.zid()}/router"
        found = {
            str(reply.ok.key_expr): reply.ok.payload.to_string()
            for reply in robot.get(f"{root}/**?compression=false", timeout=WAIT)
            if reply.ok
        }

        sessions = json.loads(found[root])["sessions"]
        assert [one["peer"] for one in sessions if one.get("dialect") == "xrce2017"] == [b"device"[::-1].hex()]
        assert f"{root}/subscriber/home/$*/temp" in found or f"{root}/subscriber/home/*/temp" in found
        counted = [line for line in found[f"{root}/metrics"].splitlines() if 'dialect="xrce2017"' in line]
        assert any(line.startswith("elea_link_received_bytes_total") for line in counted)
        assert any(line.startswith("elea_link_resent_messages_total") for line in counted)
