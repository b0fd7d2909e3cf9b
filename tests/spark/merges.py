"""Tables by key under kills: the latest state and the history of a fleet, compared with pandas over the broker's log.

    python -m tests.spark.merges                     # 20 kills of the driver
    python -m tests.spark.merges --kills 3

Robots report states with stamps of their own, many late, and leave (deletions) and come back. A driver in a process
group of its own runs the pipeline meanwhile, and is killed with SIGKILL: at random times, and every other time right
behind a commit of which Spark does not know yet. In the end what is left is drained, both tables are compared with
pandas, then computed anew by a backfill and compared again. One JSON object is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import elea
from tests.interop.storing import StoringBroker
from tests.robust.children import config, eventually

__all__ = ["run"]

ROBOTS = 40
BATCH = 25
PATIENCE = 300.0
COLUMNS = ("robot", "at", "position", "speed")

FILE = """
[pipeline]
name = "fleet"
connect = "{locator}"
trigger = "300 ms"

[source.robots]
keyexpr = "fleet/*"
format = "json"
schema = "speed BIGINT"
metadata = true
options = {{ maxOffsetsPerTrigger = 400 }}

[step.states]
sql = '''
SELECT key AS robot, CAST(CAST(attachment AS STRING) AS BIGINT) AS at, offset AS position, value.speed, kind FROM robots
'''

[table.now]
from = "states"
path = "tables/now"
mode = "merge"
keys = "robot"
sequence_by = ["at", "position"]
deletes = "kind = 'DELETE'"

