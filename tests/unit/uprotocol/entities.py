"""Entities on one session without links: what is put is delivered in the process."""

from __future__ import annotations

import json
from typing import Any

import elea
from elea.uprotocol import UTransportZenoh

__all__ = ["FakeClock", "alone", "entity"]


class FakeClock:
    """Milliseconds since 1970, as the test says."""

    def __init__(self, now: int = 1_735_689_600_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def alone(**entries: Any) -> elea.Config:
    """A peer that looks for nobody and listens to nobody."""
    config = elea.Config()
    quiet = {"mode": "peer", "listen/endpoints": [], "scouting/multicast/enabled": False, "scouting/delay": 0}
    for path, value in {**quiet, **entries}.items():
        config.insert_json5(path, json.dumps(value))
    return config


def entity(session: elea.Session, uri: str, **options: Any) -> UTransportZenoh:
    """An entity on a session."""
    return UTransportZenoh(session, uri, **options)
