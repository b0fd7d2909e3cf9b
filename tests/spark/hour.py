"""An hour of a house, time compressed, through a windowed pipeline: the tables against pandas over the broker's log.

    python -m tests.spark.hour                       # 3600 s of 200 rooms, the driver killed 4 times on the way
    python -m tests.spark.hour --rooms 20 --kills 1

A driver in a process group of its own runs the pipeline (`tests/spark/house.py`) while the hour is put into the broker,
is killed at random times, and in the end drains what is there. Then everything is computed with pandas from the log,
and compared: every row of every table. Then the tables are computed anew by a backfill, and compared again. One JSON
object is printed.
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
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import elea
from tests.interop.storing import StoringBroker
from tests.robust.children import config, eventually
from tests.spark.house import FILE, differences, put, rooms, simulated

__all__ = ["run"]

MINUTES = 60
PATIENCE = 600.0


def drive(place: Path, *, once: bool, backfill: bool, master: str) -> int:
    """Run the pipeline until killed, or to the end."""
    import elea.spark
    from elea.spark.pipeline import report, runner, specreader

    spark = elea.spark.session("hour", master=master, settings={"spark.driver.memory": "1g"}, log_level="OFF")
    told = runner.run(
        specreader.read(place / "hour.toml"),
        spark,
        once=once,
        backfill=backfill,
        progress=lambda one: print(one, flush=True),
    )
    (place / ("backfill.html" if backfill else "report.html")).write_text(report.html(told), encoding="utf-8")
    print("\n".join(told.lines()), flush=True)
    return 0


def _driver(place: Path, *more: str) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    out = (place / "driver.log").open("ab")
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.hour", "--drive", str(place), *more],
        start_new_session=True, stdout=out, stderr=out, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip


def _version(place: Path) -> int:
    """How often the first table was committed."""
    from deltalake import DeltaTable

    bronze = place / "tables" / "bronze"
    return DeltaTable(bronze).version() if DeltaTable.is_deltatable(str(bronze)) else -1


def _wait_for_commit(place: Path, since: int) -> None:
    eventually(lambda: _version(place) > since, "the driver has committed something", PATIENCE)


def run(place: Path, *, count: int, seconds: int, kills: int, seed: int, master: str) -> dict[str, Any]:
    """See the module."""
    chance = random.Random(seed)
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(StoringBroker("--store", str(place / "store"), "--persist", "**"))
        session = stack.enter_context(elea.open(config("client", "connect", broker.locator)))
        put(session, rooms(count))
        as_of = datetime.now(UTC).isoformat(timespec="milliseconds")
        (place / "hour.toml").write_text(FILE.format(locator=broker.locator, as_of=as_of, limit=""))
        hour = simulated(count, seconds, seed)
        step = max(len(hour) // MINUTES, 1)
        pieces = [hour[at : at + step] for at in range(0, len(hour), step)]
        fatal = set(chance.sample(range(1, len(pieces) - 1), kills - 1))
        driver, begun_at = _driver(place, "--master", master), _version(place)
        for number, piece in enumerate(pieces):  # a minute of the hour in a second, or so
            put(session, piece)
            time.sleep(1.0)
            if number in fatal:
                _wait_for_commit(place, begun_at)
                time.sleep(chance.random())
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
                driver, begun_at = _driver(place, "--master", master), _version(place)
        _wait_for_commit(place, begun_at)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        begun = time.monotonic()
        assert _driver(place, "--once", "--master", master).wait() == 0, f"see {place / 'driver.log'}"
        drained = time.monotonic() - begun
        after_kills = differences(place, session)
        begun = time.monotonic()
        assert _driver(place, "--backfill", "--master", master).wait() == 0, f"see {place / 'driver.log'}"
        return {
            "samples": len(hour),
            "kills": kills,
            "after kills": after_kills,
            "after backfill": differences(place, session),
            "drain seconds": round(drained, 1),
            "backfill seconds": round(time.monotonic() - begun, 1),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=3600, help="of the house's time")
    parser.add_argument("--kills", type=int, default=4, help="of the driver, at least 1")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--master", default="local[2,4]")
    parser.add_argument("--keep", type=Path, help="a new directory for everything, which stays")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--backfill", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.drive is not None:
        return drive(args.drive, once=args.once, backfill=args.backfill, master=args.master)
    print(f"seed {args.seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        place = args.keep or Path(made)
        place.mkdir(parents=True, exist_ok=True)
        told = run(
            place, count=args.rooms, seconds=args.seconds, kills=args.kills, seed=args.seed, master=args.master
        )  # fmt: skip
    print(json.dumps(told, indent=1))
    wrong = [one for when in ("after kills", "after backfill") for one in told[when].values()]
    return int(any(one["missing"] or one["extra"] for one in wrong))


if __name__ == "__main__":
    sys.exit(main())
