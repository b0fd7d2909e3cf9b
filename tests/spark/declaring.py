"""`examples/declarative` run with `spark-pipelines`, again and again, and its tables and alerts counted.

    python -m tests.spark.declaring                 # one run, more samples, another run
    python -m tests.spark.declaring --kills 5       # and five runs before that are killed in the middle

A copy of the project runs with a broker of its own, and with no Java on the path, so that the one of pip is found as
`conf/spark-env.sh` says. Killed is the whole process group while a streaming flow runs, one flow after the other. What
was acknowledged must be in bronze, silver and the alerts in the broker's log, once. One JSON object is printed.

Spark Connect listens at a fixed port: all of this happens in a network of its own where that is allowed, else whoever
comes second waits.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import elea
from tests.interop.storing import StoringBroker
from tests.spark.conftest import client

__all__ = ["run_apart"]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "declarative"
PLACE = "/var/tmp/elea-house"
"""Where the example keeps its tables."""

BROKER = "tcp/127.0.0.1:7447"
FLOWS = ("bronze", "silver", "glaring")
GLARE = 900
PATIENCE = 900.0
ROWS = 400


class Project:
    """A copy of the example."""

    def __init__(self, place: Path, locator: str) -> None:
        self._home = place / "project"
        self.tables = place / "house" / "tables"
        shutil.copytree(EXAMPLE, self._home)
        # A JVM that lives for seconds does not earn back what the better compiler costs.
        house = str(place / "house")
        self._change("spark-pipeline.yml", {PLACE: house, BROKER: locator})
        self._change("conf/spark-defaults.conf", {PLACE: house, " -D": " -XX:TieredStopAtLevel=1 -D"})
        self._programs = programs(place / "programs")
        self.log = place / "spark.log"
        self.kills = 0
        """Runs that were killed before they had ended."""

    def _change(self, name: str, texts: dict[str, str]) -> None:
        path = self._home / name
        text = path.read_text(encoding="utf-8")
        for old, new in texts.items():
            assert old in text, f"{name} does not say {old}"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    def run(self, kill_in: str | None = None, chance: random.Random | None = None) -> float:
        """`spark-pipelines run`, to the end, or killed while a flow runs; how long it took."""
        begun = time.monotonic()
        unset = ("JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP")
        environment = {name: value for name, value in os.environ.items() if name not in unset}
        environment |= {"PATH": self._programs, "SPARK_CONF_DIR": str(self._home / "conf")}
        before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                ["spark-pipelines", "run"],
                cwd=self._home, env=environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            if kill_in is None:
                process.wait(PATIENCE)
            else:
                self._await(process, before, rf"Flow \S*{kill_in} is RUNNING")
                time.sleep((chance or random.Random()).uniform(0, 1.5))
                self.kills += process.poll() is None
        finally:
            with contextlib.suppress(ProcessLookupError):  # and whatever it has left behind
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)
        assert kill_in is not None or process.returncode == 0, self.log.read_text(errors="replace")[-4000:]
        return time.monotonic() - begun

    def _await(self, process: subprocess.Popen[bytes], begin: int, pattern: str) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            text = self.log.read_bytes()[begin:].decode(errors="replace")
            if re.search(pattern, text):
                return
            assert process.poll() is None, f"it has ended before {pattern}: {text[-4000:]}"
            assert time.monotonic() < end, f"{pattern} did not come: {text[-4000:]}"
            time.sleep(0.05)

    def rows(self, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
        """The rows of a streaming table: those in files that its log of commits names, as Spark reads it."""
        import pyarrow.parquet as pq

        found: list[tuple[Any, ...]] = []
        for path in committed(self.tables / table):
            read = pq.ParquetFile(path).read(columns)
            found += zip(*(read.column(name).to_pylist() for name in columns), strict=True)
        return found

    def batches(self, table: str) -> int:
        """How many batches have brought rows."""
        return len({path.name for path in (self.tables / table / "_spark_metadata").iterdir() if path.name.isdigit()})

    def view(self, table: str) -> list[dict[str, Any]]:
        """The rows of a materialized view."""
        import pyarrow.parquet as pq

        return [
            row for path in (self.tables / table).glob("*.parquet") for row in pq.ParquetFile(path).read().to_pylist()
        ]


def committed(table: Path) -> Iterator[Path]:
    """The files of a streaming table, from its log: every tenth entry holds all before it."""
    entries = {int(path.name.partition(".")[0]): path for path in (table / "_spark_metadata").glob("[0-9]*")}
    whole = [number for number, path in entries.items() if path.name.endswith(".compact")]
    for number in sorted(entries):
        if number >= max(whole, default=0):
            _, *lines = entries[number].read_text(encoding="utf-8").splitlines()
            yield from (Path(json.loads(line)["path"].removeprefix("file://")) for line in lines)


def programs(place: Path) -> str:
    """A path with every program of this one but Java."""
    place.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in Path(directory).iterdir() if Path(directory).is_dir() else ():
            if program.name != "java" and not (place / program.name).is_symlink():
                (place / program.name).symlink_to(program)
    path = os.pathsep.join([str(Path(sys.executable).parent), str(place)])
    assert shutil.which("java", path=path) is None
    return path


# -- samples -----------------------------------------------------------------------------------------------------------


def luminosity(n: int) -> float:
    """Distinct for each number; that of every other one is too bright."""
    return n / 1000 if n % 2 else float(GLARE + 1 + n)


def number(value: float) -> int:
    """The other way round."""
    return int(value) - GLARE - 1 if value > GLARE else round(value * 1000)


def put(session: elea.Session, numbers: Iterable[int]) -> None:
    """Have reports stored, acknowledged; with them one that cannot be read, and a key that nobody wants."""
    reports = [
        (f"myhouse/floor/{n % 3}/room{n % 7}/lamp/LightStatus", json.dumps({"on": True, "luminosity": luminosity(n)}))
        for n in numbers
    ]
    more = [("myhouse/floor/0/hall/lamp/LightStatus", "no JSON"), ("myhouse/floor/0/hall/lamp/Colour", "{}")]
    session.put_batch([*reports, *more], "**", timeout=120.0)


def count(wanted: Iterable[int], found: Iterable[int]) -> dict[str, int]:
    """What there should be and is; lost and duplicated are to be 0."""
    want, have = Counter(wanted), Counter(found)
    return {
        "wanted": want.total(),
        "found": have.total(),
        "lost": (want - have).total(),
        "duplicated": (have - want).total(),
    }


def alerts(session: elea.Session) -> list[int]:
    """The numbers of the alerts in the broker's log."""
    with session.read("alerts/**") as reading:
        return [
            number(json.loads(payload)["luminosity"])
            for batch in reading
            for payload in batch.column("payload").to_pylist()
        ]


