"""Random changes of random pipelines: what goes on has what a fresh run of the changed file has, or is refused.

    python -m tests.spark.changing                   # 200 changes
    python -m tests.spark.changing --count 10 --seed 3

Each trial makes a pipeline, runs it over some samples, changes the file in one way, puts more samples and runs it
again. If that run is not refused, every table must have what the changed file gives over all samples from the
beginning; columns that a change has added are null in rows of before. One JSON object is printed, with what is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import elea
from elea.model.errors import PipelineChanged, PipelineError
from tests.interop.storing import StoringBroker
from tests.robust.children import config

__all__ = ["run"]

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
ITEMS = ("value.n AS n", "value.n * 2 AS twice", "key", "value.text AS text", "upper(value.text) AS loud")
FIELDS = ("n BIGINT", "at TIMESTAMP", "text STRING", "more DOUBLE")


@dataclass(frozen=True)
class Made:
    """A pipeline, by what can change in it."""

    kind: str
    """`plain`, `merge`, `window` or `count`."""

    items: tuple[str, ...] = ("value.n AS n", "key")
    least: int = 0
    length: str = "1 minute"
    fields: int = 3
    metadata: bool = False
    step: str = "made"
    comment: str = ""
    trigger: str = "1 second"
    partition: bool = False
    rule: str = ""
    keys: str = "key"
    has_more: bool = False

    def text(self, locator: str) -> str:
        where = f"WHERE value.n >= {self.least}"
        sql = f"SELECT {', '.join(self.items)} FROM numbers {where}"
        mode = ""
        if self.kind == "window":
            window = f"window(event_time, '{self.length}')"
            sql = f"SELECT window.start AS start, count(*) AS n FROM numbers {where} GROUP BY {window}"
        elif self.kind == "count":
            sql, mode = f"SELECT key, count(*) AS n FROM numbers {where} GROUP BY key", 'mode = "complete"'
        elif self.kind == "merge":
            items = [one for one in self.items if one != "key"]
            sql = f"SELECT {', '.join(['key', *items])}, value.n AS seq FROM numbers {where}"
            mode = f'mode = "merge"\nkeys = "{self.keys}"\nsequence_by = "seq"'
        event = 'event_time = "value.at"\nwatermark = "1 second"' if self.kind == "window" else ""
        more = '[table.more]\nfrom = "numbers"\npath = "tables/more"' if self.has_more else ""
        rule = f'expect = [ {{ name = "r", check = "{self.rule}", otherwise = "drop" }} ]' if self.rule else ""
        partition = 'partition_by = "key"' if self.partition and self.kind == "plain" else ""
        return f"""
# {self.comment}
[pipeline]
name = "changing"
connect = "{locator}"
trigger = "{self.trigger}"

[source.numbers]
keyexpr = "numbers/*"
format = "json"
schema = "{", ".join(FIELDS[: self.fields])}"
metadata = {str(self.metadata).lower()}
{event}

[step.{self.step}]
sql = '''
{sql} -- {self.comment}
'''

