"""Connections that never become sessions keep nobody out: honest clients are in within a second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.halfopen import KINDS, besieged, openings, p99
from tests.robust.hostile import Victim, configuration
from tests.unit.io.ends import Authority

LONGEST = 1.0
TIMES = 40


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("halfopen"))


@pytest.fixture
def victim(authority: Authority) -> Iterator[Victim]:
    certificate, key = authority.issue("broker", "IP:127.0.0.1")
    broker = Victim(
        f"transport/link/tls/listen_certificate:'{certificate}'",
        f"transport/link/tls/listen_private_key:'{key}'",
        listen=("tls/127.0.0.1:0",),
    )
    yield broker
    broker.close()


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"], ids=["same address", "another address"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["tcp", "tls"])
def test_honest_clients_come_in(victim: Victim, authority: Authority, protocol: str, kind: str, source: str) -> None:
    locator = victim.tcp if protocol == "tcp" else victim.locators[2]
    trusting = {"transport/link/tls/root_ca_certificate": authority.certificate}
    honest = configuration("client", connect=[locator], more=trusting)

    with besieged(locator, kind, source=source):
        took = openings(honest, TIMES)

        assert p99(took) < LONGEST, took
        victim.serves()  # those that were in before
    victim.check()


def test_flood_is_told_by_doubling_counts(victim: Victim) -> None:
    with besieged(victim.tcp, "silent", count=400):
        openings(configuration("client", connect=[victim.tcp]), 10)

    told = [event for event in victim.events if event["event"] in ("link refused", "caller gave no link")]
    assert told
    assert len(told) < 20
    victim.check()