[table.history]
from = "states"
path = "tables/history"
mode = "merge"
keys = "robot"
sequence_by = ["at", "position"]
deletes = "kind = 'DELETE'"
scd = 2
"""


# -- the driver --------------------------------------------------------------------------------------------------------


def drive(place: Path, *, once: bool, backfill: bool, spark: Any = None) -> int:
    """Run the pipeline until killed, or to the end; in a session of its own, unless one is given."""
    import elea.spark
    from elea.spark.pipeline import runner, specreader

    if spark is None:
        spark = elea.spark.session("merges", master="local[2]", settings={"spark.driver.memory": "1g"}, log_level="OFF")
    told = runner.run(specreader.read(place / "fleet.toml"), spark, once=once, backfill=backfill)
    print("\n".join(told.lines()), flush=True)
    return 0


def _driver(place: Path, *more: str) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    with (place / "driver.log").open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.merges", "--drive", str(place), *more],
            start_new_session=True, stdout=out, stderr=out, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip


def _end(driver: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


# -- the fleet ---------------------------------------------------------------------------------------------------------


class Fleet:
    """Robots that report, acknowledged, until told to stop."""

    def __init__(self, locator: str, seed: int) -> None:
        self.count = 0
        self._chance = random.Random(seed)
        self._locator = locator
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with elea.open(config("client", "connect", self._locator)) as session:
            while not self._over.wait(0.15):
                for _ in range(BATCH):
                    self._report(session)

    def _report(self, session: elea.Session) -> None:
        chance = self._chance
        key = f"fleet/{chance.randrange(ROBOTS)}"
        at = str(max(self.count - chance.choice((0, 0, 0, 5, 50, 1000)), 0))
        if chance.random() < 0.1:
            session.delete(key, attachment=at, ack=True)
        else:
            session.put(key, json.dumps({"speed": chance.randrange(100)}), attachment=at, ack=True)
        self.count += 1

    def stop(self) -> int:
        self._over.set()
        self._thread.join(PATIENCE)
        return self.count


def _expected(session: elea.Session) -> dict[str, Any]:
    """Both tables, by pandas from the log."""
    log = session.read("fleet/*", timeout=PATIENCE).read_all().to_pandas()
    log["at"] = [int(text) for text in log["attachment"]]
    log["robot"] = log["key"]
    log["is_put"] = [payload is not None and len(payload) > 0 for payload in log["payload"]]
    log["speed"] = [
        json.loads(text)["speed"] if is_put else -1 for text, is_put in zip(log["payload"], log["is_put"], strict=True)
    ]
    log = log.sort_values(["robot", "at", "position"])
    log["valid_to"] = log.groupby("robot")["at"].shift(-1)
    last = log.groupby("robot").tail(1)
    history = log[log["is_put"]]
    ends = [None if end != end else int(end) for end in history["valid_to"]]
    return {
        "now": set(last[last["is_put"]][list(COLUMNS)].itertuples(index=False, name=None)),
        "history": {
            (*row, row[1], end, end is None)
            for row, end in zip(history[list(COLUMNS)].itertuples(index=False, name=None), ends, strict=True)
        },
    }


def _differences(place: Path, session: elea.Session) -> dict[str, Any]:
    import pyarrow as pa
    from deltalake import DeltaTable

    found = {}
    for name, wanted in _expected(session).items():
        columns = [*COLUMNS, *(("valid_from", "valid_to", "is_current") if name == "history" else ())]
        table = pa.table(DeltaTable(place / "tables" / name).scan(columns))
        rows = list(zip(*(table[column].to_pylist() for column in columns), strict=True))
        found[name] = {
            "rows": len(rows),
            "missing": len(wanted - set(rows)),
            "extra": len(set(rows) - wanted),
            "twice": len(rows) - len(set(rows)),
        }
    return found


# -- the run -----------------------------------------------------------------------------------------------------------


def _versions(place: Path) -> int:
    logs = [place / "tables" / name / "_delta_log" for name in ("now", "history")]
    return sum(len(list(log.glob("*.json"))) for log in logs)


def _story(place: Path, broker: StoringBroker) -> str:
    """What to look at when a driver has ended by itself."""
    code = broker.running.process.poll()
    said = [] if code is None else [broker.running.error_line() for _ in range(20)]
    return f"see {place / 'driver.log'}; the broker {'runs' if code is None else f'ended with {code}: {said}'}"


def _has_moved(place: Path, before: int, driver: subprocess.Popen[bytes]) -> bool:
    return _versions(place) > before or driver.poll() is not None


def run(place: Path, *, kills: int, seed: int, spark: Any = None) -> dict[str, Any]:
    """See the module; what is done behind the last kill is done in `spark`, or else in further drivers."""
    chance = random.Random(seed)
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(StoringBroker("--store", str(place / "store"), "--persist", "**"))
        session = stack.enter_context(elea.open(config("client", "connect", broker.locator)))
        (place / "fleet.toml").write_text(FILE.format(locator=broker.locator))
        fleet = Fleet(broker.locator, seed)
        for number in range(kills):
            before, driver = _versions(place), _driver(place)
            eventually(partial(_has_moved, place, before, driver), "a commit", PATIENCE)
            assert driver.poll() is None, _story(place, broker)
            if number % 2:  # else right behind a commit
                time.sleep(chance.uniform(0, 1.5))
            _end(driver)
            print(f"kill {number + 1} of {kills}, {fleet.count} samples", file=sys.stderr, flush=True)
        samples = fleet.stop()
        if spark is None:
            assert _driver(place, "--once").wait() == 0, _story(place, broker)
        else:
            drive(place, once=True, backfill=False, spark=spark)
        after_kills = _differences(place, session)
        if spark is None:
            assert _driver(place, "--backfill").wait() == 0, _story(place, broker)
        else:
            drive(place, once=False, backfill=True, spark=spark)
        after = _differences(place, session)
    return {"samples": samples, "kills": kills, "after kills": after_kills, "after backfill": after}


def main() -> int:
    """For the command line; 1 if a table is not what pandas says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", type=Path, help="a new directory for everything, which stays")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--backfill", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.drive is not None:
        return drive(args.drive, once=args.once, backfill=args.backfill)
    print(f"seed {args.seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        place = args.keep or Path(made)
        place.mkdir(parents=True, exist_ok=True)
        told = run(place, kills=args.kills, seed=args.seed)
    print(json.dumps(told, indent=1))
    wrong = [one for when in ("after kills", "after backfill") for one in told[when].values()]
    return int(any(one["missing"] or one["extra"] or one["twice"] for one in wrong))


if __name__ == "__main__":
    sys.exit(main())
