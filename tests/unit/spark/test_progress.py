"""What `elea.spark.progress` makes of Spark's reports."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from elea.spark.progress import Progress, figures_of, lag_of, main, progress

REPORT: dict[str, Any] = {
    "id": "0a1b2c3d-0000-4000-8000-000000000000",
    "name": "silver",
    "timestamp": "2026-05-04T03:02:01.000Z",
    "batchId": 7,
    "numInputRows": 125000,
    "inputRowsPerSecond": 250000.0,
    "processedRowsPerSecond": 312600.4,
    "durationMs": {"addBatch": 300, "triggerExecution": 401},
    "stateOperators": [{"numRowsTotal": 1200}, {"numRowsTotal": 34}],
    "sources": [
        {
            "endOffset": {"fleet": {"epoch": "a1", "next": 1000}, "lab": {"epoch": "b2", "next": 5}},
            "latestOffset": {"fleet": {"epoch": "a1", "next": 1512}, "lab": {"epoch": "b2", "next": 5}},
        },
        {"endOffset": '{"epoch": "c3", "next": 10}', "latestOffset": '{"epoch": "c3", "next": 20}'},
        {"endOffset": "7", "latestOffset": "9"},
    ],
    "observedMetrics": {"payloads": {"rows": 125000, "corrupt": 3}, "other": {"lost_rows": 0, "most": 9.5}},
}


def test_figures_are_those_of_the_report() -> None:
    found = figures_of(REPORT)

    assert (found.batch, found.rows, found.batch_ms, found.state_rows) == (7, 125000, 401, 1234)
    assert found.lag == 522
    assert found.losses == {"corrupt": 3, "lost_rows": 0}
    assert found.line() == (
        "batch 7 · in 250 k rows/s · done 313 k rows/s · lag 522 rows · 401 ms · state 1.23 k rows · corrupt 3"
    )


def test_lag_counts_a_log_that_is_new_and_is_unknown_for_offsets_of_others() -> None:
    end = {"a": {"epoch": "1", "next": 5}}
    latest = {"a": {"epoch": "1", "next": 5}, "b": {"epoch": "2", "next": 4}}

    assert lag_of({"endOffset": end, "latestOffset": latest}) == 4
    assert lag_of({"endOffset": {"0": 12}, "latestOffset": {"0": 13}}) is None
    assert lag_of({"endOffset": end, "latestOffset": None}) is None


@pytest.mark.parametrize("report", [{}, {"inputRowsPerSecond": "NaN", "sources": None, "observedMetrics": None}])
def test_report_that_says_little_is_shown(report: dict[str, Any]) -> None:
    assert figures_of(report).line() == "batch -1 · in 0 rows/s · done 0 rows/s · lag ? rows · 0 ms · no losses"


def test_losses_of_a_source_stand_in_its_offset() -> None:
    end = {"a": {"epoch": "1", "next": 5, "lost": {"trimmed": 60}}, "b": {"epoch": "2", "next": 1, "lost": {"gone": 1}}}

    found = figures_of({"sources": [{"endOffset": end, "latestOffset": end}, {"endOffset": "7"}]})

    assert found.losses == {"trimmed": 60, "gone": 1}
    assert found.lag == 0
    assert found.line().endswith("trimmed 60, gone 1")


def test_rates_that_are_no_numbers_are_none() -> None:
    assert figures_of({"inputRowsPerSecond": "Infinity"}).in_per_second == 0.0
    assert figures_of({"inputRowsPerSecond": "nothing"}).in_per_second == 0.0


def test_notebook_gets_a_table_with_a_plot_for_each_figure() -> None:
    shown = Progress([REPORT, {**REPORT, "batchId": 8}], "<silver>")._repr_html_()

    assert shown.count("<svg") == shown.count("</svg>") == 6
    assert "&lt;silver&gt;" in shown
    assert "<silver>" not in shown
    assert "batch 8" in shown
    assert "no micro-batch yet" in Progress([])._repr_html_()


class Query:
    """A query as PySpark has it."""

    id = "0a1b2c3d-0000-4000-8000-000000000000"
    name: str | None = None

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802
        return [{**REPORT, "batchId": -self._rounds}]

    @property
    def isActive(self) -> bool:  # noqa: N802
        self._rounds -= 1
        return self._rounds > 0


def test_live_line_keeps_up_until_the_query_ends() -> None:
    out = io.StringIO()

    progress(Query(3)).live(0.0, out)  # type: ignore[arg-type]

    assert [line.split(" · ")[0] for line in out.getvalue().splitlines()] == [
        "0a1b2c3d: batch -3",
        "0a1b2c3d: batch -2",
        "0a1b2c3d: batch -1",
    ]


def test_line_on_a_terminal_stays_in_its_place() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    progress(Query(2)).live(0.0, out)  # type: ignore[arg-type]

    assert out.getvalue().count("\r\x1b[K") == 2
    assert out.getvalue().endswith("\n")
    assert out.getvalue().count("\n") == 1


def test_name_in_the_package_can_be_called_whoever_imported_what_before() -> None:
    import elea.spark

    assert str(elea.spark.progress([REPORT], "x")).startswith("x: batch 7")


def test_kept_reports_cannot_be_followed() -> None:
    with pytest.raises(ValueError, match="only the progress of a running query"):
        progress([REPORT]).live()


def test_reports_in_a_file_are_shown_as_lines_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "reports.jsonl"
    kept.write_text(json.dumps(REPORT) + "\n\n" + json.dumps({**REPORT, "batchId": 8}) + "\n")

    main([str(kept)])
    lines = capsys.readouterr().out.splitlines()
    main([str(kept), "--json"])
    forms = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [line.split(" · ")[0] for line in lines] == ["batch 7", "batch 8"]
    assert [(form["batch"], form["lag"], form["losses"]["corrupt"]) for form in forms] == [(7, 522, 3), (8, 522, 3)]
