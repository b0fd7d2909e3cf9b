"""Everything that can be known of a pipeline file before it runs: the file, the brokers, and what Spark says."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elea.io.locator import Locator
from elea.model.errors import EleaError, NoLog, PipelineError, SessionError
from elea.spark.options import ReadOptions
from elea.spark.pipeline.filereader import read_text
from elea.spark.pipeline.parts import Reporter
from elea.spark.pipeline.problem import Problem
from elea.spark.pipeline.spec import Source, Spec
from elea.spark.pipeline.specreader import text_of, understand

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check"]

_CONNECT_MS: Final = "1500"
_REQUEST_MS: Final = "5000"


def check(
    path: str | Path,
    *,
    spark: Callable[[], SparkSession] | None = None,
    reach: bool = True,
    parameters: Mapping[str, str] | None = None,
) -> tuple[Spec | None, list[Problem]]:
    """Look at a file.

    Args:
        spark: makes the session that statements are looked at with; it is asked for only if the file is right so far.
        parameters: values that go before those of `[parameters]`.
        reach: whether brokers are asked if they are there and keep what the sources read; only warnings come of it.

    Returns:
        what the file says, None if there is an error in it; and its problems, in the order of its lines.

    Raises:
        OSError: it cannot be opened.
    """
    file = Path(path)
    try:
        text = text_of(file)
    except PipelineError as error:
        return None, [one for one in error.problems if isinstance(one, Problem)]
    spec, problems = understand(text, file, parameters)
    if spec is None:
        return None, problems
    to = Reporter(read_text(text.replace("\r\n", "\n"), file, parameters or {}, os.environ).places)
    if reach:
        _reach(spec, to)
    if spark is not None:
        from elea.spark.pipeline.analysis import analyse

        analyse(spec, to, spark())
    hide = spec.variables.hide
    told = [replace(one, what=hide(one.what), fix=hide(one.fix)) for one in to.problems]
    found = sorted(problems + told, key=lambda one: (one.file or "", one.line, one.column))
    return None if any(not one.is_warning for one in found) else spec, found


def _reach(spec: Spec, to: Reporter) -> None:
    """Ask every broker once whether it is there, and whether it keeps what is read."""
    away: set[tuple[str, ...]] = set()
    for source in spec.sources:
        if source.connect in away:
            continue
        problem = _ask(source)
        if problem is None:
            continue
        if not isinstance(problem, NoLog):
            away.add(source.connect)
        path = ("pipeline", "connect") if source.connect == spec.connect else ("source", source.name, "connect")
        keys = " ".join(f"--persist '{key}'" for key in source.key_exprs)
        if isinstance(problem, NoLog):
            what = f"the broker at {', '.join(source.connect)} keeps no keys of {', '.join(source.key_exprs)}"
            to.report_value(
                ("source", source.name, "keyexpr"), what, f"elea broker --store DIR {keys}", is_warning=True
            )
        else:
            what = f"no broker answers at {', '.join(source.connect)}"
            to.report_value(path, what, f"start one: elea broker --store DIR {keys}", is_warning=True)


def _ask(source: Source) -> EleaError | None:
    from elea.spark.logs import Logs

    plain = replace(source, format="raw", schema=None).read_options()
    limits: dict[str, Any] = {"connectTimeoutMs": _CONNECT_MS, "requestTimeoutMs": _REQUEST_MS}
    options = ReadOptions.parse(limits | plain)
    if not options.config and not any(map(_listens, options.connect)):
        return SessionError(f"nobody listens at {', '.join(options.connect)}")
    try:
        Logs(options).close()
    except NoLog as error:
        # Only a log is looked for: a spool, or a get, finds its samples elsewhere.
        return error if options.ingest == "log" and not options.is_query else None
    except EleaError as error:
        return error
    return None


def _listens(text: str) -> bool:
    """Whether a connection is accepted: a session would go on trying, and this is often asked before a broker runs."""
    place = Locator.parse(text)
    if place.protocol not in ("tcp", "tls"):
        return True
    try:
        with socket.create_connection((place.host, place.port), timeout=int(_CONNECT_MS) / 1000):
            return True
    except OSError:
        return False
