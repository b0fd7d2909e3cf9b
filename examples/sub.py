"""Print what is put to a key expression.

python examples/sub.py --key "demo/example/**"
"""

from __future__ import annotations

import threading

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(__doc__, count=0, key={"default": "demo/example/**"})
    zenoh = library(args)
    enough = threading.Event()
    seen = 0

    def received(sample):
        nonlocal seen
        if enough.is_set():
            return
        kind = "put" if sample.kind == zenoh.SampleKind.PUT else "delete"
        attached = "" if sample.attachment is None else f" ({sample.attachment.to_string()})"
        say(f"{kind} {sample.key_expr}: {sample.payload.to_string()} [{sample.encoding}]{attached}")
        seen += 1
        if seen == args.count:
            enough.set()

    with zenoh.open(configuration(zenoh, args)) as session, session.declare_subscriber(args.key, received):
        say(f"subscriber on {args.key}")
        enough.wait()


if __name__ == "__main__":
    main()
