"""Ask a selector, print the answers.

python examples/get.py --selector "demo/example/**?unit=C" --payload "question"
"""

from __future__ import annotations

from common import arguments, configuration, library, numbers, say


def main() -> None:
    args = arguments(
        __doc__,
        count=1,
        selector={"default": "demo/example/**"},
        payload={"default": None, "help": "goes along with the query"},
        target={"choices": ("BEST_MATCHING", "ALL", "ALL_COMPLETE"), "default": "BEST_MATCHING"},
        timeout={"type": float, "default": 10.0, "help": "seconds"},
    )
    zenoh = library(args)

    with zenoh.open(configuration(zenoh, args)) as session:
        for _ in numbers(args.count):
            say(f"get {args.selector}")
            target = getattr(zenoh.QueryTarget, args.target)
            for reply in session.get(args.selector, payload=args.payload, target=target, timeout=args.timeout):
                if reply.ok is not None:
                    say(f"answer {reply.ok.key_expr}: {reply.ok.payload.to_string()} [{reply.ok.encoding}]")
                else:
                    say(f"error: {reply.err.payload.to_string()}")
        say("done")


if __name__ == "__main__":
    main()
