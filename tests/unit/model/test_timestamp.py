"""Timestamps and the hybrid logical clock; the figures of the text forms are eclipse-zenoh 1.10.2's own."""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

from elea.model.node_id import NodeId
from elea.model.timestamp import Hlc, HlcUpdate, Timestamp, believed_time, ns_from_ntp64, ntp64_from_ns

A1 = NodeId.parse("a1")
B2 = NodeId.parse("b2")
NOW = 1_719_841_872_129_693_000
MS = 1_000_000


@pytest.mark.parametrize(
    ("rfc3339", "ntp64"),
    [
        ("2024-07-01T13:51:12.129693000Z/33", 7386664595088445305),
        ("2024-07-01T13:51:12.000000001Z/33", 7386664594531418116),
        ("2024-07-01T13:51:12.999999999Z/33", 7386664598826385403),
        ("1970-01-01T00:00:00.000000000Z/1", 0),
        ("2106-02-07T06:28:15.999999999Z/ff", 18446744073709551611),
    ],
)
def test_text_forms(rfc3339: str, ntp64: int) -> None:
    stamp = Timestamp.parse(rfc3339)

    assert stamp.ntp64 == ntp64
    assert stamp.to_string_rfc3339_lossy() == rfc3339
    assert Timestamp.parse_rfc3339(rfc3339) == stamp
    assert Timestamp.parse(str(stamp)) == stamp
    assert str(stamp) == f"{ntp64}/{rfc3339.partition('/')[2]}"


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2024-07-01T13:51:12Z", 12 * 10**9),
        ("2024-07-01T13:51:12.Z", 12 * 10**9),
        ("2024-07-01T13:51:12+00:00", 12 * 10**9),
        ("2024-07-01T13:51:12.5Z", 12_500_000_000),
        ("2024-07-01T13:51:12.1234567899Z", 12_123_456_789),
    ],
)
def test_other_ways_to_write_a_time(text: str, ns: int) -> None:
    assert Timestamp.parse(f"{text}/33").ns % (60 * 10**9) == ns


