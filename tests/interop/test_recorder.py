"""Captures of what eclipse-zenoh programs publish, replayed to eclipse-zenoh programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import zenoh

import elea
from elea.recorder import Recorder, Replayer
from tests.interop.inbox import eventually, free_port
from tests.interop.network import configuration

pytestmark = pytest.mark.interop

COUNT = 200


def opened(lib: Any, locator: str, mode: str = "client") -> Any:
    where = {"listen/endpoints": [locator]} if mode == "router" else {"connect/endpoints": [locator]}
    return lib.open(configuration(lib, {"mode": mode, **where}))


def what(sample: Any) -> tuple[Any, ...]:
    """All that both libraries say of a sample, whoever sent it."""
    stamp = sample.timestamp
    return (
        str(sample.key_expr),
        sample.payload.to_bytes(),
        str(sample.kind).rpartition(".")[2],
        str(sample.encoding),
        None if stamp is None else (stamp.get_time(), str(stamp.get_id()), str(stamp)),
        None if sample.attachment is None else sample.attachment.to_bytes(),
        str(sample.priority).rpartition(".")[2],
        bool(sample.express),
    )


def subscribers(router: Any) -> int:
    """How many nodes a router sends samples of the key to."""
    return sum(len(way.faces) for way in router._node.route(router._node.local, "home/1/temp").ways)


@pytest.mark.parametrize("suffix", [".mcap", ".parquet"])
def test_eclipse_zenoh_gets_again_what_it_has_put(tmp_path: Path, suffix: str) -> None:
    locator = f"tcp/127.0.0.1:{free_port()}"
    with (
        opened(elea, locator, "router") as router,
        opened(zenoh, locator) as there,
        opened(zenoh, locator) as receiver,
        opened(elea, locator) as here,
    ):
        first: list[Any] = []
        subscriber = receiver.declare_subscriber("home/**", first.append)
        recorder = Recorder(here, "home/**", tmp_path / f"a{suffix}", flush=0.05)
        samples = there.declare_publisher(
            "home/1/temp",
            encoding="application/json;Temp",
            priority=zenoh.Priority.DATA_HIGH,
            congestion_control=zenoh.CongestionControl.BLOCK,
        )
        eventually(lambda: subscribers(router) == 2 and samples.matching_status.matching, "both are known")
        for number in range(COUNT):
            stamp = there.new_timestamp() if number % 2 else None
            more = b"%d" % number if number % 3 else None
            samples.put(b'{"t": %d}' % number, attachment=more, timestamp=stamp)
        samples.delete(timestamp=there.new_timestamp())
        eventually(lambda: recorder.figures().samples == COUNT + 1, "all are recorded")
        recorder.close()
        eventually(lambda: len(first) == COUNT + 1, "all have come there")
        subscriber.undeclare()

        again: list[Any] = []
        subscriber = receiver.declare_subscriber("home/**", again.append)
        check = here.declare_publisher("home/1/temp")
        eventually(lambda: subscribers(router) == 1 and check.matching_status.matching, "only the last one is known")
        replay = Replayer(here, [tmp_path / f"a{suffix}"], pace=None)
        replay.run()
        eventually(lambda: len(again) == COUNT + 1, "all have come again")
        subscriber.undeclare()

    assert (replay.sent, recorder.figures().dropped) == (COUNT + 1, 0)
    assert [what(sample) for sample in again] == [what(sample) for sample in first]
    assert {type(sample.timestamp) for sample in again} == {zenoh.Timestamp}
