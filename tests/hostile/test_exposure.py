"""A broker that lets every machine in says so at the start, in one line; one that does not is silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elea.io.tls_settings import TlsSettings
from elea.node.exposure import exposed
from elea.node.links import LinkSettings
from tests.unit.cli.running import Running

ASKING = LinkSettings(users={b"ann": b"secret"})
CERTIFIED = LinkSettings(tls=TlsSettings(enable_mtls=True))
OPEN = LinkSettings()


@pytest.mark.parametrize(
    ("locator", "settings", "found"),
    [
        ("tcp/[::]:7447", OPEN, True),
        ("tcp/0.0.0.0:7447", OPEN, True),
        ("udp/10.0.0.1:7447", OPEN, True),
        ("tcp/broker.example:7447", OPEN, True),
        ("tls/[::]:7447", OPEN, True),
        ("tls/[::]:7447#enable_mtls=true", OPEN, False),
        ("tls/[::]:7447", CERTIFIED, False),
        ("tls/[::]:7447#enable_mtls=false", CERTIFIED, True),
        ("tcp/[::]:7447", CERTIFIED, True),
        ("tcp/[::]:7447", ASKING, False),
        ("tcp/127.0.0.1:7447", OPEN, False),
        ("tcp/[::1]:7447", OPEN, False),
        ("tcp/localhost:7447", OPEN, False),
        ("unixsock-stream//run/elea.sock", OPEN, False),
    ],
)
def test_what_is_open_to_other_machines(locator: str, settings: LinkSettings, found: bool) -> None:
    assert bool(exposed([locator], settings)) is found


def said_at_start(*words: str) -> list[dict[str, Any]]:
    with Running("broker", "--json", "--no-multicast-scouting", *words) as broker:
        first = broker.form()
        assert first["event"] == "listening"
        assert broker.stop() == 0
        return [json.loads(line) for line in broker.rest()]


def test_open_broker_says_how_to_close_it() -> None:
    warned = [event for event in said_at_start("-l", "tcp/0.0.0.0:0") if event.get("level") == "warning"]

    assert len(warned) == 1
    assert warned[0]["event"].startswith("no authentication")
    assert warned[0]["listening"] == "tcp/0.0.0.0:0"
    assert "transport/auth/usrpwd/dictionary_file" in warned[0]["hint"]


def test_closed_brokers_have_nothing_to_say(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann:secret\n")
    asking = ("--cfg", f"transport/auth/usrpwd/dictionary_file:'{users}'")

    for words in (("-l", "tcp/127.0.0.1:0"), ("-l", "tcp/0.0.0.0:0", *asking)):
        assert [event for event in said_at_start(*words) if event.get("level") == "warning"] == []
