"""The runner itself: kinds known by shape, spoiled vectors caught, the closing line."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from elea.wire import dialect_named
from tests.interop.inbox import free_port
from tests.vectors.__main__ import main
from tests.vectors.behaviour import router_at
from tests.vectors.kinds import cases_of

HERE = Path(__file__).parent

OLD_KEY = re.compile(r'"(k/|kq/|kt/|none/|zz/)')


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
        "zenoh1/router_behaviour.json",
        "xrce2017/malformed.json",
        "zenoh2018/semantics.json",
        "dds/partition_map.json",
        "dds/filter.json",
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


NOTHING: list[object] = []


@pytest.mark.parametrize(
    ("name", "member", "value"),
    [
        ("interest_current_tok", "router_answers", NOTHING),
        ("interest_current_sub", "router_answers", [{"priority": 5, "msgs": [{"_": "RESPONSE_FINAL", "id": 5}]}]),
        ("req_nobody", "router_answers", [{"priority": 0, "msgs": [{"_": "RESPONSE_FINAL", "id": 5}]}]),
        ("push", "delivered_to_subscriber", NOTHING),
        ("push", "delivered_to_subscriber", [["k/1", "6868"]]),
        ("push_bad_key", "delivered_to_subscriber", [["k/1", "6869"]]),
        ("push", "transport_closed", True),
        ("push_mandatory_ext", "transport_closed", False),
        ("push", "sent_network_message_hex", "bd00036b2f653e05010165"),
    ],
)
def test_spoiled_behaviour_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, member: str, value: object
) -> None:
    content = load("zenoh1/router_behaviour.json")
    next(record for record in content if record["name"] == name)[member] = value

    status, _ = outcome(tmp_path / "spoiled.json", content, capsys)

    assert status == 1


def test_undeclaration_names_the_id_given_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = load("zenoh1/router_behaviour.json")
    gone = next(record for record in content if record["name"] == "remote_unsub")
    gone["router_answers"][0]["msgs"][0]["body"]["id"] = 1  # that of another subscriber

    assert outcome(tmp_path / "spoiled.json", content, capsys)[0] == 1


def test_behaviour_is_that_of_any_keys_and_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = load("zenoh1/router_behaviour.json")
    dialect = dialect_named("zenoh1")
    renamed = []
    for record in content:
        if record["name"] != "push_mandatory_ext":  # which no decoder takes
            octets = record["sent_network_message_hex"]
            form = octets and dialect.to_json("message", dialect.decode("message", bytes.fromhex(octets)))
            record = json.loads(OLD_KEY.sub(r'"fleet/7/\1', json.dumps(record | {"sent_network_message_hex": form})))
            form = record["sent_network_message_hex"]
            hexed = form and dialect.encode("message", dialect.from_json("message", form)).hex()
            renamed.append(record | {"sent_network_message_hex": hexed})

    status, line = outcome(tmp_path / "renamed.json", renamed, capsys)

    assert (status, line) == (0, "26 passed, 0 failed, 0 skipped")


def test_real_router_meets_the_behaviour_vectors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    zenoh = pytest.importorskip("zenoh")
    config = zenoh.Config()
    port = free_port()
    config.insert_json5("mode", '"router"')
    config.insert_json5("listen/endpoints", f'["tcp/127.0.0.1:{port}"]')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("scouting/delay", "0")
    monkeypatch.setattr(router_at, "locator", "")

    with zenoh.open(config):
        status = main(["--router", f"tcp/127.0.0.1:{port}", str(HERE / "zenoh1" / "router_behaviour.json")])

    assert (status, capsys.readouterr().out.splitlines()[-1]) == (0, "27 passed, 0 failed, 0 skipped")


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
