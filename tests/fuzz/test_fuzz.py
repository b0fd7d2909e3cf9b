"""A few hundred inputs for each target, always the same ones; and the harness finds bugs put there on purpose."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import watch as watching
from tests.fuzz.__main__ import main
from tests.fuzz.clock import Clock
from tests.fuzz.mutate import Mutator, shrunk
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import PATIENT_MS, Watch, stop_when_stuck
from tests.fuzz.worker import Current

INPUTS = 400


@pytest.fixture(autouse=True)
def stop_stuck_inputs() -> Iterator[None]:
    undo = stop_when_stuck()
    yield
    undo()


@pytest.mark.parametrize("name", TARGETS)
def test_target_survives_mutated_seeds(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    mutator = Mutator(target.seeds(), target.tokens(), Random(1))

    with Clock(name) as clock:
        watch = Watch(target, tmp_path, clock, PATIENT_MS)
        for _ in range(INPUTS):
            watch(mutator.next()[: target.max_size])

    assert {finding.key: finding.data.hex() for finding in watch.findings.values()} == {}


@pytest.mark.parametrize("name", TARGETS)
def test_target_takes_most_of_its_seeds_as_something(name: str) -> None:
    """A target whose seeds are all refused tests nothing but the refusal."""
    target = TARGETS[name]
    taken = 0

    for seed in target.seeds():
        try:
            target.decode(seed)
        except target.refusals:
            continue
        taken += 1

    assert taken >= 5


# -- bugs put there on purpose ----------------------------------------------------------------------------------------


def run_planted(name: str, folder: Path) -> int:
    patient = ["--slow-ms", "250"]  # far from what the other bugs cost, on a machine several times slower too
    return main(["--target", f"planted-{name}", "--runs", "20", "--engine", "plain", *patient, "--work", str(folder)])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("key-error", "KeyError planted.py"),
        ("slow", "ms of CPU for"),
        ("greedy", "octets allocated for"),
        ("huge", "MemoryError planted.py"),
        ("law", "no input has the trigger"),
    ],
)
def test_harness_reports_a_planted_bug(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run_planted(name, tmp_path)

    out = capsys.readouterr().out
    assert status == 1
    assert said in out
    assert "1 finding\n" in out
    assert f"python -m tests.fuzz --target planted-{name} --input {tmp_path}/planted-{name}-" in out


def test_harness_reports_a_target_that_dies_with_its_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run_planted("fatal", tmp_path)

    assert status == 1
    assert f"died with status -{int(signal.SIGABRT)}" in capsys.readouterr().out
    assert b"\xee" in (tmp_path / "planted-fatal-death").read_bytes()


def test_harness_stops_an_input_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fuzz.planted import PLANTED

    monkeypatch.setattr(watching, "STUCK_SECONDS", 0.05)
    with Clock("planted-endless") as clock:
        watch = Watch(PLANTED["planted-endless"], tmp_path, clock)
        watch(b"a")
        watch(b"\xee")

    assert [finding.data for finding in watch.findings.values()] == [b"\xee"]


def test_harness_takes_documented_errors_as_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run_planted("none", tmp_path)

    assert status == 0
    assert "0 findings" in capsys.readouterr().out


def test_reproducer_shows_a_finding_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"a\xeeb")

    status = main(["--target", "planted-key-error", "--input", str(path), "--work", str(tmp_path)])

    assert status == 1
    assert "KeyError planted.py" in capsys.readouterr().out


# -- command line -----------------------------------------------------------------------------------------------------


def test_list_names_every_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0

    assert capsys.readouterr().out.split() == list(TARGETS)


def test_plain_mutator_stands_in_for_atheris_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "atheris", None)

    status = main(["--target", "planted-none", "--runs", "5", "--work", str(tmp_path)])

    assert status == 0
    assert "plain mutator" in capsys.readouterr().err


def test_unknown_target_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--target", "nothing"]) == 2

    assert "no target is called 'nothing'" in capsys.readouterr().err


# -- parts ------------------------------------------------------------------------------------------------------------


def test_mutator_gives_the_same_inputs_for_the_same_seed() -> None:
    one, other = (Mutator([b"abc", b"defg"], [b"\x80"], Random(5)) for _ in range(2))

    assert [one.next() for _ in range(200)] == [other.next() for _ in range(200)]


def test_shrinker_keeps_what_matters() -> None:
    data = bytes(range(200))

    assert shrunk(data, lambda smaller: b"\x40" in smaller and len(smaller) >= 3) in (b"\0\0\x40", b"\x40\0\0")


def test_input_of_a_dead_process_is_known(tmp_path: Path) -> None:
    current = Current(tmp_path / "current")

    current.set(b"longer than what follows")
    current.set(b"last")

    assert Current.of(tmp_path / "current") == b"last"
