"""`elea explain`, and `--where` of the verbs that have it."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Elea
from tests.unit.cli.running import Running, start_broker


def forms(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_predicate_is_explained(elea: Elea) -> None:
    result = elea("explain", "--json", "speed>2  AND key like 'a%' AND pos.x < %0", "--param", "5")

    (form,) = forms(result.out)
    assert form["predicate"] == "speed>2 AND key LIKE 'a%' AND pos.x<%0"
    assert (form["fields"], form["sample"], form["properties"]) == (["pos.x", "speed"], ["key"], [])
    assert "publishers and brokers" in form["runs"]["sub"]  # type: ignore[index]
    assert (result.status, result.err) == (0, "")


def test_timestamp_is_looked_at_by_the_subscriber(elea: Elea) -> None:
    result = elea("explain", "timestamp > '2026-01-01T00:00:00Z'")

    assert "at the subscriber" in result.out


@pytest.mark.parametrize(
    ("payload", "verdict", "status"), [('{"a": 3}', True, 0), ('{"a": 1}', False, 1), ("{}", None, 1), ("\0", None, 1)]
)
def test_payload_is_judged_term_by_term(elea: Elea, payload: str, verdict: bool | None, status: int) -> None:
    result = elea("explain", "--json", "a > 2 AND NOT key = 'x'", "--payload", payload, "--key", "k")

    terms = forms(result.out)[1:]
    assert [(term["term"], term["depth"], term["verdict"]) for term in terms] == [
        ("a>2 AND NOT key='x'", 0, verdict),
        ("a>2", 1, verdict),
        ("NOT key='x'", 1, True),
        ("key='x'", 2, False),
    ]
    assert result.status == status


def test_wrong_predicate_is_shown_with_its_place(elea: Elea) -> None:
    result = elea("explain", "speed > 2 AND name = = 3")

    assert result.status == 2
    assert "at column 22\nspeed > 2 AND name = = 3\n                     ^" in result.err


@pytest.mark.parametrize("verb", ["sub", "get"])
def test_wrong_where_is_told_before_anything_is_opened(elea: Elea, verb: str) -> None:
    result = elea(verb, "a/**", "--where", "speed >")

    assert result.status == 2
    assert "column 8" in result.err


def test_where_through_a_broker() -> None:
    """`sub`, `get` and `explain --nodes` against a broker process, which holds back what is not wanted."""
    broker, locator = start_broker("--transient", "k/**")
    with broker:
        there = ("-e", locator, "--no-multicast-scouting")
        with Running("sub", "k/**", "-n", "1", "--where", "value > 2", *there) as subscriber:
            subscriber.wait_for_error("subscribed")
            for number in range(4):
                with Running("put", f"k/{number}", str(number), *there) as put:
                    assert put.end() == 0
            assert "k/3" in subscriber.line()
        with Running("get", "k/**", "--json", "--where", "value < 2", *there) as get:
            assert get.end() == 0, get.error_line()
            assert sorted(json.loads(line)["key"] for line in get.rest()) == ["k/0", "k/1"]
        with Running("explain", "value > 2", "--json", "--nodes", *there) as explain:
            form = explain.form_where(lambda form: "node" in form)
            assert (form["predicates"], form["passed"], form["kept_back"]) == (["value>2"], 1, 3)
