"""Notice who comes and goes.

python examples/liveliness_sub.py --key "group1/**" --history
"""

from __future__ import annotations

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(
        __doc__,
        count=0,
        key={"default": "group1/**"},
        history={"action": "store_true", "help": "also tell of those already there"},
    )
    zenoh = library(args)

    with (
        zenoh.open(configuration(zenoh, args)) as session,
        session.liveliness().declare_subscriber(args.key, history=args.history) as watcher,
    ):
        say(f"watching {args.key}")
        for number, sample in enumerate(watcher, 1):
            verb = "came" if sample.kind == zenoh.SampleKind.PUT else "went"
            say(f"{verb} {sample.key_expr}")
            if number == args.count:
                break


if __name__ == "__main__":
    main()
