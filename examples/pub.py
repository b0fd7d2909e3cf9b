"""Put a numbered value on a key, again and again.

python examples/pub.py --key demo/example/pub --value "Hello"
"""

from __future__ import annotations

import time

from common import arguments, configuration, library, numbers, say, wait_for_match


def main() -> None:
    args = arguments(
        __doc__,
        count=0,
        key={"default": "demo/example/pub"},
        value={"default": "Hello"},
        attachment={"default": None, "help": "goes along with each value"},
        interval={"type": float, "default": 1.0, "help": "seconds between two values"},
        wait={"action": "store_true", "help": "begin when somebody listens"},
    )
    zenoh = library(args)

    with zenoh.open(configuration(zenoh, args)) as session, session.declare_publisher(args.key) as publisher:
        say(f"publisher on {publisher.key_expr}")
        if args.wait:
            wait_for_match(publisher)
        for number in numbers(args.count):
            value = f"[{number:4}] {args.value}"
            publisher.put(value, encoding=zenoh.Encoding.TEXT_PLAIN, attachment=args.attachment)
            say(f"put {publisher.key_expr}: {value}")
            time.sleep(args.interval)


if __name__ == "__main__":
    main()
