"""Who is out there? Ask by multicast, without opening a session.

python examples/scout.py --what "router|peer"
"""

from __future__ import annotations

import threading

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(
        __doc__,
        count=0,
        what={"default": "router|peer", "help": "which roles to look for"},
        seconds={"type": float, "default": 3.0, "help": "how long to look"},
        address={"default": None, "help": "multicast address and port"},
        interface={"default": None, "help": "network interface"},
    )
    zenoh = library(args)
    config = configuration(zenoh, args)
    if args.address:
        config.insert_json5("scouting/multicast/address", f'"{args.address}"')
    if args.interface:
        config.insert_json5("scouting/multicast/interface", f'"{args.interface}"')
    found = {}
    enough = threading.Event()

    def heard(hello):
        if str(hello.zid) not in found:
            found[str(hello.zid)] = hello
            say(f"{hello.whatami} {hello.zid} at {', '.join(sorted(hello.locators))}")
            if len(found) == args.count:
                enough.set()

    with zenoh.scout(heard, what=args.what, config=config):
        enough.wait(args.seconds)
    say(f"{len(found)} found")


if __name__ == "__main__":
    main()
