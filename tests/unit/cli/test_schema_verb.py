"""`elea schema`: types are declared, listed, shown, used by predicates, and taken back."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import elea as elea_api
from tests.unit.api.stores import broker as in_memory
from tests.unit.api.stores import config, locator_of
from tests.unit.cli.conftest import Elea
from tests.unit.spark.vehicles import DESCRIPTORS, NAME

LIGHT = "application/cdr;demo::Light"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[elea_api.Session]:
    manager = {
        "volumes": {"log": {"dir": str(tmp_path / "store")}},
        "storages": {"home": {"key_expr": "home/**", "volume": "log", "complete": True}},
    }
    with elea_api.open(
        config("router", listen__endpoints=["tcp/127.0.0.1:0"], plugins__storage_manager=manager)
    ) as session:
        yield session


def test_a_type_is_declared_used_and_taken_back(elea: Elea, broker: elea_api.Session, tmp_path: Path) -> None:
    there = ("-e", locator_of(broker), "--no-multicast-scouting")
    file, descriptors = tmp_path / "light.idl", tmp_path / "set"
    file.write_text("module demo { struct Light { long id; }; };")
    descriptors.write_bytes(DESCRIPTORS)

    assert elea("schema", "list", *there).status == 1
    assert elea("schema", "put", LIGHT, str(file), *there).status == 0
    assert elea("schema", "put", f"application/protobuf;{NAME}", str(descriptors), *there).status == 0
    assert elea("schema", "keys", "home/*", LIGHT, *there).status == 0
    listed = [json.loads(line) for line in elea("schema", "list", "--json", *there).out.splitlines()]
    assert [(form.get("type"), form.get("keys"), form.get("encoding")) for form in listed] == [
        ("demo/Light", None, None),
        (None, "home/*", LIGHT),
        (NAME, None, None),
    ]
    shown = elea("schema", "get", LIGHT, "--json", *there)
    assert json.loads(shown.out)["value"] == file.read_text()
    broker.put("home/1", b"\0\1\0\0" + struct.pack("<i", 7), ack=True, timeout=30)
    found = elea("get", "home/**", "--json", "--where", "id = 7", *there)
    assert [json.loads(line)["key"] for line in found.out.splitlines()] == ["home/1"]
    fields = elea("get", "home/**", "--json", "--fields", *there)
    assert json.loads(fields.out)["fields"] == {"id": 7}
    assert '{"id": 7}' in elea("get", "home/**", "--fields", *there).out
    assert elea("schema", "delete", "home/*", *there).status == 0
    assert elea("schema", "delete", "home/*", *there).status == 1
    assert elea("schema", "get", "application/cdr;demo::Other", *there).status == 1


def test_a_broker_may_keep_types_in_memory(elea: Elea, tmp_path: Path) -> None:
    file = tmp_path / "String.msg"
    file.write_text("string data")
    with in_memory(types="@schema/**") as session:
        there = ("-e", locator_of(session), "--no-multicast-scouting")

        assert elea("schema", "put", "application/cdr;std_msgs/msg/String", str(file), *there).status == 0
        assert "std_msgs/msg/String" in elea("schema", "list", *there).out
    with in_memory() as session:
        there = ("-e", locator_of(session), "--no-multicast-scouting")
        assert elea("schema", "put", "application/cdr;std_msgs/msg/String", str(file), *there).status == 5


def test_what_is_wrong_is_told_before_anything_is_opened(elea: Elea, tmp_path: Path) -> None:
    file = tmp_path / "bad.idl"
    file.write_text("module demo {\n  struct Light { nosuch a; };\n};")

    for words, status, problem in (
        (("put", LIGHT, str(file)), 1, "nosuch is not declared at line 2, column 18"),
        (("put", "application/json;x", str(file)), 2, "a type has a name"),
        (("put", LIGHT, str(tmp_path / "nosuch")), 2, "No such file"),
        (("put", LIGHT), 2, "put takes 2 arguments"),
        (("keys", "a//b", LIGHT), 2, "invalid key expression"),
        (("keys", "a/b", "application/cdr"), 2, "a type has a name"),
    ):
        result = elea("schema", *words)
        assert (result.status, problem in result.err) == (status, True), result.err
