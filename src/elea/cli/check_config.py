"""`elea check-config`: everything that is wrong with a configuration, with its line where that is known."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elea.cli import access_check
from elea.cli.output import Output, safe
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.api.config import Config
    from elea.api.json5 import Json
    from elea.model.errors import ConfigError

__all__ = ["Problem", "add_arguments", "lines_of", "problems_in", "run"]

MOST: Final = 50
"""Problems shown; whoever has more wrong has the wrong file."""

EPILOG: Final = """\
Prints every problem with its line, its path and what to write instead; the exit code is 1 if there is one.
examples: elea check-config router.json5;  elea check-config router.json5 --as ann put home/1/temp;
  echo '{mode: "client"}' | elea check-config -"""

TOKEN: Final = re.compile(
    r"""(?P<skip>[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<mark>[{}\[\]:,])|(?P<word>[^\s{}\[\]:,"'/]+|/)""",
    re.DOTALL,
)

PLACE: Final = re.compile(r":(\d+):(\d+)$")


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: `line` counts from 1, None where it is not known."""

    path: str
    problem: str
    hint: str = ""
    line: int | None = None

    def form(self, file: str) -> dict[str, object]:
        """The JSON form."""
        return {"file": file, "line": self.line, "path": self.path, "problem": self.problem, "hint": self.hint}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea check-config`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "file", metavar="FILE", help="JSON5, JSON, TOML or YAML by its name; - is JSON5 on standard input"
    )
    access_check.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the problems; 1 if there are any."""
    out = Output(args)
    name, suffix, text = _read(args.file)
    problems = problems_in(text, suffix, name)
    for problem in problems[:MOST]:
        out.form(problem.form(name))
        place = name if problem.line is None else f"{name}:{problem.line}"
        paint = out.style.paint
        out.line(f"{paint(place, 'bold')}  {paint(safe(problem.path), 'cyan')}  {paint(safe(problem.problem), 'red')}")
        if problem.hint:
            out.line(f"  {safe(problem.hint)}")
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise CliError(f"{name}: {count}", safe(problems[0].hint) or "correct the entry named above", 1)
    if args.attempt is not None:
        from elea.api import config

        made = config.Config.from_json5(text) if suffix in (".json", ".json5") else config.Config.from_file(name)
        return access_check.explain(args, made, out)
    idle = _without_effect(text, suffix)
    if out.json:
        out.form({"file": name, "valid": True, **({"without_effect": idle} if idle else {})})
    for path, reason in idle.items():
        out.line(f"{out.style.paint(name, 'bold')}  {safe(path)}  has no effect here: {reason}")
    out.line(f"{out.style.paint(name, 'bold')}  {out.style.paint('valid', 'green')}")
    return 0


def _read(path: str) -> tuple[str, str, str]:
    """The name for messages, what kind of file it is, and its text."""
    try:
        if path == "-":
            return "-", ".json5", sys.stdin.buffer.read().decode()
        return path, Path(path).suffix, Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", "a file that exists, or - for standard input", 2) from error
    except UnicodeDecodeError as error:
        raise CliError(f"{path}: no UTF-8 at octet {error.start}", "save the file as UTF-8", 1) from error


def problems_in(text: str, suffix: str = ".json5", name: str = "config") -> list[Problem]:
    """Everything wrong in a configuration.

    >>> [(p.line, p.path, p.hint) for p in problems_in("{\\n mode: 'clint',\\n conect: {},\\n}")]
    [(2, 'mode', "did you mean 'client'?"), (3, 'conect', "did you mean 'connect'?")]
    """
    from elea.api import config
    from elea.api.json5 import parse
    from elea.model.errors import ConfigError

    lines: dict[str, int] = {}
    try:
        if suffix == ".toml":
            value: Json = tomllib.loads(text)
        elif suffix in (".json", ".json5"):
            value = parse(text, name)
            lines = lines_of(text)
        else:
            # Of these only the first problem is known; they are read where a node reads them.
            config.Config.from_file(name)
            return []
    except ConfigError as error:
        return [_of(error, {})]
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        return [Problem(name, f"no TOML: {error}", line=None if found is None else int(found[1]))]
    problems = [_of(error, lines) for error in _mistakes(value)]
    return sorted(problems, key=lambda problem: problem.line or 0)


def _without_effect(text: str, suffix: str) -> dict[str, str]:
    """Entries of a valid configuration that tune what does not exist here."""
    from elea.api.config import Config
    from elea.api.json5 import parse
    from elea.api.settings import Settings

    if suffix not in (".json", ".json5", ".toml"):
        return {}
    value: Json = tomllib.loads(text) if suffix == ".toml" else parse(text, "config")
    return dict(Settings.of(Config._from_value(value)).without_effect)


def _mistakes(value: Json) -> list[ConfigError]:
    """Every mistake: each is taken out, and the rest is looked at again."""
    from elea.api import config
    from elea.api.settings import Settings
    from elea.model.errors import ConfigError

    found: list[ConfigError] = []
    while len(found) <= MOST:
        try:
            made = config.Config.from_json5(json.dumps(value))
            Settings.of(made)
        except ConfigError as error:
            found.append(error)
            if not _take_out(value, error.path):
                return found
        else:
            return found + _bad_locators(made)
    return found


def _bad_locators(config: Config) -> list[ConfigError]:
    """Locators that have the right form but cannot be used."""
    from elea.api.settings import Settings
    from elea.io.linkerrors import LocatorError
    from elea.io.locator import Locator
    from elea.model.errors import ConfigError
    from elea.model.qos import Role
    from elea.node.dialect import dialect_of

    found: dict[str, ConfigError] = {}
    for role in Role:
        settings = Settings.of(config, role)
        for path, locators in (("connect", settings.connect.locators), ("listen", settings.listen.locators)):
            for at, text in enumerate(locators):
                try:
                    dialect_of(Locator.parse(text))
                except LocatorError as error:
                    problem = ConfigError(f"{path}/endpoints[{at}]", f"{text!r}: {error.problem}", error.hint)
                    found.setdefault(f"{path}{text}", problem)
    return list(found.values())


def _take_out(value: Json, path: str) -> bool:
    """Removes what is at `path`; false if nothing is there to remove.

    Of a list, the whole list: without one item, the others would have other numbers than in the file.
    """
    names = path.partition("[")[0].split("/")
    for name in names[:-1]:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, dict) or names[-1] not in value:
        return False
    del value[names[-1]]
    return True


def _of(error: ConfigError, lines: dict[str, int]) -> Problem:
    problem = Problem(error.path, error.problem, error.hint)
    place = PLACE.search(error.path)
    if place is not None:
        return replace(problem, path=f"column {place[2]}", line=int(place[1]))
    path = error.path
    # An entry that is missing has no line; the section it is missing from has one.
    while path and path not in lines:
        path = path.rpartition("[" if path.endswith("]") else "/")[0]
    return replace(problem, line=lines.get(path))


# -- lines -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Level:
    """An open bracket: the path up to it, and which entry is being read."""

    path: str
    is_list: bool
    at: int = 0
    name: str = ""

    def entry(self) -> str:
        if self.is_list:
            return f"{self.path}[{self.at}]"
        return f"{self.path}/{self.name}" if self.path else self.name


def lines_of(text: str) -> dict[str, int]:
    """The line of every entry of a JSON5 text that can be read, by its path.

    >>> lines_of("{a: 1,\\n  b: [1,\\n {c: 2}]}")
    {'a': 1, 'b': 2, 'b[0]': 2, 'b[1]': 3, 'b[1]/c': 3}
    """
    lines: dict[str, int] = {}
    levels: list[_Level] = []
    last, line, at, awaited = "", 1, 0, False
    for token in TOKEN.finditer(text):
        line += text.count("\n", at, token.start())
        at = token.start()
        mark, word = token["mark"], token["text"] or token["word"]
        level = levels[-1] if levels else None
        if level is not None and level.is_list and (word or mark in ("{", "[")):
            lines.setdefault(level.entry(), line)
        if word:
            last = word[1:-1] if token["text"] else word
            if level is not None and not level.is_list and not awaited:
                level.name = last
                lines.setdefault(level.entry(), line)
        elif mark in ("{", "["):
            levels.append(_Level("" if level is None else level.entry(), mark == "["))
            awaited = False
        elif mark in ("}", "]") and levels:
            levels.pop()
            awaited = False
        elif mark == ":":
            awaited = True
        elif mark == ",":
            awaited = False
            if level is not None:
                level.at += 1
    return lines
