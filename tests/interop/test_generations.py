"""One key, nodes of four generations: every put is seen by all others, and durability and pulls are respected.

A 2017 device over UDP, a 2018 device over TCP, an Elea program in the 2018 dialect, Elea and eclipse-zenoh in 1.x.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zenoh

import elea
from tests.interop.inbox import DEADLINE, Inbox, eventually
from tests.unit.node.early.client import EarlyClient

pytestmark = pytest.mark.interop

KEY = "home/1/temp"
LISTENING = ["tcp/127.0.0.1:0", "udp/127.0.0.1:0?dialect=xrce2017", "tcp/127.0.0.1:0?dialect=zenoh2018"]


def config_of(library: Any, **entries: Any) -> Any:
    made = library.Config()
    for name, value in {"scouting/multicast/enabled": False, **entries}.items():
        made.insert_json5(name.replace("__", "/"), json.dumps(value))
    return made


class Device:
    """A node that is driven by hand."""

    def __init__(self, locator: str, pid: bytes) -> None:
        self.client = EarlyClient(locator, pid)
        self.name = self.client.generation.scheme + KEY
        assert self.client.subscribe(2, self.name) == 0

    def put(self, payload: bytes) -> None:
        self.client.write_data(self.name, payload)
        self.client.until(lambda: self.client.session.is_settled)

    def seen(self) -> list[bytes]:
        self.client.step(0.01)
        return self.client.payloads()


class Program:
    """A session of either library."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self._got: list[bytes] = []
        self._subscriber = session.declare_subscriber(KEY, lambda sample: self._got.append(sample.payload.to_bytes()))

    def put(self, payload: bytes) -> None:
        self.session.put(KEY, payload)

    def seen(self) -> list[bytes]:
        return list(self._got)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[elea.Session]:
    storages = {"home": {"key_expr": "home/**", "volume": "log"}}
    plugins = {"storage_manager": {"volumes": {"log": {"dir": str(tmp_path)}}, "storages": storages}}
    with elea.open(config_of(elea, mode="router", listen__endpoints=LISTENING, plugins=plugins)) as session:
        yield session


@pytest.fixture
def nodes(broker: elea.Session) -> Iterator[dict[str, Any]]:
    links = broker._runtime.links
    (modern,), (of_2017,), (of_2018,) = (links.locators(name) for name in ("zenoh1", "xrce2017", "zenoh2018"))
    with contextlib.ExitStack() as stack:
        made: dict[str, Any] = {"2017 udp": Device(of_2017, b"d17"), "2018 tcp": Device(of_2018, b"d18")}
        for name, library, locator in (
            ("elea 2018", elea, of_2018),
            ("elea 1.x", elea, modern),
            ("eclipse-zenoh", zenoh, modern),
        ):
            session = library.open(config_of(library, mode="client", connect__endpoints=[locator]))
            stack.callback(session.close)
            made[name] = Program(session)
        for name in ("2017 udp", "2018 tcp"):
            stack.callback(made[name].client.socket.close)
        expected = len(links.connections)
        eventually(lambda: len(subscribers(broker)) >= expected, "everybody subscribes")
        yield made


def subscribers(broker: elea.Session) -> list[Any]:
    """The faces of those that would get a sample."""
    with broker._node.lock:
        return [face for face in broker._node.space.targets(broker._node.local, KEY) if face is not broker._node.local]


def pump(nodes: dict[str, Any], condition: Callable[[], bool], what: str) -> None:
    """Wait, and let devices talk meanwhile."""

    def look() -> bool:
        for node in nodes.values():
            if isinstance(node, Device):
                node.seen()
        return condition()

    eventually(look, what)


def test_every_put_is_seen_by_everybody_else(nodes: dict[str, Any]) -> None:
    for name, node in nodes.items():
        for number in range(3):
            node.put(f"{name} {number}".encode())

    for name, node in nodes.items():
        # 1.x programs see their own puts, too; in the early dialects nothing comes back (Z18-DAT-10).
        own = isinstance(node, Program)
        wanted = sorted(f"{other} {number}".encode() for other in nodes for number in range(3) if own or other != name)
        pump(nodes, lambda node=node, wanted=wanted: sorted(node.seen()) == wanted, f"{name} has all")  # type: ignore[misc]
        for other in nodes:
            mine = [payload for payload in node.seen() if payload.startswith(other.encode() + b" ")]
            assert mine == sorted(mine), f"{name} has those of {other} in their order"


def test_a_node_that_comes_late_finds_what_is_durable(broker: elea.Session, nodes: dict[str, Any]) -> None:
    nodes["eclipse-zenoh"].put(b"kept")
    pump(nodes, lambda: nodes["2017 udp"].seen() == [b"kept"], "live")
    links = broker._runtime.links

    with EarlyClient(links.locators("zenoh2018")[0], b"late") as late:
        late.subscribe(2, f"zenoh://{KEY}#persistent")
        assert late.await_samples(1) == [b"kept"], "first what is stored"
        nodes["2018 tcp"].put(b"live")
        assert late.await_samples(2) == [b"kept", b"live"], "then what is live"

    with EarlyClient(links.locators("xrce2017")[0], b"puller") as puller:
        puller.declare(puller.m.SelectionDecl(3, b"xrce://home/?/t*"))
        puller.pull(3, pull_id=1)
        assert puller.await_samples(1) == [b"live"], "the store has the latest"

    inbox = Inbox()
    for reply in nodes["eclipse-zenoh"].session.get("home/**"):
        inbox(reply.ok.payload.to_bytes())
    assert inbox.drain() == [b"live"]


def test_a_pull_subscriber_gets_what_all_generations_put(broker: elea.Session, nodes: dict[str, Any]) -> None:
    with EarlyClient(broker._runtime.links.locators("zenoh2018")[0], b"sleeper") as sleeper:
        sleeper.subscribe(4, "zenoh://home/*/t???", 2)
        eventually(lambda: len(subscribers(broker)) == len(nodes) + 1, "its subscriber")
        for name in nodes:
            nodes[name].put(name.encode())
            others = [node for node in nodes.values() if node is not nodes[name]]
            pump(nodes, lambda o=others, n=name: all(n.encode() in one.seen() for one in o), "live")  # type: ignore[misc]
        sleeper.talk(0.05)
        assert sleeper.payloads() == []

        sleeper.pull(4)
        sleeper.until(lambda: any(getattr(one, "prid", None) == 0 for one in sleeper.seen), DEADLINE)
        assert sleeper.payloads() == [*(name.encode() for name in nodes), b""]
