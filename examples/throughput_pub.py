"""Put as fast as it goes; `throughput_sub.py` counts.

python examples/throughput_pub.py --size 64
"""

from __future__ import annotations

from common import arguments, configuration, library, numbers, say, wait_for_match


def main() -> None:
    args = arguments(__doc__, count=0, size={"type": int, "default": 8, "help": "octets"})
    zenoh = library(args)
    payload = bytes(number % 10 for number in range(args.size))

    with zenoh.open(configuration(zenoh, args)) as session:
        options = {"congestion_control": zenoh.CongestionControl.BLOCK, "priority": zenoh.Priority.DATA}
        with session.declare_publisher("test/thr", **options) as publisher:
            wait_for_match(publisher)
            say(f"putting {args.size} octets on test/thr")
            for _ in numbers(args.count):
                publisher.put(payload)
    say(f"put {args.count}")


if __name__ == "__main__":
    main()
