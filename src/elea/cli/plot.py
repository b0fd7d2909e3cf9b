"""`elea plot`: values of fields over time, of a capture or as they come; in the terminal, or as a PNG or HTML file.

Exit codes: 0 drawn, 1 there is nothing to draw, 2 wrong usage, 5 a file is damaged.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import shutil
import sys
import time
from collections.abc import Iterator
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.capture import SHOW_EVERY, capture_failures, duration, need_recorder
from elea.cli.explain import where
from elea.cli.output import Output, safe, time_text
from elea.cli.style import CliError
from elea.model.errors import InvalidPredicate
from elea.plot import Series

if TYPE_CHECKING:
    from elea.recorder.fieldvalues import FieldValues

__all__ = ["add_arguments", "run"]

SUFFIXES: Final = (".mcap", ".parquet", ".arrows")
DRAWN: Final = 2000
"""Points of a line in a page, and with --json."""

UNITS: Final = ((3 * 86_400, 86_400.0, "d"), (3 * 3600, 3600.0, "h"), (300, 60.0, "min"), (0, 1.0, "s"))

EPILOG: Final = """\
SOURCE is a capture (.mcap, .parquet, .arrows) or a key expression, whose samples are drawn as they come until Ctrl-C.
A field is written as in predicates: speed, pos.x, wheels[2].slip; value is content that is a number. Times are those of
the timestamps, or of the arrival. examples:
  elea plot drive.mcap --field speed
  elea plot drive.mcap --field pos.x --field pos.y --key 'fleet/1/*' -o pos.png
  elea plot 'home/*/temp' --for 5m -e tcp/127.0.0.1:7447 -o temp.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea plot`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("source", metavar="FILE|KEYEXPR", help="a capture, or keys to subscribe to")
    parser.add_argument(
        "--field", action="append", metavar="F", type=_field, help="what to draw; may be repeated (default: value)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="draw into it: .png or .html")
    parser.add_argument("--key", metavar="KEYEXPR", type=connection.check_key, help="of a capture: only these keys")
    parser.add_argument(
        "--where", type=where, metavar="PREDICATE", help='only samples for which this holds: "speed > 2"'
    )
    parser.add_argument("--for", dest="seconds", type=duration, metavar="TIME", help="of keys: end after it: 30s, 10m")
    parser.add_argument("-n", "--count", type=connection.positive, metavar="N", help="of keys: end with N values")
    parser.add_argument("--height", type=connection.positive, default=16, metavar="N", help="rows (default: 16)")
    parser.add_argument("--width", type=connection.positive, metavar="N", help="columns (default: all)")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Draws."""
    need_recorder()
    from elea.recorder.fieldvalues import FieldValues

    _check_output(args.output)
    out = Output(args)
    values = FieldValues(args.field or ["value"])
    if args.source.endswith(SUFFIXES):
        with capture_failures():
            _read(args, values, out)
    else:
        try:
            connection.check_key(args.source)
        except argparse.ArgumentTypeError as error:
            raise CliError(str(error), "a capture (.mcap, .parquet, .arrows) or a key expression", 2) from error
        _watch(args, values, out)
    out.progress("")
    if not values.values:
        fields = ", ".join(args.field or ["value"])
        problem = f"no number called {safe(fields)} in {safe(args.source)}: {_others(values)}"
        raise CliError(problem, "--field NAME; elea sub KEYEXPR shows what samples look like")
    _show(args, values, out)
    return 0


def _read(args: argparse.Namespace, values: FieldValues, out: Output) -> None:
    """The values of a capture."""
    from elea.columnar.batchfilter import BatchFilter
    from elea.content import Contents
    from elea.recorder import open_capture
    from elea.store.logreads import Keys

    keys = Keys(args.key)
    capture = open_capture(args.source)
    values.contents = contents = Contents(capture.types)
    wanted = None if args.where is None else BatchFilter(args.where, contents=contents)
    for batch in capture:
        mask = keys.mask(batch.column("key"))
        found = batch if mask is None else batch.filter(mask)
        values.add(found if wanted is None or not found.num_rows else wanted.filter(found))
        out.progress(f"{100 * capture.done // max(capture.size, 1)} % read, {values.values:,} values")
    if capture.is_cut:
        out.progress("")
        out.note(f"{safe(args.source)} ends before it is whole: its recorder was killed, or the disk was full")


def _watch(args: argparse.Namespace, values: FieldValues, out: Output) -> None:
    """The values of what comes, drawn again and again on a terminal."""
    from elea.api.arrowhandler import Arrow

    live = sys.stdout.isatty() and not out.json and args.output is None
    drawn = 0
    with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
        values.contents = session._node.schemas.contents
        handler = Arrow(seconds=SHOW_EVERY, overflow="drop_oldest")
        with session.declare_subscriber(args.source, handler, where=args.where) as subscriber:
            out.note(f"subscribed to {safe(args.source)}; Ctrl-C ends")
            until = time.monotonic() + (args.seconds or math.inf)
            with contextlib.suppress(KeyboardInterrupt):
                while time.monotonic() < until and values.values < (args.count or math.inf):
                    with stop.waiting():
                        time.sleep(min(SHOW_EVERY, max(until - time.monotonic(), 0.0)))
                    _take(subscriber.handler, values)
                    if live and values.values:
                        rows = _rows(args, values, out)
                        sys.stdout.write((f"\x1b[{drawn}A\x1b[J" if drawn else "") + "\n".join(rows) + "\n")
                        sys.stdout.flush()
                        drawn = len(rows)
            dropped = subscriber.dropped
        _take(subscriber.handler, values)
    if live and drawn:
        print(f"\x1b[{drawn}A\x1b[J", end="")
    if dropped:
        out.note(f"{dropped} samples came faster than they could be drawn, and are not in the plot")


def _take(batches: Iterator[object], values: FieldValues) -> None:
    from elea.api.channels import Handler

    assert isinstance(batches, Handler)
    for batch in batches.drain(len(batches)):
        values.add(batch)


# -- what is shown -----------------------------------------------------------------------------------------------------


def _series(values: FieldValues, points: int) -> tuple[int, str, list[Series]]:
    """When the first sample was, the unit of times since then, and the lines."""
    from elea.recorder.fieldvalues import thinned

    lines = values.lines()
    start = min(int(times[0]) for times, _ in lines.values())
    span = max(int(times[-1]) for times, _ in lines.values()) - start
    _, seconds, unit = next(each for each in UNITS if span >= each[0] * 1e9)
    fields = {field for _, field in lines}
    found = []
    for (key, field), (times, numbers) in lines.items():
        while len(times) > points:
            times, numbers = thinned(times, numbers)
        placed = zip(((times - start) / (1e9 * seconds)).tolist(), numbers.tolist(), strict=True)
        name = key if len(fields) == 1 else f"{key} {field}"
        found.append(Series(name, tuple((x, y) for x, y in placed if math.isfinite(y))))
    return start, unit, found


def _title(args: argparse.Namespace, start: int) -> str:
    source = Path(args.source).name if args.source.endswith(SUFFIXES) else args.source
    return f"{', '.join(args.field or ['value'])} of {source}, from {(time_text(start) or '')[:19]}Z"


def _rows(args: argparse.Namespace, values: FieldValues, out: Output) -> list[str]:
    from elea.plot.terminal import COLOURS, draw

    width = args.width or shutil.get_terminal_size().columns
    start, unit, lines = _series(values, 8 * width)
    rows = [out.style.paint(safe(_title(args, start)), "bold")]
    rows += draw(lines, width=width, height=args.height, x_unit=unit, paint=out.style.paint)
    if len(lines) > 1 or values.more:
        names = [out.style.paint(f"━ {safe(one.name)}", COLOURS[n % len(COLOURS)]) for n, one in enumerate(lines)]
        rows.append("  ".join(names) + (f"  and {len(values.more)} more keys" if values.more else ""))
    return rows


def _show(args: argparse.Namespace, values: FieldValues, out: Output) -> None:
    if out.json:
        for (key, field), (times, numbers) in values.lines().items():
            out.form({"key": key, "field": field, "times": times.tolist(), "values": numbers.tolist()})
    if args.output is None:
        for row in [] if out.json else _rows(args, values, out):
            out.line(row)
    else:
        start, unit, lines = _series(values, DRAWN)
        with capture_failures():
            if args.output.suffix == ".png":
                from elea.plot.png import write_png

                write_png(args.output, _title(args, start), lines, x_unit=unit)
            else:
                args.output.write_text(_page(_title(args, start), lines, unit), encoding="utf-8")
        out.line(f"{out.style.paint('drawn', 'green')}  {values.values:,} values to {safe(str(args.output))}")
    if values.passed_over or values.unreadable:
        out.note(_others(values))


def _others(values: FieldValues) -> str:
    return (
        f"{values.values:,} values, {values.passed_over:,} that are no numbers, "
        f"{values.unreadable:,} samples that cannot be read"
    )


def _page(title: str, lines: list[Series], unit: str) -> str:
    """A page that needs nothing else."""
    from elea.plot.svg import COLOURS, plot

    names = "".join(
        f"<li style='color:{COLOURS[number % len(COLOURS)]}'>{escape(line.name)}</li>"
        for number, line in enumerate(lines)
    )
    drawn = plot("", [Series("", line.points) for line in lines], x_unit=unit, from_zero=False)
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title><style>"
        ":root { color-scheme: light dark; --line: #8884; } body { font: 14px system-ui, sans-serif; margin: 2rem; }"
        "svg { width: 100%; max-width: 70rem; } svg text { font-size: 7px; fill: currentColor; }"
        f"</style><h1>{escape(title)}</h1>{drawn}<ul>{names}</ul></html>\n"
    )


def _check_output(path: Path | None) -> None:
    if path is None:
        return
    if path.suffix not in (".png", ".html"):
        raise CliError(f"{path.name} ends with neither .png nor .html", "-o speed.png", connection.USAGE)
    if path.suffix == ".png" and find_spec("matplotlib") is None:
        hint = "in a clone of Elea: pip install '.[plot]', or -o FILE.html"
        raise CliError("PNG files need matplotlib, which is not installed", hint)


def _field(text: str) -> str:
    """For argparse: a field."""
    from elea.recorder.fieldvalues import field_path

    try:
        field_path(text)
    except InvalidPredicate as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no field such as speed or pos.x: {error.problem}") from error
    return text
