"""Which changes of a pipeline touch what its tables have, and what is said of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from elea.model.errors import PipelineChanged
from elea.spark.pipeline import backfill, specreader
from elea.spark.pipeline.definitions import FILE, check, definition_of
from elea.spark.pipeline.spec import Spec

TEXT = """
[pipeline]
name = "house"
trigger = "1 second"
connect = "tcp/127.0.0.1:7447"

[source.lights]
keyexpr = "myhouse/*/light"
format = "json"
schema = "at TIMESTAMP, brightness INT COMMENT 'percent'"
watermark = "10 seconds"
options = { maxOffsetsPerTrigger = "100" }

[source.switches]
keyexpr = "myhouse/*/switch"

[step.known]
sql = "SELECT key, value.brightness AS brightness, timestamp FROM lights WHERE value IS NOT NULL"

[step.minutes]
sql = '''
SELECT window.start AS minute, max(brightness) AS most
FROM known GROUP BY window(timestamp, '1 minute')
'''

[step.alerts]
sql = "SELECT concat('alerts/', key) AS key, brightness FROM known WHERE brightness > 90"

[table.bronze]
from = "lights"
path = "tables/bronze"

[table.gold]
from = "minutes"
path = "tables/gold"
expect = [ { name = "bright", check = "most > 0" } ]
retention = "7 days"

[table.presses]
from = "switches"
path = "tables/presses"

