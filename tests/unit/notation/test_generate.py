"""The generator: committed modules are up to date, its output is the same each time, and it reads as Python."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from elea.notation import generate as generator
from elea.notation.generate import DIALECTS, codec_module, generate, messages_module, plan_of
from elea.notation.plan import Plan, load, snake

COMMITTED = Path(__file__).resolve().parents[3] / "src" / "elea" / "wire"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("module", ["messages.py", "codec.py"])
def test_committed_module_is_up_to_date(dialect: str, module: str) -> None:
    committed = (COMMITTED / dialect / module).read_text(encoding="utf-8")

    assert committed == generate(dialect)[module], "run `make generate`"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_generator_writes_the_same_each_time(dialect: str) -> None:
    assert generate(dialect) == generate(dialect)


def test_generator_does_not_depend_on_hash_seed() -> None:
    program = (
        "import hashlib; from elea.notation.generate import DIALECTS, generate; "
        "print(hashlib.sha256(repr([generate(d) for d in DIALECTS]).encode()).hexdigest())"
    )

    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(digests) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_generated_source_is_flat_python(dialect: str) -> None:
    for name, text in generate(dialect).items():
        tree = ast.parse(text, name)
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Try | ast.Lambda)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_definition_has_a_value_a_reader_and_a_writer(dialect: str) -> None:
    plan: Plan = plan_of(dialect)
    module = __import__(f"elea.wire.{dialect}.codec", fromlist=["codec"])
    values = __import__(f"elea.wire.{dialect}.messages", fromlist=["messages"])

    for name in [*plan.records, *plan.unions]:
        if name in ("ConduitId", "RSpaceId"):
            continue
        assert hasattr(values, name)
        assert callable(getattr(module, f"read_{snake(name)}"))
        assert callable(getattr(module, f"write_{snake(name)}"))


def test_main_writes_only_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wire = tmp_path / "src" / "elea" / "wire"
    for dialect in DIALECTS:
        (wire / dialect).mkdir(parents=True)
        source = (COMMITTED / dialect / f"{dialect}.zn").read_text(encoding="utf-8")
        (wire / dialect / f"{dialect}.zn").write_text(source, encoding="utf-8")
    monkeypatch.setattr(generator, "WIRE", wire)

    assert generator.main() == 0
    first = capsys.readouterr().out
    (wire / "zenoh1" / "codec.py").write_text("# edited by hand\n", encoding="utf-8")
    assert generator.main() == 0
    second = capsys.readouterr().out

    assert len(first.splitlines()) == 6
    assert second.splitlines() == ["wrote zenoh1/codec.py"]
    assert (wire / "zenoh1" / "codec.py").read_text(encoding="utf-8") == generate("zenoh1")["codec.py"]


def test_keyword_and_builtin_names_are_kept_out_of_the_way() -> None:
    plan = load("M = record { global: nat, at: nat, id: nat, count: nat }", dialect="toy")

    values, codec = messages_module(plan), codec_module(plan)

    assert "global_: int" in values
    assert "count: int  # type: ignore[assignment]" in values
    assert "global_ = buf[at]" in codec
    assert "at_ = buf[at]" in codec
    assert "id_ = buf[at]" in codec


def test_record_of_flags_is_its_header() -> None:
    plan = load(
        "M = record { h: header 5 K, b: case h of { a -> A } } K = enum { a = 1 } A = record { f: flag 5 }",
        dialect="toy",
    )

    assert "out.append(header)" in codec_module(plan)
