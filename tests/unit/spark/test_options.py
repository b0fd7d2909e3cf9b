"""Options of the source: names, values, and what is said about those that make no sense."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from elea.model.errors import ConfigError
from elea.spark.options import ReadOptions, WriteOptions

AT = int(datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC).timestamp() * 1000) * 1_000_000


def test_names_are_known_whatever_their_case_and_in_snake_case() -> None:
    for name in ("startingOffsets", "startingoffsets", "STARTING_OFFSETS", "starting_offsets"):
        assert ReadOptions.parse({"path": "a", name: "earliest"}).starting_offsets == "earliest"


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05.6Z", "2026-01-02 04:04:05.6+01:00", "2026-01-02T03:04:05.6",
                                  str(AT // 1_000_000)])  # fmt: skip
def test_a_time_is_iso_8601_or_milliseconds(text: str) -> None:
    assert ReadOptions.parse({"path": "a", "startingTimestamp": text}).starting_timestamp == AT


def test_key_expressions_are_checked_sorted_and_may_have_commas_in_json() -> None:
    assert ReadOptions.parse({"keyexpr": " b/** , a/*,b/**"}).key_exprs == ("a/*", "b/**")
    assert ReadOptions.parse({"subscribe": '["a,b/*"]'}).key_exprs == ("a,b/*",)
    assert ReadOptions.parse({"keyexpr": "a/b,a/**,a/*/c"}).key_exprs == ("a/**",)


def test_entries_of_the_session_are_passed_on() -> None:
    found = ReadOptions.parse({"path": "a", "zenoh.transport.link.tx.batch_size": "9000", "zenoh.mode": "peer"})

    assert found.passed_on == (("mode", "peer"), ("transport/link/tx/batch_size", "9000"))


def test_the_cursor_is_named_by_what_is_read_unless_it_is_given() -> None:
    one = ReadOptions.parse({"path": "a/**"})

    assert one.cursor == ReadOptions.parse({"keyexpr": "a/**", "minPartitions": "7"}).cursor
    assert one.cursor != ReadOptions.parse({"path": "b/**"}).cursor
    assert ReadOptions.parse({"path": "a", "sourceId": "nightly"}).cursor == "nightly"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": "a", "startingOfsets": "latest"}, "did you mean startingOffsets"),
        ({"path": "a", "kafka.x.y.z": "1"}, "options are .*connect.*startingOffsets"),
        ({}, "nothing says what to read.*load"),
        ({"path": "a", "keyexpr": "b"}, "says the same as path"),
        ({"path": "a//b"}, "empty chunk"),
        ({"path": "a", "minPartitions": "0"}, "whole number from 1"),
        ({"path": "a", "failOnDataLoss": "maybe"}, "true or false.*default is true"),
        ({"path": "a", "startingTimestamp": "yesterday"}, "ISO 8601"),
        ({"path": "a", "maxOffsetsPerTrigger": "1", "maxBytesPerTrigger": "1"}, "one limit"),
        ({"path": "a", "startingOffsets": "latest", "startingTimestamp": "0"}, "says the same"),
        ({"path": "a", "ingest": "spool"}, "spoolDir"),
        ({"path": "a", "history": "true"}, "ingest=spool.*startingOffsets=earliest"),
        ({"path": "a", "predicate": "speed >"}, "predicate.*column 8"),
        ({"path": "a", "predicate": "kind = 'put'"}, "predicate.*'PUT'"),
        ({"path": "a", "dialect": "2018"}, "1.x, not 2018"),
        ({"path": "a", "payloadSchema": "x int"}, "payloadFormat"),
        ({"path": "a", "sourceId": "a;b"}, "cursor"),
    ],
)
def test_what_makes_no_sense_is_named_with_what_to_do(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s)option .*{said}"):
        ReadOptions.parse(options)


def test_an_option_is_named_as_it_is_documented() -> None:
    with pytest.raises(ConfigError, match=r"^option maxOffsetsPerTrigger: 'abc' does not do: it is a whole number"):
        ReadOptions.parse({"path": "a", "maxoffsetspertrigger": "abc"})
    with pytest.raises(ConfigError, match=r"^option path: 'a//b' does not do: .*doubled '/'$"):
        ReadOptions.parse({"path": "a//b"})


def test_a_sink_is_reliable_and_nothing_else() -> None:
    assert WriteOptions.parse({"reliability": "RELIABLE"}) == WriteOptions.parse({})
    with pytest.raises(ConfigError, match="option reliability: 'best_effort' does not do: it is one of reliable"):
        WriteOptions.parse({"reliability": "best_effort"})


def test_a_stream_refuses_what_only_a_batch_can_do() -> None:
    for name, value in {"endingOffsets": "latest", "mode": "query", "asOf": "0", "pushdown": "true"}.items():
        with pytest.raises(ConfigError, match="not for a stream"):
            ReadOptions.parse({"path": "a", name: value}).check_stream()


def test_every_option_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "spark.md").read_text()

    missing = [name for kind in (ReadOptions, WriteOptions) for name in kind.names() if f"`{name}`" not in text]

    assert missing == []
