"""One end, a process of its own: an Elea uProtocol entity, or a bare eclipse-zenoh session that puts and subscribes."""

from __future__ import annotations

import importlib
import json
import signal
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

from bench.node.ends import config
from bench.node.talk import Parent

PATIENCE = 30.0  # seconds in which the two ends must have found each other
ANSWER = 5.0  # seconds after which an answer is lost
IN_FLIGHT = 64
PAYLOAD = bytes(64)


class Near(Protocol):
    """The end that measures."""

    def ask(self) -> Callable[[], object]:
        """Send a request; what this returns waits for its answer."""

    def publish(self) -> None:
        """Send a message that nobody answers."""


class BareNear:
    """Requests and answers are puts on two keys. They come in order, so the first that waits is the one answered."""

    def __init__(self, lib: Any, session: Any) -> None:
        self._answers: SimpleQueue[None] = SimpleQueue()
        block = lib.CongestionControl.BLOCK
        self._ping = session.declare_publisher("bench/ping", congestion_control=block)
        self._out = session.declare_publisher("bench/out")
        self._keep = session.declare_subscriber("bench/pong", self._answered)

    def _answered(self, _: Any) -> None:
        self._answers.put(None)

    def ask(self) -> Callable[[], object]:
        self._ping.put(PAYLOAD)
        return lambda: self._answers.get(timeout=ANSWER)

    def publish(self) -> None:
        self._out.put(PAYLOAD)


def bare_far(lib: Any, session: Any, arrived: Callable[[Any], None]) -> Any:
    pong = session.declare_publisher("bench/pong", congestion_control=lib.CongestionControl.BLOCK)
    return (
        pong,
        session.declare_subscriber("bench/ping", lambda sample: pong.put(bytes(sample.payload))),
        session.declare_subscriber("bench/out", arrived),
    )


class EntityNear:
    """Requests are calls of a method, with identifiers, time to live and validation."""

    def __init__(self, session: Any) -> None:
        up = importlib.import_module("elea.uprotocol")
        self._method = up.UUri.parse("//far/2/1/1")
        self._transport = up.UTransportZenoh(session, "//near/1/1/0")
        self._client, self._publisher = up.RpcClient(self._transport), up.Publisher(self._transport)

    def ask(self) -> Callable[[], object]:
        return self._client.start(self._method, PAYLOAD).result  # type: ignore[no-any-return]

    def publish(self) -> None:
        self._publisher.publish(0x8001, PAYLOAD)


def entity_far(session: Any, arrived: Callable[[Any], None]) -> Any:
    up = importlib.import_module("elea.uprotocol")
    transport = up.UTransportZenoh(session, "//far/2/1/0")
    server = up.RpcServer(transport)
    server.register_endpoint(None, 1, lambda method, attributes, payload: payload)
    transport.register_listener(up.UUri.parse("//near/1/1/8001"), None, arrived)
    return transport, server


def far(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """Answers requests, and tells how many published messages have come, and in which time."""
    seen, first, last = 0, 0.0, 0.0

    def arrived(_: Any) -> None:
        nonlocal seen, first, last
        last = time.perf_counter()
        first = first or last
        seen += 1

    keep = bare_far(lib, session, arrived) if spec["lib"] == "zenoh" else entity_far(session, arrived)
    parent.say(open=True)
    while (order := parent.hear()) and order["do"] != "end":
        before = -1
        while seen > before:  # until no more come
            before = seen
            time.sleep(0.2)
        parent.say(received=seen, rate=seen / (last - first) if last > first else 0.0)
    del keep


def near(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """Measures, and tells."""
    side: Any = BareNear(lib, session) if spec["lib"] == "zenoh" else EntityNear(session)
    found_each_other(side)
    parent.say(open=True)
    parent.hear()
    taken = round_trips(side, spec["seconds"])
    parent.say(latency=statistics.median(taken) * 1e6, worst=statistics.quantiles(taken, n=100)[98] * 1e6)
    parent.hear()
    parent.say(**in_flight(side, spec["seconds"]))
    parent.hear()
    sent, until = 0, time.perf_counter() + spec["seconds"]
    while time.perf_counter() < until:
        for _ in range(16):
            side.publish()
        sent += 16
    parent.say(sent=sent)
    parent.hear()


def found_each_other(side: Near) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            side.ask()()
            return
        except Exception as error:
            if time.monotonic() > until:
                raise SystemExit(f"no answer: {error}") from error
            time.sleep(0.05)


def round_trips(side: Near, seconds: float) -> list[float]:
    taken, until = [], time.perf_counter() + seconds
    while (begun := time.perf_counter()) < until:
        side.ask()()
        taken.append(time.perf_counter() - begun)
    return taken


def in_flight(side: Near, seconds: float) -> dict[str, float]:
    """Answers a second with so many requests under way; the oldest is waited for before the next is sent."""
    waiting: deque[Callable[[], object]] = deque()
    answered, begun = 0, time.perf_counter()
    while time.perf_counter() < begun + seconds:
        waiting.append(side.ask())
        if len(waiting) == IN_FLIGHT:
            waiting.popleft()()
            answered += 1
    rate = answered / (time.perf_counter() - begun)
    for wait in waiting:
        wait()
    return {"requests": rate}


def main() -> None:
    spec = json.loads(sys.argv[1])
    signal.alarm(int(spec["limit"]))  # whatever happens to the parent, no end outlives the run
    lib = importlib.import_module(spec["lib"])
    session = lib.open(config(lib, spec))
    (far if spec["job"] == "far" else near)(lib, session, spec, Parent())
    session.close()


if __name__ == "__main__":
    main()
