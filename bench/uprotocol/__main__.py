"""The run: rounds, both libraries interleaved; then the table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.commandline import add_common, alternately, positive, progress
from bench.node.about import About
from bench.node.cases import Figure
from bench.node.processes import End, EndFailed, environment, free_port
from bench.node.table import Table

LIBRARIES = ("zenoh", "elea")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.uprotocol",
        description="uProtocol calls and messages over Elea, beside bare put and subscribe of eclipse-zenoh. Two peers,"
        " linked directly, 64 octets. See docs/benchmarks.md.",
    )
    parser.add_argument("--rounds", type=positive, default=5, help="how often everything is measured (5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (1)")
    add_common(parser)
    return parser.parse_args()


def main() -> int:
    wanted = arguments()
    table = Table()
    with tempfile.TemporaryDirectory(prefix="elea-bench-") as cache:
        variables = environment(wanted.path, Path(cache))
        about = About(variables, wanted.path, "bench.uprotocol")
        for number in range(wanted.rounds):
            for lib in alternately(list(LIBRARIES), number):
                progress(f"round {number + 1} of {wanted.rounds}: {lib}")
                run(lib, wanted.seconds, variables, number, table)
    progress("")
    about.finish()
    if wanted.json:
        print(json.dumps(about.facts | table.as_json()))
    else:
        print("\n".join([*about.lines(), "", *table.lines(), "", *table.notes]))
    return 1 if table.incomplete else 0


def run(lib: str, seconds: float, variables: dict[str, str], number: int, table: Table) -> None:
    """One library, once more if it fails."""
    for attempt in range(2):
        try:
            for figure in list(figures(lib, seconds, variables)):
                table.add(lib, figure)
            return
        except EndFailed as failed:
            table.failed(failed, f"round {number + 1}", again=not attempt)


def figures(lib: str, seconds: float, variables: dict[str, str]) -> Iterator[Figure]:
    spec: dict[str, Any] = {"lib": lib, "seconds": seconds, "mode": "peer", "shm": False, "port": free_port()}
    with closing(End(spec | {"job": "far", "listen": True}, variables, "bench.uprotocol.ends")) as far:
        far.hear("open")
        with closing(End(spec | {"job": "near", "listen": False}, variables, "bench.uprotocol.ends")) as near:
            near.hear("open")
            said = near.ask("latency", do="go")
            yield Figure("request and answer, one at a time: µs, median", said["latency"])
            yield Figure("request and answer, one at a time: µs, 99 of 100", said["worst"])
            yield Figure("requests a second, 64 in flight", near.ask("requests", do="go")["requests"])
            sent = near.ask("sent", do="go")["sent"]
            said = far.ask("received", do="tell")
            yield Figure("messages published and received a second", said["rate"], sent - said["received"])


if __name__ == "__main__":
    sys.exit(main())
