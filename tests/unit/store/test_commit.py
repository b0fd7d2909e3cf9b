"""Group commit: everybody gets the answer that is theirs, and a slow or broken disk is felt by writers only."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from elea.model.errors import Congested, StoreError, StoreFull, StoreReadOnly
from elea.store import Committer, Log, Outcome, Receipt, Record, memory_log, open_log
from tests.unit.store.faults import FailingFiles
from tests.unit.store.samples import sample, stored


class Desk:
    """Keeps what was delivered, group by group."""

    def __init__(self) -> None:
        self.groups: list[list[tuple[Any, Outcome]]] = []

    def __call__(self, outcomes: list[tuple[Any, Outcome]]) -> None:
        self.groups.append(outcomes)

    @property
    def outcomes(self) -> dict[Any, Outcome]:
        return {token: outcome for group in self.groups for token, outcome in group}


@contextmanager
def running(committer: Committer[Any]) -> Iterator[None]:
    thread = threading.Thread(target=committer.run)
    thread.start()
    try:
        yield
    finally:
        committer.close()
        thread.join()


def receipt_of(outcome: Outcome) -> Receipt:
    assert isinstance(outcome, Receipt)
    return outcome


def test_what_waits_together_is_committed_together_and_everybody_gets_their_positions(memory_path: Path) -> None:
    desk, files = Desk(), FailingFiles()
    with open_log(memory_path, files=files) as log:
        log.append([sample(99)])
        before = files.syncs
        committer = Committer[int](log, desk)
        for token in range(10):
            committer.submit([sample(10 * token + index) for index in range(token)], token)

        with running(committer):
            pass

        assert files.syncs - before == 1
        assert committer.groups == 1
        everything = stored(log)
        for token, outcome in desk.outcomes.items():
            found = receipt_of(outcome).positions()
            assert len(found) == token
            for index, position in enumerate(found):
                assert position is not None
                assert everything[position].record == sample(10 * token + index)


def test_retries_within_a_group_are_stored_once_and_told_the_same_place(memory_path: Path) -> None:
    desk = Desk()
    numbered = [sample(number, source=(b"w", 0, number)) for number in range(4)]
    with open_log(memory_path) as log:
        committer = Committer[str](log, desk)
        committer.submit(numbered[:2], "first")
        committer.submit([sample(50), *numbered[1:3]], "mixed")
        committer.submit(numbered[:2], "again")
        committer.submit(numbered[3:], "last")

        with running(committer):
            pass

        found = {token: receipt_of(outcome).positions() for token, outcome in desk.outcomes.items()}
        assert found == {"first": [0, 1], "mixed": [2, 1, 3], "again": [0, 1], "last": [4]}
        assert log.end == 5


def test_one_bad_submission_fails_alone() -> None:
    desk = Desk()
    with memory_log() as log:
        committer = Committer[str](log, desk)
        committer.submit([sample(0)], "good")
        committer.submit([sample(1)._replace(ntp64=-1)], "bad")
        committer.submit([sample(2)], "fine")

        with running(committer):
            pass

        assert isinstance(desk.outcomes["bad"], StoreError)
        assert receipt_of(desk.outcomes["good"]).positions() == [0]
        assert receipt_of(desk.outcomes["fine"]).positions() == [1]


@pytest.mark.parametrize(("what", "kind"), [("room", StoreFull), ("sync_error", StoreReadOnly)])
def test_everybody_learns_of_a_full_or_failing_disk(memory_path: Path, what: str, kind: type[StoreError]) -> None:
    desk, files = Desk(), FailingFiles()
    with open_log(memory_path, files=files) as log:
        log.append([sample(0)])
        setattr(files, what, 0 if what == "room" else errno.EIO)
        committer = Committer[int](log, desk)
        committer.submit([sample(1)], 1)
        committer.submit([sample(2)], 2)

        with running(committer):
            pass

        assert [type(outcome) for outcome in desk.outcomes.values()] == [kind, kind]
        assert len(stored(log)) == 1


def test_more_than_the_bound_is_refused_until_the_disk_has_caught_up() -> None:
    desk = Desk()
    with memory_log() as log:
        committer = Committer[int](log, desk, pending_bytes=10_000)
        committer.submit([sample(0, payload=bytes(50_000))], 0)  # alone anything may wait, else it never could
        with pytest.raises(Congested, match="10000"):
            committer.submit([sample(1)], 1)

        with running(committer):
            while not desk.groups:
                threading.Event().wait(0.001)
            committer.submit([sample(1)], 1)

        assert sorted(desk.outcomes) == [0, 1]
        with pytest.raises(StoreReadOnly):
            committer.submit([sample(2)], 2)


def test_many_threads_submit_and_nothing_is_mixed_up() -> None:
    desk = Desk()
    batches = {
        (writer, turn): [sample(writer * 1000 + turn * 3 + index) for index in range(3)]
        for writer in range(8)
        for turn in range(50)
    }

    def submit(committer: Committer[Any], writer: int) -> None:
        for turn in range(50):
            committer.submit(batches[writer, turn], (writer, turn))

    with memory_log() as log:
        committer = Committer[Any](log, desk)
        with running(committer):
            writers = [threading.Thread(target=submit, args=(committer, writer)) for writer in range(8)]
            for thread in writers:
                thread.start()
            for thread in writers:
                thread.join()

        check_places(log, batches, desk.outcomes)
        assert log.end == 8 * 50 * 3


def check_places(log: Log, batches: Mapping[Any, Sequence[Record]], outcomes: dict[Any, Outcome]) -> None:
    everything = [one.record for one in stored(log)]
    for token, batch in batches.items():
        positions = receipt_of(outcomes[token]).positions()
        assert [everything[position or 0] for position in positions] == batch
