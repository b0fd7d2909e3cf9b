"""Requests of the store that name a log: several logs of one broker, read and followed apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.api.storecall import Call, query
from elea.model.errors import InvalidSelector, NotStored
from elea.model.qos import QueryTarget, SampleKind
from tests.interop.storing import StoringBroker


@pytest.fixture
def session(tmp_path: Path) -> Iterator[elea.Session]:
    options = ("--store", str(tmp_path), "--persist", "home/**", "--persist", "away/**")
    with StoringBroker(*options) as broker:
        config = elea.Config.from_json5(f'{{mode: "client", connect: {{endpoints: ["{broker.locator}"]}}}}')
        with elea.open(config) as opened:
            yield opened


def names(session: elea.Session) -> dict[str, str]:
    replies = (json.loads(reply.ok.payload.to_bytes()) for reply in session.get("@store/info/**"))
    return {facts["key_expr"]: facts["name"] for facts in replies}


def keys(session: elea.Session, expr: str, **options: Any) -> list[str]:
    return session.read(expr, **options).read_all().column("key").to_pylist()  # type: ignore[no-any-return]


def test_a_log_is_read_by_its_name(session: elea.Session) -> None:
    session.put_batch([(f"home/{number}", "x") for number in range(4)])
    session.put_batch([("away/1", "y")])
    session.delete("home/1", durability="persistent", ack=True)
    home, away = names(session)["home/**"], names(session)["away/**"]

    assert keys(session, "**", log=home) == ["home/0", "home/1", "home/2", "home/3", "home/1"]
    assert keys(session, "**", log=away) == ["away/1"]
    assert keys(session, "**", log=home, keys=["home/1", "home/3", "away/*"]) == ["home/1", "home/3", "home/1"]
    assert keys(session, "**", log=home, kind=SampleKind.DELETE) == ["home/1"]
    assert keys(session, "home/1", kind=SampleKind.PUT) == ["home/1"]
    with pytest.raises(NotStored):
        keys(session, "**", log="nobody")


def test_a_cursor_belongs_to_the_log_that_is_named(session: elea.Session) -> None:
    session.put_batch([("home/1", "x")] * 3)
    session.put_batch([("away/1", "y")] * 2)
    home, away = names(session)["home/**"], names(session)["away/**"]

    session.cursor("**", "mine", log=home).move(2)

    assert session.cursor("home/**", "mine").position == 2
    assert session.cursor("**", "mine", log=away).facts()["position"] is None
    assert session.cursor("**", "mine", log=away).facts()["end"] == 2
    assert session.cursor("**", "mine", log=home).facts()["damaged"] == []


def test_how_far_octets_reach_is_told_without_reading(session: elea.Session) -> None:
    session.put_batch([("home/1", b"x" * 1000)] * 100)

    def reached(octets: int) -> int:
        body = query(f"from=10;to=90;measure={octets}")
        return int(Call(session, "read", "home/**", body, target=QueryTarget.ALL).wait()["next"])

    assert reached(0) == 11
    assert 25 < reached(30_000) < 41
    assert reached(10**9) == 90


@pytest.mark.parametrize("payload", [b"x", b"[]", b"{}", b'{"keys": ["a//b"]}', b'{"keys": 3}', b'{"keys": "ab"}'])
def test_a_payload_that_is_no_list_of_keys_is_refused(session: elea.Session, payload: bytes) -> None:
    with pytest.raises(InvalidSelector, match="keys"):
        Call(session, "read", "home/**", query("", payload)).wait()
