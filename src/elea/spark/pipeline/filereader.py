"""The text of a pipeline file and of those it includes, as one table with values for its variables.

`[pipeline] include` names files with further sources, steps, functions, tables and publishes. Each entry keeps the
place where it stands, so that a mistake is told with the file and line that have it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from elea.spark.pipeline import lines, toml
from elea.spark.pipeline.parts import Reporter
from elea.spark.pipeline.problem import Problem, Wrong
from elea.spark.pipeline.variables import Variables

__all__ = ["Places", "Text", "read_text"]

INCLUDED: Final = ("source", "step", "function", "table", "publish", "foreach", "parameters")
FILES: Final = 100
"""Files that a pipeline may be made of."""


class Places(lines.Lines):
    """The places of a file, and of entries that other files have."""

    def __init__(self, main: lines.Lines) -> None:
        self._main = main
        self._others: dict[lines.Path, tuple[str, lines.Lines]] = {}

    def add(self, path: lines.Path, file: str, found: lines.Lines) -> None:
        """An entry `[kind.NAME]` of another file."""
        self._others[path] = (file, found)

    def file_of(self, path: lines.Path) -> str | None:
        return self._others[path[:2]][0] if path[:2] in self._others else None

    def key(self, path: lines.Path) -> lines.Place:
        return self._of(path).key(path)

    def value(self, path: lines.Path) -> lines.Place:
        return self._of(path).value(path)

    def character(self, path: lines.Path, at: int) -> lines.Place:
        return self._of(path).character(path, at)

    def moved(self, path: lines.Path, places: list[int]) -> None:
        self._of(path).moved(path, places)

    def _of(self, path: lines.Path) -> lines.Lines:
        return self._others[path[:2]][1] if path[:2] in self._others else self._main


class Text:
    """What was read."""

    def __init__(self, data: dict[str, Any], places: Places, variables: Variables, problems: list[Problem]) -> None:
        self.data = data
        self.places = places
        self.variables = variables
        self.problems = problems


def read_text(text: str, file: Path, given: Mapping[str, str], environment: Mapping[str, str]) -> Text:
    """Read a text, and the files that it includes.

    Raises:
        tomllib.TOMLDecodeError: it is no TOML.
    """
    data = tomllib.loads(text)
    places = Places(lines.scan(text))
    to = Reporter(places)
    _include(data, file, places, to)
    found = data.pop("parameters", {})
    parameters = _parameters(found, given, to)
    variables = Variables(given=given, parameters=parameters, environment=environment)
    for name, value in parameters.items():  # those of a file may name the environment, not each other
        parameters[name] = _text(value, ("parameters", name), Variables(environment=environment), variables, to)
    made = _replaced(data, (), variables, to)
    return Text(made, places, variables, to.problems)


def _parameters(found: Any, given: Mapping[str, str], to: Reporter) -> dict[str, str]:
    if not isinstance(found, dict):
        to.report(("parameters",), "parameters is a table", "write [parameters] with name = value below it")
        return {}
    made = {}
    for name, value in found.items():
        if isinstance(value, (dict, list)):
            to.report(("parameters", name), f"{name} is a text, a number, true or false", "write a text")
            continue
        made[name] = str(value).lower() if isinstance(value, bool) else str(value)
    for name in given:
        if name not in made:
            to.report(
                ("parameters",), f"--set {name}: the file has no such parameter", f'add {name} = "…" to [parameters]'
            )
    return made


def _include(data: dict[str, Any], file: Path, places: Places, to: Reporter) -> None:
    head = data.get("pipeline")
    names = head.pop("include", []) if isinstance(head, dict) else []
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        to.report(("pipeline", "include"), "include: it is a list of files", 'write include = ["sources.toml"]')
        return
    if len(names) > FILES:
        to.report(("pipeline", "include"), f"include: {len(names)} files are too many", f"{FILES} at most")
        return
    for number, name in enumerate(names):
        entry = ("pipeline", "include", number) if len(names) > 1 else ("pipeline", "include")
        try:
            text = Path(file.resolve().parent, name).read_text(encoding="utf-8-sig").replace("\r\n", "\n")
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            problem = toml.problem(error, text)
            to.problems.append(Problem(problem.line, problem.column, problem.what, problem.fix, file=name))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            to.report_value(entry, f"include: {name}: {why}", "name a file, relative to this one")
        else:
            _take(data, found, name, lines.scan(text), places, to)


def _take(
    data: dict[str, Any], found: dict[str, Any], name: str, there: lines.Lines, places: Places, to: Reporter
) -> None:
    def wrong(path: lines.Path, what: str, fix: str) -> None:
        place = there.key(path)
        to.problems.append(Problem(place.line, place.column, what, fix, file=name))

    for kind, entries in found.items():
        if kind not in INCLUDED:
            wrong((kind,), f"a file that is included has no [{kind}]", "put it into the file that includes it")
            continue
        if not isinstance(entries, dict):
            wrong((kind,), f"{kind} is a table", f"write [{kind}.NAME]")
            continue
        mine = data.setdefault(kind, {})
        if not isinstance(mine, dict):
            continue  # which is told of the file itself
        for one, entry in entries.items():
            if one in mine:
                where = places.file_of((kind, one)) or "the file that includes it"
                wrong((kind, one), f"{kind} {one} is in {where}, too", "give one of them another name")
                continue
            mine[one] = entry
            places.add((kind, one), name, there)


def _replaced(form: Any, path: lines.Path, variables: Variables, to: Reporter) -> Any:
    if isinstance(form, str):
        return _text(form, path, variables, variables, to)
    if isinstance(form, dict):
        return {name: _replaced(value, (*path, name), variables, to) for name, value in form.items()}
    if isinstance(form, list):
        return [_replaced(value, (*path, at), variables, to) for at, value in enumerate(form)]
    return form


def _text(text: str, path: lines.Path, here: Variables, secrets: Variables, to: Reporter) -> str:
    if "${" not in text:
        return text
    try:
        found, places = here.replaced(text)
    except Wrong as error:
        to.report_value(path, error.what, error.fix, error.at)
        return text
    if here is not secrets:
        secrets.adopt(here)
    to.places.moved(path, places)
    return found
