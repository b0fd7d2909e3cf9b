"""Nodes that are killed or stopped, without a word: the others notice, and what comes back is as it was before."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from tests.interop.inbox import free_port
from tests.robust.children import config, eventually, node

LONG: dict[str, Any] = {"transport__link__tx__lease": 600_000}
"""A lease that cannot be the reason for anything that happens in a test."""

SHORT: dict[str, Any] = {"transport__link__tx__lease": 2_000}

RETRY: dict[str, Any] = {"connect__retry": {"period_init_ms": 100, "period_max_ms": 400, "period_increase_factor": 2}}

HERE = "tcp/127.0.0.1:0"


@pytest.fixture
def router() -> Iterator[elea.Session]:
    with elea.open(config("router", "listen", HERE)) as session:
        yield session


def tokens(session: elea.Session) -> list[str]:
    return sorted(str(reply.ok.key_expr) for reply in session.liveliness().get("robust/**") if reply.ok)


@pytest.mark.parametrize("library", ["elea", "zenoh"])
@pytest.mark.parametrize("role", ["client", "peer"])
def test_killed_node_is_noticed_long_before_its_lease_ends(router: elea.Session, role: str, library: str) -> None:
    with node(role, "connect", router.info.locators()[0], library=library, **LONG) as child:
        child.ask("token", "robust/token")
        eventually(lambda: tokens(router), "the token is there")

        child.signal(signal.SIGKILL)

        eventually(lambda: not tokens(router), "the token is gone")
        eventually(lambda: not router.info.transports(), "the session is gone")


def test_stopped_client_is_gone_after_its_lease_and_comes_back(router: elea.Session) -> None:
    with node("client", "connect", router.info.locators()[0], **SHORT, **RETRY) as child:
        child.ask("token", "robust/token")
        child.ask("subscribe", "robust/data")
        child.ask("queryable", "robust/answer")
        eventually(lambda: tokens(router), "the token is there")

        child.signal(signal.SIGSTOP)
        eventually(lambda: not tokens(router), "the token is gone")
        assert not router.info.transports()
        child.signal(signal.SIGCONT)

        eventually(lambda: tokens(router), "the token is back")
        eventually(lambda: put(router) and child.ask("count", "robust/data"), "the subscriber is back")
        eventually(lambda: [reply.ok for reply in router.get("robust/answer") if reply.ok], "the queryable is back")


def put(session: elea.Session) -> bool:
    session.put("robust/data", "x")
    return True


class Client:
    """A client with one of everything, and what it gets."""

    def __init__(self, locator: str, **more: Any) -> None:
        self.samples = 0
        self.alive: set[str] = set()
        self.session = elea.open(config("client", "connect", locator, **RETRY, **more))
        self.session.declare_subscriber("robust/data", self._sample)
        self.session.declare_queryable("robust/answer", self._query)
        self.mine = self.session.liveliness().declare_token("robust/mine")
        self.session.liveliness().declare_subscriber("robust/token", self._token, history=True)
        self.publisher = self.session.declare_publisher("robust/back")

    def _sample(self, sample: elea.Sample) -> None:
        self.samples += 1

    def _query(self, query: elea.Query) -> None:
        with query:
            query.reply(query.key_expr, "here")

    def _token(self, sample: elea.Sample) -> None:
        key = str(sample.key_expr)
        (self.alive.add if sample.kind == elea.SampleKind.PUT else self.alive.discard)(key)


def works(client: Client, locator: str, library: str) -> None:
    """Everything the client has declared is there, seen from another node of the same router."""
    with node("client", "connect", locator, library=library) as other:
        other.ask("subscribe", "robust/back")
        other.ask("token", "robust/token")
        before = client.samples
        eventually(lambda: other.ask("publish", "robust/data", 1, 8, True) and client.samples > before, "samples")
        eventually(lambda: client.alive == {"robust/token"}, "a token of another node is seen")

        def returned() -> bool:
            client.publisher.put("x")
            return bool(other.ask("count", "robust/back"))

        eventually(returned, "what the client puts")
        with elea.open(config("client", "connect", locator)) as third:
            eventually(lambda: "robust/mine" in tokens(third), "the token of the client")
            eventually(lambda: [reply.ok for reply in third.get("robust/answer") if reply.ok], "the queryable")


@pytest.mark.parametrize("library", ["elea", "zenoh"])
def test_client_notices_killed_router_and_declares_all_again_at_the_next(library: str) -> None:
    locator = f"tcp/127.0.0.1:{free_port()}"
    with node("router", "listen", locator, library=library, **LONG) as router:
        client = Client(locator)
        try:
            works(client, locator, library)

            router.signal(signal.SIGKILL)
            eventually(lambda: not client.session.info.routers_zid(), "the client knows that the router is gone")
            eventually(lambda: not client.alive, "its tokens are gone")
            with node("router", "listen", locator, library=library):
                eventually(lambda: client.session.info.routers_zid(), "the client is connected again")
                works(client, locator, library)
        finally:
            client.session.close()


def test_client_notices_stopped_router_and_comes_back_when_it_goes_on() -> None:
    with node("router", "listen", HERE, **SHORT) as router:
        client = Client(router.ask("locators")[0], **SHORT)
        try:
            router.signal(signal.SIGSTOP)
            eventually(lambda: not client.session.info.routers_zid(), "the client knows that the router is silent")

            router.signal(signal.SIGCONT)
            eventually(lambda: client.session.info.routers_zid(), "the client is connected again")

            works(client, router.ask("locators")[0], "elea")
        finally:
            client.session.close()
