"""`elea.spark.progress(query)`: how a streaming query is doing, in one line, in a notebook, or as JSON.

Everything shown comes from the progress that Spark reports of its micro-batches (`query.recentProgress`); nothing here
needs Spark, so a report that was written down can be looked at anywhere::

    print(elea.spark.progress(query))             # one line
    elea.spark.progress(query).live()             # one line that keeps up, until the query ends or control-C
    elea.spark.progress(query)                    # in a notebook: a table with plots
    python -m elea.spark.progress reports.jsonl --json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Figures", "Progress", "figures_of", "lag_of", "main", "progress"]

Report = Mapping[str, Any]

LANDED: Final = "landed"
"""The observed metric that has the rows of a batch whose rows for Spark are files (`elea.spark.ingest`)."""

LOSSES: Final = ("lost", "corrupt", "skipped", "dropped")
"""Observed metrics whose names have one of these in them count samples that did not make it."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One micro-batch."""

    batch: int
    at: str
    rows: int
    in_per_second: float
    done_per_second: float
    lag: int | None
    """Rows that were in the log when the batch was planned and are not in it; None if the source does not say."""
    batch_ms: int
    state_rows: int
    losses: dict[str, int]
    away: dict[str, int] = field(default_factory=dict)
    """Logs whose broker is away, and for how many seconds; their samples come when it is back."""

    def line(self) -> str:
        """For a terminal."""
        lag = "?" if self.lag is None else _count(self.lag)
        lost = sum(self.losses.values())
        parts = [
            f"batch {self.batch}",
            f"in {_count(self.in_per_second)} rows/s",
            f"done {_count(self.done_per_second)} rows/s",
            f"lag {lag} rows",
            f"{self.batch_ms} ms",
        ]
        if self.state_rows:
            parts.append(f"state {_count(self.state_rows)} rows")
        parts += [f"{log} away for {seconds} s" for log, seconds in self.away.items()]
        parts.append("no losses" if not lost else ", ".join(f"{name} {n}" for name, n in self.losses.items() if n))
        return " · ".join(parts)


def figures_of(report: Report) -> Figures:
    """The figures of one report of Spark (`query.lastProgress`)."""
    sources = report.get("sources") or []
    lags = [lag_of(source) for source in sources]
    known = [lag for lag in lags if lag is not None]
    losses: dict[str, int] = {}
    for name, values in (report.get("observedMetrics") or {}).items():
        for column, value in _items(values):
            if any(word in f"{name}.{column}".lower() for word in LOSSES) and isinstance(value, int):
                losses[column] = losses.get(column, 0) + value
    for source in sources:
        for reason, count in _lost_of(source.get("endOffset")).items():
            losses[reason] = losses.get(reason, 0) + count
    duration = report.get("durationMs") or {}
    given = int(report.get("numInputRows") or 0)
    landed = dict(_items((report.get("observedMetrics") or {}).get(LANDED)))
    rows = int(landed["rows"] or 0) if "rows" in landed else given
    share = rows / given if given else 1.0
    return Figures(
        batch=int(report.get("batchId", -1)),
        at=str(report.get("timestamp", "")),
        rows=rows,
        in_per_second=_number(report.get("inputRowsPerSecond")) * share,
        done_per_second=_number(report.get("processedRowsPerSecond")) * share,
        lag=sum(known) if known else None,
        batch_ms=int(duration.get("triggerExecution") or report.get("batchDuration") or 0),
        state_rows=sum(int(one.get("numRowsTotal") or 0) for one in report.get("stateOperators") or []),
        losses=losses,
        away={log: seconds for source in sources for log, seconds in _away_of(source.get("latestOffset")).items()},
    )


def lag_of(source: Report) -> int | None:
    """How far a source's end is behind its newest; None unless both are offsets of this package."""
    end, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
    if end is None or latest is None:
        return None
    return sum(max(next_ - end.get(log, 0), 0) for log, next_ in latest.items())


def _offset(given: Any) -> dict[str, int] | None:
    """Where each log goes on: `{"<log>": {"epoch": …, "next": …}, …}`, or one without its name."""
    try:
        form = json.loads(given) if isinstance(given, str) else given
        if "next" in form:
            return {"": int(form["next"])}
        return {log: int(one["next"]) for log, one in form.items()}
    except (ValueError, TypeError, KeyError):
        return None


def _away_of(given: Any) -> dict[str, int]:
    """Logs whose broker is away; the source says so beside how far it had seen them go."""
    form = json.loads(given) if isinstance(given, str) and given.startswith("{") else given
    entries = form.items() if isinstance(form, dict) else ()
    return {log: int(one["away"]) for log, one in entries if isinstance(one, dict) and "away" in one}


def _lost_of(given: Any) -> dict[str, int]:
    """What a source has passed over since the query began, by reason; it stands in the offset of each log."""
    found: dict[str, int] = {}
    form = json.loads(given) if isinstance(given, str) and given.startswith("{") else given
    for one in form.values() if isinstance(form, dict) else ():
        for reason, count in (one.get("lost") or {}).items() if isinstance(one, dict) else ():
            found[reason] = found.get(reason, 0) + int(count)
    return found


def _items(values: Any) -> Iterable[tuple[str, Any]]:
    """The columns of an observed row, which is a dictionary in JSON and a Row in PySpark."""
    if hasattr(values, "asDict"):
        values = values.asDict()
    return values.items() if isinstance(values, Mapping) else []


