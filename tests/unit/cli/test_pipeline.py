"""`elea pipeline new`, `check` and `plan`: what they print, and that they need neither Spark nor Java."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.interop.inbox import eventually, free_port
from tests.unit.cli.conftest import Elea
from tests.unit.spark.pipeline_mistakes import GOOD

PAGE = Path(__file__).parents[3] / "docs" / "pipelines.md"
QUICK = ("--no-spark", "--no-broker")


@pytest.fixture
def house(tmp_path: Path, elea: Elea) -> Path:
    assert elea("pipeline", "new", str(tmp_path / "house")).status == 0
    return tmp_path / "house.toml"


def test_new_writes_a_pipeline_that_is_right(house: Path, elea: Elea) -> None:
    result = elea("pipeline", "check", str(house), *QUICK)

    assert result.status == 0
    assert result.out == f"{house}  valid  (1 source, 3 steps, 3 tables, 1 publish)\n"
    assert 'name = "house"' in house.read_text(encoding="utf-8")


def test_new_writes_over_nothing_unless_told_to(house: Path, elea: Elea) -> None:
    house.write_text("mine", encoding="utf-8")

    result = elea("pipeline", "new", str(house))

    assert (result.status, house.read_text(encoding="utf-8")) == (2, "mine")
    assert "--force" in result.err
    assert elea("pipeline", "new", str(house), "--force").status == 0
    assert house.read_text(encoding="utf-8") != "mine"


def test_new_refuses_a_name_that_is_none(tmp_path: Path, elea: Elea) -> None:
    result = elea("pipeline", "new", str(tmp_path / "my house"))

    assert result.status == 2
    assert "letters" in result.err
    assert list(tmp_path.iterdir()) == []


def test_check_prints_all_mistakes_with_their_lines(tmp_path: Path, elea: Elea) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace("format =", "fromat =").replace('"lights"', '"light"'), encoding="utf-8")

    result = elea("pipeline", "check", str(file), *QUICK)
    forms = [json.loads(line) for line in elea("pipeline", "check", str(file), *QUICK, "--json").lines]

    assert result.status == 1
    assert f'{file}:5:1  [source.lights] knows no fromat\n  did you mean "format"?\n' in result.out
    assert "3 errors" in result.err
    assert result.err.splitlines()[-1].startswith("try: ")
    assert [(one["line"], one["level"]) for one in forms] == [(5, "error"), (6, "error"), (8, "error")]
    assert all(one["what"] and one["fix"] for one in forms)


def test_check_warns_of_a_broker_that_is_away(house: Path, elea: Elea) -> None:
    locator = f"tcp/127.0.0.1:{free_port()}"
    house.write_text(house.read_text(encoding="utf-8").replace("tcp/127.0.0.1:7447", locator), encoding="utf-8")

    result = elea("pipeline", "check", str(house), "--no-spark")

    assert result.status == 0
    assert f"warning  no broker answers at {locator}" in result.out
    assert "elea broker --store DIR --persist 'myhouse/floor/*/room/*/LightStatus'" in result.out
    assert "valid, 1 warning" in result.out


def test_plan_draws_every_part_and_its_way(house: Path, elea: Elea) -> None:
    result = elea("pipeline", "plan", str(house))
    form = json.loads(elea("pipeline", "plan", str(house), "--json").out)

    assert result.status == 0
    for name in ("source lights", "step light_status", "step floors", "table bronze", "table gold", "publish bright"):
        assert f"│ {name} " in result.out
    assert result.out.count("▶") == 7
    assert form["steps"]["floors"] == {"reads": ["light_status"]}
    assert form["tables"]["gold"]["from"] == "floors"


def test_plan_draws_svg_that_needs_nothing_else(house: Path, elea: Elea) -> None:
    drawing = house.with_suffix(".svg")

    result = elea("pipeline", "plan", str(house), "--svg", str(drawing))
    printed = elea("pipeline", "plan", str(house), "--svg", "-").out

    assert result.status == 0
    assert printed == drawing.read_text(encoding="utf-8")
    root = ElementTree.fromstring(printed)
    names = {one.text for one in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"lights", "light_status", "floors", "alerts", "bronze", "silver", "gold", "bright"} <= names
    assert printed.count("marker-end") == 7
    assert "http" not in printed.replace("http://www.w3.org/2000/svg", "")


def test_page_shows_what_check_prints(tmp_path: Path, elea: Elea, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("house.toml").write_text(
        '[pipeline]\nname = "house"\ntrigger = "often"\n\n'
        '[source.lights]\nkeyexpr = "myhouse/**"\n\nwatermrak = "1 second"\n\n'
        '[step.bright]\nsql = """\nSELECT key\nFROM light\n"""\n\n'
        '[table.bronze]\nfrom = "bright"\npath = "tables/bronze"\n',
        encoding="utf-8",
    )

    out = elea("pipeline", "check", "house.toml", *QUICK).out

    assert out in re.findall(r"^```text\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_commands_of_the_page_work(tmp_path: Path, elea: Elea, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^elea (pipeline (\w+) .*?)(?:  +#.*)?$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert [action for _, action in commands] == ["new", "check", "plan", "run"]
    for words, action in commands[:3]:
        assert elea(*words.split(), *(QUICK if action == "check" else ())).status == 0
    assert Path("house.svg").exists()


@pytest.mark.parametrize("action", ["check", "plan", "run"])
def test_file_that_is_not_there(action: str, elea: Elea, tmp_path: Path) -> None:
    result = elea("pipeline", action, str(tmp_path / "none.toml"))

    assert result.status == 2
    assert "no such file" in result.err
    assert "elea pipeline new none" in result.err
    assert elea("pipeline", action).status == 2


def test_run_of_a_wrong_file_ends_before_spark_starts(tmp_path: Path, elea: Elea) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace('"lights"', '"light"'), encoding="utf-8")

    result = elea("pipeline", "run", str(file))

    assert result.status == 1
    assert f"{file}:8:" in result.out


def test_run_without_spark_says_what_to_install(house: Path, elea: Elea, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)

    result = elea("pipeline", "run", str(house))

    assert result.status == 1
    assert "try: in a clone of Elea: pip install '.[spark]'" in result.err


@pytest.mark.parametrize(
    "words",
    [
        ("--from", "2026-03-01"),
        ("--backfill", "--until", "2026-03-01"),
        ("--from", "2026-03-01", "--until", "2026-03-02"),
        ("--backfill", "--by", "timestamp"),
    ],
    ids=["no-backfill", "no-from", "both-without-backfill", "column-only"],
)
def test_a_range_has_two_ends_and_is_for_a_backfill(house: Path, elea: Elea, words: tuple[str, ...]) -> None:
    result = elea("pipeline", "run", str(house), *words)

    assert result.status == 2
    assert "--from and --until are the two ends of a range for --backfill" in result.err


def test_new_check_and_plan_import_neither_spark_nor_arrow(tmp_path: Path) -> None:
    file = str(tmp_path / "house.toml")
    program = (
        "import sys\nfrom elea.cli import main\n"
        f"assert main(['pipeline', 'new', {file!r}]) == 0\n"
        f"assert main(['pipeline', 'check', {file!r}, '--no-spark', '--no-broker']) == 0\n"
        f"assert main(['pipeline', 'plan', {file!r}]) == 0\n"
        "print(sorted({'pyspark', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def has_worked(process_id: int) -> bool:
    """It has used CPU enough to be past Python's own start, however slow this machine is."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) > 0.5 * os.sysconf("SC_CLK_TCK")


def has_children(process_id: int) -> bool:
    """Java has been started."""
    return any(path.read_text() for path in Path(f"/proc/{process_id}/task").glob("*/children"))


@pytest.mark.skipif(find_spec("pyspark") is None, reason="Spark is not installed")
@pytest.mark.parametrize("is_there", [has_worked, has_children])
def test_interrupt_while_spark_starts_ends_with_one_line(tmp_path: Path, is_there: Callable[[int], bool]) -> None:
    file = tmp_path / "p.toml"
    subprocess.run([sys.executable, "-m", "elea", "pipeline", "new", str(file)], check=True, capture_output=True)
    with subprocess.Popen(
        [sys.executable, "-m", "elea", "pipeline", "run", str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        eventually(lambda: is_there(process.pid), "it has come so far", 60)
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    # What Java and Spark say while they start comes before it, and depends on how far they are.
    *before, last = said.splitlines()
    assert last == "elea pipeline: interrupted"
    assert not [line for line in before if "Traceback" in line or "ERROR" in line or line.startswith("elea ")]
