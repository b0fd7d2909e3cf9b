"""One end, a process of its own: a broker that subscribes, or a client that publishes."""

from __future__ import annotations

import importlib
import json
import signal
import sys
import time
from typing import Any

from bench.node.talk import Parent

PATIENCE = 30.0  # seconds in which the two ends must have found each other
QUIET = 0.5  # seconds after which nothing more comes
KEY = "bench/early"


def config(lib: Any, mode: str, side: str, locator: str) -> Any:
    return lib.Config.from_json5(
        f"""{{mode: "{mode}", {side}: {{endpoints: ["{locator}"]}}, transport: {{shared_memory: {{enabled: false}}}},
        scouting: {{multicast: {{enabled: false}}, gossip: {{enabled: false}}}}}}"""
    )


def far(lib: Any, spec: dict[str, Any], parent: Parent) -> None:
    """Tells how many samples have come, how fast, and what they cost."""
    seen, first, last = 0, 0.0, 0.0

    def arrived(_: Any) -> None:
        nonlocal seen, first, last
        last = time.perf_counter()
        first = first or last
        seen += 1

    with lib.open(config(lib, "router", "listen", spec["locator"])) as session:
        subscriber = session.declare_subscriber(KEY, arrived)
        began = time.process_time()
        parent.say(open=True)
        while (order := parent.hear()) and order["do"] == "tell":
            before, since = -1, time.perf_counter()
            while seen > before or time.perf_counter() < since + QUIET:
                if seen > before:
                    before, since = seen, time.perf_counter()
                time.sleep(0.02)
            rate = (seen - 1) / (last - first) if last > first else 0.0
            parent.say(received=seen, rate=rate, cpu=time.process_time() - began)
        subscriber.undeclare()


def near(lib: Any, spec: dict[str, Any], parent: Parent) -> None:
    """Publishes for a while, as fast as there is room."""
    payload = bytes(spec["size"])
    with lib.open(config(lib, "client", "connect", spec["locator"])) as session:
        publisher = session.declare_publisher(KEY, congestion_control=lib.CongestionControl.BLOCK)
        until = time.monotonic() + PATIENCE
        while not publisher.matching_status.matching:
            if time.monotonic() > until:
                raise SystemExit("nobody subscribes")
            time.sleep(0.01)
        parent.say(open=True)
        parent.hear()
        began, until, sent = time.process_time(), time.perf_counter() + spec["seconds"], 0
        while time.perf_counter() < until:
            for _ in range(32):
                publisher.put(payload)
            sent += 32
        parent.say(sent=sent, cpu=time.process_time() - began)
        parent.hear()  # what is under way must arrive first


def main() -> None:
    spec = json.loads(sys.argv[1])
    signal.alarm(int(spec["limit"]))  # whatever happens to the parent, no end outlives the run
    lib = importlib.import_module(spec["lib"])
    (far if spec["job"] == "far" else near)(lib, spec, Parent())


if __name__ == "__main__":
    main()
