"""Messages that a low-latency session cannot send are counted, said, and seen by whoever asks what was lost."""

from __future__ import annotations

import pytest

import elea
from tests.unit.node.storage.serving import configuration, eventually

LOW = {"unicast": {"lowlatency": True, "qos": {"enabled": False}}}


def test_what_is_larger_than_a_batch_is_counted_as_oversized(caplog: pytest.LogCaptureFixture) -> None:
    hub = configuration(mode="peer", listen={"endpoints": ["tcp/127.0.0.1:0"]}, transport=LOW)
    got: list[int] = []
    with elea.open(hub) as near:
        at = near._runtime.links.locators()[0]
        far_config = configuration(mode="peer", listen={"endpoints": []}, connect={"endpoints": [at]}, transport=LOW)
        with (
            elea.open(far_config) as far,
            far.declare_subscriber("a", lambda sample: got.append(len(sample.payload))),
            near.declare_publisher("a", congestion_control=elea.CongestionControl.BLOCK) as publisher,
        ):
            eventually(lambda: publisher.matching_status.matching, "the subscriber")
            publisher.put(bytes(10))
            for _ in range(3):
                publisher.put(bytes(100_000))
            publisher.put(bytes(20))
            eventually(lambda: got == [10, 20], "the small ones")
            dropped, other = near.info.dropped(), far.info.dropped()

    assert dropped["oversized"] == 3
    assert sum(dropped.values()) == 3
    assert sum(other.values()) == 0
    assert "oversized=1 limit=49152" in caplog.text
