"""When the upkeep of a broker writes the index down, so that the next start reads little of the log again."""

from __future__ import annotations

from pathlib import Path

import pytest

from elea.node.storage import upkeep as module
from elea.node.storage.upkeep import Upkeep
from tests.unit.node.storage.serving import broker, told

HOME = {"home": {"key_expr": "home/**", "volume": "log", "complete": True}}


def test_index_is_written_down_after_many_groups_however_few_samples_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_GROUPS", 5)
    with broker(tmp_path, **HOME) as made, made.client() as session:
        storage = made.storage("home")
        upkeep = Upkeep([storage], made.session._node.loop.wall_ns)
        for number in range(4):
            told(session, f"@store/put/home/x?src=a1.1.{number}", payload="few")
        upkeep.look(storage, thorough=False)
        before = storage.log.fresh
        told(session, "@store/put/home/x?src=a1.1.4", payload="enough")

        upkeep.look(storage, thorough=False)

        assert before == 4
        assert storage.log.fresh == 0


def test_index_is_not_written_down_again_while_that_would_take_too_much_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(module, "CHECKPOINT_GROUPS", 1)
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    with broker(tmp_path, **HOME) as made, made.client() as session:
        storage = made.storage("home")
        upkeep = Upkeep([storage], made.session._node.loop.wall_ns)
        plain = storage.log.checkpoint

        def slow() -> None:
            clock[0] += 2.0
            plain()

        monkeypatch.setattr(storage.log, "checkpoint", slow)
        told(session, "@store/put/home/x?src=a1.1.0", payload="a")
        upkeep.look(storage, thorough=False)
        told(session, "@store/put/home/x?src=a1.1.1", payload="b")
        clock[0] += 7.9
        upkeep.look(storage, thorough=False)
        soon = storage.log.fresh
        clock[0] += 0.2
        upkeep.look(storage, thorough=False)

        assert (soon, storage.log.fresh) == (1, 0)


def test_index_is_written_down_for_samples_that_a_killed_broker_left(tmp_path: Path) -> None:
    with broker(tmp_path, **HOME) as made, made.client() as session:
        told(session, "@store/put/home/x?src=a1.1.0", payload="a")
    (tmp_path / "home" / "index").unlink()

    with broker(tmp_path, **HOME) as made:
        storage = made.storage("home")
        Upkeep([storage], made.session._node.loop.wall_ns).look(storage, thorough=True)

        assert (tmp_path / "home" / "index").exists()
