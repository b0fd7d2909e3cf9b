"""The runner itself: kinds known by shape, spoiled vectors caught, the closing line."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.vectors.__main__ import main
from tests.vectors.kinds import cases_of

HERE = Path(__file__).parent


def load(name: str) -> Any:
    return json.loads((HERE / name).read_text())


def outcome(path: Path, content: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and closing line of a run over one file with this content."""
    path.write_text(json.dumps(content))
    status = main([str(path.parent)])
    return status, capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    "name",
    [
        "zenoh1/pubsub.json",
        "zenoh1/primitives.json",
        "zenoh1/fragment.json",
        "zenoh1/linkstate_weights.json",
        "xrce2017/malformed.json",
        "zenoh2018/semantics.json",
        "dds/partition_map.json",
    ],
)
def test_kind_is_known_under_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    content = load(name)

    status, line = outcome(tmp_path / "unheard-of.json", content, capsys)

    assert (status, line) == (0, f"{len(cases_of(HERE / name))} passed, 0 failed, 0 skipped")


@pytest.mark.parametrize(
    ("name", "index", "path", "value"),
    [
        ("zenoh2018/valid.json", 0, ["hex"], "01"),
        ("zenoh2018/valid.json", 0, ["decoded", "value"], False),
        ("zenoh2018/malformed.json", 0, ["error"], "TRAILING"),
        ("zenoh2018/malformed.json", 0, ["hex"], "10010a"),
        ("zenoh2018/semantics.json", 0, ["expected"], [1]),
        ("zenoh1/pubsub.json", 0, ["decoded", "sn"], 1),
        ("zenoh1/pubsub.json", 0, ["decoded", "more"], 1),
        ("zenoh1/compression.json", 6, ["decompressed_hex"], "0300"),
        ("zenoh1/fragment.json", 20, ["sha256"], "00"),
        ("zenoh1/encodings.json", 0, ["what"], "put with Encoding('text/plain')"),
    ],
)
def test_spoiled_vector_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, index: int, path: list[str], value: object
) -> None:
    content = load(name)
    record = copy.deepcopy(content[index])
    if "sha256" in path:
        assert path[0] in record
    place = record
    for member in path[:-1]:
        place = place[member]
    place[path[-1]] = value
    content[index] = record

    status, line = outcome(tmp_path / "spoiled.json", content, capsys)

    assert status == 1
    assert ", 0 failed" not in line


def test_semantic_rule_and_reaction_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = next(r for r in load("zenoh2018/malformed.json") if r["layer"] == "semantic")

    assert outcome(tmp_path / "a.json", [record | {"reaction": "close-1"}], capsys)[0] == 1
    assert outcome(tmp_path / "a.json", [record | {"error": "PERIOD"}], capsys)[0] == 1
    assert outcome(tmp_path / "a.json", [record], capsys)[0] == 0


@pytest.mark.parametrize("content", [[], {}, 7, [{}], [3], {"vectors": []}, {"vectors": [{"new": 1}]}])
def test_unknown_content_is_skipped_not_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: object
) -> None:
    status, line = outcome(tmp_path / "odd.json", content, capsys)

    assert status == 0
    assert line.startswith("0 passed, 0 failed, ")


def test_file_that_is_not_json_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.json").write_text("{")

    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_folder_that_is_not_there_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/nowhere/at/all"]) == 2
