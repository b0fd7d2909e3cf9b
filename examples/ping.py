"""Send to `pong.py` and wait for the echo; prints the round trip in microseconds.

python examples/pong.py &
python examples/ping.py --size 64 --count 1000
"""

from __future__ import annotations

import queue
import time

from common import arguments, configuration, library, numbers, say, wait_for_match


def main() -> None:
    args = arguments(
        __doc__,
        count=100,
        size={"type": int, "default": 8, "help": "octets"},
        summary={"action": "store_true", "help": "print the median only, at the end"},
    )
    zenoh = library(args)
    echoes = queue.SimpleQueue()
    payload = bytes(number % 256 for number in range(args.size))
    trips = []

    with zenoh.open(configuration(zenoh, args)) as session:
        options = {"congestion_control": zenoh.CongestionControl.BLOCK, "express": True}
        with (
            session.declare_subscriber("test/pong", echoes.put),
            session.declare_publisher("test/ping", **options) as publisher,
        ):
            wait_for_match(publisher)
            for number in numbers(args.count):
                began = time.perf_counter()
                publisher.put(payload)
                echo = echoes.get(timeout=10.0)
                trips.append((time.perf_counter() - began) * 1e6)
                assert len(echo.payload) == args.size
                if not args.summary:
                    say(f"{len(echo.payload)} octets, number {number}: {trips[-1]:.0f} µs")
    say(f"{len(trips)} round trips of {args.size} octets, median {sorted(trips)[len(trips) // 2]:.0f} µs")


if __name__ == "__main__":
    main()
