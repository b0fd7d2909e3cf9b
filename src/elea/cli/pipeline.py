"""`elea pipeline`: from the data space to tables and back, as a file describes it.

`new`, `plan` and `check --no-spark` need no Java. Exit codes: 0 done, 1 something is wrong with the file or the run,
2 usage, 4 somebody runs the pipeline already, or its definition has changed.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elea.cli.output import Output, safe
from elea.cli.style import CliError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from elea.spark.pipeline.problem import Problem
    from elea.spark.pipeline.spec import Spec

__all__ = ["add_arguments", "read_file", "run", "session"]

ACTIONS: Final = ("new", "check", "plan", "run")

CHANGES: Final = {
    "new": "new, nothing is computed yet",
    "grows": "gets columns with the next run; rows of before have null there",
    "changed": "changed: run refuses it until --backfill, or --accept-change",
    "follows": "changed: rows of the next run are others",
    "unknown": "its checkpoint is older than definitions: nobody knows whether it has changed",
}
"""What `plan` says of tables and publishes that are not what was computed so far."""

EPILOG: Final = """\
new      writes a commented pipeline that works as it is; NAME or NAME.toml, default pipeline.toml
check    says all that is wrong, with line, cause and fix; the exit code is 1 if there is an error
plan     prints what flows where, as boxes and arrows
run      reads, computes, writes and publishes until it is told to end, then prints a report

