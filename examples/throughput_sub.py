"""Count what `throughput_pub.py` puts, and print the rate every so many.

python examples/throughput_sub.py --round 100000
"""

from __future__ import annotations

import threading
import time

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(__doc__, count=0, round={"type": int, "default": 100_000, "help": "samples between two lines"})
    zenoh = library(args)
    enough = threading.Event()
    seen = 0
    began = 0.0

    def received(sample):
        nonlocal seen, began
        if seen % args.round == 0:
            began = time.perf_counter()
        seen += 1
        if seen % args.round == 0:
            say(f"{args.round} samples: {args.round / (time.perf_counter() - began):.0f} a second")
        if seen == args.count:
            enough.set()

    with zenoh.open(configuration(zenoh, args)) as session, session.declare_subscriber("test/thr", received):
        say("counting test/thr")
        enough.wait()
    say(f"received {seen}")


if __name__ == "__main__":
    main()
