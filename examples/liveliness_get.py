"""Who is alive now?

python examples/liveliness_get.py --key "group1/**"
"""

from __future__ import annotations

from common import arguments, configuration, library, numbers, say


def main() -> None:
    args = arguments(__doc__, count=1, key={"default": "group1/**"})
    zenoh = library(args)

    with zenoh.open(configuration(zenoh, args)) as session:
        for _ in numbers(args.count):
            alive = {str(reply.ok.key_expr) for reply in session.liveliness().get(args.key) if reply.ok is not None}
            for key in sorted(alive):
                say(f"alive {key}")
            say(f"{len(alive)} in all")


if __name__ == "__main__":
    main()
