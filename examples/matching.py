"""Work only when somebody listens: a publisher's matching status.

python examples/matching.py --key demo/example/matching
"""

from __future__ import annotations

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(__doc__, count=0, key={"default": "demo/example/matching"})
    zenoh = library(args)

    with (
        zenoh.open(configuration(zenoh, args)) as session,
        session.declare_publisher(args.key) as publisher,
        publisher.declare_matching_listener() as listener,
    ):
        say(f"matching now: {publisher.matching_status.matching}")
        for number, status in enumerate(listener, 1):
            say("somebody listens" if status.matching else "nobody listens any more")
            if status.matching:
                publisher.put("good that you are there")
            if number == args.count:
                break


if __name__ == "__main__":
    main()
