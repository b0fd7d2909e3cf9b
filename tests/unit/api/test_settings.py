"""`Settings`: what a node reads, by its role."""

from __future__ import annotations

from pathlib import Path

import pytest

from elea.api.config import Config
from elea.api.settings import RetrySettings, Settings
from elea.model.errors import ConfigError
from elea.model.keyexpr import KeyExpr
from elea.model.node_id import NodeId
from elea.model.qos import Role

ALL = frozenset({Role.ROUTER, Role.PEER, Role.CLIENT})


def of(text: str, role: Role | None = None) -> Settings:
    return Settings.of(Config.from_json5(text), role)


def test_a_node_is_a_peer_unless_it_says_otherwise() -> None:
    assert of("{}").role is Role.PEER
    assert of("{mode: 'router'}").role is Role.ROUTER
    assert of("{mode: 'router'}", Role.CLIENT).role is Role.CLIENT


@pytest.mark.parametrize(
    ("role", "timeout", "fails", "listen", "stamps"),
    [
        (Role.ROUTER, None, False, ("tcp/[::]:7447",), True),
        (Role.PEER, None, False, ("tcp/[::]:0",), False),
        (Role.CLIENT, 0.0, True, (), False),
    ],
)
def test_defaults_depend_on_the_role(
    role: Role, timeout: float | None, fails: bool, listen: tuple[str, ...], stamps: bool
) -> None:
    settings = of("{}", role)

    assert settings.connect.timeout == timeout
    assert settings.connect.exit_on_failure is fails
    assert settings.listen.locators == listen
    assert settings.timestamping is stamps
    assert settings.scouting.multicast.autoconnect == (frozenset() if role is Role.ROUTER else ALL)
    assert settings.scouting.gossip.target == (frozenset() if role is Role.CLIENT else {Role.ROUTER, Role.PEER})


def test_other_defaults_are_those_of_the_specification() -> None:
    settings = of("{}")
    transport, link = settings.transport, settings.transport.link

    assert (settings.queries_default_timeout, settings.interests_timeout) == (10.0, 10.0)
    assert (settings.scouting.timeout, settings.scouting.delay) == (3.0, 0.5)
    assert settings.scouting.multicast.address == "224.0.0.224:7446"
    assert (transport.open_timeout, transport.accept_pending, transport.max_sessions) == (10.0, 100, 1000)
    assert (transport.qos, transport.lowlatency, transport.compression) == (True, False, False)
    assert (link.lease, link.keep_alive, link.batch_size, link.resolution_bits) == (10.0, 4, 65_535, 32)
    assert (link.queue.wait_before_drop, link.queue.max_wait_before_drop_fragments) == (0.001, 0.05)
    assert link.queue.wait_before_close == 5.0
    assert link.max_message_size == 1 << 30
    assert link.tls.verify_name_on_connect
    assert settings.connect.retry == RetrySettings(1.0, 2.0, 4.0)
    assert (settings.admin.enabled, settings.admin.read) == (False, True)
    assert (settings.id, settings.namespace, settings.auth.user) == (None, None, None)


def test_values_by_mode_are_resolved() -> None:
    text = """{
        mode: "peer",
        connect: {
            endpoints: {peer: ["tcp/a:1", {strategy: "allOf", locators: ["tcp/b:1", "udp/b:1"]}], client: ["tcp/c:1"]},
            timeout_ms: {peer: 1500},
            retry: {period_init_ms: {peer: 10}, period_max_ms: 20},
        },
        scouting: {
            multicast: {autoconnect: {peer: ["router"]}, autoconnect_strategy: {peer: {to_peer: "greater-zid"}}},
            gossip: {autoconnect: ["peer"], autoconnect_strategy: "greater-zid"},
        },
        timestamping: {enabled: {peer: true}},
    }"""
    settings = of(text)

    assert settings.connect.locators == ("tcp/a:1", "tcp/b:1", "udp/b:1")
    assert settings.connect.timeout == 1.5
    assert settings.connect.retry == RetrySettings(0.01, 2.0, 0.02)
    assert settings.scouting.multicast.autoconnect == {Role.ROUTER}
    assert settings.scouting.multicast.greater_zid == {Role.PEER}
    assert settings.scouting.gossip.autoconnect == {Role.PEER}
    assert settings.scouting.gossip.greater_zid == ALL
    assert settings.timestamping
    assert of(text, Role.CLIENT).connect.locators == ("tcp/c:1",)
    assert of(text, Role.ROUTER).connect.locators == ()


def test_everything_else_is_typed() -> None:
    settings = of(
        """{
        id: "12ab", namespace: "ns", region_name: "r", metadata: {site: 1},
        aggregation: {subscribers: ["a/**"]},
        transport: {
            auth: {usrpwd: {user: "u", password: "p", dictionary_file: "/x"}},
            link: {protocols: ["tcp"], tx: {sequence_number_resolution: "16bit",
                   queue: {congestion_control: {block: {wait_before_close: -1}}}}},
        },
        }"""
    )

    assert settings.id == NodeId.parse("12ab")
    assert (settings.namespace, settings.region_name, settings.metadata) == ("ns", "r", {"site": 1})
    assert settings.aggregated_subscribers == (KeyExpr("a/**"),)
    assert settings.auth.dictionary_file == Path("/x")
    assert settings.transport.link.protocols == frozenset({"tcp"})
    assert settings.transport.link.resolution_bits == 16
    assert settings.transport.link.queue.wait_before_close is None


def test_a_password_is_not_shown() -> None:
    settings = of("{transport: {auth: {usrpwd: {user: 'u', password: 'hidden'}}}}")

    assert "hidden" not in repr(settings)


def test_half_a_login_set_one_by_one_is_found_here() -> None:
    config = Config()
    config.insert_json5("transport/auth/usrpwd/user", "'u'")

    with pytest.raises(ConfigError, match="go together"):
        Settings.of(config)
