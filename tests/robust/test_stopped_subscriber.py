"""A subscriber that has stopped: the others get everything, the router's memory is bounded, losses are counted."""

from __future__ import annotations

import re
import signal
import threading
from typing import Any

import elea
from tests.robust.children import broker, config, eventually, facts, node

OTHERS = 4
ROUNDS = 120
ROUND = 64
SIZE = 8_000
BOUND = 40_000
"""kB by which the router may grow. Its queue for the stopped one holds 1 MiB; all rounds together are 61 MB."""

LONG: dict[str, Any] = {"transport__link__tx__lease": 600_000}


class Counting:
    """A subscriber that says when it has got a number of samples."""

    def __init__(self, session: elea.Session) -> None:
        self.count = 0
        self._changed = threading.Condition()
        session.declare_subscriber("robust/data", self._sample)

    def _sample(self, sample: elea.Sample) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify()

    def reaches(self, count: int, timeout: float = 60.0) -> bool:
        """Whether it has got so many in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self.count >= count, timeout)


def dropped(session: elea.Session) -> int:
    """Messages the router says it has dropped on the way out, on all links."""
    (reply,) = [reply.ok for reply in session.get("@/*/router/metrics?compression=false") if reply.ok]
    found = re.findall(r"^elea_link_dropped_messages_total\{.*\} (\d+)$", reply.payload.to_string(), re.MULTILINE)
    return sum(map(int, found))


def test_stopped_subscriber_costs_neither_the_others_a_sample_nor_the_router_its_memory() -> None:
    with (
        broker() as (router, locator),
        node("client", "connect", locator, **LONG) as stopped,
        elea.open(config("client", "connect", locator)) as publishing,
    ):
        stopped.ask("subscribe", "robust/data")
        sessions = [elea.open(config("client", "connect", locator)) for _ in range(OTHERS)]
        try:
            others = [Counting(session) for session in sessions]
            publisher = publishing.declare_publisher("robust/data", congestion_control=elea.CongestionControl.DROP)

            def begun() -> bool:
                publisher.put(bytes(SIZE))
                return all(other.count for other in others) and bool(stopped.ask("count", "robust/data"))

            eventually(begun, "all subscribers get samples")
            before = facts(router.process.pid)["memory"]
            stopped.signal(signal.SIGSTOP)

            # In step with the others: what is missing can then not be blamed on a slow machine.
            for _ in range(ROUNDS):
                wanted = [other.count + ROUND for other in others]
                for _ in range(ROUND):
                    publisher.put(bytes(SIZE))
                assert all(other.reaches(count) for other, count in zip(others, wanted, strict=True))

            after = facts(router.process.pid)["memory"]
            lost = dropped(publishing)
            stopped.signal(signal.SIGCONT)
            eventually(lambda: stopped.ask("count", "robust/data") > ROUND, "it goes on")
        finally:
            for session in sessions:
                session.close()
    assert publishing.info.dropped().get("full", 0) == 0
    assert after < before + BOUND
    assert lost > ROUNDS * ROUND // 4
