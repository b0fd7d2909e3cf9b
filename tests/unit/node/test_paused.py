"""What a link has received and nobody may take yet counts in the memory budget of the node."""

from __future__ import annotations

import contextlib
import threading

import pytest

import elea
from tests.hostile.slow import subscribing
from tests.unit.api.logkeeper import config, wait_until
from tests.vectors.rawclient import RawClient

BLOCK = elea.CongestionControl.BLOCK


@pytest.mark.parametrize("ends", ["subscriber", "publisher"])
def test_bytes_of_a_paused_link_count_until_they_are_taken_or_the_link_ends(ends: str) -> None:
    patience = "transport__link__tx__queue__congestion_control__block__wait_before_close"
    entries = {patience: 600_000_000}  # microseconds: the stopped subscriber is not given up
    with elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0"], **entries)) as router:
        locator = router._runtime.links.locators()[0]
        stopped = RawClient(locator)
        stopped.send(subscribing("held/**"))
        wait_until(lambda: len(router._runtime.links.connections) == 1, "a link")
        done = threading.Event()

        def put() -> None:
            with (
                contextlib.suppress(elea.ZError),
                elea.open(config("client", connect__endpoints=[locator], **entries)) as session,
            ):
                publisher = session.declare_publisher("held/1", congestion_control=BLOCK)
                while not done.is_set():
                    publisher.put(bytes(1_000))

        putting = threading.Thread(target=put)
        putting.start()
        memory = router._node.memory
        try:
            wait_until(
                lambda: memory.used > 0, "bytes put aside"
            )  # there is nothing else that could: no message is in the making
            if ends == "publisher":
                victims = [one for one in router._runtime.links.connections if one._put_aside is not None]
                assert len(victims) == 1
                victims[0].close()
            else:
                stopped.close()
            done.set()
            wait_until(lambda: memory.used == 0, "all given back")
        finally:
            done.set()
            stopped.close()
            putting.join()
