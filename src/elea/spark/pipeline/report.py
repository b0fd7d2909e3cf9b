"""What a run of a pipeline has done: figures for each table and publish, as text, as JSON, and as a page with plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Final

from elea.plot.svg import Series, plot
from elea.spark.progress import Figures

__all__ = ["Report", "SinkReport", "html"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkReport:
    """One table or publish."""

    name: str
    kind: str
    """`table` or `publish`."""

    where: str
    """The directory, or the locators."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    quarantined: int = 0
    dropped: int = 0
    """Rows that broke a rule that says so."""

    late: int = 0
    """Rows that came after the watermark had closed their window."""

    repeated: int = 0
    """Batches that came again after a crash, and were not added twice."""

    restarts: int = 0
    """Times that the query was started again because the machine was too busy for Spark's own time limits."""

    compactions: int = 0
    removed_files: int = 0
    merged: dict[str, int] = field(default_factory=dict)
    """Rows of the table that merges have inserted, updated, deleted."""

    rules: dict[str, int] = field(default_factory=dict)
    """Rows that broke each rule."""

    losses: dict[str, int] = field(default_factory=dict)
    """What the source has passed over, since the first run."""

    figures: tuple[Figures, ...] = ()
    """Micro-batches; of a long run some."""

    problem: str | None = None

    @property
    def batch_ms(self) -> tuple[int, int, int]:
        """How long batches with rows took: the median, the 99th percentile, the longest."""
        times = sorted(one.batch_ms for one in self.figures if one.rows)
        if not times:
            return 0, 0, 0
        return times[len(times) // 2], times[min(len(times) * 99 // 100, len(times) - 1)], times[-1]

    @property
    def lag(self) -> int | None:
        """Rows that were behind when the last batch was planned that says so; the last point of the plot."""
        return next((one.lag for one in reversed(self.figures) if one.lag is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run."""

    pipeline: str
    file: str
    started: str
    """ISO 8601, UTC."""

    seconds: float
    ended: str
    """`done`: everything that was there is through. `stopped`: somebody said so. `failed`: a sink has the problem."""

    spark: str
    master: str
    backfill: bool = False
    notes: tuple[str, ...] = ()
    """What was found before the start and did not keep it from running."""

    sinks: tuple[SinkReport, ...] = ()

    def form(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self)
        for one, sink in zip(found["sinks"], self.sinks, strict=True):
            one["batch_ms"] = dict(zip(("median", "p99", "most"), sink.batch_ms, strict=True))
        return found

    def lines(self) -> list[str]:
        """For a terminal: a head, and a line a sink."""
        what = "backfill of pipeline" if self.backfill else "pipeline"
        found = [f"{what} {self.pipeline}: {self.ended} after {self.seconds:.1f} s"]
        found += [f"  note: {one}" for one in self.notes]
        width = max([len(one.name) for one in self.sinks], default=0)
        for one in self.sinks:
            parts = [f"in {one.rows_in:,}", f"out {one.rows_out:,}"]
            parts += [f"{name} {count:,}" for name, count in one.merged.items() if count]
            parts += [f"{name} {count:,}" for name, count in _odd(one) if count]
            parts.append(f"{one.batches} batches, median {one.batch_ms[0]} ms")
            found.append(f"  {one.name:<{width}}  {' · '.join(parts)}")
            found += [f"  {'':<{width}}  {count:,} rows broke {rule!r}" for rule, count in sorted(one.rules.items())]
            if one.problem is not None:
                found.append(f"  {'':<{width}}  problem: {one.problem}")
        return found


def _odd(sink: SinkReport) -> Iterable[tuple[str, int]]:
    """Rows that are not where the others are."""
    yield from (("quarantined", sink.quarantined), ("dropped", sink.dropped), ("late", sink.late))
    yield from (("lost (" + reason + ")", count) for reason, count in sorted(sink.losses.items()))


# -- the page ----------------------------------------------------------------------------------------------------------

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fff; --soft: #667; --line: #d5dae1; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --paper: #14181e; --soft: #9aa4b2; --line: #333b47; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.sub { color: var(--soft); margin: .2rem 0 1.2rem; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } th:first-child, td:first-child { text-align: left; }
.bad { color: var(--bad); font-weight: 600; }
div.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg .title { fill: var(--ink); font-weight: 600; }
"""

COLUMNS: Final = (
    "rows in", "rows out", "quarantined", "dropped", "late", "lost", "batches", "median ms", "p99 ms", "lag",
)  # fmt: skip


def html(report: Report) -> str:
    """A page of its own: nothing is fetched from anywhere."""
    title = f"{'Backfill of ' if report.backfill else ''}Pipeline {report.pipeline}"
    ended = escape(report.ended)
    said = f"<span class='bad'>{ended}</span>" if report.ended == "failed" else ended
    head = (
        f"{escape(report.file)} · started {escape(report.started)} · {report.seconds:.1f} s · {said} · "
        f"Spark {escape(report.spark)} on {escape(report.master)}"
    )
    body = [f"<h1>{escape(title)}</h1><p class='sub'>{head}</p>"]
    body += [f"<p class='bad'>{escape(one)}</p>" for one in report.notes]
    body.append(_table(report.sinks))
    body += [_section(one, report) for one in report.sinks]
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _table(sinks: Sequence[SinkReport]) -> str:
    rows = []
    for one in sinks:
        median, p99, _ = one.batch_ms
        lost = sum(one.losses.values())
        cells = [
            (one.rows_in, False), (one.rows_out, False), (one.quarantined, True), (one.dropped, True),
            (one.late, True), (lost, True), (one.batches, False), (median, False), (p99, False),
        ]  # fmt: skip
        bad = " class='bad'"
        told = "".join(f"<td{bad if is_bad and value else ''}>{value:,}</td>" for value, is_bad in cells)
        lag = "–" if one.lag is None else f"{one.lag:,}"
        rows.append(f"<tr><td>{escape(one.name)}</td>{told}<td>{lag}</td></tr>")
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    return f"<div class='wide'><table><tr><th>table or publish</th>{head}</tr>{''.join(rows)}</table></div>"


def _section(sink: SinkReport, report: Report) -> str:
    parts = [f"<h2>{escape(sink.name)}</h2><p class='sub'>{escape(sink.kind)} · {escape(sink.where)}</p>"]
    if sink.problem is not None:
        parts.append(f"<p class='bad'>{escape(sink.problem)}</p>")
    told = [f"{count:,} rows broke “{rule}”" for rule, count in sorted(sink.rules.items())]
    told += [f"{count:,} lost: {reason}" for reason, count in sorted(sink.losses.items())]
    if sink.repeated:
        were = "batch came again and was" if sink.repeated == 1 else "batches came again and were"
        told.append(f"{sink.repeated:,} {were} not added twice")
    if sink.compactions or sink.removed_files:
        told.append(f"{sink.compactions:,} compactions, {sink.removed_files:,} old files removed")
    if told:
        parts.append("<ul>" + "".join(f"<li>{escape(one)}</li>" for one in told) + "</ul>")
    if sink.figures:
        parts.append(f"<div class='plots'>{''.join(_plots(sink.figures, report))}</div>")
    return "".join(parts)


def _plots(figures: Sequence[Figures], report: Report) -> Iterable[str]:
    """The micro-batches of a sink over the time of the run, which is one axis for all sinks."""
    from datetime import datetime

    # A batch planned before the run was counted from, as with clocks of two processes, is at its beginning.
    began = datetime.fromisoformat(report.started)
    times = [max((datetime.fromisoformat(one.at) - began).total_seconds(), 0.0) for one in figures]

    def drawn(title: str, name: str, values: Iterable[float | None]) -> str:
        known = [(at, float(value)) for at, value in zip(times, values, strict=True) if value is not None]
        return plot(title, [Series(name, tuple(known))], x_most=report.seconds)

    yield drawn("Rows a batch", "rows", (one.rows for one in figures))
    if any(one.lag is not None for one in figures):
        yield drawn("Lag, rows", "lag", (one.lag for one in figures))
    yield drawn("Batch, ms", "batch", (one.batch_ms for one in figures))
    if any(one.state_rows for one in figures):
        yield drawn("State, rows", "state", (one.state_rows for one in figures))
