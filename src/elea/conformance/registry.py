"""The checks by name, and what one may end with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from elea.model.errors import EleaError

if TYPE_CHECKING:
    from elea.conformance.talk import Endpoint

__all__ = ["CHECKS", "MODULES", "Check", "Failed", "NotApplicable", "Outcome", "Verdict", "check"]

MODULES: Final = ("core", "discovery", "query")


class Failed(EleaError):
    """The endpoint did something else than the requirement says."""


class NotApplicable(EleaError):
    """The requirement cannot be judged here: the endpoint does not offer what it is about."""


class Verdict(Enum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that can be found out."""

    name: str
    """What the endpoint does if it passes, in words."""
    requirements: tuple[str, ...]
    module: str
    run: Callable[[Endpoint], None]
    dialect: str | None
    """Only in this dialect."""
    link: str | None
    """Only over a `stream` or `datagram` link."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check has found."""

    check: Check
    verdict: Verdict
    detail: str
    transcript: tuple[tuple[str, str], ...]
    """The packets of the last conversation, `>` to the endpoint and `<` from it, in hexadecimal."""


CHECKS: Final[list[Check]] = []


def check(
    *requirements: str, module: str = "core", dialect: str | None = None, link: str | None = None
) -> Callable[[Callable[[Endpoint], None]], Callable[[Endpoint], None]]:
    """Register a check of some requirements; its name is that of the function."""

    def add(run: Callable[[Endpoint], None]) -> Callable[[Endpoint], None]:
        CHECKS.append(Check(run.__name__.replace("_", " "), requirements, module, run, dialect, link))
        return run

    return add