[publish.warn]
from = "alerts"
format = "json"
"""


def spec_of(place: Path, *changes: tuple[str, str]) -> Spec:
    text = TEXT
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    file = place / "house.toml"
    file.write_text(text, encoding="utf-8")
    return specreader.read(file)


def begin(spec: Spec, *, state: tuple[str, ...] = ("gold",)) -> None:
    """What a run leaves behind: a batch of every sink."""
    assert check(spec, accept_change=False) == ()
    for sink in spec.sinks:
        for directory in ("offsets", "commits"):
            (spec.checkpoints / sink.name / directory).mkdir(parents=True)
            (spec.checkpoints / sink.name / directory / "0").touch()
    for name in state:
        (spec.checkpoints / name / "state").mkdir()


NOTHING = [
    ("a comment", "SELECT window.start", "-- of lamps\nSELECT /* a minute */ window.start"),
    ("spaces and the case of keywords", "SELECT key, value.brightness AS", "select  key ,\\n value.brightness as"),
    ("the trigger", 'trigger = "1 second"', 'trigger = "1 hour"'),
    ("the broker", "7447", "7448"),
    ("the length of batches", '"100"', '"5000"'),
    ("the length of batches, left out", 'options = { maxOffsetsPerTrigger = "100" }', ""),
    ("the retention", '"7 days"', '"1 day"'),
    ("the start, which is behind it", 'watermark = "10', 'start = "latest"\nwatermark = "10'),
    ("the same watermark", '"10 seconds"', '"10000 ms"'),
    ("a description of a field", "'percent'", "'0 to 100'"),
    ("a type in small letters", "INT COMMENT 'percent'", "int"),
    ("a table more", "[publish.warn]", '[table.more]\nfrom = "known"\npath = "tables/more"\n\n[publish.warn]'),
]


@pytest.mark.parametrize(("what", "before", "after"), NOTHING, ids=[one[0] for one in NOTHING])
def test_change_that_touches_no_result_is_let_pass(tmp_path: Path, what: str, before: str, after: str) -> None:
    begin(spec_of(tmp_path))

    assert check(spec_of(tmp_path, (before, after)), accept_change=False) == ()


def test_step_may_have_another_name(tmp_path: Path) -> None:
    begin(spec_of(tmp_path))

    renamed = spec_of(tmp_path, ("[step.known]", "[step.readings]"), ("FROM known", "FROM readings"))

    assert check(renamed, accept_change=False) == ()


def test_whole_project_may_be_moved(tmp_path: Path) -> None:
    begin(spec_of(tmp_path))
    shutil.copytree(tmp_path, tmp_path / "moved")

    assert check(spec_of(tmp_path / "moved"), accept_change=False) == ()


TOUCHING = [
    ("'1 minute'", "'2 minutes'", {"table gold": ("step minutes (sql)",)}),
    ("value IS NOT NULL", "key IS NOT NULL", {"table gold": ("step known (sql)",)}),
    ("max(brightness)", "max(Brightness)", {"table gold": ("step minutes (sql)",)}),
    (
        '"10 seconds"',
        '"20 seconds"',
        {"table bronze": ("source lights (watermark)",), "table gold": ("source lights (watermark)",)},
    ),
    (
        "brightness INT",
        "brightness BIGINT",
        {"table bronze": ("source lights (schema)",), "table gold": ("source lights (schema)",)},
    ),
    ("myhouse/*/switch", "myhouse/*/button", {"table presses": ("source switches (keyexpr)",)}),
    ("most > 0", "most > 1", {"table gold": ("table gold (expect)",)}),
    ("tables/presses", "tables/pressed", {"table presses": ("table presses (path)",)}),
    (
        '"switches"',
        '"known"',
        {
            "table presses": (
                "source lights is new",
                "step known is new",
                "source switches is gone",
                "table presses (from)",
            )
        },
    ),
]


@pytest.mark.parametrize(("before", "after", "touched"), TOUCHING, ids=[one[1] for one in TOUCHING])
def test_change_that_touches_results_is_refused_with_all_it_touches(
    tmp_path: Path, before: str, after: str, touched: dict[str, tuple[str, ...]]
) -> None:
    begin(spec_of(tmp_path))
    changed = spec_of(tmp_path, (before, after))

    with pytest.raises(PipelineChanged, match=r"--backfill.*--accept-change") as caught:
        check(changed, accept_change=False)

    assert caught.value.changed == touched
    with pytest.raises(PipelineChanged):  # it does not pass the second time
        check(changed, accept_change=False)
    assert check(spec_of(tmp_path), accept_change=False) == ()  # the old one goes on


def test_change_can_be_accepted_once_and_for_all(tmp_path: Path) -> None:
    begin(spec_of(tmp_path))
    changed = spec_of(tmp_path, ("'1 minute'", "'2 minutes'"))

    (note,) = check(changed, accept_change=True)

    assert note == "table gold goes on with another definition, as accepted: step minutes (sql)"
    assert check(changed, accept_change=False) == ()


def test_publish_without_state_takes_a_change_and_says_so_and_one_with_state_refuses(tmp_path: Path) -> None:
    begin(spec_of(tmp_path))
    other = spec_of(tmp_path, ("> 90", "> 80"))

    (note,) = check(other, accept_change=False)

    assert note.startswith("publish warn: what is published from now on has another definition: step alerts (sql)")
    (other.checkpoints / "warn" / "state").mkdir()
    with pytest.raises(PipelineChanged) as caught:
        check(spec_of(tmp_path), accept_change=False)
    assert caught.value.changed == {"publish warn": ("step alerts (sql)",)}


def test_checkpoint_from_before_definitions_is_adopted_and_that_is_said(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    begin(spec)
    (spec.checkpoints / "gold" / FILE).unlink()

    (note,) = check(spec, accept_change=False)

    assert note.startswith("table gold: its checkpoint is older than definitions")
    with pytest.raises(PipelineChanged):
        check(spec_of(tmp_path, ("'1 minute'", "'2 minutes'")), accept_change=False)


def test_first_batch_that_has_left_nothing_behind_holds_nobody_to_its_definition(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    begin(spec)
    changed = spec_of(tmp_path, ("most > 0", "most > 1"))
    (spec.checkpoints / "gold" / "commits" / "0").unlink()

    assert check(changed, accept_change=False) == ()

    (tmp_path / "tables" / "gold").mkdir(parents=True)
    (tmp_path / "tables" / "gold" / "part-0.parquet").touch()  # the table has it, and Spark does not know
    with pytest.raises(PipelineChanged):
        check(spec, accept_change=False)


def test_backfill_that_was_cut_off_begins_again_if_it_would_compute_something_else(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    backfill.begin(spec)
    place = spec.checkpoints / backfill.PLACE
    for name in ("bronze", "gold"):
        (place / name / "offsets").mkdir()
        (place / name / "offsets" / "0").touch()
    beside = tmp_path / "tables" / "gold_backfill"
    beside.mkdir(parents=True)

    backfill.begin(spec)
    goes_on = (place / "gold" / "offsets" / "0").exists(), beside.exists()
    backfill.begin(spec_of(tmp_path, ("'1 minute'", "'2 minutes'")))
    again = (place / "gold" / "offsets" / "0").exists(), beside.exists()

    assert goes_on == (True, True)
    assert again == (False, False)
    assert (place / "gold" / FILE).exists()


def test_definition_of_a_backfill_is_that_of_its_table(tmp_path: Path) -> None:
    """What it leaves behind becomes the checkpoint of the table."""
    spec = spec_of(tmp_path)
    backfill.begin(spec)

    kept = (spec.checkpoints / backfill.PLACE / "gold" / FILE).read_text()

    assert str(definition_of(spec, spec.tables[1])["fingerprint"]) in kept
