"""What a configuration may ask for and a node refuses, and what it offers only if it can keep it."""

from __future__ import annotations

import pytest

import elea
from elea.api import nodefactory
from elea.api.settings import Settings

QUIET = "scouting: {multicast: {enabled: false}}, listen: {endpoints: ['tcp/127.0.0.1:0']}"


@pytest.mark.parametrize("installed", [True, False])
def test_compression_is_offered_only_where_lz4_is_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, installed: bool
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if installed else None)
    config = elea.Config.from_json5("{transport: {unicast: {compression: {enabled: true}}}}")

    settings = nodefactory.link_settings(Settings.of(config))

    assert settings.compression is installed
    assert ("pip install 'elea[compression]'" in caplog.text) is not installed


def test_session_says_where_it_can_be_reached() -> None:
    with elea.open(elea.Config.from_json5(f"{{{QUIET}}}")) as session:
        (locator,) = session.info.locators()
        refused = session.info.refused()

    assert locator.startswith("tcp/127.0.0.1:")
    assert set(refused.values()) == {0}
