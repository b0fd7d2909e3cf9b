"""Finding and connecting, with links that only pretend."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from elea.io.loop import Loop
from elea.io.scoutsockets import SCOUTING_GROUP
from elea.model.errors import OperationTimeout, SessionError
from elea.model.found import Found
from elea.model.qos import Role
from elea.node.discovery import DiscoverySettings
from elea.node.node import Node
from elea.node.zenoh1 import discovery as module
from elea.node.zenoh1.dialect import Zenoh1Dialect
from elea.node.zenoh1.discovery import Zenoh1Discovery
from elea.node.zenoh1.gossip import Candidate
from elea.protocol.backoff import Backoff
from elea.space.face import Subject

OTHER = b"\xc1"


class Pretended:
    """Links that connect, or fail, as told."""

    def __init__(self, answers: Callable[[str], Any]) -> None:
        self.settings = SimpleNamespace(open_timeout=1.0, backoff=lambda: Backoff(first=0.001, longest=0.001))
        self.connections: list[Any] = []
        self.tried: list[str] = []
        self.known: dict[bytes, Any] = {}
        self.node: Node
        self.dialect = SimpleNamespace(name="zenoh1", links=self)
        self._answers = answers

    def connect(self, locator: str, *, timeout: float) -> Any:
        self.tried.append(locator)
        return self._answers(locator)

    def session_with(self, node_id: bytes) -> Any:
        return self.known.get(node_id)

    def locators(self, dialect: str) -> list[str]:
        return []


class Neighbour:
    """A session the space has not been told of yet."""

    subject = Subject(OTHER, Role.PEER)


@pytest.fixture
def node() -> Iterator[Node]:
    loop = Loop("test")
    yield Node(b"\xa1", Role.PEER, loop, timestamping=False)
    loop.close()


def refuse(locator: str) -> Any:
    raise SessionError(f"nobody at {locator}")


def discovery(node: Node, links: Pretended, **settings: Any) -> Zenoh1Discovery:
    links.node = node
    return Zenoh1Discovery(cast(Zenoh1Dialect, links.dialect), DiscoverySettings(**{"group": None, **settings}))


def found(*locators: str) -> Candidate:
    return Candidate(OTHER, Role.PEER, locators)


def join_all() -> None:
    for thread in threading.enumerate():
        if thread.name == "elea-meet":
            thread.join(5.0)


def test_every_locator_is_tried_until_one_works(node: Node) -> None:
    links = Pretended(lambda locator: object() if locator == "tcp/b:1" else refuse(locator))

    discovery(node, links)._meet(found("tcp/a:1", "tcp/b:1", "tcp/c:1"), 0.0)
    join_all()

    assert links.tried == ["tcp/a:1", "tcp/b:1"]


def test_node_that_cannot_be_reached_is_given_up_and_counted(node: Node) -> None:
    links = Pretended(refuse)
    finder = discovery(node, links)

    finder._meet(found("tcp/a:1"), 0.0)
    join_all()

    assert links.tried == ["tcp/a:1"] * module.ATTEMPTS
    assert finder.failed == module.ATTEMPTS
    assert not finder._meeting


def test_node_without_locators_or_with_session_is_not_connected_to(node: Node) -> None:
    links = Pretended(refuse)
    finder = discovery(node, links)
    finder._meet(found(), 0.0)
    links.known[OTHER] = object()

    finder._meet(found("tcp/a:1"), 0.0)
    join_all()

    assert links.tried == []


def test_node_is_connected_to_once_at_a_time_and_not_more_than_the_limit(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_MEETINGS", 1)
    gate = threading.Event()
    links = Pretended(lambda locator: gate.wait(5.0))
    finder = discovery(node, links)
    finder._meet(found("tcp/a:1"), 0.0)

    finder._meet(found("tcp/a:2"), 0.0)
    finder._meet(Candidate(b"\xd1", Role.PEER, ("tcp/d:1",)), 0.0)
    gate.set()
    join_all()

    assert links.tried == ["tcp/a:1"]
    assert finder.skipped == 1


def test_nobody_is_connected_to_after_the_end(node: Node) -> None:
    links = Pretended(refuse)
    finder = discovery(node, links)
    finder.close()

    finder._meet(found("tcp/a:1"), 0.0)

    assert links.tried == []


def test_client_says_why_nodes_found_could_not_be_reached(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    links = Pretended(refuse)
    finder = discovery(node, links, group=SCOUTING_GROUP, timeout=0.05)

    def seek(on_found: Callable[[Found], None]) -> Any:
        on_found(Found(OTHER, Role.CLIENT, ()))
        on_found(Found(OTHER, Role.ROUTER, ("tcp/a:1",)))
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(finder, "_seek", seek)

    with pytest.raises(OperationTimeout, match=r"no node could be reached .*nobody at tcp/a:1.*connect/endpoints"):
        finder.find_one()


def test_opening_waits_for_nothing_when_told_so(node: Node) -> None:
    links = Pretended(refuse)
    links.connections = [SimpleNamespace(face=Neighbour(), dialect=links.dialect)]

    patient = discovery(node, links)
    hasty = discovery(node, links, wait_declared=False)

    assert not patient._is_settled()
    assert hasty._is_settled()
