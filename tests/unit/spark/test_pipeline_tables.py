"""Tables of a pipeline without Spark: rows sorted by rules, partitions, upkeep, and a backfill put in its place."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from elea.model.errors import ConfigError
from elea.spark.deltafiles import DELTA, Piece, Written
from elea.spark.pipeline import backfill
from elea.spark.pipeline.maintenance import Upkeep
from elea.spark.pipeline.rowsplitter import COUNTS, GOOD, MASK, QUARANTINE, STAGED, Plan, task
from elea.spark.pipeline.spec import Duration, Expectation, Spec, Table
from elea.spark.pipeline.tables import targets_of
from elea.spark.pipeline.targets import DeltaTarget, ParquetTarget

SCHEMA = pa.schema([("n", pa.int64()), ("floor", pa.string()), ("value", pa.struct([("x", pa.int64())]))])


def rows(numbers: Sequence[int], masks: Sequence[int] | None = None) -> pa.RecordBatch:
    """Rows of a task: floors in turn, one of them unknown, one with signs that names of files cannot have."""
    floors = ["0", "a b/c=ü%", None]
    found = [{"n": n, "floor": floors[n % 3], "value": {"x": n} if n % 2 else None} for n in numbers]
    batch = pa.RecordBatch.from_pylist(found, schema=SCHEMA)
    return batch if masks is None else batch.append_column(MASK, pa.array(masks, pa.int64()))


def written(directory: Path, numbers: Sequence[int], by: tuple[str, ...] = (), suffix: str = DELTA) -> list[Written]:
    """What tasks hand back, all of it in files."""
    plan = Plan(SCHEMA.serialize().to_pybytes(), {GOOD: str(directory)}, by, suffix=suffix)
    (result,) = task(iter([rows(numbers)]), plan)
    found = []
    for one in result.to_pylist():
        if one["target"] != COUNTS:
            with pa.ipc.open_stream(one["inline"]) as stream:
                piece = Piece(GOOD, str(directory), stream.schema, json.loads(one["partition"]), suffix=suffix, hold=-1)
                for batch in stream:
                    piece.add(batch)
            found.append(piece.finish())
    return found


def numbers(path: Path) -> list[int]:
    return sorted(DeltaTable(path).to_pyarrow_table().column("n").to_pylist())


def test_task_sends_rows_where_the_worst_rule_they_break_says(tmp_path: Path) -> None:
    rules = (("known", "quarantine"), ("wanted", "drop"), ("sane", "fail"))
    plan = Plan(SCHEMA.serialize().to_pybytes(), {GOOD: str(tmp_path), QUARANTINE: str(tmp_path)}, rules=rules)
    masks = [0, 1, 2, 3, 4, 0]

    (result,) = task(iter([rows(range(6), masks), rows([]).append_column(MASK, pa.array([], pa.int64()))]), plan)

    found = {one["target"]: one for one in result.to_pylist()}
    told = json.loads(found[COUNTS]["stats"])
    octets = told["counts"].pop("octets")
    assert told["counts"] == {"in": 6, "quarantined": 2, "dropped": 1, "failed": 1}
    assert octets > 0
    assert told["rules"] == {"known": 2, "wanted": 2, "sane": 1}
    assert "'n': 4" in told["example"]
    with pa.ipc.open_stream(found[GOOD]["inline"]) as stream:
        assert stream.read_all().column("n").to_pylist() == [0, 5]
    with pa.ipc.open_stream(found[QUARANTINE]["inline"]) as stream:
        aside = stream.read_all()
    assert aside.column("n").to_pylist() == [1, 3]
    assert aside.column("broken_rules").to_pylist() == [["known"], ["known", "wanted"]]


def test_target_that_has_the_batch_gets_nothing_and_many_rows_go_to_a_file(tmp_path: Path) -> None:
    plan = Plan(SCHEMA.serialize().to_pybytes(), {GOOD: str(tmp_path)}, rules=(("known", "quarantine"),))
    many = [rows(range(50_000), [0] * 50_000), rows(range(50_000, 100_000), [1] * 50_000)] * 2

    (result,) = task(iter(many), plan)

    (file, told) = result.to_pylist()
    assert json.loads(told["stats"])["counts"]["quarantined"] == 100_000
    assert file["target"] == GOOD
    assert file["rows"] == pa.parquet.read_table(tmp_path / file["path"]).num_rows == 100_000
    assert json.loads(file["stats"])["nullCount"] == {"n": 0, "floor": 33332}


def test_partitions_are_read_back_by_every_reader_and_statistics_are_not_lost(tmp_path: Path) -> None:
    target = DeltaTarget(tmp_path / "t", "p/t", partition_by=("floor",))
    target.open(SCHEMA)
    assert not target.is_done("q", 0)
    target.commit(written(tmp_path / "t", range(9), ("floor",)), "q", 0, {"broken_rules": "{}"})

    table = DeltaTable(tmp_path / "t").to_pyarrow_table().sort_by("n").to_pylist()
    assert table == rows(range(9)).to_pylist()
    assert polars.scan_delta(str(tmp_path / "t")).sort("n").collect()["floor"].to_list() == [
        one["floor"] for one in table
    ]
    actions: Any = pa.table(DeltaTable(tmp_path / "t").get_add_actions(flatten=True))
    assert sorted(actions.column("max.n").to_pylist()) == [6, 7, 8]
    with pytest.raises(ConfigError, match="it is partitioned by floor"):
        DeltaTarget(tmp_path / "t", "p/t").open(SCHEMA)
    with pytest.raises(ConfigError, match="partition_by value of table"):
        DeltaTarget(tmp_path / "u", "p/u", partition_by=("value",)).open(SCHEMA)


def test_parquet_batch_that_comes_again_takes_the_place_of_its_part(tmp_path: Path) -> None:
    target = ParquetTarget(tmp_path / "t", "p/t")
    target.open(SCHEMA)
    staged = Path(target.directory)
    target.commit(written(staged, range(3), suffix=STAGED), "q", 0, {})
    parts = [written(staged, range(3, 6), suffix=STAGED), written(staged, [6], suffix=STAGED)]
    target.commit([*parts[0], *parts[1]], "q", 1, {})
    (staged / "torn.part").write_bytes(b"PAR1")
    target.commit(written(staged, range(3, 7), suffix=STAGED), "q", 1, {})

    assert sorted(polars.read_parquet(str(tmp_path / "t"))["n"].to_list()) == list(range(7))
    assert list(staged.iterdir()) == []
    with pytest.raises(ConfigError, match="another query has written"):
        target.is_done("another", 0)


def test_upkeep_compacts_and_removes_what_no_version_needs(tmp_path: Path) -> None:
    target = DeltaTarget(tmp_path / "t", "p/t", retention=Duration("2 hours", 7200.0))
    now = 0.0
    upkeep = Upkeep([target], Duration("2 hours", 7200.0), compact_every=3, clock=lambda: now)
    for batch in range(4):
        target.open(SCHEMA)
        target.commit(written(tmp_path / "t", [batch]), "q", batch, {})
        upkeep(batch)
    orphan = tmp_path / "t" / "part-orphan.snappy.parquet"
    orphan.write_bytes(b"PAR1")
    os.utime(orphan, (1, 1))
    kept = len(list((tmp_path / "t").glob("*.parquet")))
    upkeep(4)
    before = upkeep.removed
    now = 3601.0
    upkeep(5)

    assert upkeep.compactions == 1
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 1
    assert kept == 6  # four small ones, what they became, and one of a task that died
    assert (before, upkeep.removed) == (0, 1)
    assert not orphan.exists()
    assert numbers(tmp_path / "t") == [0, 1, 2, 3]


@pytest.fixture
def through(tmp_path: Path) -> Spec:
    """A pipeline whose table has the rows 0 to 2, and a backfill with 0 to 4 that waits to be put in its place."""
    rule = Expectation(name="known", check="n IS NOT NULL")
    table = Table(name="t", reads="s", path=tmp_path / "t", expect=(rule,), quarantine=tmp_path / "aside")
    spec = Spec(file=tmp_path / "p.toml", name="p", checkpoints=tmp_path / "state", tables=(table,))
    for one, query, count, checkpoint in (
        (table, "old", 3, tmp_path / "state" / "t"),
        (backfill._beside(table), "new", 5, tmp_path / "state" / ".backfill" / "t"),
    ):
        for target in targets_of(one, "p").values():
            assert isinstance(target, DeltaTarget)
            target.open(SCHEMA)
            target.commit(written(Path(target.path), range(count)), query, 7, {})
        checkpoint.mkdir(parents=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": query}))
    return spec


def test_backfill_is_put_in_place_once_it_is_through_wherever_it_was_cut_off(
    through: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backfill.settle(through)
    assert numbers(tmp_path / "t") == [0, 1, 2]  # it is not through

    backfill.ready(through)
    for place, cut in ((os, "link"), (DeltaTarget, "replace"), (Path, "rename"), (shutil, "rmtree")):
        with monkeypatch.context() as patch:
            patch.setattr(place, cut, _crash)
            with pytest.raises(RuntimeError, match="crash"):
                backfill.settle(through)
    really = shutil.rmtree

    def fragile(at: Any, **options: Any) -> None:
        if Path(at).name == "t_backfill":
            _crash()
        really(at, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", fragile)
        with pytest.raises(RuntimeError, match="crash"):
            backfill.settle(through)
    assert not (tmp_path / "state" / ".backfill" / "t").exists()
    backfill.settle(through)
    backfill.settle(through)
    backfill.settle(through)

    assert numbers(tmp_path / "t") == numbers(tmp_path / "aside") == [0, 1, 2, 3, 4]
    table = DeltaTable(tmp_path / "t")
    assert table.version() == 2
    assert numbers_of(table, 1) == 3
    assert json.loads((tmp_path / "state" / "t" / "metadata").read_text())["id"] == "new"
    assert table.transaction_version("p/t:new") == 7
    assert not (tmp_path / "state" / ".backfill").exists()
    assert not (tmp_path / "t_backfill").exists()


def numbers_of(table: DeltaTable, version: int) -> int:
    return int(DeltaTable(table.table_uri, version=version).to_pyarrow_table().num_rows)


def _crash(*args: object, **options: object) -> None:
    raise RuntimeError("crash")
