"""Variables, parameters, files that are included, functions of Python: what a file says with them, and mistakes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from elea.cli import main
from elea.model.errors import ConfigError
from elea.spark.pipeline import definitions, metricspage, specreader
from elea.spark.pipeline.problem import Problem
from elea.spark.pipeline.report import SinkReport
from elea.spark.pipeline.spec import Spec
from elea.spark.pipeline.variables import SECRET_CHARS
from elea.spark.progress import Figures

FILE = """
[pipeline]
name = "fleet"
{head}

[parameters]
floor = 2
user = "${{LOGIN:-nobody}}"

[source.lights]
keyexpr = "house/${{floor}}/*"
options."zenoh.transport.auth.usrpwd.user" = "${{user}}"
options."zenoh.transport.auth.usrpwd.password" = "${{PASSWORD}}"

[step.silver]
sql = '''
SELECT key, '$${{x}}' AS x FROM lights
WHERE key = '${{PASSWORD}}' {more}
'''

[table.silver]
from = "silver"
path = "tables/${{floor}}"
"""
SECRET = "not-to-be-seen"


def understood(
    tmp_path: Path, head: str = "", more: str = "", floor: str | None = None, password: str | None = SECRET
) -> tuple[Spec | None, list[Problem]]:
    text = FILE.format(head=head, more=more)
    given = {} if floor is None else {"floor": floor}
    environment = {} if password is None else {"PASSWORD": password, "LOGIN": "somebody"}
    return specreader.understand(text, tmp_path / "fleet.toml", given, environment)


def test_names_stand_for_parameters_and_the_environment(tmp_path: Path) -> None:
    spec, problems = understood(tmp_path)
    other, _ = understood(tmp_path, floor="3")

    assert problems == []
    assert spec is not None
    assert other is not None
    assert spec.sources[0].key_exprs == ("house/2/*",)
    assert spec.sources[0].options["zenoh.transport.auth.usrpwd.user"] == "somebody"
    assert spec.sources[0].options["zenoh.transport.auth.usrpwd.password"] == SECRET
    assert "'${x}' AS x" in spec.steps[0].sql
    assert (other.sources[0].key_exprs, other.tables[0].path) == (("house/3/*",), tmp_path / "tables" / "3")


def test_value_of_the_environment_is_nowhere_to_be_seen_and_another_one_is_no_change(tmp_path: Path) -> None:
    spec, _ = understood(tmp_path)
    other, _ = understood(tmp_path, password="another-one")
    third, _ = understood(tmp_path, floor="3")
    broken = understood(tmp_path, more=f"AND (key = '{SECRET}'")[1]

    assert spec is not None
    assert other is not None
    assert third is not None
    found = definitions.definition_of(spec, spec.tables[0])
    assert SECRET not in json.dumps(found)
    assert "${PASSWORD}" in json.dumps(found)
    assert SECRET not in repr(spec.variables)
    assert found["fingerprint"] == definitions.definition_of(other, other.tables[0])["fingerprint"]
    assert found["fingerprint"] != definitions.definition_of(third, third.tables[0])["fingerprint"]
    assert {SECRET in str(one) for one in broken} == {False}
    assert spec.variables.hide(f"no: {SECRET}!") == "no: ${PASSWORD}!"


def test_plan_and_check_print_no_secret_and_take_parameters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(
        FILE.format(head='connect = "tcp/${HOST}:7447"', more="").replace("house/${floor}", "h/${PASSWORD}")
    )
    monkeypatch.setenv("PASSWORD", SECRET)
    monkeypatch.setenv("HOST", "hidden.example")

    assert main(["pipeline", "plan", str(file), "--set", "floor=7"]) == 0
    assert main(["pipeline", "plan", str(file), "--set", "floor=7", "--json"]) == 0
    assert main(["pipeline", "check", str(file), "--no-spark", "--set", "florr=7"]) == 1
    assert main(["pipeline", "plan", str(file), "--set", "floor"]) == 2

    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    assert "hidden.example" not in said.out + said.err
    assert "h/${PASSWORD}/*" in said.out
    assert "tables/7" in said.out
    assert "table silver: new, nothing is computed yet" in said.out
    assert json.loads(_line(said.out))["changes"] == [{"sink": "table silver", "change": "new", "in": []}]
    assert "--set florr: the file has no such parameter" in said.out


def _line(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("{") and '"changes"' in line)


@pytest.mark.parametrize(
    ("head", "more", "password", "line", "said"),
    [
        ("", "", None, 13, "there is no parameter or environment variable PASSWORD"),
        ("", "AND ${1}", SECRET, 18, "'1' is no name of a variable"),
        ("", "AND ${floor", SECRET, 18, "a ${ is never closed"),
        ("", "AND key > '${floor}'\nAND (x", SECRET, 19, "a ( is never closed"),
        ('include = "none.toml"', "", SECRET, 4, "include: none.toml: No such file or directory"),
        ("include = 7", "", SECRET, 4, "include: it is a list of files"),
        ('every = "5 minutes"\ntrigger = "1 second"', "", SECRET, 4, "every says when runs begin"),
    ],
    ids=["unset", "no name", "open", "place behind a value", "no file", "no list", "every and trigger"],
)
def test_mistake_is_told_with_its_line(
    tmp_path: Path, head: str, more: str, password: str | None, line: int, said: str
) -> None:
    spec, problems = understood(tmp_path, head, more, password=password)

    assert spec is None
    found = [one for one in problems if said in one.what]
    assert [(one.line, bool(one.fix)) for one in found][:1] == [(line, True)], problems


def test_short_value_of_the_environment_is_no_secret(tmp_path: Path) -> None:
    for length in (SECRET_CHARS - 1, SECRET_CHARS):
        spec, _ = understood(tmp_path, password="z" * length)
        assert spec is not None
        assert ("zz" in spec.variables.hide("z" * length)) == (length < SECRET_CHARS)


# -- files that are included -------------------------------------------------------------------------------------------


def test_files_are_read_together_and_mistakes_told_with_their_own_lines(tmp_path: Path) -> None:
    (tmp_path / "more.toml").write_text(
        '[source.doors]\nkeyexpr = "doors/${where}"\n\n[parameters]\nwhere = "north"\n'
        '[step.open]\nsql = "SELECT key FROM doors"\n[table.open]\nfrom = "open"\npath = "tables/open"\n'
    )
    spec, problems = understood(tmp_path, 'include = ["more.toml"]')
    (tmp_path / "bad.toml").write_text(
        '[pipeline]\nname = "x"\n\n[source.lights]\nkeyexpr = "a"\n\n[step.b]\nsql = "SELECT a FROM nowhere"\n'
    )
    (tmp_path / "torn.toml").write_text("[source\n")
    none, wrong = understood(tmp_path, 'include = ["bad.toml", "torn.toml", "more.toml"]')

    assert problems == []
    assert spec is not None
    assert [one.name for one in spec.tables] == ["silver", "open"]
    assert spec.sources[1].key_exprs == ("doors/north",)
    assert none is None
    told = {(one.file, one.line): one.what for one in wrong if not one.is_warning}
    assert told["bad.toml", 1] == "a file that is included has no [pipeline]"
    assert told["bad.toml", 4] == "source lights is in the file that includes it, too"
    assert told["bad.toml", 8] == "there is no source or step nowhere"
    assert "this is no TOML" in told["torn.toml", 1]
    assert str(next(one for one in wrong if one.file == "bad.toml" and one.line == 8)).startswith(" bad.toml:8: there")


# -- functions ---------------------------------------------------------------------------------------------------------

PYTHON = """
[pipeline]
name = "fleet"