def _number(value: Any) -> float:
    """A rate; Spark reports NaN and infinity as texts, and leaves out what it does not know."""
    try:
        found = float(value or 0)
    except ValueError:
        return 0.0
    return found if 0 <= found < float("inf") else 0.0


def _count(value: float) -> str:
    """A number in three or four digits: 950, 12.5 k, 1.25 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


class Progress:
    """The last micro-batches of a query, the newest last. See the module."""

    def __init__(self, reports: Iterable[Report], name: str = "", query: StreamingQuery | None = None) -> None:
        self.name = name
        self._query = query
        self.figures = [figures_of(report) for report in reports]
        """One for each micro-batch."""

    def __str__(self) -> str:
        head = f"{self.name}: " if self.name else ""
        return head + (self.figures[-1].line() if self.figures else "no micro-batch yet")

    def __repr__(self) -> str:
        return f"<Progress {self}>"

    def to_json(self) -> str:
        """One object a micro-batch, one a line."""
        return "\n".join(json.dumps({"query": self.name, **asdict(one)}) for one in self.figures)

    def live(self, seconds: float = 1.0, file: IO[str] | None = None) -> None:
        """Keep one line up to date until the query ends. On a terminal it stays in place; else a line a change."""
        if self._query is None:
            raise ValueError("only the progress of a running query can be followed; give the query to `progress`")
        out = sys.stderr if file is None else file
        before = ""
        try:
            while True:
                now = str(progress(self._query))
                if now != before:
                    print(
                        f"\r\x1b[K{now}" if out.isatty() else now,
                        end="" if out.isatty() else "\n",
                        file=out,
                        flush=True,
                    )
                    before = now
                if not self._query.isActive:
                    break
                time.sleep(seconds)
        except KeyboardInterrupt:
            pass
        if out.isatty():
            print(file=out)

    def _repr_html_(self) -> str:
        """A table with plots."""
        title = escape(self.name or "streaming query")
        if not self.figures:
            return f"<p><b>{title}</b>: no micro-batch yet</p>"
        last = self.figures[-1]
        rows = [
            ("rows/s in", _count(last.in_per_second), [one.in_per_second for one in self.figures]),
            ("rows/s done", _count(last.done_per_second), [one.done_per_second for one in self.figures]),
            ("lag, rows", "?" if last.lag is None else _count(last.lag), [float(one.lag or 0) for one in self.figures]),
            ("batch, ms", str(last.batch_ms), [float(one.batch_ms) for one in self.figures]),
            ("state, rows", _count(last.state_rows), [float(one.state_rows) for one in self.figures]),
            ("losses", str(_lost(last)), [float(_lost(one)) for one in self.figures]),
        ]
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(what)}</th><td style='text-align:right'>{escape(value)}</td>"
            f"<td style='text-align:right'>{escape(_count(max(values)))}</td><td>{_plot(values)}</td></tr>"
            for what, value, values in rows
        )
        return (
            f"<table><caption><b>{title}</b>, batch {last.batch}, {escape(last.at)}</caption>"
            f"<tr><th></th><th>now</th><th>most</th><th>last {len(self.figures)} batches</th></tr>{body}</table>"
        )


def _lost(figures: Figures) -> int:
    return sum(figures.losses.values())


def _plot(values: Sequence[float], width: int = 240, height: int = 28) -> str:
    """A line of values as SVG, the least at the bottom: zero."""
    most = max([*values, 1e-9])
    step = width / max(len(values) - 1, 1)
    points = [(index * step, height - 2 - value / most * (height - 4)) for index, value in enumerate(values)]
    if len(points) == 1:
        points.append((float(width), points[0][1]))
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f"<svg width='{width}' height='{height}' viewBox='0 0 {width} {height}' role='img'>"
        f"<polyline points='{drawn}' fill='none' stroke='currentColor' stroke-width='1.5'/></svg>"
    )


def progress(query: StreamingQuery | Iterable[Report], name: str | None = None) -> Progress:
    """How a streaming query is doing, from its last micro-batches; also from reports that were kept.

    ::

        query = df.writeStream.format("zenoh").start()
        print(elea.spark.progress(query))
    """
    running: Any = query
    if hasattr(query, "recentProgress"):
        reports = [_form(report) for report in running.recentProgress]
        return Progress(reports, name or running.name or str(running.id)[:8], running)
    return Progress(running, name or "")


def _form(report: Any) -> Report:
    """A report as a dictionary; newer versions of PySpark have a class for it."""
    if isinstance(report, Mapping):
        return report
    found: Report = json.loads(report.json)
    return found


class _Module(ModuleType):
    """This module called is its function: whoever imports it makes it what `elea.spark.progress` names."""

    def __call__(self, query: StreamingQuery | Iterable[Report], name: str | None = None) -> Progress:
        return progress(query, name)


sys.modules[__name__].__class__ = _Module


def main(arguments: Sequence[str] | None = None) -> int:
    """Show reports that were written to a file, one JSON object a line."""
    parser = argparse.ArgumentParser(prog="python -m elea.spark.progress", description=main.__doc__)
    parser.add_argument("file", help="reports of Spark, one JSON object a line; - is standard input")
    parser.add_argument("--json", action="store_true", help="one object a micro-batch")
    args = parser.parse_args(arguments)
    with sys.stdin if args.file == "-" else open(args.file, encoding="utf-8") as lines:
        found = progress([json.loads(line) for line in lines if line.strip()])
    print(found.to_json() if args.json else "\n".join(one.line() for one in found.figures) or str(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
