"""The run: rounds, cases, libraries, interleaved; then the table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from bench.commandline import add_common, alternately, positive, progress
from bench.node.about import About
from bench.node.cases import CASES, OTHERS, Figure, Options
from bench.node.processes import EndFailed, environment, missing
from bench.node.table import Table

SIZES = "8,64,1024,8192,65536,1048576"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.node",
        description="How fast is a node, beside eclipse-zenoh, pyzmq and Redis? See docs/benchmarks.md.",
        epilog="\n".join(["cases:", *(f"  {name:9} {case.about}" for name, case in CASES.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", type=names, default=",".join(CASES), help="which, with commas (all)")
    parser.add_argument("--sizes", type=sizes, default=SIZES, help=f"payloads in octets ({SIZES})")
    parser.add_argument("--rounds", type=positive, default=5, help="how often everything is measured (5)")
    parser.add_argument("--seconds", type=float, default=0.8, help="of each measurement (0.8)")
    parser.add_argument("--rate-seconds", type=float, default=5.0, help="of each measurement of the case `rate` (5)")
    parser.add_argument("--subscribers", type=positive, default=10_000, help="of the case `many` (10000)")
    add_common(parser)
    return parser.parse_args()


def names(text: str) -> list[str]:
    found = text.split(",")
    for name in found:
        if name not in CASES:
            raise argparse.ArgumentTypeError(f"no case {name!r}; there are {', '.join(CASES)}")
    return found


def sizes(text: str) -> tuple[int, ...]:
    return tuple(positive(size) for size in text.split(","))


def main() -> int:
    wanted = arguments()
    with tempfile.TemporaryDirectory(prefix="elea-bench-") as cache:
        variables = environment(wanted.path, Path(cache))
        about = About(variables, wanted.path)
        options = Options(wanted.seconds, wanted.sizes, wanted.subscribers, variables, wanted.rate_seconds)
        table = Table(lib for lib in OTHERS if missing(lib))
        warm(options, table)
        measure(options, wanted.cases, wanted.rounds, table)
    about.finish()
    if wanted.json:
        print(json.dumps(about.facts | table.as_json()))
    else:
        print("\n".join([*about.lines(), "", *table.lines(), "", *table.notes]))
    return 1 if table.incomplete else 0


def warm(options: Options, table: Table) -> None:
    """One short flow and query with each library, uncounted: fills the byte code cache, and shows what cannot work."""
    short = Options(0.1, (64,), 10, options.environment)
    for name in ("callback", "query"):
        for lib in ("zenoh", "elea"):
            run(short, name, lib, None, table)


def measure(options: Options, cases: list[str], rounds: int, table: Table) -> None:
    for number in range(rounds):
        for name in cases:
            libraries = [lib for lib in CASES[name].libraries if lib not in table.absent]
            for lib in alternately(libraries, number):
                progress(f"round {number + 1} of {rounds}: {name}, {lib}")
                run(options, name, lib, number, table)
    progress("")


def run(options: Options, name: str, lib: str, number: int | None, table: Table) -> None:
    """One case, once more if it fails. What fails twice is told below the table, and the others go on."""
    figures: list[Figure] = []
    for attempt in range(2):
        figures.clear()
        try:
            for figure in CASES[name].run(options, lib):
                figures.append(figure)
            break
        except EndFailed as failed:
            table.failed(
                failed, f"{name}, {'warming up' if number is None else f'round {number + 1}'}", again=not attempt
            )
    for figure in figures if number is not None else ():
        table.add(lib, figure)


if __name__ == "__main__":
    sys.exit(main())
