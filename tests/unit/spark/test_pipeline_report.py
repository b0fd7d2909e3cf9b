"""The report of a run: text, JSON, a page that fetches nothing, and plots whose axes have round numbers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from elea.model.errors import ExpectationFailed
from elea.spark.pipeline.query import cause_of
from elea.spark.pipeline.report import Report, SinkReport, html
from elea.spark.progress import Figures


def figures(batch: int, ms: int, *, rows: int = 100, lag: int | None = 7, state: int = 0) -> Figures:
    return Figures(batch, f"2026-03-01T06:00:{batch:02d}.000Z", rows, 10.0, 20.0, lag, ms, state, {})


SINKS = (
    SinkReport(
        name="bronze",
        kind="table",
        where="/data/bronze",
        batches=4,
        rows_in=1000,
        rows_out=950,
        quarantined=30,
        dropped=20,
        rules={"known <b>": 50},
        losses={"trimmed": 5},
        repeated=1,
        figures=tuple(figures(at, 100 * (at + 1), state=at) for at in range(4)),
    ),
    SinkReport(name="alerts", kind="publish", where="tcp/broker:7447", problem="DataLost: gone & <away>"),
)
REPORT = Report(
    pipeline="fleet", file="/data/fleet.toml", started="2026-03-01T06:00:00+00:00", seconds=12.3, ended="failed",
    spark="4.3.0", master="local[2]", sinks=SINKS,
)  # fmt: skip


class Links(HTMLParser):
    """Collects what a page would fetch, and whether every element ends."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[Any] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value for name, value in attrs if name in ("src", "href", "data")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_shows_every_figure_escapes_what_it_is_told_and_fetches_nothing() -> None:
    page = html(REPORT)

    links = Links()
    links.feed(page)
    assert links.fetched == []
    assert links.open == []
    assert "url(" not in page
    assert "@import" not in page
    assert "known &lt;b&gt;" in page
    assert "gone &amp; &lt;away&gt;" in page
    assert "<td class='bad'>30</td>" in page
    assert page.count("<svg") == 4  # rows, lag, batch, state; the publish has no batch
    for word in ("950", "5 lost: trimmed", "1 batch came again", "Spark 4.3.0 on local[2]"):
        assert word in page


def test_text_and_json_say_what_did_not_arrive_and_why() -> None:
    lines = "\n".join(REPORT.lines())
    form = json.loads(json.dumps(REPORT.form()))

    assert "pipeline fleet: failed after 12.3 s" in lines
    assert "in 1,000 · out 950 · quarantined 30 · dropped 20 · lost (trimmed) 5 · 4 batches, median 300 ms" in lines
    assert "50 rows broke 'known <b>'" in lines
    assert "problem: DataLost" in lines
    assert form["sinks"][0]["batch_ms"] == {"median": 300, "p99": 400, "most": 400}
    assert form["sinks"][0]["figures"][3]["lag"] == 7


def test_cause_is_found_in_the_pages_that_spark_prints() -> None:
    page = "[STREAM_FAILED] …\nTraceback\n  File x\nelea.model.errors.DataLost: log was trimmed; do this\n\tat o.a"

    assert cause_of(RuntimeError(page)) == "DataLost: log was trimmed; do this"
    assert cause_of(RuntimeError("[UNRESOLVED] a column\n\nmore")) == "[UNRESOLVED] a column"
    failed = ExpectationFailed("gold", {"sane": 2}, "{'n': 1}")
    assert cause_of(failed).startswith(
        "ExpectationFailed: rows of table gold break rules that end the run: 2 broke 'sane'"
    )


def test_plots_of_all_sinks_share_the_time_of_the_run_and_mark_every_point() -> None:
    late = SinkReport(
        name="gold", kind="table", where="/data/gold", figures=(figures(9, 100, lag=None), figures(11, 100, lag=3))
    )
    page = html(Report(**{**{name: getattr(REPORT, name) for name in REPORT.__slots__}, "sinks": (SINKS[0], late)}))

    plots = re.findall(r"<svg.*?</svg>", page)
    axes = {tuple(re.findall(r"([0-9.]+) s</text>", one)) for one in plots}
    assert len(axes) == 1
    rows = next(one for one in plots[4:] if "Rows a batch" in one)
    assert rows.count("<circle") == 2
    # 9 and 11 s of an axis of 15 s, not the beginning of one of 2 s.
    first = float(re.findall(r"<circle cx='([0-9.]+)'", rows)[0])
    assert first == pytest.approx(52 + 9 / 15 * (420 - 52 - 12), abs=0.1)


def test_lag_of_the_table_is_the_last_point_of_the_plot() -> None:
    sink = SinkReport(name="a", kind="table", where="/a", figures=(figures(1, 5, lag=4), figures(2, 5, lag=None)))

    assert sink.lag == 4
    assert SinkReport(name="a", kind="table", where="/a", figures=(figures(1, 5, lag=None),)).lag is None