# -- the program -------------------------------------------------------------------------------------------------------


def run(place: Path, *, rows: int, runs: int, kills: int, seed: int) -> dict[str, Any]:
    """See the module."""
    chance = random.Random(seed)
    with StoringBroker("--store", str(place / "store"), "--persist", "**") as broker, client(broker.locator) as session:
        project = Project(place, broker.locator)
        done = 0
        seconds = []
        for at in range(kills + runs):
            put(session, range(done, done + rows))
            done += rows
            killed = FLOWS[at % len(FLOWS)] if at < kills else None
            seconds.append(round(project.run(killed, chance), 1))
        bright = [n for n in range(done) if luminosity(n) > GLARE]
        bronze = project.rows("bronze", ["value", "_corrupt"])
        gold = project.view("gold")
        return {
            "kills": project.kills,
            "bronze": count(range(done), [number(value["luminosity"]) for value, _ in bronze if value is not None]),
            "corrupt": [one.decode() for _, one in bronze if one is not None],
            "silver": count(range(done), [number(one) for (one,) in project.rows("silver", ["luminosity"])]),
            "alerts": count(bright, alerts(session)),
            "gold": {floor: sum(one["reports"] for one in gold if one["floor"] == floor) for floor in ("0", "1", "2")},
            "batches": project.batches("bronze"),
            "seconds": seconds,
        }


def run_apart(*, rows: int = ROWS, runs: int = 2, kills: int = 0, seed: int = 1) -> dict[str, Any]:
    """The same in a process of its own, with port 15002 for itself."""
    words = [sys.executable, "-m", "tests.spark.declaring", "--inside", "--rows", str(rows)]
    words += ["--runs", str(runs), "--kills", str(kills), "--seed", str(seed)]
    apart = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    try:
        can_part = subprocess.run([*apart, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        can_part = False
    with contextlib.ExitStack() as stack:
        if not can_part:
            lock = stack.enter_context(Path(tempfile.gettempdir(), "spark-connect-15002.lock").open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        words = [*apart, *words] if can_part else words
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Run; 0 if nothing was lost and nothing came twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS, help="samples before each run")
    parser.add_argument("--runs", type=int, default=2, help="that come to their end")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        with tempfile.TemporaryDirectory() as place:
            found = run(Path(place), rows=given.rows, runs=given.runs, kills=given.kills, seed=given.seed)
    else:
        found = run_apart(rows=given.rows, runs=given.runs, kills=given.kills, seed=given.seed)
    print(json.dumps(found))
    is_wrong = any(found[name][what] for name in ("bronze", "silver", "alerts") for what in ("lost", "duplicated"))
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
