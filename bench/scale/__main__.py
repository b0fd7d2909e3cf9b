"""The run: rounds, numbers of clients, libraries, interleaved; then the tables."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bench.commandline import add_common, alternately, positive, progress
from bench.node.about import About
from bench.node.processes import End, EndFailed, environment, missing
from bench.scale.limits import obstacle, raise_open_files
from bench.scale.routers import Router
from bench.scale.table import LIBRARIES, Figures, target_lines, targets
from bench.scale.tls import make_certificate

CLIENTS: Final = "100,1000,5000,10000,15000"
TLS_CLIENTS: Final = "1000"
PATIENCE: Final = 700.0  # seconds between two figures; opening very many clients may take ten minutes


@dataclass(frozen=True, slots=True)
class Options:
    seconds: float
    rest: float
    peer_most: int
    variables: dict[str, str]
    certificate: tuple[Path, Path] | None


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale",
        description="How does a router cope with very many clients, beside eclipse-zenoh? See docs/benchmarks.md.",
    )
    parser.add_argument("--clients", type=counts, default=CLIENTS, help=f"how many, with commas ({CLIENTS})")
    parser.add_argument("--peer-most", type=int, default=5_000, help="the most that eclipse-zenoh gets (5000)")
    parser.add_argument("--rounds", type=positive, default=3, help="how often everything is measured (3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement (3)")
    parser.add_argument("--rest", type=float, default=10.0, help="seconds of the measurement at rest (10)")
    parser.add_argument(
        "--tls",
        type=counts,
        default=TLS_CLIENTS,
        help=f"how many over tls, which needs the openssl command ({TLS_CLIENTS}; 0: none)",
    )
    add_common(parser)
    return parser.parse_args()


def counts(text: str) -> list[int]:
    if text == "0":
        return []
    found = sorted({int(count) for count in text.split(",")})
    if found[0] < 2:
        raise argparse.ArgumentTypeError("at least 2 clients: one puts, the others receive")
    return found


def main() -> int:
    wanted = arguments()
    figures, secure = Figures(), Figures()
    with tempfile.TemporaryDirectory(prefix="elea-bench-") as directory:
        variables = environment(wanted.path, Path(directory, "cache"))
        about = About(variables, wanted.path, program="bench.scale")
        libraries = [lib for lib in LIBRARIES if not missing(lib)]
        if "zenoh" not in libraries:
            figures.missing("eclipse-zenoh is not installed")
        options = Options(wanted.seconds, wanted.rest, wanted.peer_most, variables, None)
        try:
            measure(options, possible(wanted.clients, figures), wanted.rounds, libraries, figures)
            if wanted.tls:
                options = replace(options, certificate=make_certificate(Path(directory)))
                measure(options, possible(wanted.tls, secure), wanted.rounds, libraries, secure)
        except KeyboardInterrupt:
            figures.missing("interrupted")
        except FileNotFoundError:
            secure.missing("over tls: the openssl command is not there")
    about.finish()
    judged = targets(figures)
    if wanted.json:
        found = figures.as_json() | {"targets": [target.as_json() for target in judged]}
        print(json.dumps(about.facts | found | {"tls": secure.as_json()}))
    else:
        print("\n".join([*about.lines(), "", *figures.lines(), "", *target_lines(judged)]))
        if secure.cells:
            print("\n".join(["", "over tls:", "", *secure.lines()]))
        print("\n".join(["", *figures.notes, *secure.notes]))
    return 1 if figures.incomplete or secure.incomplete else 0


def possible(clients: list[int], figures: Figures) -> list[int]:
    """Those numbers of clients that this machine can hold; why not the others is told below the tables."""
    found = []
    for count in clients:
        if problem := obstacle(count):
            figures.missing(problem)
        else:
            found.append(count)
    raise_open_files(max(found, default=0))
    return found


def measure(options: Options, clients: list[int], rounds: int, libraries: list[str], figures: Figures) -> None:
    held = {"elea": max(clients, default=0), "zenoh": options.peer_most}
    for number in range(rounds):
        for count in clients:
            for lib in alternately(libraries, number):
                if count > held[lib]:
                    continue
                where = f"round {number + 1} of {rounds}: {count} clients, {lib}"
                progress(where)
                try:
                    run(options, lib, count, figures)
                except EndFailed as failed:
                    held[lib] = count - 1  # nor will it hold more
                    figures.missing(f"{where}: {failed}")
    progress("")


def run(options: Options, lib: str, clients: int, figures: Figures) -> None:
    """One router and its clients. Figures taken before something failed count."""
    with Router(lib, clients, variables=options.variables, certificate=options.certificate) as router:
        spec = {
            "lib": lib,
            "job": f"{clients} clients",
            "port": router.port,
            "pid": router.pid,
            "clients": clients,
            "seconds": options.seconds,
            "rest": options.rest,
            "certificate": str(options.certificate[0]) if options.certificate else None,
        }
        end = End(spec, options.variables, module="bench.scale.measurement")
        try:
            while True:
                said = end.hear("said", PATIENCE)["said"]
                router.check()
                if "row" not in said:
                    break
                figures.add(lib, clients, **said)
            if "failed" in said:
                raise EndFailed(said["failed"])
        finally:
            end.close()


if __name__ == "__main__":
    sys.exit(main())
