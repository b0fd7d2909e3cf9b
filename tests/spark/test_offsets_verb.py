"""`elea offsets`: what it prints is what the options of Spark take."""

from __future__ import annotations

import json

import pytest

import elea
from elea.cli import main
from tests.interop.storing import StoringBroker


def test_places_of_logs_are_printed_as_options_take_them(
    broker: StoringBroker, session: elea.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.put_batch([(f"fleet/{n}", str(n)) for n in range(5)], timeout=60)

    assert main(["offsets", "fleet/**", "-e", broker.locator, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(["offsets", "fleet/**", "-e", broker.locator, "--at", "2020-01-01"]) == 0
    lines = capsys.readouterr().out.splitlines()
    ((log, facts),) = told["logs"].items()

    assert (facts["first"], facts["end"]) == (0, 5)
    assert told["offset"] == {log: {"epoch": facts["epoch"], "next": 5}}
    assert lines[0].startswith(f"{log}  positions 0 to 5  epoch {facts['epoch']}  from then on 0")
    assert json.loads(lines[-1]) == {log: {"epoch": facts["epoch"], "next": 0}}
    assert main(["offsets", "fleet/**", "-e", broker.locator, "--at", "then"]) == 2
    assert main(["offsets", "fleet/**", "-e", "tcp/127.0.0.1:1"]) == 3
