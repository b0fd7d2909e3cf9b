"""Be alive for a while: declare a token, and end with the input or after a time.

python examples/liveliness_token.py --key group1/me
"""

from __future__ import annotations

import sys

from common import arguments, configuration, library, numbers, say


def main() -> None:
    args = arguments(__doc__, count=1, key={"default": "group1/me"})
    zenoh = library(args)

    with zenoh.open(configuration(zenoh, args)) as session:
        for number in numbers(args.count):
            with session.liveliness().declare_token(f"{args.key}/{number}"):
                say(f"alive {args.key}/{number}; press enter to end it")
                sys.stdin.readline()
            say(f"gone {args.key}/{number}")


if __name__ == "__main__":
    main()
