"""Replay: the same samples in the same order, when they are due, with the timestamps that were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import elea
from elea.model.errors import CaptureDamaged
from elea.model.timestamp import ns_from_ntp64, ntp64_from_ns
from elea.recorder import Replayer, replayer
from tests.unit.recorder.samples import FORMATS, NOON, batch_of, row, written
from tests.unit.recorder.sessions import alone, eventually

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with alone() as found:
        yield found


class Clock:
    """A time that goes on when somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        clock = SimpleNamespace(monotonic=lambda: self.now, time_ns=lambda: NOON + 3600 * SECOND, sleep=self.sleep)
        monkeypatch.setattr(replayer, "time", clock)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def received(session: Any, replay: Replayer) -> list[Any]:
    """What a subscriber gets of it."""
    found: list[Any] = []
    with session.declare_subscriber("**", found.append):
        count = replay.run()
        assert count == replay.sent
        eventually(lambda: len(found) >= count, "all have come")
    assert len(found) == count
    return found


@pytest.mark.parametrize("suffix", FORMATS)
def test_sample_is_put_as_it_was_recorded(session: Any, tmp_path: Path, suffix: str) -> None:
    rows = [
        row(1, schema=b"Temp", attachment=b"more", qos=1 | 16),
        row(2, key="home/2/temp", ntp64=None, stamp_id=None, encoding=0, payload=b"\x00\xff"),
        row(3, kind=1, payload=b"", encoding=0),
        row(4, qos=0x80),
    ]
    paths = written(tmp_path / f"a{suffix}", [batch_of(rows)])

    first, second, third, fourth = received(session, Replayer(session, paths, pace=None))

    assert (str(first.key_expr), first.payload.to_bytes()) == ("home/1/temp", rows[0]["payload"])
    assert (first.timestamp.value.ntp64, first.timestamp.value.id.data) == (rows[0]["ntp64"], b"\x07")
    assert (str(first.encoding), first.attachment.to_bytes()) == ("application/json;Temp", b"more")
    assert (first.priority, first.express) == (elea.Priority.REAL_TIME, True)
    assert first.congestion_control is elea.CongestionControl.BLOCK
    assert (second.timestamp, second.payload.to_bytes(), second.attachment) == (None, b"\x00\xff", None)
    assert third.kind is elea.SampleKind.DELETE
    assert third.timestamp.value.ntp64 == rows[2]["ntp64"]
    assert (fourth.priority, fourth.express) == (elea.Priority.DATA, False)


def test_samples_are_put_when_they_are_due(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0.0, 0.0, 1.5, 1.5, 4.0]
    rows = [row(n, arrival=NOON + int(at * SECOND)) for n, at in enumerate(seconds)]
    paths = written(tmp_path / "a.mcap", [batch_of(rows[:3]), batch_of(rows[3:])])
    for pace, waits in ((1.0, [1.5, 2.5]), (2.0, [0.75, 1.25]), (0.5, [3.0, 5.0])):
        clock = Clock(monkeypatch)
        replay = Replayer(session, paths, pace=pace)
        sent, waited = [], []
        for delay in replay.steps():
            sent.append(replay.sent)
            waited.append(round(delay, 6))
            clock.sleep(delay)

        assert waited == waits
        assert [*sent, replay.sent] == [2, 4, 5]


