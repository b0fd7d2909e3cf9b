"""A real broker that listens in both early dialects, over tcp and udp, and keeps what is durable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import elea

KINDS = [f"{protocol}-{dialect}" for dialect in ("zenoh2018", "xrce2017") for protocol in ("tcp", "udp")]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Its locators, by protocol and dialect."""
    endpoints = [f"{kind.partition('-')[0]}/127.0.0.1:0?dialect={kind.partition('-')[2]}" for kind in KINDS]
    config = elea.Config.from_json5("{mode: 'router', scouting: {multicast: {enabled: false}}}")
    config.insert_json5("listen/endpoints", str(endpoints).replace("'", '"'))
    place = tmp_path_factory.mktemp("store")
    config.insert_json5("plugins/storage_manager", f'{{volumes: {{log: {{dir: "{place}"}}}}}}')
    with elea.open(config) as session:
        yield dict(zip(KINDS, (str(one).partition("?")[0] for one in session.info.locators()), strict=True))
