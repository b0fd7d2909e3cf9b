"""`elea broker` as a process: what it announces, what it logs, how it ends."""

from __future__ import annotations

import json
import signal
from datetime import datetime

import pytest

from elea.cli.broker import event_of
from tests.unit.cli.conftest import Elea
from tests.unit.cli.running import Running, start_broker

HERE = ("-l", "tcp/127.0.0.1:0", "--no-multicast-scouting")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_broker_ends_cleanly_when_told_to(how: signal.Signals) -> None:
    with Running("broker", *HERE, "-i", "a1b2") as broker:
        assert broker.line().split() == ["id", "a1b2"]
        where = broker.line().split()

        assert broker.stop(how) == 0
        assert broker.rest() == ["stopped"]
    assert where[0] == "listening"
    assert where[1].startswith("tcp/127.0.0.1:")


def test_broker_tells_sessions_coming_and_going_by_the_id_others_see(elea: Elea) -> None:
    broker, locator = start_broker()
    with broker:
        facts = json.loads(elea("info", "-e", locator, "--json").out)
        opened = broker.form_where(lambda form: form["event"] == "session opened")
        ended = broker.form_where(lambda form: form["event"] == "session ended")

        assert broker.stop() == 0
        assert json.loads(broker.rest()[-1]) == {"event": "stopped"}
    assert opened["node"] == ended["node"] == facts["id"]
    assert opened["level"] == "info"
    assert opened["role"].lower() == "client"


def test_lines_of_the_log_have_date_level_and_numbers(elea: Elea) -> None:
    broker, locator = start_broker()
    with broker:
        elea("info", "-e", locator)
        opened = broker.form_where(lambda form: form["event"] == "session opened")
        assert broker.stop() == 0

    assert datetime.fromisoformat(opened["time"]).tzinfo is not None
    assert event_of("messages dropped: neighbour=1 reason=full count=64 share=0.5") == {
        "event": "messages dropped",
        "neighbour": "1",
        "reason": "full",
        "count": 64,
        "share": 0.5,
    }


def test_log_for_people_has_date_and_level(elea: Elea) -> None:
    with Running("broker", *HERE) as broker:
        broker.line()
        locator = broker.line().split()[1]
        elea("info", "-e", locator)
        line = broker.line()
        assert broker.stop() == 0

    date, _, level, *what = line.split()
    datetime.strptime(date, "%Y-%m-%d")
    assert (level, what[:2]) == ("info", ["session", "opened"])


def test_level_of_the_log_can_be_chosen(elea: Elea) -> None:
    broker, locator = start_broker("--log-level", "error")
    with broker:
        elea("info", "-e", locator)
        assert broker.stop() == 0
        assert [json.loads(line)["event"] for line in broker.rest()] == ["stopped"]


def test_quiet_broker_says_where_it_listens_and_no_more(elea: Elea) -> None:
    broker, locator = start_broker("--quiet")
    with broker:
        assert elea("put", "a", "1", "-e", locator).status == 0

        assert broker.stop() == 0
        assert [json.loads(line)["event"] for line in broker.rest()] == ["stopped"]


def test_brokers_connect_to_each_other() -> None:
    first, locator = start_broker()
    with first:
        second, _ = start_broker("-e", locator)
        with second:
            opened = first.form_where(lambda form: form["event"] == "session opened")
            assert second.stop() == 0
        assert first.stop() == 0
    assert opened["role"].lower() == "router"


def test_address_in_use_is_refused(elea: Elea) -> None:
    broker, locator = start_broker()
    with broker:
        result = elea("broker", "-l", locator, "--no-multicast-scouting")

        assert broker.stop() == 0
    assert result.status == 4
    assert result.err.splitlines()[-1].startswith("try: ")


def test_broker_takes_no_configuration_of_a_client(elea: Elea, tmp_path: object) -> None:
    file = f"{tmp_path}/client.json5"
    with open(file, "w") as stream:
        stream.write("{mode: 'client'}")

    assert elea("broker", "-c", file).status == 2


@pytest.mark.parametrize(("given", "read", "write"), [("r", True, False), ("rw", True, True), ("none", False, False)])
def test_options_become_configuration(given: str, read: bool, write: bool) -> None:
    import argparse

    from elea.cli import broker

    parser = argparse.ArgumentParser()
    broker.add_arguments(parser)
    words = [
        "-i",
        "AB",
        "--adminspace-permissions",
        given,
        "--cfg",
        "transport/unicast/max_sessions:7",
        "-e",
        "tcp/a:1",
    ]
    config = broker._config(parser.parse_args(words))

    assert json.loads(config.get_json("adminspace"))["permissions"] == {"read": read, "write": write}
    assert config.get_json("adminspace/enabled") == "true"
    assert (config.get_json("mode"), config.get_json("id")) == ('"router"', '"ab"')
    assert config.get_json("transport/unicast/max_sessions") == "7"
    assert config.get_json("connect/endpoints") == '["tcp/a:1"]'


def test_default_broker_listens_on_7447() -> None:
    import argparse

    from elea.api.settings import Settings
    from elea.cli import broker

    parser = argparse.ArgumentParser()
    broker.add_arguments(parser)

    assert Settings.of(broker._config(parser.parse_args([]))).listen.locators == ("tcp/[::]:7447",)
