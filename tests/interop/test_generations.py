"""One key, nodes of all generations: every put is seen by all others, and durability and pulls are respected.

A 2017 device over UDP, 2018 devices over TCP and over a serial line with packets of 20 bytes, an Elea program in the
2018 dialect, Elea and eclipse-zenoh in 1.x. With Spark among them: tests/spark/test_generations.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from tests.interop.generations import KEY, all_nodes, check_all_seen, pump, storing, subscribers
from tests.interop.inbox import DEADLINE, Inbox, eventually
from tests.unit.node.early.client import EarlyClient

pytestmark = pytest.mark.interop


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[elea.Session, int]]:
    with storing(tmp_path) as made:
        yield made


@pytest.fixture
def nodes(broker: tuple[elea.Session, int]) -> Iterator[dict[str, Any]]:
    with all_nodes(*broker) as made:
        yield made


def locator(broker: tuple[elea.Session, int], dialect: str) -> str:
    return next(one for one in broker[0]._runtime.links.locators(dialect) if not one.startswith("serial/"))


def test_every_put_is_seen_by_everybody_else(nodes: dict[str, Any]) -> None:
    put = {name: [f"{name} 0".encode(), f"{name} 1 ".encode() * 20, f"{name} 2".encode()] for name in nodes}

    for number in range(3):
        for name, node in nodes.items():
            node.put(put[name][number])

    check_all_seen(nodes, put)
    assert max(nodes["2018 serial"].device.writes) <= 20


def test_a_node_that_comes_late_finds_what_is_durable(broker: tuple[elea.Session, int], nodes: dict[str, Any]) -> None:
    nodes["eclipse-zenoh"].put(b"kept")
    pump(nodes, lambda: nodes["2017 udp"].seen() == [b"kept"], "live")

    with EarlyClient(locator(broker, "zenoh2018"), b"late") as late:
        late.subscribe(2, f"zenoh://{KEY}#persistent")
        assert late.await_samples(1) == [b"kept"], "first what is stored"
        nodes["2018 tcp"].put(b"live")
        assert late.await_samples(2) == [b"kept", b"live"], "then what is live"

    with EarlyClient(locator(broker, "xrce2017"), b"puller") as puller:
        puller.declare(puller.m.SelectionDecl(3, b"xrce://lamp/?"))
        puller.pull(3, pull_id=1)
        assert puller.await_samples(1) == [b"live"], "the store has the latest"
        puller.session.close(puller.now())
        puller.until(lambda: puller.ended is not None)

    inbox = Inbox()
    for reply in nodes["eclipse-zenoh"].session.get("lamp/**"):
        inbox(reply.ok.payload.to_bytes())
    assert inbox.drain() == [b"live"]


def test_a_pull_subscriber_gets_what_all_generations_put(
    broker: tuple[elea.Session, int], nodes: dict[str, Any]
) -> None:
    with EarlyClient(locator(broker, "zenoh2018"), b"sleeper") as sleeper:
        sleeper.subscribe(4, "zenoh://l*/?", 2)
        eventually(lambda: len(subscribers(broker[0])) == len(nodes) + 1, "its subscriber")
        for name in nodes:
            nodes[name].put(name.encode())
            others = [node for node in nodes.values() if node is not nodes[name]]
            pump(nodes, lambda o=others, n=name: all(n.encode() in one.seen() for one in o), "live")  # type: ignore[misc]
        sleeper.talk(0.05)
        assert sleeper.payloads() == []

        sleeper.pull(4)
        sleeper.until(lambda: any(getattr(one, "prid", None) == 0 for one in sleeper.seen), DEADLINE)
        assert sleeper.payloads() == [*(name.encode() for name in nodes), b""]
