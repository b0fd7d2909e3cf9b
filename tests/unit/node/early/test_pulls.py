"""Pulls, windows, and what is stored: served by a broker to devices of both early dialects."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.wire.primitives import read_nat
from tests.unit.node.early.client import EarlyClient
from tests.unit.node.early.conftest import LISTENING, counters_of, locator_of
from tests.unit.node.storage.serving import eventually
from tests.unit.node.test_dialect import await_subscriber, config

BLOCK = elea.CongestionControl.BLOCK
PULL, PERIODIC_PUSH = 2, 3


def ends(device: EarlyClient) -> int:
    """How many pulls have been said to be over."""
    return sum(getattr(one, "prid", None) == 0 for one in device.seen)


def names(payload: bytes) -> list[str]:
    """A `[string]`."""
    count, at = read_nat(payload, 0, "test")
    found = []
    for _ in range(count):
        size, at = read_nat(payload, at, "test")
        found.append(payload[at : at + size].decode())
        at += size
    return found


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_pull_subscriber_gets_what_it_asks_for(router: elea.Session, robot: elea.Session, protocol: str) -> None:
    with EarlyClient(locator_of(router, "zenoh2018", protocol)) as device:
        device.subscribe(2, "zenoh://home/a", PULL)
        await_subscriber(router, "home/a")
        for number in range(5):
            robot.put("home/a", str(number), congestion_control=BLOCK)
        device.talk(0.1)
        assert device.payloads() == [], "nobody has pulled"

        device.pull(2, most=2)
        device.await_samples(2)
        device.talk(0.05)
        assert (device.payloads(), ends(device)) == ([b"0", b"1"], 0)

        device.pull(2, most=5)
        device.until(lambda: ends(device))
        assert device.payloads() == [b"0", b"1", b"2", b"3", b"4", b""]


def test_a_pull_of_2017_has_a_number_and_no_end(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router, "xrce2017", "udp")) as device:
        device.subscribe(2, "xrce://home/a", PULL)
        await_subscriber(router, "home/a")
        robot.put("home/a", "x", congestion_control=BLOCK)
        device.talk(0.05)

        device.pull(2, pull_id=7)
        device.await_samples(1)
        device.talk(0.05)

        assert (device.payloads(), ends(device)) == ([b"x"], 0)


def test_samples_wait_for_a_window(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        begun = device.now()
        device.subscribe(2, "zenoh://home/a", PERIODIC_PUSH, params=params_of(device, 600, 800, 100))
        await_subscriber(router, "home/a")
        robot.put("home/a", "x", congestion_control=BLOCK)

        device.talk(0.2)
        assert device.payloads() == []
        device.await_samples(1)

        assert 0.55 <= device.now() - begun < 5.0


def params_of(device: EarlyClient, origin: int, period: int, duration: int) -> Any:
    """The record of a window, whatever the generated class is called."""
    for name in dir(device.m):
        made = getattr(device.m, name)
        if getattr(made, "_fields", None) == ("temporalOrigin", "period", "duration"):
            return made(origin, period, duration)
    raise AssertionError("no such class")


def test_what_is_stored_is_pulled(router: elea.Session, robot: elea.Session) -> None:
    for key in ("kept/b", "kept/a", "kept/a/deep"):
        robot.put(key, key, congestion_control=BLOCK)
    robot.put("kept/a", "newer", congestion_control=BLOCK)
    with EarlyClient(locator_of(router)) as device:
        device.declare(device.m.ResourceDecl(2, b"zenoh://kept/a"), device.m.SelectionDecl(3, b"zenoh://kept/?"))

        device.pull(2)
        device.until(lambda: ends(device) == 1)
        assert [(one.id, one.prid, one.payload) for one in device.seen] == [(2, None, b"newer"), (2, 0, b"")]

        device.seen.clear()
        device.pull(3)
        device.until(lambda: ends(device) == 1)
        told = [(one.id, str(device.neighbour.names.subject(0, one.prid)), one.payload) for one in device.seen[:-1]]
        assert told == [(3, "zenoh://kept/a", b"newer"), (3, "zenoh://kept/b", b"kept/b")]


def test_a_pull_that_finds_nothing_ends_at_once(router: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        device.declare(device.m.SelectionDecl(3, b"zenoh://nothing/**"))
        device.pull(3)
        device.until(lambda: ends(device) == 1)
        assert device.payloads() == [b""]


def test_properties_children_and_ids_can_be_pulled(router: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        m = device.m
        properties = (m.Property(6, b"\x00"), m.Property(1, b"\x00"))
        device.declare(
            m.ResourceDecl(2, b"zenoh://a/b", properties),
            m.ResourceDecl(4, b"zenoh://a/c/d"),
            m.SelectionDecl(1, b"zenoh://a/b/property"),
            m.SelectionDecl(3, b"zenoh://a$ls"),
            m.SelectionDecl(5, b"zenoh://a/c/d$id"),
            m.SelectionDecl(7, b"zenoh://nobody$id"),
        )
        for sid in (1, 3, 5, 7):
            device.pull(sid)
        device.until(lambda: ends(device) == 4)

        answers = {one.id: one.payload for one in device.seen if one.prid != 0}
        assert answers[1] == bytes.fromhex("02 06 01 00 01 01 00")
        assert names(answers[3]) == ["zenoh://a/b", "zenoh://a/c"]
        assert answers[5] == b"\x04"
        assert 7 not in answers


def test_nobody_writes_properties(router: elea.Session, robot: elea.Session) -> None:
    with robot.declare_subscriber("a/**") as subscriber, EarlyClient(locator_of(router)) as device:
        await_subscriber(router, "a/b")
        device.write_data("zenoh://a/b/property", b"x")
        device.write_data("zenoh://a/b", b"y")
        device.step(0.0)
        assert subscriber.handler.recv(timeout=10).payload.to_bytes() == b"y"
        assert counters_of(router)["read_only_samples"] == 1


# -- durability --------------------------------------------------------------------------------------------------------


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[elea.Session]:
    """A broker with a disk, and nothing that is kept unless it says so itself; `mem/**` in memory."""
    storages = {
        "mem": {"key_expr": "mem/**", "volume": "memory"},
        "disk": {"key_expr": "disk/**", "volume": "log"},
    }
    made = config(
        "router",
        listen__endpoints=LISTENING,
        plugins__storage_manager={"volumes": {"memory": {}, "log": {"dir": str(tmp_path)}}, "storages": storages},
    )
    with elea.open(made) as session:
        yield session


def test_a_durable_subscriber_gets_what_is_stored_first(router: elea.Session, robot: elea.Session) -> None:
    for number in range(3):
        robot.put(f"kept/{number}", "old", congestion_control=BLOCK)
    with EarlyClient(locator_of(router)) as device:
        device.subscribe(2, "zenoh://kept/*#transient")
        device.await_samples(3)
        robot.put("kept/1", "new", congestion_control=BLOCK)
        device.await_samples(4)

        assert device.payloads() == [b"old", b"old", b"old", b"new"]
        assert device.seen[-1].resource == b"zenoh://kept/1"


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns within microseconds, so that what one does between two steps of another is seen."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_nothing_is_missing_twice_or_out_of_order_between_what_is_stored_and_what_is_live(
    router: elea.Session, robot: elea.Session, protocol: str
) -> None:
    stop = threading.Event()

    def count() -> None:
        number = 0
        while not stop.wait(0.0005):
            robot.put("kept/1", str(number), congestion_control=BLOCK)
            number += 1

    counting = threading.Thread(target=count)
    counting.start()
    try:
        for turn in range(10):
            with EarlyClient(locator_of(router, protocol=protocol), b"late %d" % turn) as device:
                device.subscribe(2, "zenoh://kept/1#transient")
                numbers = [int(payload) for payload in device.await_samples(30)]
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    finally:
        stop.set()
        counting.join()


def test_what_is_stored_is_read_up_to_a_bound(
    router: elea.Session, robot: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elea.node.early.pulling.EARLY_SNAPSHOT_BYTES", 2_500)
    for number in range(5):
        robot.put(f"kept/{number}", bytes(1_000), congestion_control=BLOCK)
    eventually(lambda: len(list(robot.get("kept/*"))) == 5, "the storage")
    with EarlyClient(locator_of(router)) as device:
        device.declare(device.m.SelectionDecl(3, b"zenoh://kept/*"))
        device.pull(3)
        device.until(lambda: ends(device) == 1)
        assert len(device.payloads()) == 3
        assert counters_of(router)["stored_samples_beyond_limit"] == 3


def test_a_subscriber_without_a_marker_gets_live_samples_only(router: elea.Session, robot: elea.Session) -> None:
    robot.put("kept/1", "old", congestion_control=BLOCK)
    with EarlyClient(locator_of(router)) as device:
        device.subscribe(2, "zenoh://kept/1")
        await_subscriber(router, "kept/1")
        robot.put("kept/1", "new", congestion_control=BLOCK)
        device.await_samples(1)
        assert device.payloads() == [b"new"]


def test_markers_choose_what_a_subscriber_gets(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device, EarlyClient(locator_of(router), b"writer") as writer:
        device.subscribe(2, "zenoh://x/**#{red,transient}")
        await_subscriber(router, "x/1")
        writer.write_data("zenoh://x/1", b"plain")
        writer.write_data("zenoh://x/2#blue", b"blue")
        writer.write_data("zenoh://x/3#red", b"red")
        writer.write_data("zenoh://x/1#{blue,red}", b"both")
        writer.step(0.0)
        device.await_samples(2)

        assert device.payloads() == [b"red", b"both"]
        assert device.seen[1].resource == b"zenoh://x/1#{blue,red}"


def test_durable_samples_are_stored_where_that_is_possible(keeper: elea.Session) -> None:
    with EarlyClient(locator_of(keeper)) as device:
        assert device.publish(2, "zenoh://disk/a#persistent") == 0
        device.stream(2, b"by id")
        device.write_data("zenoh://disk/b#persistent", b"safe")
        device.write_data("zenoh://mem/b#transient", b"kept")
        device.write_data("zenoh://other/b#transient", b"in the default log")
        device.write_data("zenoh://other/c", b"volatile")
        device.until(lambda: device.session.is_settled)

        stored = {str(reply.ok.key_expr): reply.ok.payload.to_bytes() for reply in keeper.get("**") if reply.ok}
        assert stored == {
            "disk/a": b"by id",
            "disk/b": b"safe",
            "mem/b": b"kept",
            "other/b": b"in the default log",
        }


def test_a_broker_without_a_disk_promises_none(router: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        assert device.publish(2, "zenoh://kept/a#persistent") == 6, "memory is no disk"
        assert device.publish(4, "zenoh://kept/a#transient") == 0
        device.write_data("zenoh://nowhere/b#transient", b"lost")
        device.until(lambda: device.session.is_settled)
        assert counters_of(router)["not_kept_samples"] == 1


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_persistent_data_is_acknowledged_when_it_is_on_disk(
    keeper: elea.Session, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storages = keeper._runtime.storages
    assert storages is not None
    (storage,) = [one for one in storages.all if one.name == "disk"]
    waiting: list[Any] = []

    def submit(records: Any, token: Any, beyond: bool = False) -> None:
        waiting.append((records, token))

    monkeypatch.setattr(storage._committer, "submit", submit)
    with EarlyClient(locator_of(keeper, "zenoh2018", protocol)) as device:
        device.write_data("zenoh://disk/a#persistent", b"1")
        device.write_data("zenoh://disk/b", b"behind it")
        device.talk(0.3)
        assert len(device.session.conduit().reliable) == 2, "neither is acknowledged: the disk has not got the first"

        (first, *_) = waiting
        first[1].settled(storage.log.append(first[0]))
        device.until(lambda: device.session.is_settled, 5.0)


def test_what_the_disk_refuses_ends_the_session(keeper: elea.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from elea.model.errors import StoreFull

    storages = keeper._runtime.storages
    assert storages is not None
    (storage,) = [one for one in storages.all if one.name == "disk"]

    def full(*args: Any, **named: Any) -> None:
        raise StoreFull("no room")

    monkeypatch.setattr(storage._committer, "submit", full)
    with EarlyClient(locator_of(keeper)) as device:
        device.write_data("zenoh://disk/a#persistent", b"1")
        device.until(lambda: device.ended)
        assert device.ended is not None
        assert device.ended.reason == 3
