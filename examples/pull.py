"""Keep only the newest samples in a ring, and take them when it suits.

python examples/pull.py --size 3 --interval 5
"""

from __future__ import annotations

import time

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(
        __doc__,
        count=0,
        key={"default": "demo/example/**"},
        size={"type": int, "default": 3, "help": "how many samples the ring keeps"},
        interval={"type": float, "default": 5.0, "help": "seconds between two looks"},
    )
    zenoh = library(args)

    with (
        zenoh.open(configuration(zenoh, args)) as session,
        session.declare_subscriber(args.key, zenoh.handlers.RingChannel(args.size)) as ring,
    ):
        say(f"ring of {args.size} on {args.key}")
        taken = 0
        while not args.count or taken < args.count:
            time.sleep(args.interval)
            sample = ring.try_recv()
            if sample is None:
                say("nothing new")
            while sample is not None:
                say(f"pulled {sample.key_expr}: {sample.payload.to_string()}")
                taken += 1
                sample = ring.try_recv()


if __name__ == "__main__":
    main()
