"""A house, a fleet and a vehicle that never were: what their sensors say, and from whom it comes.

Every sample carries its origin as an attachment, `<publisher> <number> <microseconds since 1970>`: the payload is that
of a sensor, and the accounts can tell every sample from every other. The attachment of a uProtocol message is taken, so
those of the vehicle have it in their payload.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

__all__ = ["BATTERY_MOST", "HOT", "PUBLISHERS", "Origin", "Reading", "readings"]

ROOMS: Final = ("bedroom", "kitchen", "study")
FLOORS: Final = 3
ROBOTS: Final = 12

HOT: Final = 90.0
"""Degrees above which the pipeline sends an alert (demo.toml has the same number)."""

BATTERY_MOST: Final = 100.0
HOT_SHARE: Final = 0.01
BROKEN_SHARE: Final = 0.003
"""Of readings with a battery of 170 percent, as sensors have them."""

DAY_SECONDS: Final = 24.0
"""A day in the house: long enough to be seen in a plot of a run."""

PUBLISHERS: Final = ("house", "fleet", "eclipse", "vehicle")


class Origin(NamedTuple):
    """Who put a sample, its number there, and when, in microseconds since 1970.

    >>> Origin.parse("house 7 1700000000000000").text()
    'house 7 1700000000000000'
    """

    by: str
    number: int
    at: int

    @staticmethod
    def parse(text: str) -> Origin:
        """Raises ValueError if it is something else."""
        by, number, at = text.split(" ")
        return Origin(by, int(number), int(at))

    def text(self) -> str:
        """As an attachment."""
        return f"{self.by} {self.number} {self.at}"


class Reading(NamedTuple):
    """A sample to be put."""

    key: str
    payload: str
    origin: str


def readings(by: str, seed: int) -> Iterator[Reading]:
    """What a publisher has to say, for ever; `by` is one of PUBLISHERS."""
    chance = random.Random(f"{by} {seed}")
    number = 0
    while True:
        now = time.time()
        key, value = _DEVICES[by](chance, now)
        yield Reading(key, json.dumps(value), Origin(by, number, int(now * 1e6)).text())
        number += 1


def _light(chance: random.Random, now: float) -> tuple[str, dict[str, object]]:
    floor = chance.randrange(FLOORS)
    key = f"myhouse/floor/{floor}/{chance.choice(ROOMS)}/{chance.randrange(1, 4)}/LightStatus"
    daylight = 50 + 40 * math.sin(2 * math.pi * (now / DAY_SECONDS + floor / FLOORS))
    luminosity = round(min(100.0, max(0.0, daylight + chance.gauss(0, 5))), 2)
    return key, {"on": luminosity > 50, "luminosity": luminosity}


def _robot(chance: random.Random, now: float, name: str = "robot") -> tuple[str, dict[str, object]]:
    number = chance.randrange(ROBOTS)
    key = f"fleet/{name}-{number:02}/status"
    is_hot = chance.random() < HOT_SHARE
    temperature = chance.uniform(HOT + 1, HOT + 20) if is_hot else chance.gauss(55, 6)
    battery = 170.0 if chance.random() < BROKEN_SHARE else 60 + 35 * math.sin(now / 60 + number)
    speed = max(0.0, 1.5 + math.sin(now / 7 + number))
    return key, {"speed": round(speed, 2), "battery": round(battery, 1), "temperature": round(temperature, 1)}


def _drive(chance: random.Random, now: float) -> tuple[str, dict[str, object]]:
    speed = 60 + 40 * math.sin(2 * math.pi * now / DAY_SECONDS) + chance.gauss(0, 2)
    # Its key is made of its address.
    return "", {"speed": round(max(0.0, speed), 2)}


_DEVICES: Final[dict[str, Callable[[random.Random, float], tuple[str, dict[str, object]]]]] = {
    "house": _light,
    "fleet": _robot,
    # The peer's robots have names of their own, so that one sees whose they are.
    "eclipse": partial(_robot, name="rover"),
    "vehicle": _drive,
}
