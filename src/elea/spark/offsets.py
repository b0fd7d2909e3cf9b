"""Offsets of Spark: a place in each log that a query reads, as JSON. Pure.

`{"fleet": {"epoch": "3f…", "next": 1200}}`: by the name of the log, the identity of its positions and the position to
go on from. Three more entries: `from`, where the batch that ends here begins if it is the first or does not begin where
the one before ended; `cursor`, the name by which a stream finds its cursor again (`stream` alone knows of it); and,
only if samples were lost, `lost`, how many positions were passed over since the query began, by reason.
Spark compares offsets as texts, so the same place must always be the same text: all keys are sorted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from elea.model.errors import ConfigError

__all__ = ["EARLIEST", "LATEST", "Head", "Offset", "Place", "parse"]

EARLIEST: Final = "earliest"
LATEST: Final = "latest"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in one log."""

    epoch: str
    next: int
    begin: int | None = None
    """Where the batch that ends here begins, if not at the place before."""

    lost: Mapping[str, int] = field(default_factory=dict)
    """Positions passed over so far, by reason."""

    def form(self) -> dict[str, Any]:
        """As JSON, without what says nothing."""
        found: dict[str, Any] = {"epoch": self.epoch, "next": self.next}
        if self.begin is not None:
            found["from"] = self.begin
        if self.lost:
            found["lost"] = dict(sorted(self.lost.items()))
        return dict(sorted(found.items()))

    def passing(self, reason: str, count: int) -> Place:
        """The same with a loss added."""
        return replace(self, lost={**self.lost, reason: self.lost.get(reason, 0) + count})


@dataclass(frozen=True, slots=True)
class Head:
    """A log as it is now."""

    log: str
    epoch: str
    first: int
    end: int
    damaged: tuple[tuple[int, int], ...] = ()
    """Stretches of positions that cannot be read, first and last."""

    dropped: int = 0
    """Samples that did not get into it, as far as this process knows; only a spool does."""


Offset = dict[str, Place]
"""A place in every log, by name."""


def form_of(offset: Mapping[str, Place]) -> dict[str, Any]:
    """An offset as Spark keeps it."""
    return {log: offset[log].form() for log in sorted(offset)}


def parse(form: Mapping[str, Any], logs: Iterable[str] = ()) -> Offset:
    """An offset from its form; the short form without a name counts if there is one log.

    Raises:
        ConfigError: it is none.
    """
    if "epoch" in form and not isinstance(form["epoch"], Mapping):
        names = list(logs)
        if len(names) != 1:
            hint = f'write {{"<log>": {{"epoch": …, "next": …}}}} with the logs {", ".join(names) or "(none)"}'
            raise ConfigError("offset", f"it names no log and {len(names)} logs match", hint)
        form = {names[0]: form}
    return {str(log): _place(str(log), place) for log, place in sorted(form.items())}


def parse_text(text: str, path: str, heads: Mapping[str, Head]) -> Offset:
    """An offset in the text of an option; what it leaves out is taken from the logs as they are, where that is beyond
    doubt: a position without an epoch is one of the log of now, if that has it.

    Raises:
        ConfigError: it is none, or says too little.
    """
    try:
        form = json.loads(text)
    except ValueError as error:
        hint = f'it is {EARLIEST}, {LATEST}, a position, or JSON such as {{"fleet": {{"epoch": "3f…", "next": 1200}}}}'
        raise ConfigError(path, f"{text!r} is no offset: {error}", hint) from error
    if type(form) is int or (isinstance(form, Mapping) and "next" in form and "epoch" not in form):
        if len(heads) != 1:
            hint = f'name the logs: {{"<log>": {text}}} with {", ".join(heads) or "(none)"}'
            raise ConfigError(path, f"{text!r} names no log and {len(heads)} logs match", hint)
        form = {next(iter(heads)): form}
    if not isinstance(form, Mapping):
        raise ConfigError(path, f"{text!r} is no JSON object", 'write {"<log>": {"epoch": …, "next": …}}')
    if "epoch" in form and not isinstance(form["epoch"], Mapping):
        return parse(form, heads)
    return {str(log): _place_of_now(str(log), place, path, heads.get(str(log))) for log, place in sorted(form.items())}


def _place_of_now(log: str, form: Any, path: str, head: Head | None) -> Place:
    if isinstance(form, Mapping) and "epoch" in form:
        return _place(log, form)
    if head is None:
        raise ConfigError(path, f"no log {log} keeps what is read", "elea offsets KEYEXPR prints those that do")
    if form in (EARLIEST, LATEST):
        return Place(head.epoch, head.first if form == EARLIEST else head.end)
    at = form.get("next") if isinstance(form, Mapping) else form
    if type(at) is not int or at < 0:
        hint = f"it is a position, {EARLIEST}, {LATEST}, or an object with epoch and next"
        raise ConfigError(f"offset {log}", f"{form!r} is none", hint)
    if not head.first <= at <= head.end:
        problem = f"the log has positions {head.first} to {head.end}, so {at} may be one of another log in its place"
        raise ConfigError(f"offset {log}", problem, "give the epoch, too: then it is known what is lost")
    return Place(head.epoch, at)


def _place(log: str, form: Any) -> Place:
    try:
        epoch, following = form["epoch"], form["next"]
        begin, lost = form.get("from"), form.get("lost", {})
    except (KeyError, TypeError, AttributeError):
        raise ConfigError(f"offset {log}", f"{form!r} has no epoch and next", 'write {"epoch": …, "next": …}') from None
    numbers = [following, *([] if begin is None else [begin]), *dict(lost).values()]
    if not isinstance(epoch, str) or not all(type(number) is int and number >= 0 for number in numbers):
        hint = "the epoch is a text, positions are whole numbers from 0"
        raise ConfigError(f"offset {log}", f"{form!r} is none", hint)
    return Place(epoch, following, begin, dict(lost))
