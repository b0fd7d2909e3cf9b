"""`elea store` on real logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from elea.store import open_log
from elea.store.recovery import segment_name
from tests.unit.cli.conftest import Elea
from tests.unit.store.samples import filled, sample, stored


@pytest.fixture
def path(tmp_path: Path) -> Path:
    filled(tmp_path / "log", [3, 1, 1, 1, 1, 1])
    with open_log(tmp_path / "log") as log:
        log.move_cursor("spark", 2)
    return tmp_path / "log"


def flip(path: Path) -> None:
    file = path / segment_name(0)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_info_tells_what_a_log_holds(elea: Elea, path: Path) -> None:
    result = elea("store", "info", str(path), "--json")

    facts = json.loads(result.out)
    assert result.status == 0
    assert (facts["first"], facts["end"], facts["samples"], facts["keys"], facts["segments"]) == (0, 8, 8, 5, 1)
    assert (facts["cursors"], facts["damage"]) == ({"spark": 2}, [])
    assert "spark at 2" in elea("store", "info", str(path)).out


def test_verify_of_a_sound_and_of_a_damaged_log(elea: Elea, path: Path) -> None:
    sound = elea("store", "verify", str(path))
    flip(path)
    damaged = elea("store", "verify", str(path), "--json")
    told = elea("store", "verify", str(path))

    assert sound.status == 0
    assert sound.out.startswith(f"sound  {path}: 8 samples")
    assert damaged.status == told.status == 5
    form = json.loads(damaged.out)
    assert form["sound"] is False
    assert form["lost"] >= 1
    assert form["damage"][0]["segment"] == segment_name(0)
    assert f"{segment_name(0)} at octet" in told.out
    assert elea("store", "info", str(path)).status == 5


def test_export_and_import_move_a_log(elea: Elea, path: Path, tmp_path: Path) -> None:
    for form in ("arrow", "json"):
        file, copy = tmp_path / f"samples.{form}", tmp_path / f"copy-{form}"

        exported = elea("store", "export", str(path), str(file), "--format", form)
        imported = elea("store", "import", str(copy), str(file), "--format", form, "--json")

        assert exported.status == 0
        assert json.loads(imported.out) == {"imported": 8, "end": 8, "restamped": 0}
        with open_log(path, read_only=True) as one, open_log(copy, read_only=True) as other:
            assert stored(other) == stored(one)


def test_export_of_a_choice(elea: Elea, path: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "some.arrows")
    cases = {
        ("--key", "room/1/**"): [1, 6],
        ("--start", "2", "--end", "4"): [2, 3],
        ("-n", "2", "--newest-first"): [7, 6],
        ("--time", "[1970-01-12T13:46:44Z..]"): [4, 5, 6, 7],
    }
    for options, positions in cases.items():
        assert elea("store", "export", str(path), file, *options).status == 0
        table = pa.ipc.open_stream(Path(file).read_bytes()).read_all()
        assert table.column("position").to_pylist() == positions, options


def test_export_to_standard_output_is_nothing_but_samples(path: Path) -> None:
    command = [sys.executable, "-m", "elea", "store", "export", str(path), "-", "--format", "json", "-n", "2"]

    ended = subprocess.run(command, capture_output=True, env=os.environ)

    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["position"] for line in lines] == [0, 1]
    assert ended.stderr == b""


def test_export_of_damage_needs_a_word(elea: Elea, path: Path, tmp_path: Path) -> None:
    flip(path)
    file = str(tmp_path / "some.arrows")

    refused = elea("store", "export", str(path), file)
    rest = elea("store", "export", str(path), file, "--skip-damaged")

    assert refused.status == 5
    assert "--skip-damaged" in refused.err
    assert rest.status == 0
    assert 0 < pa.ipc.open_stream(Path(file).read_bytes()).read_all().num_rows < 8


def test_import_of_something_else_says_what_is_wrong(elea: Elea, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text('{"key": "a"}\nnonsense\n')

    arrow = elea("store", "import", str(tmp_path / "log"), str(file))
    lines = elea("store", "import", str(tmp_path / "log"), str(file), "--format", "json")
    missing = elea("store", "import", str(tmp_path / "log"), str(tmp_path / "nowhere"))

    assert (arrow.status, lines.status, missing.status) == (1, 1, 1)
    assert "Arrow IPC stream" in arrow.err
    assert "line 1 is no sample" in lines.err
    assert "nowhere" in missing.err


def test_compact_joins_blocks_and_accepts_losses(elea: Elea, path: Path) -> None:
    before = elea("store", "export", str(path), str(path.with_name("a")))
    result = elea("store", "compact", str(path), "--json")

    form = json.loads(result.out)
    assert before.status == result.status == 0
    assert form["compacted"] == 1
    assert form["octets_after"] < form["octets_before"]
    (path / "catalogue.sqlite").unlink()
    with open_log(path) as log:
        assert log.damage
    assert elea("store", "compact", str(path), "--accept-loss").status == 0
    assert elea("store", "info", str(path)).status == 0


def test_log_in_use_is_read_but_not_changed(elea: Elea, path: Path) -> None:
    with open_log(path) as log:
        log.append([sample(50)])
        changed = elea("store", "compact", str(path))
        assert elea("store", "info", str(path)).status == 0
        assert elea("store", "verify", str(path)).status == 0

    assert changed.status == 4
    assert f"process {os.getpid()}" in changed.err


def test_wrong_places_and_words_are_told_what_to_do(elea: Elea, path: Path, tmp_path: Path) -> None:
    cases = {
        ("info", str(tmp_path / "none")): 1,
        ("verify", str(tmp_path / "none")): 1,
        ("export", str(path)): 2,
        ("export", str(path), str(tmp_path / "f"), "--time", "yesterday"): 2,
        ("export", str(path), str(tmp_path / "f"), "--start", "-1"): 2,
        ("frobnicate", str(path)): 2,
    }
    for words, status in cases.items():
        result = elea("store", *words)
        assert (result.status, result.out) == (status, ""), words
        assert result.err, words


def test_client_does_not_pay_for_the_store() -> None:
    program = (
        "import sys, elea, elea.aio, elea.cli.put; print([m for m in ('pyarrow', 'elea.store') if m in sys.modules])"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ)

    assert ended.stdout.strip() == "[]"


# -- the directory of a broker -----------------------------------------------------------------------------------------


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """What a broker with two storages leaves in the directory given to --store."""
    filled(tmp_path / "store" / "home", [2, 1])
    filled(tmp_path / "store" / "default", [4])
    return tmp_path / "store"


def test_info_and_verify_of_a_brokers_directory_tell_of_each_storage(elea: Elea, several: Path) -> None:
    info = [json.loads(line) for line in elea("store", "info", str(several), "--json").lines]
    verified = [json.loads(line) for line in elea("store", "verify", str(several), "--json").lines]

    assert [(one["path"], one["samples"]) for one in info] == [
        (str(several / "default"), 4),
        (str(several / "home"), 3),
    ]
    assert [(one["path"], one["sound"]) for one in verified] == [(one["path"], True) for one in info]
    assert elea("store", "compact", str(several)).status == 0


def test_damage_of_one_storage_is_the_verdict_of_all(elea: Elea, several: Path) -> None:
    flip(several / "default")

    assert elea("store", "verify", str(several)).status == 5


def test_export_of_several_storages_asks_for_one(elea: Elea, several: Path, tmp_path: Path) -> None:
    result = elea("store", "export", str(several), str(tmp_path / "out"))

    assert result.status == 2
    assert "2 storages: default, home" in result.err
    assert elea("store", "export", str(several / "home"), str(tmp_path / "out")).status == 0


def test_import_where_no_broker_would_read_it_is_refused(elea: Elea, several: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "samples")
    elea("store", "export", str(several / "home"), file)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")

    beside = elea("store", "import", str(several), file)
    other = elea("store", "import", str(tmp_path / "other"), file)

    assert (beside.status, other.status) == (4, 4)
    assert "holds the storages default, home" in beside.err
    assert "holds other files" in other.err
    assert not list(several.glob("*.arrows"))
    assert elea("store", "import", str(tmp_path / "new"), file).status == 0


def test_import_beside_the_storages_of_a_running_broker_is_refused(elea: Elea, several: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "samples")
    elea("store", "export", str(several / "home"), file)

    with open_log(several / "home"):
        beside = elea("store", "import", str(several / "new"), file)
        into = elea("store", "import", str(several / "home"), file)

    assert (beside.status, into.status) == (4, 4)
    assert "would not see a new storage" in beside.err
    assert not (several / "new").exists()
    assert elea("store", "import", str(several / "new"), file).status == 0
