"""Pipelines whose sources are tables (`batch`, `as_of`), and a backfill of a log that has lost its beginning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import elea
from elea.model.errors import ConfigError
from elea.spark.pipeline import runner, specreader
from elea.store import Record, Retention, open_log
from tests.interop.storing import StoringBroker

TABLES = """
[pipeline]
name = "tables"
connect = "{locator}"

[source.history]
keyexpr = "rooms/*"
format = "json"
schema = "use STRING"
batch = true

[source.rooms]
keyexpr = "rooms/*"
format = "json"
schema = "use STRING"
as_of = "now()"

[step.uses]
sql = "SELECT key, r.value.use AS use, count(*) AS changes FROM rooms r JOIN history USING (key) GROUP BY ALL"

[step.told]
sql = "SELECT concat('uses/', split(key, '/')[1]) AS key, use, changes FROM uses"

[table.everything]
from = "history"
path = "tables/everything"
expect = [ {{ name = "used", check = "value.use IS NOT NULL" }} ]

[table.now]
from = "uses"
path = "tables/now"

[publish.uses_back]
from = "told"
format = "json"
"""


def rows(place: Path, name: str, *columns: str) -> list[tuple[Any, ...]]:
    found = DeltaTable(place / "tables" / name).to_pyarrow_table().to_pylist()
    return sorted(tuple(one[column] for column in columns) for one in found)


def published(session: elea.Session) -> list[tuple[str, dict[str, Any]]]:
    found = session.read("uses/*", timeout=60).read_all().to_pylist()
    return [(one["key"], json.loads(one["payload"])) for one in found]


def test_tables_of_tables_are_written_anew_and_published_by_every_run(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    file = tmp_path / "tables.toml"
    file.write_text(TABLES.format(locator=broker.locator))
    spec = specreader.read(file)
    session.put_batch([("rooms/1", '{"use": "hall"}'), ("rooms/2", '{"use": "office"}'), ("rooms/3", "{}")])

    first = runner.run(spec, spark)
    before = rows(tmp_path, "now", "key", "use", "changes")
    session.put_batch([("rooms/1", '{"use": "kitchen"}')])
    second = runner.run(spec, spark)

    assert first.ended == second.ended == "done"  # without --once: there is nothing to wait for
    assert before == [("rooms/1", "hall", 1), ("rooms/2", "office", 1), ("rooms/3", None, 1)]
    assert rows(tmp_path, "now", "key", "use", "changes") == [("rooms/1", "kitchen", 2), *before[1:]]
    assert rows(tmp_path, "everything", "key") == [("rooms/1",), ("rooms/1",), ("rooms/2",)]
    assert rows(tmp_path, "everything_quarantine", "key") == [("rooms/3",)]
    assert [(one.name, one.rows_out, one.quarantined) for one in second.sinks] == [
        ("everything", 3, 1),
        ("now", 3, 0),
        ("uses_back", 3, 0),
    ]
    told = published(session)
    assert sorted(key for key, _ in told) == sorted(2 * ["uses/1", "uses/2", "uses/3"])
    assert ("uses/1", {"use": "hall", "changes": 1}) in told[:3]
    assert ("uses/1", {"use": "kitchen", "changes": 2}) in told[3:]


NUMBERS = """
[pipeline]
name = "numbers"
connect = "{locator}"
trigger = "available now"

[source.numbers]
keyexpr = "numbers/*"
format = "json"
schema = "n BIGINT"

[step.plain]
sql = "SELECT value.n AS n FROM numbers"

[table.numbers_kept]
from = "plain"
path = "tables/kept"
"""


def test_backfill_of_a_log_without_its_beginning_is_refused_unless_the_loss_is_accepted(
    spark: Any, broker: StoringBroker, tmp_path: Path
) -> None:
    file = tmp_path / "numbers.toml"
    file.write_text(NUMBERS.format(locator=broker.locator))
    spec = specreader.read(file)
    (directory,) = [path for path in (tmp_path / "store").iterdir() if path.name.startswith("all")]
    broker.stop()
    with open_log(directory, segment_bytes=4096) as log:
        for n in range(100):
            log.append([Record("numbers/x", json.dumps({"n": n}).encode(), n << 32, b"\1", n)])
    broker.restart()
    runner.run(spec, spark)
    broker.stop()
    with open_log(directory) as log:
        for name in list(log.cursors()):  # as a storage does that says past_cursors
            log.drop_cursor(name)
        log.retain(Retention(samples=40), 10**18)
        first = log.first
    broker.restart()
    assert 0 < first < 100

    with pytest.raises(ConfigError) as refused:
        runner.run(spec, spark, backfill=True)
    kept = rows(tmp_path, "kept", "n")
    done = runner.run(spec, spark, backfill=True, accept_loss=True)

    said = str(refused.value)
    assert f"backfill of source numbers: log {directory.name} begins at position {first}" in said
    assert "--accept-loss" in said
    assert kept == [(n,) for n in range(100)]
    assert done.ended == "done"
    assert rows(tmp_path, "kept", "n") == [(n,) for n in range(first, 100)]
    old = DeltaTable(tmp_path / "tables" / "kept")
    assert DeltaTable(tmp_path / "tables" / "kept", version=old.version() - 1).to_pyarrow_table().num_rows == 100
