"""Random predicates over random rows, judged by all compilers: `python -m tests.property.predicates --pairs 100000`.

Each predicate is compiled to a closure, an expression of Arrow and, with `--spark`, a column of Spark; a pair of
predicate and row on which they differ is printed and makes the program fail.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.acero as acero

from elea.columnar.predicate import expression, record_of
from elea.model.predicate import Predicate, compile_row
from elea.model.predicate.types import Enumeration

__all__ = ["ENUMERATIONS", "SCHEMA", "arrow_verdicts", "differences", "random_predicate", "random_rows", "row_verdicts"]

Verdicts = list[bool | None]

ENUMERATIONS: Final[Mapping[tuple[str, ...], Enumeration]] = {
    ("mode",): Enumeration((("OFF", 0), ("ON", 5), ("A_B", 2)))
}
SCHEMA: Final = pa.schema(
    {
        "i": pa.int64(),
        "j": pa.int32(),
        "f": pa.float64(),
        "g": pa.float32(),
        "s": pa.string(),
        "on": pa.bool_(),
        "mode": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "pos": pa.struct({"x": pa.float64(), "n": pa.int64(), "name": pa.string()}),
        "hist": pa.list_(pa.int64()),
        "p": pa.list_(pa.float64()),
        "q": pa.list_(pa.float64()),
        "raw": pa.binary(),
    }
)
WHOLE: Final = (0, 1, -1, 2, 3, 7, 2**31 - 1, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
FLOATS: Final = (0.0, -0.0, 1.0, 1.5, -2.25, 3.0, 1e308, 5e-324, float("inf"), float("-inf"), float("nan"), 2.0**53)
TEXTS: Final = (
    "",
    "a",
    "ab",
    "b",
    "a%b",
    "a_b",
    "aab",
    "a\\b",
    "it's",
    "A",
    "é",
    "日本",
    "𝄞x",
    "a\nb",
    "1",
    "2.5",
    "OFF",
    "[x]",
)
PATTERNS: Final = (
    "%",
    "a%",
    "%b",
    "_",
    "__",
    "a_b",
    "%a%b%",
    "",
    "é",
    "_x",
    "a\\%",
    "%%",
    "it's",
    "%.%",
    "A",
    "日_",
    "%\\%",
)
GLOBS: Final = ("*", "a*", "?", "[ab]*", "[!a]*", "a\\%b", "a,b", "[a-c]?", "*b,[é]", "", "\\[x\\]", "*\\\\*", "a*b*")
START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def random_rows(chance: random.Random, count: int) -> pa.Table:
    """Rows in which every part may be null."""
    return pa.Table.from_pylist([_row(chance) for _ in range(count)], schema=SCHEMA)


def _row(chance: random.Random) -> dict[str, object]:
    def maybe(value: object) -> object:
        return None if chance.random() < 0.2 else value

    def floats() -> float:
        return chance.choice(FLOATS)

    whole = [number for number in WHOLE if -(2**31) <= number < 2**31]
    return {
        "i": maybe(chance.choice(WHOLE)),
        "j": maybe(chance.choice(whole)),
        "f": maybe(floats()),
        "g": maybe(chance.choice([0.0, 1.0, 1.5, 0.1, float("nan"), float("inf")])),
        "s": maybe(chance.choice(TEXTS)),
        "on": maybe(chance.random() < 0.5),
        "mode": maybe(chance.choice(["OFF", "ON", "A_B", "off", "other"])),
        "at": maybe(START + timedelta(microseconds=chance.choice([0, 1, 999_999, 10**6, -1, 10**12]))),
        "pos": maybe({"x": maybe(floats()), "n": maybe(chance.choice(WHOLE)), "name": maybe(chance.choice(TEXTS))}),
        "hist": maybe([maybe(chance.choice(WHOLE)) for _ in range(chance.randrange(4))]),
        "p": maybe([maybe(float(chance.randrange(3))) for _ in range(chance.randrange(5))]),
        "q": maybe([float(chance.randrange(3)) for _ in range(chance.randrange(1, 4))]),
        "raw": maybe(b"x"),
    }


FIELDS: Final = (
    *("i", "j", "f", "g", "s", "on", "mode", "at", "pos.x", "pos.n", "pos.name", "hist[0]", "hist[2]", "p[1]"),
    *("raw", "pos", "hist", "nosuch", "pos.nosuch", "i.x", "hist.x", "s[0]", "key", "timestamp"),
)


SENSIBLE: Final = FIELDS[:14]
"""Those that have something to be compared with."""


def random_predicate(chance: random.Random, depth: int = 0) -> tuple[str, list[str]]:
    """A predicate that parses, and its parameters; what it compares may make no sense."""
    parameters: list[str] = []
    return _condition(chance, depth, parameters), parameters


def _condition(chance: random.Random, depth: int, parameters: list[str]) -> str:
    draw = chance.random()
    if depth < 3 and draw < 0.45:
        word = chance.choice(["AND", "OR", "and", "or"])
        terms = [_condition(chance, depth + 1, parameters) for _ in range(chance.choice([2, 2, 3]))]
        return "(" + f" {word} ".join(terms) + ")"
    if depth < 4 and draw < 0.55:
        return f"NOT ({_condition(chance, depth + 1, parameters)})"
    return _predicate(chance, parameters)


def _predicate(chance: random.Random, parameters: list[str]) -> str:
    field = chance.choice(FIELDS if chance.random() < 0.3 else SENSIBLE)
    negation = chance.choice(["", "NOT "])
    kind = chance.randrange(12)
    if kind == 0:
        low, high = _constant(chance, field, parameters), _constant(chance, field, parameters)
        return f"{field} {negation}BETWEEN {low} AND {high}"
    if kind == 1:
        field = chance.choice([field, "s", "pos.name"])
        return f"{field} {negation}LIKE {_text(chance.choice(PATTERNS))}"
    if kind == 2:
        field = chance.choice([field, "s", "pos.name"])
        return f"{field} {negation}MATCH {_text(chance.choice(GLOBS))}"
    if kind == 3:
        choices = ",".join(_constant(chance, field, parameters) for _ in range(chance.randrange(1, 5)))
        return f"{field} {negation}IN ({choices})"
    if kind == 4:
        return f"{field} IS {negation}NULL"
    if kind == 5:
        sign = chance.choice(["=", "<>", "<", "<=", ">", ">="])
        return f"{field} {sign} {chance.choice(FIELDS)}"
    if kind == 6:
        points = [chance.choice(["p", "q", "hist", "[1,1]", "[0]", "[1,2,0.5]", "s", "f"]) for _ in range(2)]
        radius = chance.choice(["1", "1.5", "0", "-1", "f", "i", "s", "'x'"])
        return f"inRange({points[0]},{points[1]},{radius})"
    if kind == 7:
        sign = chance.choice(["=", "<", ">="])
        return f"distance(p,{chance.choice(['q', '[1,1]', '[0]'])}) {sign} {chance.choice(['1', '1.5', 'f', 'i'])}"
    sign = chance.choice(["=", "<>", "!=", "<", "<=", ">", ">="])
    constant = _constant(chance, field, parameters)
    return f"{field} {sign} {constant}" if chance.random() < 0.8 else f"{constant} {sign} {field}"


def _constant(chance: random.Random, field: str, parameters: list[str]) -> str:
    if field == "timestamp" or (field == "at" and chance.random() < 0.7):
        return f"'2026-01-01T00:00:0{chance.choice(['0', '0.000001', '1', '0.999999'])}Z'"
    if field == "key":
        return _text(chance.choice(TEXTS).replace("\n", ""))
    if field == "mode" and chance.random() < 0.7:
        return chance.choice(["'OFF'", "'ON'", "'A_B'", "2", "5"])
    draw = chance.randrange(10)
    if chance.random() < 0.6:  # what the field can be compared with
        draw = 6 if field in ("s", "pos.name", "mode") else 7 if field == "on" else chance.randrange(5)
    if draw < 3:
        return str(chance.choice((*WHOLE, 2**63, 2**64 - 1, "0x1F")))
    if draw < 5:
        return repr(chance.choice([value for value in FLOATS if value - value == 0]))
    if draw < 7:
        return _text(chance.choice(TEXTS).replace("\n", ""))
    if draw < 8:
        return chance.choice(["TRUE", "FALSE"])
    parameters.append(chance.choice(["1", "2.5", "a", "'a'", "TRUE", "0x2", "ON", "2026-01-01T00:00:01Z", "é", "-1e3"]))
    return f"%{len(parameters) - 1}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# -- verdicts ----------------------------------------------------------------------------------------------------------


def row_verdicts(predicate: Predicate, rows: list[dict[str, Any]]) -> Verdicts:
    """What the closure says."""
    test = compile_row(predicate, schema=record_of(SCHEMA, ENUMERATIONS))
    return [test(row) for row in rows]


def arrow_verdicts(predicate: Predicate, table: pa.Table) -> Verdicts:
    """What Arrow says."""
    found = expression(predicate, table.schema, enumerations=ENUMERATIONS)
    plan = acero.Declaration.from_sequence(
        [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
            acero.Declaration("project", acero.ProjectNodeOptions([found], ["verdict"])),
        ]
    )
    verdicts: Verdicts = plan.to_table(use_threads=False).column(0).to_pylist()
    return verdicts


def spark_verdicts(predicates: list[Predicate], frame: Any) -> list[Verdicts]:
    """What Spark says, of several at once."""
    from elea.spark.predicate import column

    columns = [column(each, frame.schema, enumerations=ENUMERATIONS) for each in predicates]
    found = frame.select(*[each.alias(f"v{at}") for at, each in enumerate(columns)]).toArrow()
    return [each.to_pylist() for each in found.columns]


def differences(seed: int, predicates: int, rows: int, spark: Any = None) -> list[str]:
    """Where the compilers differ, in words."""
    chance = random.Random(seed)
    table = random_rows(chance, rows)
    listed = table.to_pylist()
    made = [Predicate(*random_predicate(chance)) for _ in range(predicates)]
    found: list[str] = []
    by_spark: list[Verdicts] = []
    if spark is not None:
        by_spark = spark_verdicts(made, spark.createDataFrame(table))
    for at, predicate in enumerate(made):
        by_row = row_verdicts(predicate, listed)
        others = {"arrow": arrow_verdicts(predicate, table)}
        if spark is not None:
            others["spark"] = by_spark[at]
        if Predicate.of(str(predicate)) != predicate or Predicate(predicate.text, predicate.parameters) != predicate:
            found.append(f"text of {predicate!r} is not canonical")
        for name, verdicts in others.items():
            for number, (one, other) in enumerate(zip(by_row, verdicts, strict=True)):
                if one is not other:
                    found.append(f"{predicate!r}: row {one}, {name} {other}, of {listed[number]}")
                    break
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=200, help="rows of each table")
    parser.add_argument("--at-once", type=int, default=50, help="predicates for each table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", action="store_true", help="compare with Spark, too")
    args = parser.parse_args()
    spark = None
    if args.spark:
        import elea.spark

        spark = elea.spark.session("predicates", master="local[2]")
    pairs, seed, failed = 0, args.seed, 0
    while pairs < args.pairs:
        found = differences(seed, args.at_once, args.rows, spark)
        for line in found[:3]:
            print(f"seed {seed}: {line}")
        failed += len(found)
        pairs += args.at_once * args.rows
        seed += 1
    print(f"{pairs} pairs of predicate and row, seeds {args.seed} to {seed - 1}: {failed} predicates differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
