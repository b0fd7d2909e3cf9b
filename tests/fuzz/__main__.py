"""`python -m tests.fuzz`: hostile input for every decoder; 1 if anything was found.

Each target runs in a process of its own, so that one that dies does not end the others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.clock import Clock, target_named
from tests.fuzz.planted import PLANTED
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import SLOW_MS, Watch, stop_when_stuck
from tests.fuzz.worker import Current

WORK = Path(__file__).parent / "work"
RUNS = 100_000
NO_ATHERIS = "atheris cannot be imported (pip install '.[fuzz]'): inputs come from the plain mutator"


@dataclass
class Result:
    """What a worker said last, and what it found."""

    name: str
    runs: int = 0
    seconds: float = 0.0
    refused: int = 0
    slowest: float = 0.0
    found: list[dict[str, Any]] = field(default_factory=list)

    def take(self, said: dict[str, Any]) -> None:
        self.runs, self.seconds, self.refused = said["runs"], said["seconds"], said["refused"]
        self.slowest, self.found = said.get("slowest", 0.0), said.get("found", [])

    def line(self) -> str:
        rate = self.runs / self.seconds if self.seconds else 0.0
        count = f"{len(self.found)} finding{'' if len(self.found) == 1 else 's'}"
        refused = f"{100 * self.refused / max(1, self.runs):.0f} % refused"
        times = f"{rate:>8,.0f}/s   slowest {self.slowest:6.1f} ms"
        return f"{self.name:<20} {self.runs:>10,} runs {times}   {refused:>13}   {count}"


def main(arguments: list[str] | None = None) -> int:
    """Run the targets asked for, one after the other."""
    options = _options(arguments)
    if options.list:
        print("\n".join(TARGETS))
        return 0
    unknown = [name for name in options.target if name not in TARGETS and name not in PLANTED]
    if unknown:
        print(f"no target is called {unknown[0]!r}; there are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    options.work.mkdir(parents=True, exist_ok=True)
    if options.input:
        return _reproduce(options)
    if options.engine == "atheris" and not _has_atheris():
        print(NO_ATHERIS, file=sys.stderr)
        options.engine = "plain"
    found = 0
    for name in options.target or TARGETS:
        result = _run(name, options)
        print(result.line(), flush=True)
        for finding in result.found:
            print(f"    {finding['key']} ({finding['count']} times)\n        {finding['text']}")
            print(f"        python -m tests.fuzz --target {name} --input {finding['path']}", flush=True)
        found += len(result.found)
    return 1 if found else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", nargs="+", action="extend", default=[], metavar="NAME", help="only these targets")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"inputs for each target (default {RUNS:,})")
    parser.add_argument("--seconds", type=float, help="at most so long for each target")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same plain mutations")
    parser.add_argument("--slow-ms", type=float, default=SLOW_MS, help=f"CPU of one input (default {SLOW_MS:.0f})")
    parser.add_argument("--list", action="store_true", help="print the targets")
    parser.add_argument("--input", type=Path, nargs="+", help="run these files once, to see a finding again")
    parser.add_argument("--engine", choices=("atheris", "plain"), default="atheris", help="where inputs come from")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for findings and corpus")
    return parser.parse_args(arguments)


def _has_atheris() -> bool:
    try:
        import atheris  # noqa: F401
    except ImportError:
        return False
    return True


def _run(name: str, options: argparse.Namespace) -> Result:
    limits = ["--runs", str(options.runs), "--seed", str(options.seed), "--engine", options.engine]
    limits += ["--slow-ms", str(options.slow_ms)]
    if options.seconds is not None:
        limits += ["--seconds", str(options.seconds)]
    command = [sys.executable, "-m", "tests.fuzz.worker", name, *limits, "--work", str(options.work)]
    result, done = Result(name), False
    log = options.work / f"{name}.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as worker,
    ):
        assert worker.stdout is not None
        for line in worker.stdout:
            if not line.startswith("{"):
                continue  # atheris has things to say, too
            said = json.loads(line)
            result.take(said)
            done = said["event"] == "done"
            _show_progress(result, said["findings"])
    if not done:
        result.found.append(_death(name, options.work, worker.returncode, log))
    return result


def _show_progress(result: Result, findings: int) -> None:
    if sys.stderr.isatty():
        text = f"{result.name} {result.runs:,} runs, {findings} findings"
        print(f"\r{text:<78}\r", end="", file=sys.stderr, flush=True)


def _death(name: str, work: Path, status: int, log: Path) -> dict[str, Any]:
    current = work / f"{name}.current"
    path = work / f"{name}-death"
    path.write_bytes(Current.of(current) if current.exists() else b"")
    return {"key": f"died with status {status}", "text": f"see {log}", "path": str(path), "count": 1}


def _reproduce(options: argparse.Namespace) -> int:
    stop_when_stuck()
    status = 0
    for name in options.target:
        with Clock(name) as clock:
            watch = Watch(target_named(name), options.work, clock, options.slow_ms)
            for path in options.input:
                data = path.read_bytes()
                watch(data)
                print(f"{name} {path}: {watch.measure(data):.1f} ms, {'refused' if watch.refused else 'taken'}")
            for finding in watch.findings.values():
                status = 1
                print(f"    {finding.key}\n        {finding.text}")
    return status


if __name__ == "__main__":
    sys.exit(main())
