"""Send back what `ping.py` sends.

python examples/pong.py
"""

from __future__ import annotations

import threading

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(__doc__, count=0)
    zenoh = library(args)
    enough = threading.Event()
    echoed = 0

    with zenoh.open(configuration(zenoh, args)) as session:
        options = {"congestion_control": zenoh.CongestionControl.BLOCK, "express": True}
        with session.declare_publisher("test/pong", **options) as publisher:

            def echo(sample):
                nonlocal echoed
                publisher.put(sample.payload)
                echoed += 1
                if echoed == args.count:
                    enough.set()

            with session.declare_subscriber("test/ping", echo):
                say("echoing test/ping on test/pong")
                enough.wait()
    say(f"echoed {echoed}")


if __name__ == "__main__":
    main()