[table.result]
from = "{self.step}"
path = "tables/result"
{mode}
{rule}
{partition}
{more}
"""


def first(chance: random.Random) -> Made:
    kind = chance.choice(("plain", "plain", "merge", "window", "count"))
    others = chance.sample([one for one in ITEMS if one != "key"], chance.randrange(1, 3))
    return Made(kind, (*others, "key"), least=chance.choice((0, 2)), partition=chance.random() < 0.3)


def changed(chance: random.Random, made: Made) -> tuple[str, Made]:
    """Another pipeline, and in what."""
    spare = [one for one in ITEMS if one not in made.items]
    ways: dict[str, Made] = {
        "comment": replace(made, comment="another"),
        "trigger": replace(made, trigger="2 seconds"),
        "name of the step": replace(made, step="other"),
        "condition": replace(made, least=made.least + 1),
        "length": replace(made, length="2 minutes"),
        "field": replace(made, fields=4),
        "metadata": replace(made, metadata=True),
        "rule": replace(made, rule="key IS NOT NULL" if made.kind != "window" else "n > 1"),
        "partition": replace(made, partition=not made.partition),
        "keys": replace(made, keys="n" if any("AS n" in one for one in made.items) else "seq"),
        "another table": replace(made, has_more=True),
        "item added": replace(made, items=(*made.items, chance.choice(spare))),
        "item inserted": replace(made, items=(chance.choice(spare), *made.items)),
        "item changed": replace(made, items=(f"{made.items[0].split(' AS ')[0]} IS NULL AS odd", *made.items[1:])),
        "item gone": replace(made, items=made.items[1:]),
        "order": replace(made, items=tuple(reversed(made.items))),
    }
    name = chance.choice(list(ways))
    return name, ways[name]


class Trials:
    """One broker and one session for all of them."""

    def __init__(self, place: Path, spark: Any, broker: StoringBroker, session: elea.Session) -> None:
        self._place = place
        self._spark = spark
        self._broker = broker
        self._session = session
        self._count = 0

    def put(self, prefix: str, numbers: range) -> None:
        """Samples twenty seconds apart, in order."""
        samples = []
        for n in numbers:
            at = (BEGIN + timedelta(seconds=20 * n)).isoformat()
            samples.append((f"{prefix}/{n % 3}", json.dumps({"n": n, "at": at, "text": f"t{n}", "more": n / 2})))
        self._session.put_batch(samples, timeout=60)

    def run(self, place: Path, made: Made, prefix: str) -> None:
        from elea.spark.pipeline import runner, specreader

        place.mkdir(exist_ok=True)
        text = made.text(self._broker.locator).replace("numbers/*", f"{prefix}/*")
        (place / "changing.toml").write_text(text)
        runner.run(specreader.read(place / "changing.toml"), self._spark, once=True)

    def rows(self, place: Path, table: str) -> list[dict[str, Any]]:
        import pyarrow as pa
        from deltalake import DeltaTable

        path = place / "tables" / table
        return pa.table(DeltaTable(path).scan()).to_pylist() if DeltaTable.is_deltatable(str(path)) else []

    def trial(self, chance: random.Random) -> tuple[str, str, str]:
        """What was changed, what came of it, and what is wrong."""
        self._count += 1
        prefix, old, new = f"n{self._count}", self._place / f"{self._count}", self._place / f"{self._count}-fresh"
        made = first(chance)
        name, other = changed(chance, made)
        self.put(prefix, range(12))
        self.run(old, made, prefix)
        before = {table: self.rows(old, table) for table in ("result", "more")}
        self.put(prefix, range(12, 20))
        try:
            self.run(old, other, prefix)
        except (PipelineChanged, PipelineError) as error:
            return name, "refused" if isinstance(error, PipelineChanged) else "invalid", ""
        self.run(new, other, prefix)
        for table in ("result", "more"):
            wrong = _difference(self.rows(old, table), self.rows(new, table), before[table])
            if wrong:
                return name, "goes on", f"{made} {name}: {table}: {wrong}"
        return name, "goes on", ""


def _difference(found: list[dict[str, Any]], fresh: list[dict[str, Any]], before: list[dict[str, Any]]) -> str:
    """Where a table is not what it would be; rows of before know nothing of columns that came since."""
    columns = set(before[0]) if before else set(fresh[0]) if fresh else set()

    def cut(rows: list[dict[str, Any]]) -> Counter[str]:
        return Counter(json.dumps({name: _plain(row.get(name)) for name in sorted(columns)}) for row in rows)

    if cut(found) != cut(fresh):
        return f"{dict(cut(found) - cut(fresh))} instead of {dict(cut(fresh) - cut(found))}"
    added = {name for row in fresh for name in row} - columns
    whole = Counter(json.dumps({name: _plain(row[name]) for name in sorted(row)}) for row in fresh)
    for row in found:
        if any(row.get(name) is not None for name in added):
            text = json.dumps({name: _plain(row[name]) for name in sorted(row)})
            if text not in whole:
                return f"{text} is in no fresh run"
    return ""


def _plain(value: Any) -> Any:
    if isinstance(value, dict):  # fields of a payload may have been added, too
        return {name: _plain(one) for name, one in value.items() if name != "more"}
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def run(spark: Any, *, count: int, seed: int) -> dict[str, Any]:
    """See the module."""
    chance = random.Random(seed)
    told: Counter[str] = Counter()
    wrong: list[str] = []
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        broker = stack.enter_context(StoringBroker("--store", str(place / "store"), "--persist", "**"))
        session = stack.enter_context(elea.open(config("client", "connect", broker.locator)))
        trials = Trials(place, spark, broker, session)
        for number in range(count):
            name, what, problem = trials.trial(chance)
            told[f"{name}: {what}"] += 1
            wrong += [problem] if problem else []
            print(f"{number + 1}: {name}: {what} {problem}", file=sys.stderr, flush=True)
    return {"changes": count, "seed": seed, "outcomes": dict(sorted(told.items())), "wrong": wrong}


def main() -> int:
    """For the command line; 1 if a table has what no fresh run gives."""
    import elea.spark

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    spark = elea.spark.session("changing", master="local[2]", log_level="OFF")
    told = run(spark, count=args.count, seed=args.seed)
    spark.stop()
    print(json.dumps(told, indent=1))
    return int(bool(told["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
