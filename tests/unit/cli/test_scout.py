"""`elea scout` finds a broker by multicast on this machine."""

from __future__ import annotations

import json
import socket

from tests.unit.cli.conftest import Elea
from tests.unit.cli.running import Running


def elsewhere() -> tuple[str, ...]:
    """A multicast port of our own, so that other nodes do not answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("", 0))
        return "--cfg", f"scouting/multicast/address:'224.0.0.224:{sock.getsockname()[1]}'"


def test_scout_prints_a_broker_once(elea: Elea) -> None:
    port = elsewhere()
    with Running("broker", "--json", "-l", "tcp/127.0.0.1:0", *port) as broker:
        said = broker.form()
        human = elea("scout", "-n", "1", "--timeout", "10", *port)
        form = json.loads(elea("scout", "-n", "1", "--timeout", "10", "--json", "--what", "router", *port).out)

        assert broker.stop() == 0
    assert (human.status, human.out.split()[:2]) == (0, ["router", said["id"]])
    assert form == {"id": said["id"], "role": "router", "locators": said["locators"]}


def test_scout_without_answer_is_a_negative_answer(elea: Elea) -> None:
    result = elea("scout", "--timeout", "0.3", "--json", *elsewhere())

    assert (result.status, result.out) == (1, "")
    assert "elea broker" in result.err


def test_scout_looks_for_roles_only(elea: Elea) -> None:
    assert elea("scout", "--what", "robots").status == 2
