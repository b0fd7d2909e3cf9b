"""Where and with what the figures were taken. `python -m bench.node.about` answers for an end."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.node.processes import ROOT, End

__all__ = ["About"]

PACKAGES = ("elea", "eclipse-zenoh", "pyzmq", "redis", "hiredis")


class About:
    """The lines above the table."""

    def __init__(self, variables: dict[str, str], path: Path | None, program: str = "bench.node") -> None:
        self.facts = said(End({"lib": "elea", "job": "about"}, variables, module="bench.node.about"), "versions")
        said(End({"lib": "none", "job": "nothing"}, variables), "rss")  # compiles what the next one measures
        self.facts |= said(End({"lib": "none", "job": "nothing"}, variables), "rss")
        where = Path(self.facts.pop("where"))
        if path is not None and path.resolve() not in where.parents:
            raise SystemExit(f"elea is not installed in {path}; `make compiled` makes such a directory")
        self.facts["elea from"] = os.path.relpath(where.parent, ROOT)
        self.facts |= {
            "command": shlex.join(["python", "-m", program, *sys.argv[1:]]),
            "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
            "commit": output("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
            "machine": f"{os.cpu_count()} × {processor()}, {platform.system()} {platform.release()}",
            "python": platform.python_version(),
            "redis-server": output("redis-server", "--version").partition("v=")[2].partition(" ")[0],
            "load before": os.getloadavg(),
        }

    def finish(self) -> None:
        self.facts["load after"] = os.getloadavg()

    def lines(self) -> list[str]:
        facts = self.facts
        kind = "compiled" if facts["compiled"] else "plain Python"
        names = [f"{name} {version or 'not installed'}" for name, version in facts["versions"].items()]
        names[0] += f" ({kind}, from {facts['elea from']}, commit {facts['commit'] or 'unknown'})"
        before, after = (" ".join(f"{load:.1f}" for load in facts[f"load {when}"]) for when in ("before", "after"))
        return [
            f"$ {facts['command']}",
            f"{facts['date']}, {facts['machine']}, load average {before} before, {after} after",
            f"Python {facts['python']}, {', '.join(names)}, redis-server {facts['redis-server'] or 'not installed'}",
            f"an end without a library: {facts['rss']:.1f} MB resident",
        ]


def said(end: End, fact: str) -> dict[str, Any]:
    try:
        return end.hear(fact)
    finally:
        end.close()


def output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def answer() -> dict[str, Any]:
    wire: Any = importlib.import_module("elea.wire")
    return {
        "versions": {package: version(package) for package in PACKAGES},
        "compiled": wire.compiled(),
        "where": str(Path(importlib.import_module("elea").__file__ or "").parent),
    }


if __name__ == "__main__":
    print(json.dumps(answer()), flush=True)
