"""Types that a data space declares: found by whoever looks into payloads, changed, deleted."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import elea
from elea.content.registry import rule_key, type_key
from elea.node.openmetrics import OpenMetrics
from tests.unit.api.stores import client, config

IDL = "module demo { enum Mode { OFF, ON }; struct Light { long id; string name; Mode mode; }; };"
LIGHT = elea.Encoding("application/cdr;demo::Light")
WHERE = "id > 1 AND mode = 'ON' AND name LIKE 'l%'"


def light(id: int, mode: int = 1) -> bytes:
    return b"\0\1\0\0" + struct.pack("<iI5sxxxi", id, 5, b"lamp\0", mode)


@pytest.fixture
def router(tmp_path: Path) -> Iterator[elea.Session]:
    """A broker with a store directory, which keeps `home/**`."""
    manager = {
        "volumes": {"log": {"dir": str(tmp_path)}},
        "storages": {"home": {"key_expr": "home/**", "volume": "log", "complete": True}},
    }
    with elea.open(
        config("router", listen__endpoints=["tcp/127.0.0.1:0"], plugins__storage_manager=manager)
    ) as session:
        yield session


def declare(session: elea.Session, text: str = IDL) -> None:
    session.put(type_key(LIGHT), text, encoding="text/plain;omgidl", durability="persistent", ack=True, timeout=30)


def test_stored_and_live_samples_are_chosen_by_fields_of_their_declared_type(router: elea.Session) -> None:
    found: list[bytes] = []
    last = threading.Event()

    def take(sample: elea.Sample) -> None:
        found.append(sample.payload.to_bytes())
        if len(found) == 2:
            last.set()

    with client(router) as robot, client(router) as desk:
        declare(robot)
        for id in range(4):
            robot.put(f"home/{id}", light(id, id % 2), encoding=LIGHT, ack=True, timeout=30)
        stored = [reply.ok for reply in desk.get("home/**", where=WHERE, timeout=30)]
        read = desk.read("home/**", where=WHERE).read_all()
        with desk.declare_subscriber("live/**", take, where=WHERE) as subscriber:
            publisher = robot.declare_publisher("live/1", encoding=LIGHT)
            while not publisher.matching_status.matching:
                last.wait(0.01)
            for id in range(4):
                publisher.put(light(id))
            assert last.wait(30)
            assert subscriber.where is not None
            assert subscriber.where.unreadable == 0

    assert [str(sample.key_expr) for sample in stored if sample] == ["home/3"]
    assert read.column("key").to_pylist() == ["home/3"]
    assert found == [light(2), light(3)]


def test_replies_that_come_one_by_one_wait_for_the_type_of_the_first(router: elea.Session) -> None:
    """The thread that waits for replies reads the link, and must not wait there for the answer about the type."""
    with client(router) as robot:
        declare(robot)
        for id in range(40):
            robot.put(f"home/{id}", light(id), encoding=LIGHT, ack=True, timeout=30)
        replies = robot.get("home/**?_history", where="id > 1", consolidation=elea.ConsolidationMode.NONE, timeout=30)

        assert len([reply for reply in replies if reply.ok]) == 38
        page = OpenMetrics(descriptors=True)
        robot._node.schemas.meter(page)
        assert "elea_schemas 1" in str(page)
        assert "elea_schemas_refused_total 0" in str(page)
        assert robot._node.schemas.asked == 1


def test_batches_of_samples_are_chosen_by_fields_of_their_declared_type(router: elea.Session) -> None:
    with client(router) as robot, client(router) as desk:
        declare(robot)
        subscriber = desk.declare_subscriber("live/**", elea.handlers.Arrow(rows=1000, seconds=0.05), where="id > 1")
        publisher = robot.declare_publisher("live/1", encoding=LIGHT, congestion_control=elea.CongestionControl.BLOCK)
        waiting = threading.Event()
        while not publisher.matching_status.matching:
            waiting.wait(0.01)
        for id in range(40):
            publisher.put(light(id))
        found = 0
        while found < 38:
            found += subscriber.recv().num_rows

        assert found == 38
        assert desk._node.schemas.asked == 1


@pytest.mark.parametrize(("where", "is_read_elsewhere"), [("id > 1", True), ("key = 'a'", False)])
def test_a_thread_that_waits_at_a_channel_does_not_look_into_payloads(where: str, is_read_elsewhere: bool) -> None:
    """It reads the link while it waits, by which the answer about a type would come."""
    held: list[elea.Query] = []
    with elea.open(config("peer")) as session:
        session.declare_queryable("a", held.append)
        session.get("a", where=where, timeout=30)
        (asking,) = session._node.local._asking.values()
        subscriber = session.declare_subscriber("a", where=where)

        assert (asking.channel is None, subscriber._box.channel is None) == (is_read_elsewhere, is_read_elsewhere)


def test_a_rule_says_the_type_of_keys_whose_samples_do_not(router: elea.Session) -> None:
    with client(router) as robot:
        declare(robot)
        robot.put(rule_key("home/*"), str(LIGHT), durability="persistent", ack=True, timeout=30)
        robot.put("home/1", light(5), ack=True, timeout=30)
        robot.put("home/2", light(6), encoding="application/cdr", ack=True, timeout=30)
        robot.put("home/2/deeper", light(7), encoding="application/cdr", ack=True, timeout=30)
        replies = robot.get("home/**", where="id >= 5", timeout=30)

        assert sorted(str(reply.ok.key_expr) for reply in replies if reply.ok) == ["home/1", "home/2"]


def test_a_type_that_changes_is_read_in_its_new_form(router: elea.Session) -> None:
    with client(router) as robot, client(router) as desk:
        declare(robot)
        robot.put("home/1", light(5), encoding=LIGHT, ack=True, timeout=30)
        before = list(desk.get("home/1", where="id = 5", timeout=30))
        renamed = IDL.replace("long id", "long number")
        declare(robot, renamed)
        schemas = desk._node.schemas.registry
        waiting = threading.Event()
        while schemas.decoder(LIGHT.id, LIGHT.schema)(light(5)).get("number") != 5:  # type: ignore[misc,union-attr]
            waiting.wait(0.01)

        assert len(before) == 1
        assert len(list(desk.get("home/1", where="number = 5", timeout=30))) == 1
        assert list(desk.get("home/1", where="id = 5", timeout=30)) == []


def test_a_type_that_nobody_declares_is_unknown_and_counted(router: elea.Session) -> None:
    with client(router) as robot:
        robot.put("home/1", light(5), encoding="application/cdr;demo::Nosuch", ack=True, timeout=30)

        assert list(robot.get("home/1", where="id = 5 OR id IS NULL", timeout=30)) == []
        with robot.declare_subscriber("home/**", mode=elea.Pull(), since=0, where="id = 5") as subscriber:
            assert subscriber.pull() == []
