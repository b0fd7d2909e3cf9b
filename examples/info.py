"""Which node is this, and whom is it connected to?

python examples/info.py
"""

from __future__ import annotations

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(__doc__, count=1)
    zenoh = library(args)

    with zenoh.open(configuration(zenoh, args)) as session:
        info = session.info
        say(f"node {info.zid()}")
        for router in info.routers_zid():
            say(f"router {router}")
        for peer in info.peers_zid():
            say(f"peer {peer}")
        for transport in info.transports():
            say(f"session with {transport.whatami} {transport.zid}, qos {transport.is_qos}")
        for link in info.links():
            say(f"link {link.src} to {link.dst}, mtu {link.mtu}, streamed {link.is_streamed}")


if __name__ == "__main__":
    main()
