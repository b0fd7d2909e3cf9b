"""What a configuration may ask for and a node refuses, and what it offers only if it can keep it."""

from __future__ import annotations

import threading

import pytest

import elea
from elea.api import nodefactory
from elea.api.settings import Settings
from tests.interop.inbox import free_port

QUIET = "scouting: {multicast: {enabled: false}}, listen: {endpoints: ['tcp/127.0.0.1:0']}"


@pytest.mark.parametrize("installed", [True, False])
def test_compression_is_offered_only_where_lz4_is_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, installed: bool
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if installed else None)
    config = elea.Config.from_json5("{transport: {unicast: {compression: {enabled: true}}}}")

    settings = nodefactory.link_settings(Settings.of(config))

    assert settings.compression is installed
    assert ("pip install '.[compression]'" in caplog.text) is not installed


def test_session_says_where_it_can_be_reached() -> None:
    with elea.open(elea.Config.from_json5(f"{{{QUIET}}}")) as session:
        (locator,) = session.info.locators()
        refused = session.info.refused()

    assert locator.startswith("tcp/127.0.0.1:")
    assert set(refused.values()) == {0}


def test_only_the_kinds_of_links_that_are_allowed_are_used() -> None:
    text = f"{{transport: {{link: {{protocols: ['udp']}}}}, {QUIET}}}"

    with pytest.raises(elea.ZError, match=r"transport/link/protocols .*use one of udp"):
        elea.open(elea.Config.from_json5(text))


def test_the_timeout_of_interests_is_the_configured_one() -> None:
    with elea.open(elea.Config.from_json5(f"{{routing: {{interests: {{timeout: 1234}}}}, {QUIET}}}")) as session:
        assert session._node.space._upstream.timeout == 1.234


def test_a_node_says_which_entries_have_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    with elea.open(elea.Config.from_json5(f"{{transport: {{link: {{tx: {{threads: 9}}}}}}, {QUIET}}}")):
        pass

    assert "without effect here: transport/link/tx/threads (one loop serves all links)" in caplog.text


def test_a_second_router_is_a_warning_that_says_what_will_not_arrive(caplog: pytest.LogCaptureFixture) -> None:
    with elea.open(elea.Config.from_json5(f"{{mode: 'router', {QUIET}}}")) as first:
        (locator,) = first.info.locators()
        text = f"{{mode: 'router', connect: {{endpoints: ['{locator}']}}, {QUIET}}}"
        with elea.open(elea.Config.from_json5(text)):
            pass

    assert "another router is a neighbour" in caplog.text
    assert "nothing passes from or to a third router" in caplog.text


def test_a_client_told_to_wait_for_ever_connects_when_the_router_is_there() -> None:
    port = free_port()
    retry = "retry: {period_init_ms: 20, period_max_ms: 20}"
    text = f"{{mode: 'client', connect: {{endpoints: ['tcp/127.0.0.1:{port}'], timeout_ms: -1, {retry}}}, {QUIET}}}"
    opened: list[elea.Session] = []
    waiting = threading.Thread(target=lambda: opened.append(elea.open(elea.Config.from_json5(text))))
    waiting.start()
    waiting.join(0.3)  # it gave up after one attempt
    assert waiting.is_alive()

    router = f"{{mode: 'router', {QUIET.replace(':0', f':{port}')}}}"
    with elea.open(elea.Config.from_json5(router)):
        waiting.join(10)
        (session,) = opened
        session.close()
