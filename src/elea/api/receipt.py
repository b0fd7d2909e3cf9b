"""What a store says: receipts, and errors that come as JSON and are raised again here by the name of their class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from elea.model import errors
from elea.model.errors import EleaError, OperationTimeout, StoreError
from elea.model.jsontext import read_json

__all__ = ["Receipt", "again", "answer_of", "error_of", "made_of"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """That samples are as safe as their store promises, and where they are.

    >>> Receipt("fleet", "3f", 7).position
    7
    """

    log: str
    """The log that has them."""

    epoch: str
    """The identity of its positions: the same position in the same epoch is the same sample, always."""

    position: int | None
    """Of the first sample; None if all had been stored before and it is no longer known where."""

    rows: int = 1
    """Samples acknowledged."""

    repeated: int = 0
    """Those among them that had been stored before, by an attempt whose acknowledgement was lost."""

    restamped: int = 0
    """Those whose timestamp was too far ahead of the broker's time; they have one of the broker instead."""


def answer_of(payload: bytes) -> dict[str, Any]:
    """A small answer.

    Raises:
        StoreError: it is no JSON object.
    """
    try:
        form = read_json(payload)
    except ValueError as error:
        raise StoreError(f"a store has answered with something that is no JSON: {payload[:80]!r}") from error
    if not isinstance(form, dict):
        raise StoreError(f"a store has answered with something that is no JSON object: {payload[:80]!r}")
    return form


def error_of(payload: bytes) -> EleaError:
    """The error that a store, or a node on the way to it, has answered with."""
    if payload == b"Timeout":  # said by a node on the way (zenoh-1 §14.1)
        return OperationTimeout("no store has answered in time; it may have been stored all the same")
    try:
        form = read_json(payload)
    except ValueError:
        form = None
    if not isinstance(form, dict):
        return StoreError(f"a store refuses: {payload[:500].decode('utf-8', 'replace')}")
    return made_of(form)


def made_of(form: dict[str, Any]) -> EleaError:
    """The error that a form of it stands for."""
    fields = dict(form)
    text = str(fields.pop("text", "a store refuses, and does not say why"))
    name = fields.pop("error", None)
    kind = getattr(errors, name, None) if isinstance(name, str) and name in errors.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, EleaError)):
        return StoreError(text)
    # Every class has a constructor of its own, which makes the text of its data. Here the text is known already.
    found = kind.__new__(kind, text)
    found.args = (text,)
    for field, value in fields.items():
        if field.isidentifier() and not field.startswith("_") and not hasattr(kind, field):
            setattr(found, field, value)
    return found


def again(error: EleaError) -> EleaError:
    """The same error once more, for another who waits: an exception that is raised twice gathers both traces."""
    found = type(error).__new__(type(error))
    found.args = error.args
    vars(found).update(vars(error))
    return found
