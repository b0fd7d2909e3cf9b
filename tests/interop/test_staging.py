"""Batches that are staged and committed: whole, once, fenced, whatever is killed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import elea
from elea.api.stagedbatch import StagedBatch
from elea.model.errors import NotStored, OperationTimeout, StoreError, StoreFenced
from elea.store import Record, open_log
from elea.store.staging import Staging
from tests.interop.inbox import eventually
from tests.interop.storing import StoringBroker

WRITER = uuid.UUID("0aa00000-0000-4000-8000-00000000000b")  # begins with a zero, which ids must not


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[StoringBroker]:
    with StoringBroker("--store", str(tmp_path), "--persist", "a/**", "--transient", "b/**") as made:
        yield made


@pytest.fixture
def session(broker: StoringBroker) -> Iterator[elea.Session]:
    config = elea.Config.from_json5(f'{{mode: "client", connect: {{endpoints: ["{broker.locator}"]}}}}')
    with elea.open(config) as made:
        yield made


def rows(start: int, stop: int, top: str = "a") -> list[tuple[str, str]]:
    return [(f"{top}/{n}", str(n)) for n in range(start, stop)]


def stored(session: elea.Session, keys: str = "a/**") -> list[int]:
    table = session.read(keys, timeout=30).read_all()
    return [int(payload) for payload in table.column("payload").to_pylist()]


@pytest.mark.parametrize("top", ["a", "b"])
def test_batch_is_stored_as_committed_and_not_again(session: elea.Session, top: str) -> None:
    keys = f"{top}/**"
    first, again = StagedBatch(session, WRITER, 7), StagedBatch(session, WRITER, 7)
    late = first.stage(keys, rows(2, 4, top))
    early = first.stage(keys, rows(0, 2, top))
    abandoned = first.stage(keys, rows(0, 4, top))
    other = again.stage(keys, rows(10, 20, top))

    before = stored(session, keys)
    answer = first.commit(keys, early + late)
    repetition = again.commit(keys, other)

    assert before == []
    assert (answer["rows"], answer["repeated"]) == (4, False)
    assert (repetition["rows"], repetition["repeated"]) == (4, True)
    assert len(abandoned) == 1
    assert stored(session, keys) == [0, 1, 2, 3]
    assert again.is_committed(keys)
    assert again.stage(keys, rows(0, 4, top)) == []


def test_older_batch_of_a_writer_is_refused_and_another_writer_is_not(session: elea.Session) -> None:
    new = StagedBatch(session, WRITER, 5)
    zombie = StagedBatch(session, WRITER, 4)
    waiting = zombie.stage("a/**", rows(50, 60))
    new.commit("a/**", new.stage("a/**", rows(0, 3)))

    with pytest.raises(StoreFenced, match=r"batch 4 .* committed batch 5 since") as refused:
        zombie.commit("a/**", waiting)
    with pytest.raises(StoreFenced):
        zombie.stage("a/**", rows(50, 60))
    StagedBatch(session, uuid.uuid4(), 0).commit("a/**", [])

    assert (refused.value.number, refused.value.last) == (4, 5)
    assert stored(session) == [0, 1, 2]


def test_staged_pieces_and_marks_survive_a_kill_of_the_broker(session: elea.Session, broker: StoringBroker) -> None:
    batch = StagedBatch(session, WRITER, 0)
    pieces = batch.stage("a/**", rows(0, 1000))

    broker.kill()
    broker.restart()
    batch.commit("a/**", pieces)
    broker.kill()
    broker.restart()
    repetition = batch.commit("a/**", pieces)

    assert repetition["repeated"]
    assert stored(session) == list(range(1000))


def test_commit_names_what_is_missing_and_what_is_wrong(session: elea.Session) -> None:
    batch = StagedBatch(session, WRITER, 0, timeout=5)
    pieces = batch.stage("a/**", rows(0, 3))

    with pytest.raises(StoreError, match=r"piece nowhere of batch 0 .* is not staged; write the batch again"):
        batch.commit("a/**", [*pieces, "nowhere"])
    with pytest.raises(StoreError, match="names a piece twice"):
        batch.commit("a/**", pieces * 2)
    with pytest.raises(StoreError, match="does not belong"):
        batch.stage("a/**", rows(0, 3, "elsewhere"))
    batch.drop("a/**")
    with pytest.raises(StoreError, match="not staged"):
        batch.commit("a/**", pieces)

    assert stored(session) == []


def test_subscriber_gets_a_batch_when_it_is_committed(session: elea.Session) -> None:
    got: list[str] = []
    batch = StagedBatch(session, WRITER, 0)
    with session.declare_subscriber("a/**", lambda sample: got.append(sample.payload.to_string())):
        pieces = batch.stage("a/**", rows(0, 5))
        session.put("a/between", "x", ack=True)
        batch.commit("a/**", pieces)

        eventually(lambda: len(got) == 6, "everything")

    assert got == ["x", "0", "1", "2", "3", "4"]


def test_nobody_to_stage_at_is_said() -> None:
    alone = elea.open(elea.Config.from_json5('{mode: "peer", scouting: {multicast: {enabled: false}}}'))
    with alone, pytest.raises((NotStored, OperationTimeout)):
        StagedBatch(alone, WRITER, 0, timeout=2).stage("a/**", rows(0, 1))


def test_broker_finishes_a_batch_that_it_was_killed_in(
    session: elea.Session, broker: StoringBroker, tmp_path: Path
) -> None:
    batch = StagedBatch(session, WRITER, 3)
    pieces = batch.stage("a/**", rows(0, 100)) + batch.stage("a/**", rows(100, 200))
    broker.kill()
    (staged,) = tmp_path.rglob("staged")
    writer = f"{WRITER.int:x}.0"
    staging = Staging(staged)
    staging.decide(writer, 3, {"pieces": pieces, "qos": 5})
    with open_log(staged.parent) as log:  # the half of it that had reached the log
        id = WRITER.int.to_bytes(16, "little").rstrip(b"\0")
        numbers = range(3 << 32, (3 << 32) + 50)
        log.append(
            [
                Record(key, payload.encode(), 1 << 62, b"\1", 0, source_id=id, source_eid=0, source_sn=sn, once=True)
                for sn, (key, payload) in zip(numbers, rows(0, 50), strict=True)
            ]
        )

    broker.restart()

    assert stored(session) == list(range(200))
    assert batch.commit("a/**", [])["repeated"]
    assert Staging(staged).octets == 0
