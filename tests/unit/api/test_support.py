"""Every entry of the configuration is acted on, refused with advice, or told to be without effect."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import elea
from elea.api import settings as settings_module
from elea.api.config import Config
from elea.api.json5 import Json
from elea.api.settings import Settings
from elea.api.support import ACTED, IDLE, REFUSED, leaves, row_of
from elea.cli.check_config import problems_in
from elea.model.errors import ConfigError

SOURCE = Path(elea.__file__).parent

# For each refused entry a value that asks for what is not built.
WANTED: dict[str, Json] = {
    "gateway": {"south": [{"filters": [{"modes": ["client"]}]}]},
    "listen/timeout_ms": 1000,
    "listen/exit_on_failure": False,
    "listen/retry": {"period_init_ms": 1},
    "routing/router/linkstate/transport_weights": [{"dst_zid": "1", "weight": 7}],
    "routing/peer": {"mode": "linkstate"},
    "qos/network": [{"messages": ["put"], "overwrite": {"priority": "data_high"}}],
    "transport/unicast/max_links": 2,
    "transport/multicast/join_interval": 1,
    "transport/multicast/max_sessions": 1,
    "transport/multicast/qos/enabled": True,
    "transport/multicast/compression/enabled": True,
    "transport/link/tls/close_link_on_expiration": True,
    "transport/link/tls/so_sndbuf": 1,
    "transport/link/tls/so_rcvbuf": 1,
    "transport/link/tcp/so_sndbuf": 1,
    "transport/link/tcp/so_rcvbuf": 1,
    "transport/link/unixpipe/file_access_mask": 1,
    "transport/shared_memory/transport_optimization/messages": ["put"],
    "transport/auth/pubkey/key_size": 1,
    "stats/filters": [{"key": "a"}],
}


def test_every_entry_of_the_schema_has_a_row_and_every_row_an_entry() -> None:
    paths = [path for path, _ in leaves()]

    assert [path for path in paths if row_of(path) is None] == []
    assert ({*ACTED, *REFUSED, *IDLE} - {row_of(path) for path in paths}) == set()
    assert len({*ACTED, *REFUSED, *IDLE}) == len(ACTED) + len(REFUSED) + len(IDLE)


@pytest.mark.parametrize("path", sorted(REFUSED))
def test_what_is_not_built_is_refused_by_the_node_and_by_check_config(path: str) -> None:
    config = Config()
    config.insert_json5(path, json.dumps(WANTED.get(path, "text")))

    with pytest.raises(ConfigError) as caught:
        Settings.of(config)

    assert caught.value.path == path
    assert caught.value.hint
    nested: Json = WANTED.get(path, "text")
    for name in reversed(path.split("/")):
        nested = {name: nested}
    (problem,) = problems_in(json.dumps(nested))
    assert (problem.path, problem.hint) == (path, caught.value.hint)


@pytest.mark.parametrize("path", sorted(REFUSED))
def test_the_default_of_what_is_not_built_is_taken(path: str) -> None:
    config = Config()

    config.insert_json5(path, config.get_json(path))

    Settings.of(config)


@pytest.mark.parametrize("path", sorted(IDLE))
def test_what_tunes_nothing_here_is_told(path: str) -> None:
    config = Config()
    value = {"plugins_loading/search_dirs": [], "transport/link/rx/buffer_size": 7, "transport/link/tx/threads": 7}
    other = {"lazy": "init", "true": "false", "false": "true", "1": "7", "2": "7", "null": "true"}
    now = json.dumps(config._at(path)).strip('"')
    new = json.dumps(value[path]) if path in value else other[now]
    config.insert_json5(path, f'"{new}"' if new == "init" else new)

    assert Settings.of(config).without_effect == {path: IDLE[path]}


@pytest.mark.parametrize("name", ["rest", "ros2dds", "storage_manger"])
def test_plugins_that_do_not_exist_are_refused_by_name(name: str) -> None:
    config = Config.from_json5(f"{{plugins: {{{name}: {{http_port: 8000}}}}}}")

    with pytest.raises(ConfigError) as caught:
        Settings.of(config)

    assert caught.value.path == f"plugins/{name}"
    assert "storage_manager" in caught.value.hint or "client of this broker" in caught.value.hint


def test_a_mistyped_plugin_gets_a_suggestion() -> None:
    (problem,) = problems_in("{plugins: {storage_manger: {}}}")

    assert "did you mean 'storage_manager'" in problem.hint


def test_access_rules_that_are_switched_off_are_taken() -> None:
    Settings.of(Config.from_json5("{access_control: {enabled: false, default_permission: 'deny', rules: []}}"))


def test_what_the_settings_have_is_used_somewhere() -> None:
    """An attribute that nobody reads is an entry that is ignored."""
    used: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        if file.name != "settings.py" or file.parent.name != "api":
            tree = ast.parse(file.read_text(encoding="utf-8"))
            used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    classes = [getattr(settings_module, name) for name in settings_module.__all__]

    names = {name for one in classes for name in getattr(one, "__slots__", ()) or one.__annotations__}
    assert sorted(names - used) == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{mode: 'peer', connect: {endpoints: [{strategy: 'oneOf', locators: ['tcp/a:1', 'tcp/b:1']}]}}", "connect"),
        ("{mode: 'peer', connect: {endpoints: ['tcp/a:1?prio=1-2']}}", "connect"),
        ("{mode: 'router', listen: {endpoints: ['tcp/127.0.0.1:1#retry_period_init_ms=5']}}", "listen"),
        ("{mode: 'router', listen: {endpoints: ['tcp/127.0.0.1:1?dialect=zenoh2019']}}", "listen"),
    ],
)
def test_what_no_link_follows_is_refused(text: str, path: str) -> None:
    (problem,) = problems_in(text)

    assert problem.path.startswith(f"{path}/endpoints[0]")
    assert problem.hint