examples:
  elea pipeline new house
  elea pipeline check house.toml
  elea pipeline plan house.toml --svg house.svg
  elea pipeline run house.toml --once --report house.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea pipeline`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=ACTIONS, help="what to do; see below")
    parser.add_argument("file", metavar="FILE", nargs="?", help="the pipeline, in TOML")
    parser.add_argument(
        "--no-spark", action="store_true", help="check: do not ask Spark about the SQL (it takes seconds)"
    )
    parser.add_argument("--no-broker", action="store_true", help="check: do not ask whether the broker is there")
    parser.add_argument("--svg", metavar="FILE", help="plan: draw it into this file, too; - prints it")
    parser.add_argument("--force", action="store_true", help="new: write over a file that exists")
    parser.add_argument("--once", action="store_true", help="run: end when all that is there now is done")
    parser.add_argument(
        "--backfill", action="store_true", help="run: make the tables again, from the beginning of the log, then end"
    )
    parser.add_argument("--accept-loss", action="store_true", help="run: backfill although the log lost its beginning")
    parser.add_argument(
        "--accept-change", action="store_true", help="run: go on although tables have rows of another definition"
    )
    parser.add_argument(
        "--table", metavar="NAME", action="append", default=[], help="run --backfill: this table only; may be repeated"
    )
    parser.add_argument(
        "--from", metavar="TIME", dest="since", help="run --backfill: only rows from this time on, others stay"
    )
    parser.add_argument("--until", metavar="TIME", help="run --backfill: only rows before this time")
    parser.add_argument("--by", metavar="COLUMN", help="run --backfill --from: the column that has the time of a row")
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="check, plan, run: a value for a parameter"
    )
    parser.add_argument("--metrics", metavar="HOST:PORT", help="run: serve the figures for Prometheus at /metrics")
    parser.add_argument("--report", metavar="FILE", help="run: write the report with plots into this file (HTML)")
    parser.add_argument("--master", metavar="URL", help="check, run: where Spark runs (default: local[*])")


def run(args: argparse.Namespace) -> int:
    """Does what `action` says."""
    out = Output(args)
    if args.action == "new":
        return _new(args, out)
    if args.file is None:
        raise CliError(f"{args.action} needs a FILE", f"elea pipeline {args.action} house.toml", 2)
    actions: dict[str, Callable[[argparse.Namespace, Output], int]] = {"check": _check, "plan": _plan, "run": _run}
    with _failures(args.file):
        return actions[args.action](args, out)


@contextlib.contextmanager
def _failures(file: str) -> Iterator[None]:
    """Files that cannot be opened, and what is missing on this machine, as errors of the command."""
    from elea.model.errors import ConfigError

    try:
        yield
    except FileNotFoundError as error:
        name = error.filename or file
        raise CliError(f"{name}: there is no such file", f"elea pipeline new {Path(file).stem}", 2) from error
    except ModuleNotFoundError as error:
        raise CliError(f"{error.name} is not installed", "in a clone of Elea: pip install '.[spark]'") from error
    except ConfigError as error:
        raise CliError(f"{error.path}: {error.problem}", error.hint or "elea pipeline check FILE") from error
    except OSError as error:
        raise CliError(f"{error.filename}: {error.strerror}", "another FILE", 2) from error


def _run(args: argparse.Namespace, out: Output) -> int:
    from elea.cli.pipeline_run import run as run_file

    return run_file(args, out)


# -- new ---------------------------------------------------------------------------------------------------------------


def _new(args: argparse.Namespace, out: Output) -> int:
    from elea.spark.pipeline import values
    from elea.spark.pipeline.problem import Wrong
    from elea.spark.pipeline.starter import starter

    path = Path(args.file or "pipeline")
    path = path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")
    try:
        text = starter(values.named(path.stem))
    except Wrong as error:
        raise CliError(error.what, error.fix, 2) from error
    try:
        with path.open("w" if args.force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise CliError(f"{path} exists", "another name, or --force to write over it", 2) from error
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", "a directory that exists and can be written", 2) from error
    out.form({"file": str(path), "name": path.stem})
    out.line(f"{out.style.paint(str(path), 'bold')}  written")
    out.line(f"  next: elea pipeline check {path}")
    return 0


# -- check and plan ----------------------------------------------------------------------------------------------------


def _check(args: argparse.Namespace, out: Output) -> int:
    from elea.spark.pipeline.check import check

    spark = None if args.no_spark else lambda: session(args, out)
    spec, problems = check(args.file, spark=spark, reach=not args.no_broker, parameters=_given(args))
    _show(args.file, problems, out)
    errors = [one for one in problems if not one.is_warning]
    if spec is None:
        raise CliError(f"{args.file}: {_count(len(errors), 'error')}", safe(errors[0].fix), 1)
    warnings = f", {_count(len(problems), 'warning')}" if problems else ""
    parts = _parts(spec)
    out.form({"file": args.file, "valid": True, "warnings": len(problems), **parts})
    said = ", ".join(
        _count(number, name.removesuffix("es" if name == "publishes" else "s")) for name, number in parts.items()
    )
    out.line(f"{out.style.paint(args.file, 'bold')}  {out.style.paint('valid', 'green')}{warnings}  ({said})")
    return 0


def _given(args: argparse.Namespace) -> dict[str, str]:
    """The values of `--set`."""
    found = {}
    for one in args.set:
        name, mark, value = one.partition("=")
        if not mark:
            raise CliError(f"--set {one}: there is no =", "--set floor=2", 2)
        found[name] = value
    return found


def _show(file: str, problems: Sequence[Problem], out: Output) -> None:
    paint = out.style.paint
    for one in problems:
        out.form(one.form(file))
        name = one.file or file
        place = f"{name}:{one.line}:{one.column}" if one.line else name
        colour = "yellow" if one.is_warning else "red"
        word = "warning  " if one.is_warning else ""
        out.line(f"{paint(place, 'bold')}  {paint(word + safe(one.what), colour)}")
        out.line(f"  {safe(one.fix)}")


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 'es' if name.endswith('sh') else 's'}"


def _parts(spec: Spec) -> dict[str, int]:
    names = ("sources", "steps", "tables", "publishes")
    return {name: len(getattr(spec, name)) for name in names}


def _plan(args: argparse.Namespace, out: Output) -> int:
    from elea.spark.pipeline import picture
    from elea.spark.pipeline.definitions import changes

    spec = read_file(args, out)
    if args.svg == "-":
        print(spec.variables.hide(picture.svg(spec)), end="")
        return 0
    if args.svg is not None:
        Path(args.svg).write_text(spec.variables.hide(picture.svg(spec)), encoding="utf-8")
    found = changes(spec)
    touched = [{"sink": one.sink, "change": one.what, "in": list(one.told)} for one in found]
    out.form(spec.variables.hidden({**_form(spec), "changes": touched}))
    out.line(spec.variables.hide(picture.text(spec)))
    for one in found:
        if one.what != "same":
            out.line(f"{one.sink}: {CHANGES[one.what]}{' — ' if one.told else ''}{safe(', '.join(one.told))}")
    if args.svg is not None:
        out.line(f"drawn into {args.svg}")
    return 0


def _form(spec: Spec) -> dict[str, object]:
    """The flow for programs: each part, and what it reads."""
    return {
        "pipeline": spec.name,
        "trigger": spec.trigger,
        "sources": {one.name: {"keyexpr": list(one.key_exprs), "stream": one.is_stream} for one in spec.sources},
        "steps": {one.name: {"reads": list(one.reads)} for one in spec.steps},
        "tables": {one.name: {"from": one.reads, "path": str(one.path), "format": one.format} for one in spec.tables},
        "publishes": {one.name: {"from": one.reads, "key": one.key} for one in spec.publishes},
        "foreachs": {one.name: {"from": one.reads, "python": str(one.python)} for one in spec.foreachs},
    }


def read_file(args: argparse.Namespace, out: Output, spark: Callable[[], SparkSession] | None = None) -> Spec:
    """The pipeline of FILE, if it is right; warnings are for `check`."""
    from elea.spark.pipeline.check import check

    spec, problems = check(args.file, spark=spark, reach=False, parameters=_given(args))
    if spec is None:
        errors = [one for one in problems if not one.is_warning]
        _show(args.file, errors, out)
        raise CliError(f"{args.file}: {_count(len(errors), 'error')}", safe(errors[0].fix), 1)
    return spec


def session(args: argparse.Namespace, out: Output) -> SparkSession:
    """Spark, where `--master` says."""
    import elea.spark

    out.progress("starting Spark …")
    made: SparkSession = elea.spark.session("elea-pipeline", master=args.master)
    out.progress("")
    return made
