"""`elea demo` again and again, as a user runs it, and what its accounts say.

    python -m tests.spark.demos --times 10 --kill

Each run has another seed, which decides when what is killed. One JSON object is printed for each; 1 is the exit code if
one of them has lost something, has something twice, or does not come to its end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["Run", "demo"]

PATIENCE = 1800.0
"""Seconds for a run; a busy machine may need many of them."""


class Run:
    """The events of a run, and how it ended."""

    def __init__(self, code: int, lines: list[str], errors: str, page: str) -> None:
        self.code = code
        self.events: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.errors = errors
        self.page = page

    @property
    def outcome(self) -> dict[str, Any]:
        """The accounts."""
        found = [event for event in self.events if event["event"] == "outcome"]
        assert len(found) == 1, self.errors or self.events[-3:]
        return found[0]


def demo(*options: str) -> Run:
    """One run of `elea demo --json`, in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "report.html"
        called = [sys.executable, "-m", "elea", "demo", "--json", "--report", str(page), *options]
        done = subprocess.run(called, capture_output=True, text=True, timeout=PATIENCE, check=False)
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        return Run(done.returncode, done.stdout.splitlines(), done.stderr, text)


def main() -> int:
    """For the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--seconds", default="10")
    parser.add_argument("--rate", default="1000")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    args = parser.parse_args()
    worst = 0
    for seed in range(args.seed, args.seed + args.times):
        options = ["--seed", str(seed), "--seconds", args.seconds, "--rate", args.rate]
        run = demo(*options, *(["--kill"] if args.kill else []))
        try:
            outcome = run.outcome
        except AssertionError as error:
            outcome = {"problem": str(error)}
        told = ("problem", "tried", "acknowledged", "not_stored", "lost", "duplicated", "is_good", "kills", "drivers")
        more = ("to_table", "to_alert", "waited", "first_seconds", "seconds")
        print(json.dumps({"seed": seed, "code": run.code, **{k: outcome.get(k) for k in told + more}}), flush=True)
        worst = max(worst, int(run.code != 0))
    return worst


if __name__ == "__main__":
    sys.exit(main())
