"""Remember the latest value of every key in a dictionary, and answer queries from it.

python examples/storage.py --key "demo/example/**"
"""

from __future__ import annotations

import threading

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(__doc__, count=0, key={"default": "demo/example/**"})
    zenoh = library(args)
    latest = {}
    lock = threading.Lock()
    enough = threading.Event()
    changes = 0

    def changed(sample):
        nonlocal changes
        key = str(sample.key_expr)
        with lock:
            if sample.kind == zenoh.SampleKind.PUT:
                latest[key] = sample
            else:
                latest.pop(key, None)
        say(f"{'stored' if sample.kind == zenoh.SampleKind.PUT else 'removed'} {key}")
        changes += 1
        if changes == args.count:
            enough.set()

    def asked(query):
        with query, lock:
            for key, sample in latest.items():
                if query.key_expr.intersects(zenoh.KeyExpr(key)):
                    query.reply(key, sample.payload, encoding=sample.encoding, timestamp=sample.timestamp)

    with (
        zenoh.open(configuration(zenoh, args)) as session,
        session.declare_subscriber(args.key, changed),
        session.declare_queryable(args.key, asked, complete=True),
    ):
        say(f"storage of {args.key}")
        enough.wait()
        say(f"holds {', '.join(sorted(latest)) or 'nothing'}; press enter to end")
        input()


if __name__ == "__main__":
    main()
