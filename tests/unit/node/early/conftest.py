"""A broker that speaks all dialects, and a 1.x client of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

import elea
from tests.unit.node.test_dialect import config

LISTENING = ["tcp/127.0.0.1:0"] + [
    f"{protocol}/127.0.0.1:0?dialect={dialect}" for dialect in ("zenoh2018", "xrce2017") for protocol in ("tcp", "udp")
]


@pytest.fixture
def router() -> Iterator[elea.Session]:
    """It keeps `kept/**` in memory."""
    storages = {"kept": {"key_expr": "kept/**", "volume": "memory"}}
    made = config(
        "router",
        adminspace__enabled=True,
        listen__endpoints=LISTENING,
        plugins__storage_manager={"volumes": {"memory": {}}, "storages": storages},
    )
    with elea.open(made) as session:
        yield session


@pytest.fixture
def robot(router: elea.Session) -> Iterator[elea.Session]:
    (locator,) = router._runtime.links.locators("zenoh1")
    with elea.open(config("client", connect__endpoints=[locator])) as session:
        yield session


def locator_of(router: elea.Session, dialect: str = "zenoh2018", protocol: str = "tcp") -> str:
    """Where a broker is reached in a dialect."""
    (found,) = [one for one in router._runtime.links.locators(dialect) if one.startswith(protocol)]
    return found


def counters_of(router: elea.Session, dialect: str = "zenoh2018") -> Mapping[str, int]:
    """What a broker has counted on the one session of a dialect."""
    (found,) = [one.face for one in router._runtime.links.connections if one.dialect.name == dialect]
    assert found is not None
    return found.counters()
