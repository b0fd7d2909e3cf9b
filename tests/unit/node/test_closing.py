"""Put and leave: what a program put before it closed its session arrives."""

from __future__ import annotations

import time

import elea
from tests.unit.node.test_backpressure import config

VISITS = 60


def test_samples_put_just_before_closing_arrive() -> None:
    got: list[str] = []
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0")) as router:
        locator = router._runtime.links.locators()[0]
        with elea.open(config("client", "connect", locator)) as staying:
            staying.declare_subscriber("leave/**", lambda sample: got.append(sample.payload.to_string()))
            time.sleep(0.2)

            for visit in range(VISITS):
                with elea.open(config("client", "connect", locator)) as leaving:
                    # The router answers the publisher while we leave: there is something unread in the socket.
                    leaving.declare_publisher("leave/a")
                    leaving.put("leave/a", str(visit))

            deadline = time.monotonic() + 10
            while len(got) < VISITS and time.monotonic() < deadline:
                time.sleep(0.01)

    assert got == [str(visit) for visit in range(VISITS)]
