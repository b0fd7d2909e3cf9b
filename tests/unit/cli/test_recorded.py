"""Captures of the real eclipse-zenoh: every unit is found, decodes, and encodes back to the same octets."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from elea.wire import dialect_named
from elea.wire.traffic import Traffic
from tests.unit.cli.conftest import Elea

RECORDED = Path(__file__).parent / "recorded"
SESSIONS = ("plain", "compression", "lowlatency", "udp")


def messages(form: Any) -> list[Any]:
    """The transport and network messages of a decoded unit."""
    found = form if isinstance(form, list) else [form]
    return [*found, *(message for outer in found for message in outer.get("msgs", []))]


@pytest.mark.parametrize("name", SESSIONS)
def test_session_of_the_real_peer_is_decoded_whole(elea: Elea, name: str) -> None:
    result = elea("decode", "--json", str(RECORDED / f"{name}.pcap"))

    decoded = [json.loads(line)["decoded"] for line in result.lines]
    names = Counter(message["_"] for form in decoded for message in messages(form))
    assert (result.status, result.err) == (0, "")
    assert [names[kind] for kind in ("INIT_SYN", "INIT_ACK", "OPEN_SYN", "OPEN_ACK")] == [2, 2, 2, 2]
    # Each put crosses the router: once in, once out. So do the query and its answer.
    assert names["PUSH"] >= 6
    assert (names["REQUEST"], names["RESPONSE"], names["RESPONSE_FINAL"]) == (2, 2, 2)
    assert names["CLOSE"] >= 2


def test_scouting_of_the_real_peer_is_decoded(elea: Elea) -> None:
    result = elea("decode", "--json", str(RECORDED / "scouting.pcap"))

    assert (result.status, result.err) == (0, "")
    assert {json.loads(line)["decoded"]["_"] for line in result.lines} == {"SCOUT", "HELLO"}


@pytest.mark.parametrize("name", SESSIONS)
def test_units_of_the_real_peer_encode_to_the_same_octets(name: str) -> None:
    dialect = dialect_named("zenoh1")
    capture = io.BytesIO((RECORDED / f"{name}.pcap").read_bytes())

    for unit in Traffic(dialect).units(capture):
        assert unit.error is None
        value = dialect.decode(unit.unit, unit.data)
        if unit.unit != "compressed":  # two compressors need not find the same matches
            assert dialect.encode(unit.unit, value) == unit.data
        again = dialect.from_json(unit.unit, dialect.to_json(unit.unit, value, full=True))
        assert dialect.encode(unit.unit, again) == dialect.encode(unit.unit, value)
        assert all(field.error is None for field in dialect.dissect(unit.unit, unit.data))


@pytest.mark.parametrize("name", SESSIONS)
def test_human_output_shows_every_unit(elea: Elea, name: str) -> None:
    path = str(RECORDED / f"{name}.pcap")

    human, machine = elea("decode", path), elea("decode", "--json", path)

    assert human.status == 0
    assert sum(line.startswith(path) for line in human.lines) == len(machine.lines)
