"""Put a value, receive it, ask for it: the shortest program that does something.

python examples/quickstart.py
"""

from __future__ import annotations

import threading

from common import arguments, configuration, library, numbers, say


def main() -> None:
    args = arguments(__doc__, count=3)
    zenoh = library(args)

    with zenoh.open(configuration(zenoh, args)) as session:
        rooms = {}
        everything = threading.Event()

        def received(sample):
            say(f"received {sample.key_expr} = {sample.payload.to_string()}")
            rooms[str(sample.key_expr)] = sample.payload.to_string()
            if len(rooms) == args.count:
                everything.set()

        def asked(query):
            with query:
                for key, value in rooms.items():
                    query.reply(key, value)

        with session.declare_subscriber("home/*/temp", received), session.declare_queryable("home/*/temp", asked):
            for number in numbers(args.count):
                session.put(f"home/{number}/temp", f"{20 + number}.5")
            everything.wait(10.0)  # handlers run in threads of their own
            for reply in sorted(session.get("home/*/temp"), key=lambda reply: str(reply.ok.key_expr)):
                say(f"answered {reply.ok.key_expr} = {reply.ok.payload.to_string()}")


if __name__ == "__main__":
    main()
