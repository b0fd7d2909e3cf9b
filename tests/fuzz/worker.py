"""One target in a process of its own: `python -m tests.fuzz.worker TARGET …`, started by `python -m tests.fuzz`.

Prints one JSON object a line: progress as it goes, at the end the summary. The input being run is kept in a mapped
file, so that it is known even when the process is killed.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NoReturn

ROOM = 1 << 17
PROGRESS_SECONDS = 0.5
STORMS = 24


class Current:
    """The input being run, in a file that outlives the process."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(ROOM))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), ROOM)

    def set(self, data: bytes) -> None:
        size = len(data)
        self._map[: 4 + size] = size.to_bytes(4, "big") + data

    @staticmethod
    def of(path: Path) -> bytes:
        """What a process that died was running."""
        content = path.read_bytes()
        return content[4 : 4 + int.from_bytes(content[:4], "big")]


class Session:
    """Runs inputs until the number of runs or seconds asked for is reached, then says what came of it."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        # Imported here, where atheris has had its chance to instrument what they import.
        from tests.fuzz.clock import Clock, target_named
        from tests.fuzz.watch import Watch, stop_when_stuck

        stop_when_stuck()
        self.target = target_named(arguments.target)
        self.watch = Watch(self.target, folder, Clock(arguments.target), arguments.slow_ms)
        self._current = Current(folder / f"{arguments.target}.current")
        self._runs, self._seconds = arguments.runs, arguments.seconds
        self._start = monotonic()
        self._told = self._start

    def storm(self) -> None:
        """Measure seeds repeated up to the largest input there is."""
        seeds = [seed for seed in self.target.seeds() if 0 < len(seed) <= 32] if self.target.repeats else []
        for seed in seeds[:: 1 + len(seeds) // STORMS]:
            self.watch.measure(seed * (self.target.max_size // len(seed)))
        self._start = self._told = monotonic()

    def run(self, data: bytes) -> bool:
        """Run one input; whether another is wanted."""
        self._current.set(data)
        self.watch(data)
        now = monotonic()
        if now - self._told > PROGRESS_SECONDS:
            self._told = now
            self._say("progress", now)
        return self.watch.runs < self._runs and (self._seconds is None or now - self._start < self._seconds)

    def finish(self) -> None:
        """Shrink what was found, measure what was slow, and say the sum."""
        now = monotonic()
        self.watch.shrink()
        slowest = self.watch.slowest()
        findings = [
            {"key": one.key, "text": one.text, "path": one.path, "count": one.count}
            for one in self.watch.findings.values()
        ]
        self._say("done", now, slowest=slowest, found=findings)

    def _say(self, event: str, now: float, **more: Any) -> None:
        watch, seconds = self.watch, now - self._start
        line = {"event": event, "runs": watch.runs, "refused": watch.refused, "seconds": seconds}
        sys.stdout.write(json.dumps(line | {"findings": len(watch.findings)} | more) + "\n")
        sys.stdout.flush()


def run_plain(session: Session, seed: int) -> None:
    """The mutator of this project over seeds and dictionary; the seeds themselves first."""
    from tests.fuzz.mutate import Mutator

    seeds = list(session.target.seeds())
    mutator = Mutator(seeds, session.target.tokens(), Random(seed))
    for data in seeds:
        if not session.run(data):
            return
    while session.run(mutator.next()[: session.target.max_size]):
        pass


def run_atheris(session: Session, seed: int, folder: Path) -> NoReturn:
    """Inputs chosen by atheris for the branches they reach; ends the process."""
    import atheris

    corpus = folder / "corpus" / session.target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for data in session.target.seeds():
        (corpus / sha256(data).hexdigest()[:20]).write_bytes(data)
    dictionary = folder / f"{session.target.name}.dict"
    words = ("".join(f"\\x{octet:02x}" for octet in token) for token in session.target.tokens())
    dictionary.write_text("".join(f'"{word}"\n' for word in words if word))
    options = {
        "seed": seed or 1,  # 0 would mean a seed of its own choice
        "max_len": session.target.max_size,
        "len_control": 1_000,
        "dict": dictionary,
        "timeout": 60,
        "rss_limit_mb": 0,
        "artifact_prefix": f"{folder}/{session.target.name}.",
        "print_final_stats": 0,
        "verbosity": 0,
    }

    def one(data: bytes) -> None:
        if not session.run(data):
            session.finish()
            os._exit(0)

    atheris.Setup([sys.argv[0], *(f"-{name}={value}" for name, value in options.items()), str(corpus)], one)
    atheris.Fuzz()
    sys.exit("atheris ended before its time")


def instrumented(target: str, make: Callable[[], Session]) -> Session:
    """Call `make` with the modules of the product that it imports instrumented, as far as the target is about them.

    The dissection and the JSON form serve the laws of all targets; instrumented they would take most of the time.
    """
    import atheris

    only_laws = [] if target in ("json", "notation") else ["elea.notation", "elea.wire.zenoh1.jsonform"]
    with atheris.instrument_imports(include=["elea"], exclude=only_laws):
        return make()


def main() -> None:
    """Run the target of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--slow-ms", type=float, required=True)
    parser.add_argument("--engine", choices=("atheris", "plain"), required=True)
    parser.add_argument("--work", type=Path, required=True)
    arguments = parser.parse_args()

    def make() -> Session:
        return Session(arguments, arguments.work)

    session = instrumented(arguments.target, make) if arguments.engine == "atheris" else make()
    resource.setrlimit(resource.RLIMIT_AS, (session.target.room, session.target.room))
    session.storm()
    if arguments.engine == "atheris":
        run_atheris(session, arguments.seed, arguments.work)
    run_plain(session, arguments.seed)
    session.finish()


if __name__ == "__main__":
    main()
