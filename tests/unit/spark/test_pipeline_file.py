"""Every mistake a new user is likely to make in a pipeline file has a message with its line, its cause and a fix."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.model.errors import PipelineError
from elea.spark.pipeline import ddl, keys, lines, specreader, sqltext, starter
from elea.spark.pipeline.problem import Problem, Wrong
from tests.unit.spark.pipeline_mistakes import GOOD, HEAD, MISTAKES, WARNINGS, step

FILE = Path("fleet.toml")


def problems(text: str) -> list[Problem]:
    return specreader.understand(text, FILE)[1]


@pytest.mark.parametrize(
    ("sql", "words", "is_aggregation"),
    [
        ("SELECT key, count(*) AS n FROM lights GROUP BY key, `at` HAVING n > 1", {"key", "at"}, True),
        ("SELECT at, count(*) AS n FROM lights GROUP BY ALL", {"select", "at", "count", "as", "n"}, True),
        ("SELECT at, count(*) AS n FROM lights GROUP BY 1", {"select", "at", "count", "as", "n"}, True),
        ("SELECT DISTINCT at FROM lights", {"select", "distinct", "at"}, True),
        ("SELECT count(*) FILTER (WHERE key = 'a') AS n, sum(x) OVER (ORDER BY y) AS s FROM lights", set(), True),
        ("SELECT sum(x) OVER (PARTITION BY key) AS s FROM lights", set(), False),
        ("SELECT key FROM lights WHERE x > (SELECT max(x) FROM rooms)", set(), False),
        ("SELECT max AS most, greatest(a, b) AS more FROM lights", set(), False),
    ],
)
def test_what_a_statement_groups_by_is_seen(sql: str, words: set[str], is_aggregation: bool) -> None:
    found = sqltext.statement(sql)

    assert found.grouped & (words | {"never"}) == words
    assert (found.group_at is not None) == is_aggregation


def test_there_are_mistakes_enough() -> None:
    assert len({name for name, *_ in MISTAKES}) == len(MISTAKES) >= 25


@pytest.mark.parametrize(("text", "cause", "fix"), [one[1:] for one in MISTAKES], ids=[one[0] for one in MISTAKES])
def test_mistake_has_line_cause_and_fix(text: str, cause: str, fix: str) -> None:
    meant = next((at for at, line in enumerate(text.splitlines(), 1) if "<<<" in line), None)

    spec, found = specreader.understand(text, FILE)

    assert spec is None
    errors = [one for one in found if not one.is_warning]
    assert [one for one in errors if cause in one.what and fix in one.fix and one.fix], found
    if meant is not None:
        assert meant in [one.line for one in errors if cause in one.what], found
    assert len(errors) <= 2, "one mistake is not told in many ways"


@pytest.mark.parametrize(("text", "cause", "fix"), [one[1:] for one in WARNINGS], ids=[one[0] for one in WARNINGS])
def test_warning_has_line_cause_and_fix_and_lets_the_file_pass(text: str, cause: str, fix: str) -> None:
    meant = next(at for at, line in enumerate(text.splitlines(), 1) if "<<<" in line)

    spec, found = specreader.understand(text, FILE)

    assert spec is not None
    assert [(one.line, one.is_warning) for one in found] == [(meant, True)]
    assert cause in found[0].what
    assert fix in found[0].fix


def test_all_mistakes_are_told_at_once_in_the_order_of_lines() -> None:
    text = (
        '[pipeline]\nname = "fleet"\ntrigger = "often"\n'
        '[source.lights]\nkeyexpr = "a//b"\nwatermrak = "1 second"\n'
        '[step.bright]\nsql = "SELECT key FROM light"\n'
        '[table.bronze]\nfrom = "brigt"\n'
    )

    assert [one.line for one in problems(text)] == [3, 5, 6, 8, 9, 10]


def test_read_raises_one_error_with_all_mistakes_as_file_line_what_and_fix(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace("keyexpr", "keyexp").replace('"tables/bronze"', '"state"'))

    with pytest.raises(PipelineError) as caught:
        specreader.read(file)

    assert [one.split(": ")[0] for one in str(caught.value).splitlines()] == [f"{file}:3", f"{file}:4", f"{file}:9"]
    assert all(" — " in one for one in str(caught.value).splitlines())
    assert len(caught.value.problems) == 3


def test_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_bytes(b"\xff\xfe[")

    with pytest.raises(PipelineError, match="no UTF-8 at octet 0 — save the file as UTF-8"):
        specreader.read(file)


@pytest.mark.parametrize("change", [str, lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_file_of_any_editor_is_read_with_the_same_lines(tmp_path: Path, change: Any) -> None:
    file = tmp_path / "fleet.toml"
    file.write_bytes(change(GOOD).encode())
    broken = tmp_path / "broken.toml"
    broken.write_bytes(change(GOOD.replace('"lights"', '"light"')).encode())

    spec = specreader.read(file)
    with pytest.raises(PipelineError) as caught:
        specreader.read(broken)

    assert (spec.name, spec.checkpoints, spec.tables[0].path) == (
        "fleet",
        tmp_path / "state",
        tmp_path / "tables" / "bronze",
    )
    assert str(caught.value).startswith(f"{broken}:8: ")


def test_everything_that_can_be_said_is_understood() -> None:
    text = (
        HEAD
        + 'checkpoints = "/var/state"\ntrigger = "available now"\nconnect = ["tcp/a:1", "tcp/b:2"]\n'
        + '[source.lights]\nkeyexpr = ["a/**", "b/*"]\nformat = "json"\nschema = "at TIMESTAMP, x INT"\n'
        + 'watermark = "1 hour 30 min"\nevent_time = "value.at"\nstart = 2026-01-31T12:00:00Z\nkind = "put"\n'
        + 'metadata = true\nconnect = "tcp/c:3"\noptions = { maxOffsetsPerTrigger = 1000, failOnDataLoss = false }\n'
        + '[source.rooms]\nkeyexpr = "rooms/**"\nas_of = "now(-1h)"\n'
        + step("SELECT * FROM later JOIN rooms ON true", "joined")
        + step("SELECT l.key, value.x FROM Lights AS l", "later")
        + '[table.result]\nfrom = "joined"\npath = "result/"\nformat = "parquet"\npartition_by = "x"\n'
        + 'retention = "30 days"\n'
        + '[[table.result.expect]]\nname = "a"\ncheck = "x > 0"\notherwise = "drop"\n'
        + '[[table.result.expect]]\nname = "b"\ncheck = "x < 9"\n'
        + '[publish.alerts]\nfrom = "later"\nformat = "json"\nmode = "update"\noptions = { priority = "data_high" }\n'
    )

    spec, found = specreader.understand(text, Path("/home/fleet.toml"))

    assert found == []
    assert spec is not None
    assert (spec.trigger, spec.is_once, str(spec.checkpoints)) == ("available now", True, "/var/state")
    assert [one.name for one in spec.steps] == ["later", "joined"]
    assert spec.steps[0].reads == ("lights",)
    assert [one.name for one in spec.upstream("joined")] == ["lights", "rooms", "later", "joined"]
    assert spec.is_stream("joined")
    assert not spec.is_stream("rooms")
    lights, rooms = spec.sources
    assert lights.read_options() == {
        "connect": "tcp/c:3",
        "keyexpr": '["a/**", "b/*"]',
        "payloadFormat": "json",
        "payloadSchema": "at TIMESTAMP, x INT",
        "kind": "put",
        "includeMetadata": "true",
        "startingTimestamp": "2026-01-31T12:00:00+00:00",
        "maxOffsetsPerTrigger": "1000",
        "failOnDataLoss": "false",
    }
    assert lights.watermark is not None
    assert (lights.watermark.text, lights.watermark.seconds) == ("1 hour 30 minutes", 5400)
    assert lights.event_column == "event_time"
    assert rooms.read_options()["asOf"] == "now(-1h)"
    assert rooms.read_options()["connect"] == '["tcp/a:1", "tcp/b:2"]'
    (table,) = spec.tables
    assert [(one.name, one.otherwise) for one in table.expect] == [("a", "drop"), ("b", "quarantine")]
    assert (str(table.path), str(table.quarantine)) == ("/home/result", "/home/result_quarantine")
    assert spec.publishes[0].write_options()["priority"] == "data_high"


def test_starter_is_right_and_has_every_kind_of_part() -> None:
    spec, found = specreader.understand(starter.starter("house"), FILE)

    assert found == []
    assert spec is not None
    assert spec.name == "house"
    assert spec.sources
    assert spec.steps
    assert spec.tables
    assert spec.publishes


def test_formats_are_those_of_payloads() -> None:
    from elea.spark.payload import formats

    assert set(keys.FORMATS) == set(formats())


def test_page_has_every_key_with_its_default() -> None:
    page = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text(encoding="utf-8")
    for title, has in {"pipeline": keys.PIPELINE, **keys.SECTIONS, "expect": keys.EXPECTATION}.items():
        part = re.search(rf"^### `\[?\[?{title}.*?(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        assert part is not None, title
        rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*)\|", part[0], re.MULTILINE))
        assert set(rows) == set(has)
        for name, key in has.items():
            wanted = "required" if key.required else "" if key.default in (None, (), [], {}) else _shown(key.default)
            assert rows[name].strip().strip("`") == wanted, (title, name)


def test_examples_of_the_page_are_right() -> None:
    page = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)

    assert blocks
    for block in blocks:
        assert problems(block) == []


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value[0] if isinstance(value, tuple) else str(value)


# -- lines of TOML -----------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)


def written(value: str, how: int) -> str:
    """A text in one of the four ways of TOML that can hold it."""
    import json

    if how == 1 and "'" not in value and value.isprintable():
        return f"'{value}'"
    if how == 2 and not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", value) and "'" not in value:
        return f"'''\n{value}'''"
    if how == 3 and not re.search(r'[\x00-\x08\x0b-\x1f\x7f"\\]', value):
        half = len(value) // 2
        joined = "\\\n   \n  " if not value[half:][:1].isspace() else ""
        return f'"""\n{value[:half]}{joined}{value[half:]}"""'
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@given(st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 3), st.booleans()), max_size=6))
def test_every_character_of_every_text_is_found(entries: list[tuple[str, str, int, bool]]) -> None:
    text = ""
    for at, (name, value, how, nested) in enumerate(entries):
        shown = f"[ 1, {written(value, how)} ]" if nested else written(value, how)
        text += f"[a.b{at}]  # [x]\n{written(name, how % 2)} = {shown}\n"
    data = tomllib.loads(text)
    found = lines.scan(text)
    rows = text.split("\n")

    for at, (name, value, _, nested) in enumerate(entries):
        path: lines.Path = ("a", f"b{at}", name, 1) if nested else ("a", f"b{at}", name)
        assert (data["a"][f"b{at}"][name][1] if nested else data["a"][f"b{at}"][name]) == value
        for number, character in enumerate(value):
            place = found.character(path, number)
            stands = (rows[place.line - 1] + "\n")[place.column - 1]
            assert stands == character or stands == "\\"


def test_place_inside_of_a_text_counts_lines_that_are_joined() -> None:
    text = 'a = """\nSELECT \\\n   key\nFROM x"""\n'

    found = lines.scan(text)

    assert tomllib.loads(text)["a"] == "SELECT key\nFROM x"
    assert found.character(("a",), 7) == (3, 4)
    assert found.character(("a",), 11) == (4, 1)


# -- SQL and schemas ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM a", ["a"]),
        ("select x from a join b on a.x = b.x left join `c d` using (x)", ["a", "b", "c d"]),
        ("SELECT * FROM a, b AS c, (SELECT * FROM d) e WHERE x IN (SELECT y FROM f)", ["a", "b", "d", "f"]),
        ("WITH t AS (SELECT * FROM a), u AS (SELECT * FROM t) SELECT * FROM u JOIN b", ["a", "b"]),
        ("SELECT extract(HOUR FROM at), trim(BOTH ' ' FROM x), a IS DISTINCT FROM b FROM c", ["c"]),
        ("SELECT 'FROM x', \"FROM y\" -- FROM z\n/* FROM z */ FROM a", ["a"]),
        ("SELECT * FROM range(10), parquet.`p` JOIN a", ["a"]),
        ("FROM a |> WHERE x > 1 |> JOIN b ON true", ["a", "b"]),
        ("SELECT * FROM a UNION ALL (SELECT * FROM b)", ["a", "b"]),
        ("SELECT explode(array(1, 2)), x FROM a LATERAL VIEW explode(y) t AS z", ["a"]),
        ("SELECT x FROM (FROM a SELECT x), A", ["a"]),
    ],
)
def test_names_that_a_statement_reads(sql: str, names: list[str]) -> None:
    assert [one.name for one in sqltext.statement(sql).reads] == names


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT key, value.on, count(*) AS n, max(x) y, window FROM a", ("key", "on", "n", "y", "window")),
        ("SELECT DISTINCT a.`b c`, window(t, '1 day') FROM a", ("b c", "window")),
        ("SELECT split(key, '/')[2], 1 + 2, CASE WHEN a THEN b END FROM a", (None, None, None)),
        ("SELECT *, x FROM a", None),
        ("SELECT a.* FROM a", None),
        ("WITH t AS (SELECT 1 AS z) SELECT key FROM t", ("key",)),
        ("FROM a |> SELECT key", None),
    ],
)
def test_columns_of_a_statement(sql: str, columns: tuple[str | None, ...] | None) -> None:
    assert sqltext.statement(sql).columns == columns


@given(st.text(max_size=40) | st.lists(st.sampled_from("SELECT FROM a , ( ) ' ` * JOIN AS WITH ; -- /* */".split())))
def test_any_text_is_a_statement_or_wrong(given_text: str | list[str]) -> None:
    sql = given_text if isinstance(given_text, str) else " ".join(given_text)

    error = _wrong(sqltext.statement, sql)

    assert error is None or (error.fix and 0 <= error.at <= len(sql))


@given(st.text("aINT<>,: `{}()STRUCTARYMP\n", max_size=40))
def test_any_text_is_a_schema_or_wrong(text: str) -> None:
    error = _wrong(ddl.fields_of, text)

    assert error is None or (error.fix and 0 <= error.at <= len(text))


def _wrong(look: Any, text: str) -> Wrong | None:
    try:
        look(text)
    except Wrong as error:
        return error
    return None


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from([*GOOD.splitlines(), "[step.a]", 'sql = "SELECT 1"', "[["])).map("\n".join)
)
def test_any_text_is_a_pipeline_or_has_problems(text: str) -> None:
    spec, found = specreader.understand(text, FILE)

    assert (spec is None) == any(not one.is_warning for one in found)
    assert all(one.what and one.fix and one.line <= text.count("\n") + 1 for one in found)
