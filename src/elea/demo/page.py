"""The report of a run of the demo: a page of its own with the accounts and plots, which fetches nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from html import escape
from typing import Final

from elea.demo.judge import Check, Latency
from elea.demo.stage import Outcome
from elea.plot.svg import Series, plot
from elea.spark.pipeline.report import STYLE

__all__ = ["html"]

POINTS: Final = 120
"""Of a line: more cannot be told apart."""

OWN_STYLE: Final = """
div.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .8rem; }
div.figure { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .9rem; }
div.figure b { display: block; font-size: 1.6rem; line-height: 1.2; white-space: nowrap; }
div.figure span { color: var(--soft); }
.good b { color: #2e9e6b; }
div.plots { grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); }
svg { overflow: visible; }
"""


def html(outcome: Outcome) -> str:
    """The page."""
    began = f"{datetime.fromtimestamp(outcome.began, UTC):%Y-%m-%d %H:%M:%S}"
    marks = " · ".join(f"{what} after {seconds:.1f} s" for what, seconds in outcome.marks.items())
    body = [
        f"<h1>Elea: a house, a fleet and a vehicle, through Spark and back</h1><p class='sub'>{began} UTC · "
        f"{outcome.seconds:.0f} s · publishers: {escape(', '.join(outcome.publishers))} · {escape(marks)}</p>",
        f"<div class='figures'>{''.join(_figures(outcome))}</div>",
        "<h2>Accounts</h2><p class='sub'>Ledgers of the publishers against the log of the broker, the log against the "
        "tables, and the alerts against both. A sample is known by its publisher and number. The log may have more "
        "than what was acknowledged: eclipse-zenoh asks for no acknowledgements. Messages of the vehicle are known by "
        "their uProtocol identifiers; a call counts if its request and its response are in the table. "
        "The lamp is one key of six nodes: every put of each must be seen by all.</p>",
        _table(outcome.verdict.checks),
        *_notes(outcome),
        f"<h2>What was seen</h2><div class='plots'>{''.join(_plots(outcome))}</div>",
        f"<h2>Micro-batches, seconds each</h2><div class='plots'>{''.join(_batches(outcome))}</div>",
    ]
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>elea demo</title><style>{STYLE}{OWN_STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _figures(outcome: Outcome) -> Iterator[str]:
    verdict = outcome.verdict
    yield _figure(f"{verdict.acknowledged:,}", f"acknowledged of {verdict.tried:,} samples put")
    yield _figure(f"{_found(outcome, 'bronze'):,}", "rows in bronze")
    yield _figure(f"{verdict.lost:,}", "lost", is_good=verdict.lost == 0)
    yield _figure(f"{verdict.duplicated:,}", "duplicated", is_good=verdict.duplicated == 0)
    yield _figure(_told(outcome.to_table), "to the table, median · slowest of 100")
    yield _figure(_told(outcome.to_alert), "to the alert, median · slowest of 100")
    answered = _found(outcome, "vehicle, calls")
    yield _figure(f"{answered:,}", f"calls of the vehicle answered, {_milliseconds(outcome.calls)}")


def _figure(value: str, what: str, *, is_good: bool | None = None) -> str:
    mark = "" if is_good is None else " good" if is_good else " bad"
    return f"<div class='figure{mark}'><b>{value}</b><span>{escape(what)}</span></div>"


def _told(latency: Latency | None) -> str:
    return "–" if latency is None else f"{latency.p50:.1f} s · {latency.p99:.1f} s"


def _milliseconds(latency: Latency | None) -> str:
    return "–" if latency is None else f"median {latency.p50 * 1000:.1f} ms"


def _found(outcome: Outcome, what: str) -> int:
    return next(one.found for one in outcome.verdict.checks if one.what == what)


def _table(checks: Sequence[Check]) -> str:
    rows = []
    for one in checks:
        cells = [(one.expected, False), (one.found, False)]
        cells += [(value, bool(value)) for value in (one.lost, one.duplicated, one.wrong)]
        bad = " class='bad'"
        told = "".join(f"<td{bad if is_bad else ''}>{value:,}</td>" for value, is_bad in cells)
        rows.append(f"<tr><td>{escape(one.what)}</td>{told}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("expected", "found", "lost", "duplicated", "wrong"))
    return f"<div class='wide'><table><tr><th>where</th>{head}</tr>{''.join(rows)}</table></div>"


def _notes(outcome: Outcome) -> Iterator[str]:
    told = [f"after {seconds:.1f} s the {what} was killed" for seconds, what in outcome.kills]
    if outcome.drivers > 1 + sum(1 for _, what in outcome.kills if what == "driver"):
        told.append(f"{outcome.drivers} drivers were started: the machine was too busy for time limits of Spark's")
    if outcome.failed_calls:
        codes = ", ".join(f"{count} {code}" for code, count in sorted(outcome.failed_calls.items()))
        told.append(f"calls of the vehicle that were not answered: {codes}")
    told += [
        f"{count:,} samples of {by}, which has nothing acknowledged, were put while no broker was there to keep them"
        for by, count in outcome.verdict.not_stored.items()
    ]
    if told:
        yield "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in told) + "</ul>"


def _plots(outcome: Outcome) -> Iterator[str]:
    draw = partial(plot, x_most=outcome.seconds)  # one axis for all of them
    puts = [put for put, _ in outcome.samples]
    rows = sorted(put + late for put, late in outcome.samples)
    yield draw("Samples", [_so_far("put", puts), _so_far("in bronze", rows)])
    yield draw("Delay", [_middle("to table", outcome.samples), _middle("to alert", outcome.alerts)], y_unit=" s")
    floors = sorted({one.floor for one in outcome.windows})
    yield draw(
        "Luminosity",
        [
            Series(f"floor {floor}", tuple(_since(outcome, floor)))
            for floor in floors
        ],
        y_unit=" %",
    )  # fmt: skip
    drive = _thinned(outcome.drive) or [(0.0, 0.0, 0.0)]
    speeds = tuple((at, speed) for at, speed, _ in drive)
    limits = tuple((at, limit) for at, _, limit in drive)
    yield draw("Vehicle", [Series("speed", speeds), Series("limit it was told", limits)], y_unit=" km/h")
    yield draw("Alerts", [_so_far("received", sorted(put + late for put, late in outcome.alerts))])


def _thinned(points: Sequence[tuple[float, float, float]]) -> Sequence[tuple[float, float, float]]:
    return points[:: max(1, len(points) // POINTS)]


def _since(outcome: Outcome, floor: str) -> Iterator[tuple[float, float]]:
    for one in outcome.windows:
        if one.floor == floor:
            yield max(one.begins - outcome.began, 0.0), one.luminosity


def _so_far(name: str, times: Sequence[float]) -> Series:
    """How many there were at each moment."""
    if not times:
        return Series(name, ((0.0, 0.0),))
    last = times[-1]
    moments = [last * at / POINTS for at in range(POINTS + 1)]
    return Series(name, tuple((moment, float(bisect_right(times, moment))) for moment in moments))


def _middle(name: str, points: Sequence[tuple[float, float]]) -> Series:
    """The median of each second."""
    seconds: dict[int, list[float]] = {}
    for at, value in points:
        seconds.setdefault(int(at), []).append(value)
    found = [(at + 0.5, sorted(values)[len(values) // 2]) for at, values in sorted(seconds.items())]
    return Series(name, tuple(found) or ((0.0, 0.0),))


def _batches(outcome: Outcome) -> Iterator[str]:
    names = dict.fromkeys(one["query"] for one in outcome.batches)
    for name in names:
        points = sorted((one["time"], one["ms"] / 1000) for one in outcome.batches if one["query"] == name)
        yield plot(name, [Series(name, tuple(points))], y_unit=" s", x_most=outcome.seconds)
