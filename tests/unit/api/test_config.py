"""`Config`: reading, setting, files, and what is said about mistakes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from elea.api.config import Config
from elea.api.configschema import SCHEMA
from elea.api.kinds import Section
from elea.model.errors import ConfigError


def test_an_entry_set_is_read_back() -> None:
    config = Config()

    config.insert_json5("connect/endpoints", "['tcp/localhost:7447']")

    assert config.get_json("connect/endpoints") == '["tcp/localhost:7447"]'


def test_two_configurations_share_nothing() -> None:
    one = Config()

    one.insert_json5("plugins/rest/http_port", "8000")
    one.insert_json5("transport/unicast/max_links", "3")

    assert Config().get_json("plugins") == "{}"
    assert Config().get_json("transport/unicast/max_links") == "1"


def test_a_section_set_has_defaults_for_the_rest() -> None:
    config = Config.from_json5("{transport: {unicast: {max_links: 5, max_sessions: 7}}}")

    config.insert_json5("transport/unicast", "{max_links: 3}")

    assert config.get_json("transport/unicast/max_links") == "3"
    assert config.get_json("transport/unicast/max_sessions") == "1000"


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ("{mod: 'peer'}", "mod", "did you mean 'mode'?"),
        ("{scouting: {multicst: {}}}", "scouting/multicst", "did you mean 'multicast'?"),
        ("{mode: 'rooter'}", "mode", "did you mean 'router'?"),
        ("{connect: {endpoints: ['tcp']}}", "connect/endpoints[0]", "a locator such as"),
        ("{connect: {endpoints: ['tcp/a:1#b=']}, listen: {endpoints: ['tcp/a:1#=b']}}", "listen/endpoints[0]", "write"),
        ("{connect: {endpoints: {ruter: []}}}", "connect/endpoints/ruter", "did you mean 'router'?"),
        ("{connect: {retry: {period_init: 5}}}", "connect/retry/period_init", "did you mean 'period_init_ms'?"),
        ("{connect: {timeout_ms: 'soon'}}", "connect/timeout_ms", "a whole number"),
        ("{transport: {unicast: {max_links: -1}}}", "transport/unicast/max_links", "at least 0"),
        ("{transport: {unicast: {lowlatency: 1}}}", "transport/unicast/lowlatency", "true or false"),
        ("{transport: {link: {tx: {queue: {size: {data: 17}}}}}}", "transport/link/tx/queue/size/data", "1 to 16"),
        ("{transport: {auth: {usrpwd: {user: 'me'}}}}", "transport/auth/usrpwd/password", "give both or none"),
        ("{namespace: 'a/*'}", "namespace", "without wildcards"),
        ("{connect: {endpoints: ['tcp/127.0.0.1']}}", "connect/endpoints[0]", "such as 127.0.0.1:7447"),
        ("{listen: {endpoints: {router: ['udp/[::1]']}}}", "listen/endpoints/router[0]", "such as [::1]:7447"),
        ("{aggregation: {subscribers: ['a//b']}}", "aggregation/subscribers[0]", "key expression"),
        ("{id: 'ABC'}", "id", "lower-case"),
        ("{scouting: {multicast: {address: 'here'}}}", "scouting/multicast/address", "224.0.0.224:7446"),
        ("{access_control: {rules: [{id: 'r'}]}}", "access_control/rules[0]/key_exprs", "write a non-empty list"),
        ("{qos: {network: [{messages: ['put'], overwrite: {priority: 8}}]}}", "qos/network[0]/overwrite/priority", "7"),
        ("5", "configuration", "an object with"),
    ],
)
def test_a_mistake_is_named_with_its_path_and_what_to_write(text: str, path: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.from_json5(text)

    assert caught.value.path == path
    assert hint in caught.value.hint


@pytest.mark.parametrize("key", ["", "/", "nope", "transport/nope", "mode/x", "connect/endpoints/peer", "metadata/a"])
def test_what_is_no_entry_is_neither_read_nor_set(key: str) -> None:
    config = Config()

    with pytest.raises(ConfigError):
        config.get_json(key)
    with pytest.raises(ConfigError):
        config.insert_json5(key, "5")


def test_a_refused_value_changes_nothing() -> None:
    config = Config()
    before = str(config)

    with pytest.raises(ConfigError):
        config.insert_json5("transport/unicast", "{max_links: 7, max_sessions: 'x'}")

    assert str(config) == before


def test_values_are_given_as_text() -> None:
    with pytest.raises(TypeError):
        Config().insert_json5("mode", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Config.from_json5(b"{}")  # type: ignore[arg-type]


def test_plugins_take_anything_at_any_depth() -> None:
    config = Config()

    config.insert_json5("plugins/storage/volumes/fs", "{}")
    config.insert_json5("plugins/storage/__required__", "true")

    assert json.loads(config.get_json("plugins")) == {"storage": {"volumes": {"fs": {}}, "__required__": True}}
    assert config.get_json("plugins/storage/volumes") == '{"fs":{}}'
    with pytest.raises(ConfigError, match="no object"):
        config.insert_json5("plugins/storage/__required__/x", "1")
    with pytest.raises(ConfigError):
        config.get_json("plugins/rest")


def test_secrets_are_shown_only_when_asked_for() -> None:
    config = Config.from_json5("{transport: {link: {tls: {listen_private_key_base64: 'c2VjcmV0'}}}}")

    assert "c2VjcmV0" not in str(config)
    assert "c2VjcmV0" not in repr(config)
    assert config.get_json("transport/link/tls/listen_private_key_base64") == '"c2VjcmV0"'


def test_its_repr_has_what_differs_from_the_defaults() -> None:
    config = Config.from_json5("{mode: 'client', scouting: {timeout: 5}}")

    assert repr(config) == """Config.from_json5('{"mode": "client", "scouting": {"timeout": 5}}')"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json5", "{mode: 'client'}"),
        ("a.json", '{"mode": "client"}'),
        ("a.toml", 'mode = "client"'),
    ],
)
def test_a_file_is_read_by_its_extension(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)

    assert Config.from_file(tmp_path / name).get_json("mode") == '"client"'
    assert Config.from_file(str(tmp_path / name)).get_json("mode") == '"client"'


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.conf", "{}"), ("a", "{}"), ("a.json5", ""), ("b.json5", "{"), ("a.toml", "="), ("c.json5", "\udcff")],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(ConfigError):
        Config.from_file(tmp_path / name)


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Config.from_file(tmp_path / "no.json5")


def test_yaml_without_its_reader_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("mode: client")
    monkeypatch.setitem(sys.modules, "yaml", None)

    with pytest.raises(ConfigError, match="PyYAML"):
        Config.from_file(tmp_path / "a.yaml")


def test_yaml_is_read_where_its_reader_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Exception): ...

    def load(text: str) -> object:
        if text == "?":
            raise Broken("what?")
        return dict([text.split(": ")])

    monkeypatch.setitem(sys.modules, "yaml", cast(ModuleType, SimpleNamespace(safe_load=load, YAMLError=Broken)))
    (tmp_path / "a.yaml").write_text("mode: client")
    (tmp_path / "b.yml").write_text("?")

    assert Config.from_file(tmp_path / "a.yaml").get_json("mode") == '"client"'
    with pytest.raises(ConfigError, match="no YAML"):
        Config.from_file(tmp_path / "b.yml")


