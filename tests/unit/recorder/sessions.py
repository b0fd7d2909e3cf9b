"""Sessions without a network: what is put in one is received in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import elea

ALONE = "{mode: 'peer', scouting: {multicast: {enabled: false}}, listen: {endpoints: []}}"
PATIENCE = 60.0


def alone() -> Any:
    """A session that nobody else is connected to."""
    return elea.open(elea.Config.from_json5(ALONE))


def eventually(condition: Callable[[], object], what: str) -> None:
    """Waits until something is so."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"never: {what}"
        time.sleep(0.005)
