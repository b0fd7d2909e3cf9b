"""Where samples go: a function, a queue that waits, a ring that forgets, or a queue of your own.

python examples/channels.py
"""

from __future__ import annotations

import queue

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(__doc__, count=5)
    zenoh = library(args)
    handlers = zenoh.handlers
    ended = []

    with zenoh.open(configuration(zenoh, args)) as session:
        own = queue.SimpleQueue()
        fifo = session.declare_subscriber("demo/channels", handlers.FifoChannel(100))
        ring = session.declare_subscriber("demo/channels", handlers.RingChannel(2))
        default = session.declare_subscriber("demo/channels")
        called = session.declare_subscriber("demo/channels", handlers.Callback(own.put, lambda: ended.append("called")))
        pair = session.declare_subscriber("demo/channels", (lambda sample: None, "a handler of my own"))

        for number in range(args.count):
            session.put("demo/channels", f"number {number}")

        say("function:", *(own.get(timeout=5.0).payload.to_string() for _ in range(args.count)))
        say("fifo:", *(fifo.recv().payload.to_string() for _ in range(args.count)))
        say("fifo is empty:", fifo.try_recv())
        say("default:", *(default.recv().payload.to_string() for _ in range(args.count)))
        kept = []
        while (sample := ring.try_recv()) is not None:
            kept.append(sample.payload.to_string())
        say("ring:", *kept)
        say("pair:", pair.handler)
        called.undeclare()
        fifo.undeclare()
        try:
            fifo.recv()
        except zenoh.ZError:
            say("an undeclared subscriber receives no more")
    say("handlers ended:", *ended)


if __name__ == "__main__":
    main()
