"""What a program pays for at its start: a client that puts and subscribes loads nothing that it does not use."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import elea

PROGRAM = """
import sys
before = set(sys.modules)
import elea
with elea.open(elea.Config.from_json5(sys.argv[1])) as session:
    publisher = session.declare_publisher("start/put")
    subscriber = session.declare_subscriber("start/**", lambda sample: None)
    publisher.put("1")
    {more}
    print(*set(sys.modules) - before)
"""

SLOW: set[str] = {
    "_datetime",
    "argparse",
    "ast",
    "asyncio",
    "copy",
    "dataclasses",
    "datetime",
    "encodings.idna",
    "gzip",
    "hashlib",
    "inspect",
    "ipaddress",
    "json",
    "logging",
    "multiprocessing",
    "pathlib",
    "queue",
    "random",
    "ssl",
    "subprocess",
    "tempfile",
    "tokenize",
    "traceback",
    "urllib.parse",
    "zlib",
}
"""Of the standard library: half a millisecond or more each."""

OTHERS: set[str] = {
    "elea.aio",
    "elea.api.answerer",
    "elea.api.events",
    "elea.api.info",
    "elea.api.instrumentation",
    "elea.api.liveliness",
    "elea.api.loginit",
    "elea.api.matching",
    "elea.api.querier",
    "elea.api.query",
    "elea.api.queryable",
    "elea.api.outgoingquery",
    "elea.api.reply",
    "elea.api.scout",
    "elea.api.sessioninfo",
    "elea.api.queryoptions",
    "elea.api.whatami",
    "elea.node.zenoh1.discovery",
    "elea.node.zenoh1.gossip",
    "elea.cli",
    "elea.ext",
    "elea.io.listener",
    "elea.io.scoutsockets",
    "elea.io.tls",
    "elea.io.udp",
    "elea.model.pattern",
    "elea.model.resource",
    "elea.model.selector",
    "elea.model.timerange",
    "elea.notation.parser",
    "elea.testing",
    "elea.wire.early",
    "elea.wire.pcap",
    "elea.wire.zenoh1.dialect",
    "elea.wire.zenoh1.jsonform",
}
"""What belongs to other roles, other verbs and other dialects."""


@pytest.fixture
def router() -> elea.Session:
    text = '{mode: "router", listen: {endpoints: ["tcp/127.0.0.1:0"]}, scouting: {multicast: {enabled: false}}}'
    return elea.open(elea.Config.from_json5(text))


def loaded(router: elea.Session, more: str = "pass") -> set[str]:
    """The modules that a client of a router has after its start, and after `more`."""
    (locator,) = router._runtime.links.locators()
    config = {"mode": "client", "connect": {"endpoints": [locator]}, "scouting": {"multicast": {"enabled": False}}}
    program = PROGRAM.replace("{more}", more)
    command = [sys.executable, "-c", program, json.dumps(config)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_client_loads_no_module_that_it_does_not_use(router: elea.Session) -> None:
    with router:
        found = loaded(router)

    assert "elea.api.publisher" in found
    assert found & SLOW == set()
    assert found & OTHERS == set()


@pytest.mark.parametrize(
    ("verb", "module"),
    [
        ('list(session.get("start/none"))', "elea.api.outgoingquery"),
        ('session.declare_querier("start/none").undeclare()', "elea.api.outgoingquery"),
        ('session.declare_queryable("start/none", lambda query: None).undeclare()', "elea.api.answerer"),
        ("session.liveliness()", "elea.api.liveliness"),
        ("list(session.info.routers_zid())", "elea.api.sessioninfo"),
        ("publisher.matching_status", "elea.api.matching"),
        ("publisher.declare_matching_listener(lambda status: None).undeclare()", "elea.api.matching"),
        ("session.new_timestamp().get_time()", "datetime"),
    ],
)
def test_client_loads_what_a_verb_needs_when_it_is_used(router: elea.Session, verb: str, module: str) -> None:
    with router:
        assert module in loaded(router, verb)