@pytest.mark.parametrize(
    ("path", "value", "hint"),
    [
        ("connect/endpoints", "5", "a list of: a locator"),
        ("scouting/gossip/autoconnect_strategy", "[]", '"greater-zid"'),
        ("region_name", "'%s'" % ("x" * 33), "32 bytes"),
        ("scouting/multicast/address", "5", "an address"),
        ("downsampling", "[{messages: ['put'], rules: [{key_expr: 'a', freq: 'x'}]}]", "a number"),
        ("qos/network", "[{messages: ['put'], overwrite: {}, payload_size: 'x'}]", "a range"),
        ("aggregation/publishers", "[5]", "a key expression"),
        ("gateway", "{south: 5}", '"auto"'),
    ],
)
def test_what_is_expected_is_said(path: str, value: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config().insert_json5(path, value)

    assert hint in caught.value.hint or hint in str(caught.value)


def test_every_kind_says_what_it_expects() -> None:
    for entry in SCHEMA.entries.values():
        assert (entry if isinstance(entry, Section) else entry.kind).expects


def test_the_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json5").write_text("{mode: 'router'}")
    monkeypatch.setenv("ZENOH_CONFIG", str(tmp_path / "a.json5"))

    assert Config.from_env().get_json("mode") == '"router"'

    monkeypatch.delenv("ZENOH_CONFIG")
    with pytest.raises(ConfigError, match="ZENOH_CONFIG"):
        Config.from_env()
