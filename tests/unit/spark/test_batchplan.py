"""Ranges of a batch: what lies between two offsets, and how it is cut."""

from __future__ import annotations

from elea.spark.batchplan import Piece, pieces_of, split
from elea.spark.offsets import Place


def test_nothing_lies_between_places_of_two_epochs() -> None:
    start, end = {"log": Place("a", 5)}, {"log": Place("b", 9)}

    assert pieces_of(start, end) == []
    assert pieces_of({"log": Place("b", 5)}, end) == [Piece("log", "b", 5, 9)]


def test_pieces_that_are_cut_keep_log_and_epoch_and_leave_nothing_out() -> None:
    found = split([Piece("log", "a", 0, 100), Piece("other", "b", 7, 57)], 6, least=10)

    assert {(one.log, one.epoch) for one in found} == {("log", "a"), ("other", "b")}
    assert [number for one in found if one.log == "log" for number in range(one.start, one.end)] == list(range(100))
    assert [number for one in found if one.log == "other" for number in range(one.start, one.end)] == list(range(7, 57))
    assert len(found) == 6
