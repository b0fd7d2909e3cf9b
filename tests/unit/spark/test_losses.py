"""Positions that tasks have found gone: noted by the driver once, however often tasks are tried."""

from __future__ import annotations

import random

import elea
from elea.spark.losses import Losses, tell
from elea.spark.options import ReadOptions
from tests.interop.storing import StoringBroker
from tests.robust.children import config


def test_stretches_of_tries_count_once_and_are_taken_once() -> None:
    with elea.open(elea.Config.from_json5('{mode: "peer", scouting: {multicast: {enabled: false}}}')) as session:
        losses = Losses(session)
        chance = random.Random(4)
        gone: set[int] = set()
        taken = 0
        for at in range(300):
            first = chance.randrange(500)
            end = first + chance.randrange(1, 20)
            losses.note("a", "e", first, end)
            gone |= set(range(first, end))
            if at % 7 == 0:
                taken += losses.take("a", "e")
                assert losses.waiting("a", "e") == 0
            assert losses.waiting("a", "e") == len(gone) - taken
        assert (losses.waiting("a", "other"), losses.waiting("b", "e")) == (0, 0)


def test_a_task_tells_the_driver_through_the_broker_before_it_goes_on() -> None:
    with StoringBroker() as broker, elea.open(config("client", "connect", broker.locator)) as session:
        losses = Losses(session)
        options = ReadOptions.parse({"connect": broker.locator, "path": "**", "requestTimeoutMs": "30000"})

        tell(options, losses.key, "log", "epoch", 10, 15)

        assert losses.take("log", "epoch") == 5
        losses.close()


def test_a_driver_that_is_gone_is_logged(caplog: object) -> None:
    with StoringBroker() as broker:
        options = ReadOptions.parse({"connect": broker.locator, "path": "**", "requestTimeoutMs": "2000"})

        tell(options, "@elea/spark/lost/nobody", "log", "epoch", 10, 15)

    assert "samples lost, and not counted: log=log first=10 last=14" in caplog.text  # type: ignore[attr-defined]