[source.lights]
keyexpr = "lights/*"

[function.shout]
python = "fleet_code:shout"

[step.clean]
{step}

[step.loud]
sql = "SELECT shout(key) AS key FROM clean"

[table.loud]
from = "loud"
path = "tables/loud"

[foreach.tell]
from = "clean"
python = "fleet_code:tell"
"""
CODE = """
def shout(text):
    return text.upper()

def clean(rows):  # {comment}
    return rows{more}

tell = print
"""
GOOD = 'python = "fleet_code:clean"\nfrom = "lights"'


def python(tmp_path: Path, step: str = GOOD, comment: str = "", more: str = "") -> tuple[Spec | None, list[Problem]]:
    (tmp_path / "fleet_code.py").write_text(CODE.format(comment=comment, more=more))
    return specreader.understand(PYTHON.format(step=step), tmp_path / "fleet.toml", {}, {})


def test_text_of_a_function_belongs_to_the_definition_and_comments_do_not(tmp_path: Path) -> None:
    prints = []
    for comment, more in (("", ""), ("new", ""), ("", ".limit(1)")):
        spec, problems = python(tmp_path, comment=comment, more=more)
        assert problems == []
        assert spec is not None
        assert [spec.is_stream(one.reads) for one in spec.sinks] == [True, True]
        prints.append([definitions.definition_of(spec, one)["fingerprint"] for one in spec.sinks])

    assert prints[0] == prints[1]
    assert prints[0][0] != prints[2][0]
    assert prints[0][1] != prints[2][1]


@pytest.mark.parametrize(
    ("step", "said", "fix"),
    [
        ('python = "fleet_code"\nfrom = "lights"', "'fleet_code' names no function", "module:function"),
        ('python = "fleet_kode:clean"\nfrom = "lights"', "there is no module fleet_kode", "put fleet_kode.py beside"),
        (
            'python = "fleet_code:claen"\nfrom = "lights"',
            "fleet_code.py has no function claen",
            'did you mean "clean"?',
        ),
        ('python = "fleet_code:clean"', "nobody says what the function is given", "add from"),
        ('python = "fleet_code:clean"\nfrom = "lihgts"', "there is no source or step lihgts", 'did you mean "lights"?'),
        ('python = "fleet_code:clean"\nfrom = "loud"', "steps read each other in a circle", "let one of them"),
        ('python = "fleet_code:clean"\nsql = "SELECT 1 AS a FROM lights"', "sql or python, not both", "write sql"),
        ("", "a step has sql or python", "write sql"),
        ('sql = "SELECT key FROM lights"\nfrom = "lights"', "from is for functions of Python", "leave it out"),
    ],
    ids=["no function", "no module", "misspelt", "nothing", "no view", "circle", "both", "neither", "from"],
)
def test_mistakes_with_functions_are_told(tmp_path: Path, step: str, said: str, fix: str) -> None:
    spec, problems = python(tmp_path, step)

    assert spec is None
    assert [one for one in problems if said in one.what and fix in one.fix], problems


# -- the page of metrics -----------------------------------------------------------------------------------------------


def test_figures_are_served_while_it_runs() -> None:
    figures = Figures(7, "now", 3, 1.0, 1.0, 12, 340, 0, {}, {"fleet": 9})
    sink = SinkReport(
        name="gold", kind="table", where="x", rows_in=5, losses={"trimmed": 4}, figures=(figures,), problem="no"
    )

    with metricspage.serving("127.0.0.1:0", 'a"b', lambda: [sink]) as where:
        assert where is not None
        with urllib.request.urlopen(where, timeout=10) as answer:
            text = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(where.replace("metrics", "other"), timeout=10)

    assert 'elea_pipeline_rows_in_total{pipeline="a\\"b",sink="gold",kind="table"} 5' in text
    assert 'elea_pipeline_lost_total{pipeline="a\\"b",sink="gold",reason="trimmed"} 4' in text
    assert 'elea_pipeline_lag{pipeline="a\\"b",sink="gold"} 12' in text
    assert 'elea_pipeline_away_seconds{pipeline="a\\"b",sink="gold",log="fleet"} 9' in text
    assert 'elea_pipeline_failed{pipeline="a\\"b",sink="gold"} 1' in text
    assert text.endswith("# EOF\n")
    with pytest.raises(ConfigError, match="'often' is no address"), metricspage.serving("often", "x", list):
        pass


def test_object_store_that_cannot_be_reached_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FILE.format(head="", more="").replace("tables/${floor}", "s3://lake/silver"))
    settings = {"ENDPOINT_URL": "http://127.0.0.1:1", "ALLOW_HTTP": "true", "ACCESS_KEY_ID": "k", "REGION": "here"}
    for name, value in {**settings, "SECRET_ACCESS_KEY": SECRET, "MAX_RETRIES": "0"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("PASSWORD", SECRET)
    monkeypatch.setenv("max_retries", "0")
    monkeypatch.setenv("retry_timeout", "1s")

    assert main(["pipeline", "plan", str(file)]) == 1

    said = capsys.readouterr().err
    assert "table s3://lake/silver: it cannot be reached" in said
    assert "AWS_ENDPOINT_URL" in said
    assert SECRET not in said
