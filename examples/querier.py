"""Ask the same key expression again and again, with a number each time.

python examples/querier.py --key demo/example/queryable
"""

from __future__ import annotations

import time

from common import arguments, configuration, library, numbers, say, wait_for_match


def main() -> None:
    args = arguments(
        __doc__,
        count=0,
        key={"default": "demo/example/queryable"},
        interval={"type": float, "default": 1.0, "help": "seconds between two queries"},
        wait={"action": "store_true", "help": "begin when somebody answers"},
    )
    zenoh = library(args)

    with (
        zenoh.open(configuration(zenoh, args)) as session,
        session.declare_querier(args.key, target=zenoh.QueryTarget.ALL) as querier,
    ):
        say(f"querier on {querier.key_expr}")
        if args.wait:
            say(f"answered: {wait_for_match(querier)}")
        for number in numbers(args.count):
            for reply in querier.get(parameters={"number": str(number)}, payload=f"[{number:4}]"):
                say(f"answer {number}: {reply.ok.key_expr} = {reply.ok.payload.to_string()}")
            time.sleep(args.interval)


if __name__ == "__main__":
    main()
