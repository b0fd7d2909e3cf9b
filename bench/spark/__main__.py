"""The run: rounds and ways, interleaved; then the table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import elea
from bench.commandline import positive, progress
from bench.node.about import output, processor, version
from bench.node.processes import ROOT
from bench.spark.cases import CASES, Plan, Way
from bench.spark.stage import Stage, session, stage
from bench.spark.table import Table

__all__ = ["measure", "run"]

PACKAGES = ("elea", "pyspark", "pyarrow", "deltalake", "numba", "eclipse-zenoh")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.spark",
        description="How fast is the pipeline on Spark, beside naive code and its limit? See docs/benchmarks.md.",
        epilog="\n".join(["cases:", *(f"  {name:9} {case.about}" for name, case in CASES.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", type=names, default=list(CASES), help="which, with commas (all)")
    parser.add_argument("--rows", type=positive, default=3_000_000, help="in the log (3000000)")
    parser.add_argument("--sizes", type=sizes, default=(500_000, 1_000_000), help="rows a batch (500000,1000000)")
    parser.add_argument("--rounds", type=positive, default=3, help="how often everything is measured (3)")
    parser.add_argument("--puts", type=positive, default=200, help="of the case latency, each round (200)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of putting, in the case live (1.5)")
    parser.add_argument("--path", type=Path, help="directory with an installation of elea, e.g. a compiled one")
    parser.add_argument("--dir", type=Path, help="a directory on the disk to measure")
    parser.add_argument("--json", action="store_true", help="print one JSON object with the figures of all rounds")
    return parser.parse_args()


def names(text: str) -> list[str]:
    found = text.split(",")
    for name in found:
        if name not in CASES:
            raise argparse.ArgumentTypeError(f"no case {name!r}; there are {', '.join(CASES)}")
    return found


def sizes(text: str) -> tuple[int, ...]:
    return tuple(positive(size) for size in text.split(","))


def run_with(path: Path) -> None:
    """See to it that this process, and so those it starts, use the installation in a directory."""
    if path in Path(elea.__file__).resolve().parents:
        return
    if os.environ.get("PYTHONPATH") == str(path):
        raise SystemExit(f"elea is not installed in {path}; `make compiled` makes such a directory")
    os.environ["PYTHONPATH"] = str(path)
    os.execv(sys.executable, [sys.executable, "-m", "bench.spark", *sys.argv[1:]])


def main() -> int:
    wanted = arguments()
    if wanted.path is not None:
        run_with(wanted.path.resolve())
    plan = Plan(wanted.rows, wanted.sizes, wanted.puts, wanted.seconds)
    facts = about()
    spark = session()
    try:
        with stage(spark, wanted.rows, wanted.dir) as on:
            table = measure(on, plan, wanted.cases, wanted.rounds)
    finally:
        spark.stop()
    facts["load after"] = os.getloadavg()
    if wanted.json:
        print(json.dumps(facts | table.as_json()))
    else:
        print("\n".join([*told(facts), "", *table.lines(), "", *table.notes]))
    return 1 if table.incomplete else 0


def measure(on: Stage, plan: Plan, cases: list[str], rounds: int, *, warm: bool = True) -> Table:
    """All rounds of some cases."""
    ways = [way for name in cases for way in CASES[name].ways(plan)]
    table = Table(row for name in cases for row in CASES[name].rows(plan))
    if warm:  # compiles what the JVM and Numba run most; the first run of anything is half as fast as the second
        for way in ways:
            if way.name.startswith(("batch", "ready", "parquet", f"stream noop {max(plan.sizes)}")):
                run(on, way, None, table)
    try:
        for number in range(rounds):
            for way in ways if number % 2 == 0 else ways[::-1]:  # nobody always comes second
                progress(f"round {number + 1} of {rounds}: {way.name}")
                run(on, way, number, table)
    except KeyboardInterrupt:  # what was measured so far is told
        table.interrupted()
    progress("")
    return table


def run(on: Stage, way: Way, number: int | None, table: Table) -> None:
    """One way, once more if it fails. What fails twice is told below the table, and the others go on."""
    for attempt in range(2):
        try:
            figures = way.run(on)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other figures must not be lost
            where = f"{way.name}, {'warming up' if number is None else f'round {number + 1}'}"
            table.failed(error, where, again=not attempt)
        else:
            if number is not None:
                table.add(figures)
            return


def about() -> dict[str, Any]:
    """Where and with what."""
    from elea.wire import compiled

    return {
        "command": shlex.join(["python", "-m", "bench.spark", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "commit": output("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
        "machine": f"{os.cpu_count()} × {processor()}, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
        "compiled": compiled(),
        "load before": os.getloadavg(),
    }


def told(facts: dict[str, Any]) -> list[str]:
    """The lines above the table."""
    packages = [f"{name} {number or 'not installed'}" for name, number in facts["versions"].items()]
    packages[0] += f" ({'compiled' if facts['compiled'] else 'plain Python'}, commit {facts['commit'] or 'unknown'})"
    before, after = (" ".join(f"{load:.1f}" for load in facts[f"load {when}"]) for when in ("before", "after"))
    return [
        f"$ {facts['command']}",
        f"{facts['date']}, {facts['machine']}, load average {before} before, {after} after",
        f"Python {facts['python']}, {', '.join(packages)}",
    ]


if __name__ == "__main__":
    sys.exit(main())