def test_node_id_of_a_timestamp_may_be_in_capitals() -> None:
    assert Timestamp.parse("5/A1") == Timestamp(5, A1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "/1",
        "5/",
        "5/0",
        "5/1/2",
        "+5/1",
        "x/1",
        "18446744073709551616/1",
        "2024-07-01 13:51:12Z/1",
        "2024-07-01T13:51:12z/1",
        "2024-07-01T13:51:12+02:00/1",
        "2024-02-30T13:51:12Z/1",
        "2024-07-01T24:00:00Z/1",
        "1969-12-31T23:59:59Z/1",
        "2106-02-07T06:28:16Z/1",
        "2024-07-01T13:51:12Z",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid|fit"):
        Timestamp.parse(text)


def test_rfc3339_parser_takes_no_decimal() -> None:
    with pytest.raises(ValueError, match="invalid time"):
        Timestamp.parse_rfc3339("5/1")


@pytest.mark.parametrize("ntp64", [-1, 1 << 64])
def test_time_has_64_bits(ntp64: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        Timestamp(ntp64, A1)


def test_fraction_rounds_up_to_the_next_second() -> None:
    assert ns_from_ntp64((1 << 32) - 1) == 10**9
    assert Timestamp((1 << 32) - 1, A1).to_string_rfc3339_lossy() == "1970-01-01T00:00:01.000000000Z/a1"


def test_order_is_time_first_then_id() -> None:
    assert Timestamp(1, B2) < Timestamp(2, A1) < Timestamp(2, B2)


def test_accessors() -> None:
    stamp = Timestamp.from_ns(NOW, A1)

    assert stamp.get_time() == datetime(2024, 7, 1, 13, 51, 12, 129693, tzinfo=UTC)
    assert stamp.get_id() == A1
    assert stamp.get_diff_duration(Timestamp.from_ns(NOW - 5 * MS, A1)) == timedelta(milliseconds=5)
    assert repr(stamp) == "Timestamp('7386664595088445305/a1')"


def test_clock_follows_the_time_with_an_empty_counter() -> None:
    stamp = Hlc(A1).tick(NOW)

    assert stamp.ntp64 == ntp64_from_ns(NOW) & ~0xF
    assert stamp.id == A1


def test_clock_counts_when_time_stands_still_or_goes_back() -> None:
    clock = Hlc(A1)
    first = clock.tick(NOW)

    assert clock.tick(NOW).ntp64 == first.ntp64 + 1
    assert clock.tick(NOW - 10 * MS).ntp64 == first.ntp64 + 2


def test_full_counter_carries_into_the_time() -> None:
    clock = Hlc(A1)
    stamps = [clock.tick(NOW) for _ in range(40)]

    assert [stamp.ntp64 - stamps[0].ntp64 for stamp in stamps] == list(range(40))


def test_clock_moves_past_an_accepted_timestamp() -> None:
    clock = Hlc(A1)
    remote = Timestamp.from_ns(NOW + 450 * MS, B2)

    assert clock.update(remote, NOW) is HlcUpdate.ACCEPTED
    assert clock.tick(NOW).ntp64 == remote.ntp64 + 1


def test_clock_ignores_a_timestamp_too_far_ahead() -> None:
    clock = Hlc(A1)
    before = clock.tick(NOW)

    assert clock.update(Timestamp.from_ns(NOW + 600 * MS, B2), NOW) is HlcUpdate.TOO_FAR_AHEAD
    assert clock.tick(NOW).ntp64 == before.ntp64 + 1


def test_drift_is_measured_from_the_time_without_counter() -> None:
    limit = (ntp64_from_ns(NOW) & ~0xF) + (1 << 31)

    assert Hlc(A1).update(Timestamp(limit, B2), NOW) is HlcUpdate.ACCEPTED
    assert Hlc(A1).update(Timestamp(limit + 1, B2), NOW) is HlcUpdate.TOO_FAR_AHEAD


def test_drift_can_be_configured() -> None:
    remote = Timestamp.from_ns(NOW + 2 * MS, B2)

    assert Hlc(A1, drift_ns=MS).update(remote, NOW) is HlcUpdate.TOO_FAR_AHEAD
    assert Hlc(A1, drift_ns=10 * MS).update(remote, NOW) is HlcUpdate.ACCEPTED


def test_clock_does_not_go_back_to_an_old_timestamp() -> None:
    clock = Hlc(A1)
    first = clock.tick(NOW)

    assert clock.update(Timestamp(1, B2), NOW) is HlcUpdate.ACCEPTED
    assert clock.tick(NOW) > first


def test_two_threads_never_get_the_same_number_while_a_third_shows_timestamps_of_others() -> None:
    clock = Hlc(NodeId.parse("a1"))
    given: list[list[int]] = [[], []]
    enough = threading.Event()

    def show() -> None:
        while not enough.is_set():
            clock.accepts(ntp64_from_ns(1_000), 1_000)

    def take(numbers: list[int]) -> None:
        for _ in range(20_000):
            numbers.append(clock.reserve(1_000, 1))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        shower = threading.Thread(target=show)
        takers = [threading.Thread(target=take, args=(numbers,)) for numbers in given]
        for thread in (shower, *takers):
            thread.start()
        for thread in takers:
            thread.join()
        enough.set()
        shower.join()
    finally:
        sys.setswitchinterval(before)

    assert len({*given[0], *given[1]}) == 40_000


def test_clock_follows_its_own_past_however_far_ahead_it_is() -> None:
    clock = Hlc(A1)
    newest = ntp64_from_ns(NOW + 60_000 * MS)
    clock.follow(newest)
    clock.follow(1)

    assert clock.tick(NOW).ntp64 == newest + 1
    assert clock.limit(NOW) == newest + 1
    assert clock.accepts(newest, NOW)
    assert not clock.accepts(newest + 2, NOW)


def test_nothing_arrives_long_before_the_clock_has_stamped_it() -> None:
    clock = Hlc(A1)
    clock.tick(NOW)

    assert clock.arrival(NOW) == NOW
    assert clock.arrival(NOW - 400 * MS) == NOW - 400 * MS
    stamp = clock.tick(NOW - 60_000 * MS)
    arrival = clock.arrival(NOW - 60_000 * MS)
    assert arrival >= stamp.ns
    assert believed_time(stamp.ntp64, arrival) == stamp.ntp64


@pytest.mark.parametrize(
    ("ahead", "is_believed"), [(-(10**18), True), (0, True), (10**9, True), (10**9 + 1, False), (10**18, False)]
)
def test_a_time_is_believed_up_to_a_second_after_its_arrival(ahead: int, is_believed: bool) -> None:
    found = believed_time(ntp64_from_ns(NOW + ahead), NOW)

    assert found == ntp64_from_ns(NOW + ahead if is_believed else NOW)


@pytest.mark.parametrize("arrival", [0, -1, -(10**18), (1 << 32) * 10**9, 1 << 63])
def test_an_arrival_that_is_not_known_tells_nothing(arrival: int) -> None:
    assert believed_time((1 << 64) - 1, arrival) == (1 << 64) - 1
