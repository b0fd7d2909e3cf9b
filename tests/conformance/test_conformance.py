"""`elea.conformance` against a real broker, which passes, and against broken ones, on which every check fails."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
import tty

import pytest

from elea.cli import main
from elea.conformance import Check, Endpoint, Verdict
from elea.conformance.runner import checks_of, run_check
from elea.io.locator import Locator
from tests.conformance.broken import FAULTS, BrokenEndpoint
from tests.conformance.conftest import KINDS

CHECKS = checks_of()
NAMED = [pytest.param(one, id=one.name.replace(" ", "-")) for one in CHECKS]


LAST = ("mute", "unfriendly")
"""Faults that every check sees that wants an answer; the others are before them."""

EASY = {
    "undefined flags are ignored",
    "a marker is for one message",
    "pids of 1 and 16 bytes are accepted",
    "unknown properties and an empty list are ignored",
    "an acknowledgement of what was never sent is answered by synch",
    "unknown bits of a mask are ignored",
}
"""Checks that see nothing but these."""


def kind_of(check: Check) -> str:
    """Where a check applies."""
    return f"{'udp' if check.link == 'datagram' else 'tcp'}-{check.dialect or 'zenoh2018'}"


@pytest.mark.requirement("Z18-CNF-01", "Z18-REL-15")
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_broker_passes(broker: dict[str, str], kind: str) -> None:
    endpoint = Endpoint(broker[kind], kind.partition("-")[2], patience=3.0)
    failed = []
    for one in CHECKS:
        outcome = run_check(endpoint, one)
        if outcome.verdict is Verdict.FAILED:
            failed.append(f"{one.name}: {outcome.detail} {outcome.transcript[-6:]}")
        elif outcome.verdict is Verdict.NOT_APPLICABLE:
            assert one.link is not None or one.dialect is not None, f"{one.name}: {outcome.detail}"

    assert not failed


@pytest.mark.parametrize("check", NAMED)
def test_a_broken_endpoint_fails(broker: dict[str, str], check: Check) -> None:
    kind = kind_of(check)
    verdicts = {}
    for name, fault in FAULTS.items():
        with BrokenEndpoint(broker[kind], kind.partition("-")[2], fault) as broken:
            endpoint = Endpoint(broken.locator, kind.partition("-")[2], patience=0.1, silence=0.05)
            outcome = run_check(endpoint, check)
        verdicts[name] = outcome.verdict
        if outcome.verdict is Verdict.FAILED:
            assert outcome.detail
            assert (name in LAST) == (check.name in EASY), f"{name} is the first fault that it sees"
            return

    pytest.fail(f"it passes whatever the endpoint does: {verdicts}")


def test_the_command_tells_each_check_and_counts(broker: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["conformance", broker["tcp-zenoh2018"], "--dialect", "zenoh2018", "--only", "Z18-SES-06"]

    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 0 failed, 0 not applicable"
    assert main([*words, "--json"]) == 0
    *found, counts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["verdict"], "Z18-SES-06" in one["requirements"]) for one in found] == [("passed", True)] * 2
    assert counts == {"counts": {"passed": 2, "failed": 0, "not applicable": 0}}


def test_the_command_shows_the_bytes_of_a_failure(broker: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with BrokenEndpoint(broker["tcp-xrce2017"], "xrce2017", FAULTS["mistaken"]) as broken:
        words = ["conformance", broken.locator, "--dialect", "xrce2017", "--only", "another version is refused"]
        assert main(words) == 1

    out = capsys.readouterr().out
    assert "closed with reason 77, not 2" in out
    assert "> 0302" in out
    assert "0 passed, 1 failed" in out


def test_nobody_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        locator = f"tcp/127.0.0.1:{unused.getsockname()[1]}"

    assert main(["conformance", locator, "--dialect", "zenoh2018"]) == 3
    assert "cannot reach" in capsys.readouterr().err


def test_a_serial_line_can_be_judged_too(broker: dict[str, str]) -> None:
    """Over a pseudo-terminal, on whose other end a relay speaks with the broker."""
    far, device = os.openpty()
    tty.setraw(far)
    where = Locator.parse(broker["tcp-zenoh2018"])
    ended = threading.Event()

    def relay() -> None:
        link = socket.create_connection((where.host, where.port))
        with link:
            while not ended.is_set():
                for ready in select.select([far, link.fileno()], [], [], 0.02)[0]:
                    if ready != far:
                        os.write(far, link.recv(4096))
                    else:
                        link.sendall(os.read(far, 4096))

    thread = threading.Thread(target=relay)
    thread.start()
    try:
        endpoint = Endpoint(f"serial/{os.ttyname(device)}", "zenoh2018", patience=3.0)
        (one,) = [check for check in CHECKS if check.name == "naturals of every length are understood"]
        assert run_check(endpoint, one).verdict is Verdict.PASSED
    finally:
        ended.set()
        thread.join()
        os.close(far)
        os.close(device)
