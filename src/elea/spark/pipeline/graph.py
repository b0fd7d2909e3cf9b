"""How the parts of a pipeline hang together: names that exist once, no circles, no directory used twice."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePath

from elea.spark.pipeline.lines import Path as Entry
from elea.spark.pipeline.parts import Parts, Reporter
from elea.spark.pipeline.problem import listed, nearest
from elea.spark.pipeline.spec import Step
from elea.spark.tableplaces import beside

__all__ = ["look"]


def look(parts: Parts, to: Reporter) -> tuple[Step, ...]:
    """Report what does not fit together.

    Returns:
        the steps, each behind those it reads.
    """
    _clashes(parts, to)
    _unknown(parts, to)
    _unused(parts, to)
    _directories(parts, to)
    return _ordered(parts, to)


def _clashes(parts: Parts, to: Reporter) -> None:
    """Sources and steps are views of SQL, which knows no capitals; tables and publishes have directories.

    A table or publish may have the name of what it reads, and of nothing else: `from` would be read wrongly.
    """
    seen: dict[str, list[tuple[str, str]]] = {}
    for kind in ("source", "step", "table", "publish", "foreach"):
        for name in parts.names.get(kind, []):
            before = seen.setdefault(name.lower(), [])
            is_its_own = parts.reads.get((kind, name), "") == name
            for other in before:
                if not (is_its_own and other[0] in ("source", "step") and other[1] == name):
                    line = to.places.key(other).line
                    what = f"{kind} {name} has the name of the {other[0]} in line {line}"
                    to.report((kind, name), what, "give one of them another name")
                    break
            before.append((kind, name))


def _unknown(parts: Parts, to: Reporter) -> None:
    views = [*parts.names.get("source", []), *parts.names.get("step", [])]
    if not parts.names.get("source"):
        to.report(("pipeline",), "nothing is read: there is no source", 'add [source.NAME] with keyexpr = "…"')
    if not any(parts.names.get(kind) for kind in ("table", "publish", "foreach")):
        fix = 'add [table.NAME] with from = "…" and path = "…"'
        to.report(("pipeline",), "nothing is written: there is neither table nor publish", fix)
    for path, wanted in parts.reads.items():
        if wanted not in views:
            what, fix = _no_view(wanted, views, parts)
            to.report_value((*path, "from"), f"from: {what}", fix)
    known = {view.lower() for view in views}
    for name, step in parts.steps.items():
        for read in step.reads if step.python is not None else ():
            if read not in views:
                what, fix = _no_view(read, views, parts)
                to.report_value(("step", name, "from"), f"from: {what}", fix)
    for name, statement in parts.statements.items():
        for mention in statement.reads:
            if mention.name.lower() not in known:
                what, fix = _no_view(mention.name, views, parts)
                to.report_value(("step", name, "sql"), what, fix, mention.at)
        # A name may be written with capitals in SQL.
        spelled = {view.lower(): view for view in views}
        reads = tuple(dict.fromkeys(spelled.get(one.lower(), one) for one in parts.steps[name].reads))
        parts.steps[name] = replace(parts.steps[name], reads=reads)


def _no_view(name: str, views: list[str], parts: Parts) -> tuple[str, str]:
    if name in parts.tables:
        return f"{name} is a table, and rows come from sources and steps", f'read "{parts.tables[name].reads}" instead'
    return f"there is no source or step {name}", nearest(name, views, "there are")


def _unused(parts: Parts, to: Reporter) -> None:
    used = set(parts.reads.values()) | {read for step in parts.steps.values() for read in step.reads}
    views = {*parts.names.get("source", []), *parts.names.get("step", [])}
    if used - views:
        return  # a misspelt name is no reason to complain of the one that was meant
    for kind in ("source", "step"):
        for name in parts.names.get(kind, []):
            if name not in used:
                fix = f'add a table or publish with from = "{name}", or leave it out'
                to.report((kind, name), f"nobody uses the {kind} {name}", fix, is_warning=True)


def _ordered(parts: Parts, to: Reporter) -> tuple[Step, ...]:
    done: dict[str, Step] = {}
    reported: set[str] = set()
    for first in parts.steps:
        way: list[str] = []

        def visit(name: str, way: list[str] = way) -> None:
            if name in done or name not in parts.steps:
                return
            if name in way:
                circle = way[way.index(name) :]
                if not reported.intersection(circle):
                    reported.update(circle)
                    _circle(parts, circle, to)
                return
            way.append(name)
            for read in parts.steps[name].reads:
                visit(read)
            way.pop()
            done[name] = parts.steps[name]

        visit(first)
    return tuple(done.values())


def _circle(parts: Parts, circle: list[str], to: Reporter) -> None:
    name = circle[0]
    last = circle[-1] if len(circle) == 1 else circle[1]
    statement = parts.statements.get(name)
    found = [one for one in statement.reads if one.name.lower() == last.lower()] if statement is not None else []
    shown = " → ".join([*circle, name])
    what = f"step {name} reads itself" if len(circle) == 1 else f"steps read each other in a circle: {shown}"
    to.report_value(
        ("step", name, "sql" if found else "from"),
        what,
        "let one of them read a source instead",
        found[0].at if found else 0,
    )


# -- directories -------------------------------------------------------------------------------------------------------


def _directories(parts: Parts, to: Reporter) -> None:
    """Every table, quarantine and the checkpoints have a directory for themselves, none inside of another."""
    has = ("pipeline", "checkpoints")
    found: list[tuple[str, Entry, PurePath]] = [("the checkpoints", has, _plain(parts.checkpoints))]
    for name, table in parts.tables.items():
        found.append((f"table {name}", ("table", name, "path"), _plain(table.path)))
        backfill = beside(table.path, "_backfill")
        found.append((f"the place of a backfill of {name}", ("table", name, "path"), _plain(backfill)))
        if table.merge is not None and table.merge.has_tombstones:
            gone = beside(table.path, "_deleted")
            found.append((f"the deletions of {name}", ("table", name, "deletes"), _plain(gone)))
        if table.quarantine is not None:
            found.append((f"the quarantine of {name}", ("table", name, "quarantine"), _plain(table.quarantine)))
    for at, (what, entry, path) in enumerate(found):
        same = [other for other, _, before in found[:at] if before == path]
        inside = [other for other, _, around in found if around in path.parents]
        if same:
            to.report(entry, f"{what} has the same directory as {listed(same)}", "choose another")
        elif inside:
            to.report(entry, f"{what} lies inside of the directory of {inside[0]}", "put it beside, not inside")


def _plain(path: Path | str) -> PurePath:
    """Without `..`: the directory need not exist yet."""
    return PurePath(os.path.normpath(path))
