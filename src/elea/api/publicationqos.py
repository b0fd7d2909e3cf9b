"""`qos/publication`: what a configuration says of puts and deletions by key stands above what a program says.

The first entry that includes a key counts; eclipse-zenoh takes any of several, and warns. So do we.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from elea.model import keyexpr
from elea.model.limits import CACHED_KEY_CHARS, MAX_PUT_ROUTES
from elea.model.logger import logger
from elea.model.qos import CongestionControl, Locality, Priority, Reliability

__all__ = ["PublicationQos", "Quality"]

_log = logger("elea.api")

NAMES: Final = ("congestion_control", "priority", "express", "reliability", "allowed_destination")
KINDS: Final[dict[str, type[CongestionControl] | type[Priority] | type[Reliability] | type[Locality]]] = {
    "congestion_control": CongestionControl,
    "priority": Priority,
    "reliability": Reliability,
    "allowed_destination": Locality,
}


Quality = tuple[CongestionControl | None, Priority | None, bool | None, Reliability | None, Locality | None]
"""Of a put, in the order of `NAMES`; None where nobody said."""


class PublicationQos:
    """The entries of a configuration."""

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self._entries = [
            (key, {name: _value(name, value) for name, value in entry["config"].items() if value is not None})
            for entry in entries
            for key in entry["key_exprs"]
        ]
        self._known: dict[str, dict[str, Any]] = {}

    def over(self, key: str, chosen: Quality) -> Quality:
        """What a program chose for a key, with what the configuration says in its place."""
        found = self._known.get(key)
        if found is None:
            found = self._find(key)
            if len(key) <= CACHED_KEY_CHARS:
                if len(self._known) >= MAX_PUT_ROUTES:
                    self._known.clear()
                self._known[key] = found
        if not found:
            return chosen
        return cast(Quality, tuple(found.get(name, value) for name, value in zip(NAMES, chosen, strict=True)))

    def _find(self, key: str) -> dict[str, Any]:
        found = [(expr, config) for expr, config in self._entries if keyexpr.includes(expr, key)]
        if len(found) > 1:
            others = ", ".join(expr for expr, _ in found[1:])
            _log.warning("several entries of qos/publication: key=%s used=%s others=%s", key, found[0][0], others)
        return found[0][1] if found else {}


def _value(name: str, value: Any) -> Any:
    return KINDS[name][value.upper()] if name in KINDS else value
