"""Range reads on the broker's machine: whole blocks come from its files, and the broker has the last word."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from elea.model.errors import StoreCorrupt
from elea.store.inplace import machine
from tests.unit.node.storage.serving import broker, table

LOG = {"key_expr": "home/**", "volume": "log", "complete": True}
ROWS = 5000
BATCH = pa.record_batch(
    {"key": [f"home/{row % 7}" for row in range(ROWS)], "payload": [b"%d" % row for row in range(ROWS)]}
)
PAYLOADS = BATCH.column("payload").to_pylist()


def test_only_readers_on_the_machine_are_told_where_blocks_lie(tmp_path: Path) -> None:
    with broker(tmp_path, home=LOG) as made, made.client() as client:
        client.put_batch(BATCH)
        sent, there = table(client, "@store/read/home/**?bytes=8000000;machine=another")
        left, here = table(client, f"@store/read/home/**?bytes=8000000;machine={machine()}")
        part, cut = table(client, f"@store/read/home/**?bytes=8000000;from=10;machine={machine()}")

    assert [row["payload"] for row in sent] == PAYLOADS
    assert "places" not in there
    assert left == []
    ((before, path, *_),) = here["places"]
    assert (before, Path(path).parent) == (0, tmp_path / "home")
    assert len(part) == ROWS - 10
    assert "places" not in cut  # a part of a block is sent


def test_client_reads_the_same_wherever_the_blocks_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with broker(tmp_path, home=LOG) as made, made.client() as client:
        client.put_batch(BATCH)
        client.put("home/last", "z", ack=True)
        in_place = client.read("home/**").read_all()
        monkeypatch.setattr("elea.store.inplace.machine", lambda: None)
        sent = client.read("home/**").read_all()

    assert in_place.combine_chunks() == sent.combine_chunks()
    assert in_place.column("payload").to_pylist() == [*PAYLOADS, b"z"]


def test_file_that_is_gone_is_sent(tmp_path: Path) -> None:
    with broker(tmp_path, home=LOG) as made, made.client() as client:
        client.put_batch(BATCH)
        (segment,) = (tmp_path / "home").glob("*.arrows")
        segment.rename(tmp_path / "elsewhere")  # the broker has it open
        rows = client.read("home/**").read_all()
        (tmp_path / "elsewhere").rename(segment)

    assert rows.column("payload").to_pylist() == PAYLOADS


def test_file_that_goes_while_its_blocks_are_read_is_sent_from_there_on(tmp_path: Path) -> None:
    with broker(tmp_path, home=LOG) as made, made.client() as client:
        for _ in range(4):
            client.put_batch(BATCH)
        (segment,) = (tmp_path / "home").glob("*.arrows")
        reading = client.read("home/**")
        found = [next(reading), next(reading)]
        data = bytearray(segment.read_bytes())
        other = tmp_path / "other"
        other.write_bytes(data)
        segment.rename(tmp_path / "elsewhere")
        other.rename(segment)  # another file, as after a backup was put back
        reading._places._file = None
        found += reading
        (tmp_path / "elsewhere").rename(segment)

    rows = pa.Table.from_batches(found)
    assert rows.column("position").to_pylist() == list(range(4 * ROWS))
    assert rows.column("payload").to_pylist() == PAYLOADS * 4


def test_damage_in_a_file_is_told_and_noted_by_the_broker(tmp_path: Path) -> None:
    with broker(tmp_path, home=LOG) as made, made.client() as client:
        client.put_batch(BATCH)
        client.put("home/last", "z", ack=True)
        (segment,) = (tmp_path / "home").glob("*.arrows")
        data = bytearray(segment.read_bytes())
        at = data.index(b"4998")
        with segment.open("r+b") as file:
            file.seek(at)
            file.write(b"5")
        with pytest.raises(StoreCorrupt) as raised:
            client.read("home/**").read_all()
        left = client.read("home/**", skip_damaged=True).read_all()
        (damage,) = made.storage("home").log.damage

    assert (raised.value.position, raised.value.last) == (0, ROWS - 1)
    assert left.column("payload").to_pylist() == [b"z"]
    assert (damage.first, damage.last) == (0, ROWS - 1)
