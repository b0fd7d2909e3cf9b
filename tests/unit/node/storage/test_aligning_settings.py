"""With whom storages are aligned: in a configuration, and by options of the broker."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest

import elea
from elea.api.settings import Settings
from elea.cli import broker as broker_verb
from elea.cli.style import CliError
from elea.model.errors import ConfigError
from elea.node.storage.settings import StoreSettings

LOCATOR = "tcp/10.0.0.2:7447"
STORAGE = {"key_expr": "a/**", "volume": "memory"}


def read(manager: dict[str, Any]) -> StoreSettings:
    config = elea.Config.from_json5(json.dumps({"mode": "router", "plugins": {"storage_manager": manager}}))
    found = Settings.of(config).storages
    assert found is not None
    return found


def test_replication_says_with_whom_and_how_often() -> None:
    given = {"peers": [LOCATOR, "tcp/[::1]:7447"], "interval": 3, "propagation_delay": 500}

    (storage,) = read({"storages": {"a": {**STORAGE, "replication": given}}}).storages

    assert storage.align_with == (LOCATOR, "tcp/[::1]:7447")
    assert (storage.align_interval, storage.align_delay) == (3.0, 0.5)


def test_members_of_eclipse_zenoh_that_have_no_meaning_here_are_taken() -> None:
    given = {"peers": [LOCATOR], "sub_intervals": 5, "hot": 6, "warm": 30}

    (storage,) = read({"storages": {"a": {**STORAGE, "replication": given}}}).storages

    assert (storage.align_interval, storage.align_delay) == (10.0, 0.25)


def test_default_log_is_aligned_as_its_volume_says() -> None:
    volumes = {"log": {"dir": "/d", "replication": {"peers": [LOCATOR]}}}

    found = read({"volumes": volumes, "storages": {"a": STORAGE}})

    assert found.default is not None
    assert found.default.align_with == (LOCATOR,)
    assert found.storages[0].align_with == ()


@pytest.mark.parametrize(
    ("replication", "path"),
    [
        ({}, "replication/peers"),
        ({"peers": []}, "replication/peers"),
        ({"peers": ["10.0.0.2"]}, "replication/peers[0]"),
        ({"peers": [LOCATOR], "interval": 0}, "replication/interval"),
        ({"peers": [LOCATOR], "interval": -1}, "replication/interval"),
        ({"peers": [LOCATOR], "propagation_delay": "soon"}, "replication/propagation_delay"),
        ({"peers": [LOCATOR], "intervall": 3}, "replication/intervall"),
    ],
)
def test_mistakes_are_named_by_their_path(replication: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read({"storages": {"a": {**STORAGE, "replication": replication}}})

    assert caught.value.path == f"plugins/storage_manager/storages/a/{path}"


def options(*words: str) -> StoreSettings:
    parser = argparse.ArgumentParser()
    broker_verb.add_arguments(parser)
    found = Settings.of(broker_verb._config(parser.parse_args(words))).storages
    assert found is not None
    return found


def test_options_of_the_broker_are_for_all_its_storages() -> None:
    align = ["--align", LOCATOR, "--align", "tcp/[::1]:7447", "--align-interval", "2.5"]

    found = options("--store", "/d", "--persist", "a/**", "--transient", "b/**", *align)

    assert found.default is not None
    for storage in (*found.storages, found.default):
        assert storage.align_with == (LOCATOR, "tcp/[::1]:7447")
        assert storage.align_interval == 2.5


def test_there_must_be_something_to_align() -> None:
    with pytest.raises(CliError, match="something to align"):
        options("--align", LOCATOR)
