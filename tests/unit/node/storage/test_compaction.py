"""Single puts make blocks of one sample; the upkeep of a running broker joins them, while readers read."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from elea.node.storage import storage, upkeep
from elea.store import open_log
from tests.unit.node.storage.serving import broker, eventually

PUTS = 150
SEGMENT_BYTES = 64 * 1024
"""A block of one sample has 2 kB, so this is some thirty of them."""


def test_upkeep_joins_the_blocks_of_single_puts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(upkeep, "CHECKPOINT_LOOKS", 2)
    monkeypatch.setattr(storage, "open_log", partial(open_log, segment_bytes=SEGMENT_BYTES))
    with broker(tmp_path, home={"key_expr": "home/**", "volume": "log"}) as made, made.client() as session:
        for number in range(PUTS):
            receipt = session.put(f"home/{number % 10}", str(number), ack=True)
            assert receipt is not None
            if not number % 10:
                assert session.read("home/**").read_all().num_rows == number + 1
        log = made.storage("home").log

        def blocks() -> list[int]:
            return [len(part.blocks) for part in log.shelf.view.parts]

        eventually(lambda: set(blocks()[:-1]) == {1}, "the sealed segments have one block each")
        assert len(blocks()) > 2
        found = session.read("home/**").read_all()

    assert found.column("payload").to_pylist() == [str(number).encode() for number in range(PUTS)]
    with open_log(tmp_path / "home", read_only=True) as again:
        assert [stored.position for stored in again.read()] == list(range(PUTS))
