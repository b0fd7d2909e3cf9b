"""The storages of a configuration, and the options that make them."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.api.settings import Settings
from elea.cli import broker
from elea.cli.style import CliError
from elea.model.errors import ConfigError
from elea.node.storage.settings import StorageSettings, name_of

STORAGE = {"key_expr": "a/**", "volume": "memory"}


def read(storage_manager: Any) -> Settings:
    config = elea.Config.from_json5(json.dumps({"mode": "router", "plugins": {"storage_manager": storage_manager}}))
    return Settings.of(config)


def test_storages_of_eclipse_zenohs_shape_are_read() -> None:
    storages = read(
        {
            "__required__": True,
            "volumes": {"log": {"dir": "/d", "sync": "relaxed"}, "memory": {}},
            "storages": {
                "a": {"key_expr": "a/**", "volume": "memory", "complete": True, "strip_prefix": None},
                "b": {"key_expr": "b/**", "volume": {"id": "log"}, "retain": {"age": 60, "samples": 5}},
                "c": {"key_expr": "c", "volume": {"id": "log", "dir": "/elsewhere"}, "strip_prefix": "c"},
            },
        }
    ).storages

    assert storages is not None
    assert storages.storages == (
        StorageSettings("a", "a/**", None, complete=True, relaxed=True),
        StorageSettings("b", "b/**", "/d/b", complete=False, relaxed=True, max_age=60.0, max_samples=5),
        StorageSettings("c", "c", "/elsewhere", complete=False, relaxed=True, strip_prefix="c"),
    )
    assert storages.default == StorageSettings("default", "**", "/d/default", complete=False, relaxed=True)


@pytest.mark.parametrize(
    ("manager", "path", "hint"),
    [
        ({"storage": {}}, "plugins/storage_manager/storage", "storages"),
        ({"storages": []}, "plugins/storage_manager/storages", "an object"),
        ({"storages": {"a": {**STORAGE, "key": "x"}}}, "plugins/storage_manager/storages/a/key", "key_expr"),
        ({"storages": {"a": {"volume": "memory"}}}, "plugins/storage_manager/storages/a/key_expr", "a key expression"),
        ({"storages": {"a": {**STORAGE, "key_expr": "a//b"}}}, "plugins/storage_manager/storages/a/key_expr", "key"),
        ({"storages": {"a": {**STORAGE, "volume": "memry"}}}, "plugins/storage_manager/storages/a/volume", "memory"),
        ({"storages": {"a": {**STORAGE, "volume": "log"}}}, "plugins/storage_manager/storages/a/volume", "dir"),
        ({"storages": {"a": {**STORAGE, "strip_prefix": "b"}}}, "plugins/storage_manager/storages/a/strip_prefix", ""),
        ({"storages": {"a": {**STORAGE, "strip_prefix": "a/"}}}, "plugins/storage_manager/storages/a/strip_prefix", ""),
        (
            {"storages": {"a": {**STORAGE, "strip_prefix": "a/*"}}},
            "plugins/storage_manager/storages/a/strip_prefix",
            "chunks",
        ),
        (
            {"storages": {"a": {**STORAGE, "replication": {}}}},
            "plugins/storage_manager/storages/a/replication/peers",
            "",
        ),
        ({"storages": {"a": {**STORAGE, "retain": {"days": 1}}}}, "plugins/storage_manager/storages/a/retain/days", ""),
        ({"storages": {"default": STORAGE}}, "plugins/storage_manager/storages/default", "letters"),
        ({"volumes": {"influxdb": {}}}, "plugins/storage_manager/volumes/influxdb", "memory, log"),
        ({"volumes": {"log": {}}}, "plugins/storage_manager/volumes/log/dir", "text"),
    ],
)
def test_mistakes_are_named_by_their_path(manager: Any, path: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(manager)

    assert caught.value.path == path
    assert hint in caught.value.hint


def test_two_storages_do_not_share_a_directory() -> None:
    volume = {"id": "log", "dir": "/d"}
    storages = {name: {"key_expr": name, "volume": volume} for name in "ab"}

    with pytest.raises(ConfigError, match="already"):
        read({"storages": storages})


def test_other_plugins_may_be_written_down_but_not_run() -> None:
    config = elea.Config.from_json5("{plugins: {rest: {http_port: 8000}}}")

    assert json.loads(config.get_json("plugins")) == {"rest": {"http_port": 8000}}
    with pytest.raises(ConfigError, match="plugins/rest"):
        Settings.of(config)


def test_entries_set_one_by_one_are_checked_when_they_are_used() -> None:
    config = elea.Config()
    config.insert_json5("plugins/storage_manager/storages/a", '{key_expr: "a/**", volume: "memmory"}')

    with pytest.raises(ConfigError, match="memory"):
        Settings.of(config)


def test_clients_keep_nothing() -> None:
    manager = {"storage_manager": {"storages": {"a": STORAGE}}}

    with pytest.raises(ConfigError, match="client"):
        elea.open(elea.Config.from_json5(json.dumps({"mode": "client", "plugins": manager})))


def options(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    broker.add_arguments(parser)
    return Settings.of(broker._config(parser.parse_args(words)))


def test_options_of_the_command_become_storages() -> None:
    words = ("--store", "d", "--persist", "a/**", "--persist", "b", "--transient", "c/*", "--retain-samples", "9")
    storages = options(*words).storages

    assert storages is not None
    assert [(one.name, one.key_expr, one.directory, one.complete, one.max_samples) for one in storages.storages] == [
        (name_of("a/**"), "a/**", f"d/{name_of('a/**')}", True, 9),
        (name_of("b"), "b", f"d/{name_of('b')}", True, 9),
        (name_of("c/*"), "c/*", None, True, 9),
    ]
    assert storages.default is not None
    assert options().storages is None
    assert options("--transient", "x").storages is not None


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CliError, match="--persist needs a directory"):
        options("--persist", "a")
    with pytest.raises(CliError):
        options("--transient", "a//b")


def test_sessions_without_storages_do_not_import_pyarrow() -> None:
    code = (
        "import sys, elea\n"
        'with elea.open(elea.Config.from_json5(\'{mode: "router", listen: {endpoints: []}, '
        "scouting: {multicast: {enabled: false}, delay: 0}}')): pass\n"
        "print([name for name in sys.modules if name.startswith(('pyarrow', 'elea.store', 'elea.node.storage'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


def test_broker_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['pyarrow'] = None\n"
        "from elea.cli import main\n"
        f"sys.exit(main(['broker', '-l', 'tcp/127.0.0.1:0', '--store', {str(tmp_path)!r}]))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert found.returncode != 0
    assert "pip install '.[broker]'" in found.stderr
    assert "pyarrow" in found.stderr