def test_clock_that_was_set_back_holds_nothing_up(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    rows = [row(n, arrival=NOON + at * SECOND) for n, at in enumerate([10, 11, 5, 6, 12])]
    replay = Replayer(session, written(tmp_path / "a.mcap", [batch_of(rows)]))
    sent, waited = [], []
    for delay in replay.steps():
        sent.append(replay.sent)
        waited.append(delay)
        clock.sleep(delay)

    assert waited == [1.0, 1.0]
    assert [*sent, replay.sent] == [1, 4, 5]


def stamps(samples: list[Any]) -> list[int]:
    return [sample.timestamp.value.ntp64 for sample in samples]


@pytest.mark.parametrize(("pace", "anchor"), [(1.0, 0), (0.5, 0), (10.0, -1), (None, -1)])
def test_shifted_times_keep_their_distances_and_are_never_ahead(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pace: float | None, anchor: int
) -> None:
    Clock(monkeypatch)
    rows = [row(n, ntp64=ntp64_from_ns(NOON + n * SECOND) + n, arrival=NOON + n * SECOND) for n in range(5)]
    paths = written(tmp_path / "a.mcap", [batch_of(rows[:2]), batch_of(rows[2:])])

    found = received(session, Replayer(session, paths, pace=pace, times="shifted"))

    moved = {stamp - each["ntp64"] for stamp, each in zip(stamps(found), rows, strict=True)}
    assert len(moved) == 1
    assert ns_from_ntp64(stamps(found)[anchor]) == NOON + 3600 * SECOND
    assert {sample.timestamp.value.id.data for sample in found} == {b"\x07"}


def test_new_times_are_of_this_node_and_rise(session: Any, tmp_path: Path) -> None:
    paths = written(tmp_path / "a.mcap", [batch_of([row(n, ntp64=None, stamp_id=None) for n in range(5)])])
    before = session.new_timestamp().value.ntp64

    found = received(session, Replayer(session, paths, pace=None, times="now"))

    assert before < stamps(found)[0]
    assert stamps(found) == sorted(set(stamps(found)))
    assert {str(sample.timestamp.get_id()) for sample in found} == {str(session.zid())}


def test_only_what_was_asked_for_is_put(session: Any, tmp_path: Path) -> None:
    paths = written(tmp_path / "a.mcap", [batch_of([row(n, key=f"home/{n % 2}/temp") for n in range(10)])])
    replay = Replayer(session, paths, pace=None, key_expr="home/1/*", where="speed > 3")

    found = received(session, replay)

    assert [sample.payload.to_string() for sample in found] == [f'{{"speed": {n}}}' for n in (5, 7, 9)]
    assert replay.passed_over == 7


def test_several_files_are_put_in_the_order_of_their_samples(session: Any, tmp_path: Path) -> None:
    paths = [path for n in range(3) for path in written(tmp_path / f"{n}.mcap", [batch_of([row(n), row(n)])])]

    found = received(session, Replayer(session, paths[::-1], pace=None))

    assert [sample.payload.to_bytes() for sample in found] == [row(n)["payload"] for n in (0, 0, 1, 1, 2, 2)]


def test_what_stands_before_damage_is_put(session: Any, tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(n)]) for n in range(3)])
    data = bytearray(path.read_bytes())
    data[data.rindex(b"\x28\xb5\x2f\xfd") + 30] ^= 1  # in the last chunk
    path.write_bytes(data)
    replay = Replayer(session, [path], pace=None)

    with pytest.raises(CaptureDamaged):
        replay.run()

    assert replay.sent == 2


def test_file_that_was_cut_is_put_and_told(session: Any, tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(n)]) for n in range(3)])
    path.write_bytes(path.read_bytes()[:-300])
    replay = Replayer(session, [path], pace=None)

    assert replay.run() == 3
    assert replay.cut == [path]
    assert replay.done < replay.size


@pytest.mark.parametrize(
    ("options", "problem"), [({"pace": 0.0}, "a pace is above 0"), ({"times": "later"}, "times 'later' is none of")]
)
def test_options_that_make_no_sense_are_refused(session: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Replayer(session, [], **options)


def test_watcher_is_called_while_it_waits_and_may_end_it(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    paths = written(tmp_path / "a.mcap", [batch_of([row(0), row(1, arrival=NOON + 100 * SECOND)])])

    def watch() -> None:
        if clock.now > 1010:
            raise InterruptedError

    replay = Replayer(session, paths)
    with pytest.raises(InterruptedError):
        replay.run(watch)

    assert replay.sent == 1
