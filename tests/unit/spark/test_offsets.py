"""Offsets and what is made of them: text forms, what was lost, how far a batch goes, how it is cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.model.errors import ConfigError, DataLost
from elea.spark.batchplan import LEAST_ROWS, Piece, admit, damaged_between, pieces_of, reach, split
from elea.spark.offsets import Head, Offset, Place, form_of, parse, parse_text

NUMBERS = st.integers(0, 1 << 62)
PLACES = st.builds(
    Place,
    st.text("0123456789abcdef", min_size=1, max_size=16),
    NUMBERS,
    st.none() | NUMBERS,
    st.dictionaries(st.sampled_from(["trimmed", "replaced", "gone", "damaged"]), st.integers(1, 1 << 62)),
)
OFFSETS = st.dictionaries(st.text(min_size=1), PLACES, max_size=4)


@given(OFFSETS)
def test_an_offset_survives_its_text_and_is_one_text_only(offset: Offset) -> None:
    text = json.dumps(form_of(offset))

    assert parse(json.loads(text)) == offset
    assert json.dumps(form_of(parse(json.loads(text)))) == text
    assert json.dumps(form_of(dict(reversed(offset.items())))) == text


def test_an_offset_without_a_name_counts_if_there_is_one_log() -> None:
    assert parse({"epoch": "3f", "next": 7}, ["fleet"]) == {"fleet": Place("3f", 7)}
    with pytest.raises(ConfigError, match=r"2 logs match.*a, b"):
        parse({"epoch": "3f", "next": 7}, ["a", "b"])


@pytest.mark.parametrize(
    "text",
    ["soon", "[]", '{"a": 1}', '{"a": {"next": 1}}', "-1", "true", "501",
     '{"b": 200}', '{"a": "soon"}', '{"a": {"epoch": "x", "next": -1}}',
     '{"a": {"epoch": "x", "next": true}}', '{"a": {"epoch": 3, "next": 1}}', '{"a": {"epoch": "x", "next": "1"}}'],
)  # fmt: skip
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"(?i)offset"):
        parse_text(text, "option startingOffsets", {"a": Head("a", "aa", 100, 500)})


@pytest.mark.parametrize(
    "text", ["300", '{"next": 300}', '{"a": 300}', '{"a": {"next": 300}}', '{"a": {"epoch": "aa", "next": 300}}']
)
def test_position_without_an_epoch_is_one_of_the_log_of_now(text: str) -> None:
    head = Head("a", "aa", 100, 500)

    assert parse_text(text, "option startingOffsets", {"a": head}) == {"a": Place("aa", 300)}
    assert parse_text('{"a": "earliest"}', "", {"a": head}) == {"a": Place("aa", 100)}
    assert parse_text('{"a": "latest"}', "", {"a": head}) == {"a": Place("aa", 500)}


def test_position_in_doubt_is_refused_and_the_epoch_asked_for() -> None:
    logs = {"a": Head("a", "aa", 100, 500), "b": Head("b", "bb", 0, 5)}
    with pytest.raises(ConfigError, match=r"positions 100 to 500, so 99 may be one of another .* give the epoch, too"):
        parse_text('{"a": 99, "b": 0}', "option startingOffsets", logs)
    with pytest.raises(ConfigError, match="'300' names no log and 2 logs match"):
        parse_text("300", "option startingOffsets", logs)
    with pytest.raises(ConfigError, match="no log c keeps what is read"):
        parse_text('{"c": 1}', "option startingOffsets", logs)


HEAD = Head("fleet", "aa", 100, 500, ((150, 159), (490, 600)))


def test_a_place_that_is_there_is_where_reading_goes_on() -> None:
    for position in (100, 300, 500):
        found = reach("fleet", Place("aa", position, 3, {"trimmed": 1}), HEAD, strict=True)

        assert found.place == Place("aa", position, None, {"trimmed": 1})
        assert found.lost is None


@pytest.mark.parametrize(
    ("place", "head", "reason", "goes_on"),
    [
        (Place("aa", 40), HEAD, "trimmed", Place("aa", 100, None, {"trimmed": 60})),
        (Place("bb", 40), HEAD, "replaced", Place("aa", 100, None, {"replaced": 1})),
        (Place("aa", 501), HEAD, "gone", Place("aa", 500, None, {"gone": 1})),
        (Place("aa", 40), None, "gone", Place("aa", 40, None, {"gone": 1})),
    ],
)
def test_a_place_that_is_gone_is_an_error_or_counted(
    place: Place, head: Head | None, reason: str, goes_on: Place
) -> None:
    with pytest.raises(DataLost, match="failOnDataLoss=false") as caught:
        reach("fleet", place, head, strict=True)
    assert caught.value.reason == reason

    found = reach("fleet", place, head, strict=False)

    assert found.place == goes_on
    assert found.lost is not None


def test_a_log_that_stays_away_is_counted_once() -> None:
    once = reach("fleet", Place("aa", 40), None, strict=False).place

    assert reach("fleet", once, None, strict=False).place == once


def test_damage_is_counted_inside_a_range() -> None:
    assert damaged_between(HEAD, 100, 500) == 20
    assert damaged_between(HEAD, 155, 156) == 1
    assert damaged_between(HEAD, 160, 490) == 0


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 10**6), min_size=1), st.none() | st.integers(1, 10**6))
def test_a_limit_is_kept_and_used_up(available: dict[str, int], limit: int | None) -> None:
    taken = admit(available, limit)

    assert sum(taken.values()) == min(sum(available.values()), limit or 10**9)
    assert all(0 <= taken[log] <= available[log] for log in available)


STARTS = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100_000)), min_size=1, max_size=4)


@given(STARTS, st.integers(1, 20), st.integers(1, LEAST_ROWS))
def test_pieces_cover_a_range_once(ranges: list[tuple[int, int]], parts: int, least: int) -> None:
    start = {f"log{at}": Place("aa", first) for at, (first, _) in enumerate(ranges)}
    end = {f"log{at}": Place("aa", first + rows) for at, (first, rows) in enumerate(ranges)}

    pieces = pieces_of(start, end)
    cut = split(pieces, parts, least) if pieces else []

    for log, place in end.items():
        mine = [piece for piece in cut if piece.log == log]
        assert [piece.start for piece in mine[1:]] == [piece.end for piece in mine[:-1]]
        if start[log].next == place.next:
            assert not mine
        else:
            assert (mine[0].start, mine[-1].end) == (start[log].next, place.next)
            assert all(piece.rows >= min(least, place.next - start[log].next) for piece in mine)


def test_a_batch_after_a_loss_begins_where_its_offset_says() -> None:
    start = {"a": Place("old", 900), "b": Place("bb", 5), "c": Place("cc", 7)}
    end = {"a": Place("new", 20, 3, {"replaced": 1}), "b": Place("bb", 9, 8, {"trimmed": 3}), "c": Place("cc", 7)}

    assert pieces_of(start, end) == [Piece("a", "new", 3, 20), Piece("b", "bb", 8, 9)]
    assert pieces_of({}, {"d": Place("dd", 4)}) == []
