"""`elea demo`: a house, a fleet and a vehicle, a broker that keeps what they say, tables and alerts; then the accounts.

Everything shown is measured or computed while it runs. `--tour` shows the core instead and needs no extra.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elea.cli import connection
from elea.cli.output import Output
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.demo.judge import Check, Latency
    from elea.demo.stage import Outcome

__all__ = ["add_arguments", "run"]

INSTALL: Final = "in a clone of Elea: pip install '.[demo]'"
REPORT: Final = "elea-demo.html"
MARKS: Final = {
    "first sample": "the first samples are acknowledged: safe on disk",
    "first call": "the first uProtocol call is answered by the vehicle",
    "Spark": "Spark is there",
    "first row": "the first rows are in a table",
    "first alert": "the first alert is back from Spark",
    "all generations": "each node of the lamp has seen a put of each other, of Spark, too",
}
EPILOG: Final = """\
examples:
  elea demo
  elea demo --kill                     kill the driver and the broker on the way
  elea demo --keep                     go on until Ctrl-C, to look around
  elea demo --tour                     the core alone: dialects, keys, codecs, a router; no Spark"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `elea demo`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rate", type=float, default=1000.0, metavar="N", help="samples a second (default: 1000)")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of publishing once the first rows are in a table (default: 20)"
    )
    parser.add_argument("--kill", action="store_true", help="kill the driver of Spark and the broker on the way")
    parser.add_argument("--keep", action="store_true", help="after the accounts go on until Ctrl-C; keep the files")
    parser.add_argument("--place", type=Path, metavar="DIR", help="keep everything in this new directory")
    parser.add_argument(
        "--report", type=Path, default=Path(REPORT), metavar="FILE", help=f"where the page goes (default: {REPORT})"
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is random (default: 1)")
    parser.add_argument("--tour", action="store_true", help="show the core instead: no Spark, no extra needed")


def run(args: argparse.Namespace) -> int:
    """Runs the demo."""
    if args.tour:
        from elea.cli import tour

        return tour.run(args)
    from elea.demo.processes import missing
    from elea.demo.stage import Options, Stage
    from elea.model.errors import DemoFailed

    _check(args, missing())
    show = _Show(Output(args), args.report)
    options = Options(
        rate=args.rate, seconds=args.seconds, kill=args.kill, keep=args.keep, place=args.place, seed=args.seed
    )
    show.out.line(show.out.style.paint("A house, a fleet and a vehicle, through Spark and back", "bold", "magenta"))
    stage = Stage(options, show.event)
    try:
        stage.run(show.outcome)
    except DemoFailed as error:
        raise CliError(str(error), "try again; elea demo --tour needs no Spark", connection.NO) from error
    finally:
        show.out.progress("")
    return 0 if show.is_good else connection.AT_RISK


def _check(args: argparse.Namespace, missing: list[str]) -> None:
    if missing:
        hint = f"{INSTALL}   or, without Spark:  elea demo --tour"
        raise CliError(f"the demo needs {', '.join(missing)}, which is not installed", hint, connection.USAGE)
    if args.rate <= 0 or args.seconds < 0:
        raise CliError("--rate must be above 0 and --seconds not below it", "elea demo --rate 1000", connection.USAGE)
    if args.place is not None and args.place.exists() and any(args.place.iterdir()):
        raise CliError(f"{args.place} is not empty", "name a directory that is not there yet", connection.USAGE)


class _Show:
    """Prints what happens: lines for people and one that keeps up, or an object a line."""

    def __init__(self, out: Output, report: Path) -> None:
        self.out = out
        self.is_good = False
        self._report = report

    def event(self, event: str, facts: dict[str, Any]) -> None:
        self.out.form({"event": event, **facts})
        if self.out.json:
            return
        if event == "progress":
            self._progress(facts)
            return
        self.out.progress("")
        paint = self.out.style.paint
        match event:
            case "broker":
                self.out.line(f"  broker {paint(facts['locator'], 'cyan')} keeps {', '.join(facts['keeps'])}")
            case "publishers":
                self.out.line(f"  publishers {', '.join(facts['by'])}: {facts['rate']:g} samples a second")
                if "eclipse" not in facts["by"]:
                    self.out.line(paint("  eclipse-zenoh is not installed: its publisher stays away", "yellow"))
            case "lamp":
                self.out.line(f"  {paint(facts['key'], 'cyan')} is the key of {', '.join(facts['nodes'])}")
            case "mark":
                self.out.line(f"  {facts['seconds']:5.1f} s  {paint(MARKS[facts['what']], 'green')}")
            case "kill":
                self.out.line(f"  {facts['seconds']:5.1f} s  {paint('killed: the ' + facts['what'], 'red', 'bold')}")
            case "staying":
                self.out.line(f"\nit goes on until Ctrl-C; everything is in {paint(facts['place'], 'cyan')}")
                for command in (
                    f"elea sub 'alerts/**' -e {facts['locator']}",
                    f"elea up sub --all -e {facts['locator']}",
                    f"elea store info {facts['place']}/store",
                ):
                    self.out.line(f"  {paint(command, 'cyan')}")
            case "driver":
                self.out.line(paint(f"  the driver has ended, another one is started: {facts['problem']}", "yellow"))

    def _progress(self, facts: dict[str, Any]) -> None:
        rows = " ".join(f"{name} {count:,}" for name, count in facts["rows"].items())
        told = f"  {facts['seconds']:5.1f} s  put {facts['put']:,} · acknowledged {facts['acknowledged']:,}"
        told += f" · {rows}" if rows else " · Spark is starting"
        told += f" · alerts received {facts['alerts']:,}"
        if self.out.live:
            self.out.progress(told)
        elif int(facts["seconds"]) % 5 == 0:  # no terminal: a line now and then
            self.out.line(told)

    def outcome(self, outcome: Outcome) -> None:
        """The accounts, and the page."""
        from elea.demo import page
        from elea.demo.judge import form_of

        self.is_good = outcome.verdict.is_good
        self.out.progress("")
        self._report.write_text(page.html(outcome), encoding="utf-8")
        self.out.form(
            {
                "event": "outcome",
                **form_of(outcome.verdict),
                "to_table": _latency_form(outcome.to_table),
                "to_alert": _latency_form(outcome.to_alert),
                "waited": _latency_form(outcome.waited),
                "calls": _latency_form(outcome.calls),
                "failed_calls": outcome.failed_calls,
                "first_seconds": {what: round(seconds, 2) for what, seconds in outcome.marks.items()},
                "seconds": round(outcome.seconds, 2),
                "kills": [what for _, what in outcome.kills],
                "drivers": outcome.drivers,
                "publishers": list(outcome.publishers),
                "report": str(self._report),
            }
        )
        for line in self._lines(outcome):
            self.out.line(line)

    def _lines(self, outcome: Outcome) -> list[str]:
        paint = self.out.style.paint
        verdict = outcome.verdict
        head = f"{'':26}{'expected':>10}{'found':>10}{'lost':>8}{'duplicated':>12}{'wrong':>8}"
        lines = ["", paint("The accounts: ledgers, log, tables, alerts", "bold", "magenta"), paint(f"  {head}", "dim")]
        lines += [f"  {self._line(one)}" for one in verdict.checks]
        lines += [
            paint(f"  {count:,} samples of {by} came while no broker was there; nobody had promised them", "yellow")
            for by, count in verdict.not_stored.items()
        ]
        lines.append(f"  put to row in bronze     {_latency_text(outcome.to_table)}")
        lines.append(f"  put to alert received    {_latency_text(outcome.to_alert)}")
        lines.append(f"  call to answer           {_calls_text(outcome.calls, outcome.failed_calls)}")
        lines.append(paint(f"  waited for Spark         {_latency_text(outcome.waited)}", "dim"))
        kills = f", {' and '.join(what for _, what in outcome.kills)} killed" if outcome.kills else ""
        said = f"{verdict.tried:,} samples put{kills}: {verdict.lost:,} lost, {verdict.duplicated:,} duplicated"
        lines += ["", paint(said, "bold", "green" if verdict.is_good else "red")]
        first = outcome.marks.get("first sample", 0.0)
        lines.append(f"first result after {first:.1f} s, all done after {outcome.seconds:.1f} s")
        lines.append(f"report with plots: {paint(str(self._report), 'cyan')}")
        return lines

    def _line(self, check: Check) -> str:
        text = f"{check.what:26}{check.expected:>10,}{check.found:>10,}{check.lost:>8,}{check.duplicated:>12,}"
        return self.out.style.paint(f"{text}{check.wrong:>8,}", *(() if check.is_good else ("red",)))


def _latency_form(latency: Latency | None) -> dict[str, float] | None:
    if latency is None:
        return None
    return {"p50": round(latency.p50, 3), "p99": round(latency.p99, 3), "most": round(latency.most, 3)}


def _latency_text(latency: Latency | None) -> str:
    if latency is None:
        return "nothing to tell"
    return f"p50 {latency.p50:.2f} s · p99 {latency.p99:.2f} s · most {latency.most:.2f} s"


def _calls_text(latency: Latency | None, failed: dict[str, int]) -> str:
    text = "nobody answered"
    if latency is not None:
        figures = {"p50": latency.p50, "p99": latency.p99, "most": latency.most}
        text = " · ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in figures.items())
    return text + "".join(f" · {count} {code}" for code, count in sorted(failed.items()))
