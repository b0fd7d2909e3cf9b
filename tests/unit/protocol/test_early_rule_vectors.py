"""The records of `malformed.json` that decode but break a rule, in both dialects."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from elea.model.errors import RuleBroken
from elea.protocol.early import Terms, check_declaration, check_message, check_packet
from elea.wire.xrce2017 import codec as xrce2017
from elea.wire.zenoh2018 import codec as zenoh2018

VECTORS = Path(__file__).parents[2] / "vectors"
CODECS = {"zenoh2018": zenoh2018, "xrce2017": xrce2017}
MARKERS = ("Conduit", "Frag", "RSpace")


class Decorated(NamedTuple):
    markers: tuple[object, ...]
    message: object


def records(file: str) -> list[dict[str, Any]]:
    return [each for dialect in CODECS for each in json.loads((VECTORS / dialect / file).read_text())]


def named(chosen: list[dict[str, Any]]) -> list[Any]:
    assert chosen
    return [pytest.param(record, id=f"{record['dialect']}-{record['name']}") for record in chosen]


def packet_of(codec: ModuleType, data: bytes) -> list[Decorated]:
    packet: list[Decorated] = []
    markers: list[object] = []
    at = 0
    while at < len(data):
        message, at = codec.read_message(data, at)
        if type(message).__name__ in MARKERS:
            markers.append(message)
        else:
            packet.append(Decorated(tuple(markers), message))
            markers = []
    return packet


def check(record: dict[str, Any]) -> None:
    codec, data = CODECS[record["dialect"]], bytes.fromhex(record["hex"])
    context = record.get("context") or {}
    terms = Terms(snsize=context.get("snsize", 63), conduits=context.get("max_conduits", 1 << 63))
    if record["unit"] == "declaration":
        check_declaration(codec.read_declaration(data, 0)[0])
    elif record["unit"] == "message":
        check_message(codec.read_message(data, 0)[0], terms)
    else:
        for decorated in packet_of(codec, data):
            check_packet(decorated, terms)


@pytest.mark.parametrize("record", named([each for each in records("malformed.json") if each["layer"] == "semantic"]))
def test_message_that_breaks_a_rule_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(RuleBroken) as caught:
        check(record)

    assert (caught.value.rule, caught.value.reaction) == (record["error"], record["reaction"])


@pytest.mark.parametrize(
    "record",
    named([each for each in records("valid.json") if each["unit"] in ("message", "declaration", "packet")]),
)
def test_valid_message_breaks_no_rule(record: dict[str, Any]) -> None:
    check(record)
