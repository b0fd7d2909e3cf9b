"""Key expressions that are made to cost a broker much, and what its honest clients notice of it.

`python -m tests.hostile.keyattack` tells the longest round trip of an honest client under each attack.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator

import elea
from tests.robust.hostile import PATIENCE, Victim, configuration
from tests.vectors.rawclient import LinkEnded, RawClient, message_octets

__all__ = ["ATTACKS", "RoundTrips", "declaration", "put", "query", "round_trips"]

Attack = Callable[[RawClient, threading.Event], None]


def declaration(name: str, number: int, key: str) -> bytes:
    """The octets of a declaration."""
    expr = {"scope": 0, "suffix": key, "mapping": "sender"}
    return message_octets({"_": "DECLARE", "body": {"_": name, "id": number, "wire_expr": expr}})


def put(key: str) -> bytes:
    """The octets of a put."""
    expr = {"scope": 0, "suffix": key, "mapping": "sender"}
    return message_octets({"_": "PUSH", "wire_expr": expr, "body": {"_": "PUT", "payload": "61"}})


def query(number: int, key: str) -> bytes:
    """The octets of a get."""
    expr = {"scope": 0, "suffix": key, "mapping": "sender"}
    return message_octets({"_": "REQUEST", "id": number, "wire_expr": expr, "body": {"_": "QUERY"}})


# -- attacks ----------------------------------------------------------------------------------------------------------


def two_messages(client: RawClient, done: threading.Event) -> None:
    """One subscription of 13,000 times `**/a`, one put on 60 kB of `a/a/…`."""
    client.send(declaration("D_SUBSCRIBER", 1, "/".join(["**/a"] * 13_000)), 0)
    client.send(put("a/" * 30_000 + "a"))
    done.wait(3)


def largest_allowed(client: RawClient, done: threading.Event) -> None:
    """The same as large as it may be, again and again, each put on another key."""
    client.send(declaration("D_SUBSCRIBER", 1, "/".join(["**/a"] * 32)), 0)
    client.send(declaration("D_SUBSCRIBER", 2, "**/" + "/".join([f"$*a{n}$*" for n in range(15)]) + "/**"), 0)
    for number in itertools.count():
        if done.is_set():
            return
        client.send(put("a/" * 126 + f"a{number}"))


def double_star_gets(client: RawClient, done: threading.Event) -> None:
    """Gets of 1.5 kB made of `**`, each on another key."""
    for number in range(300):
        client.send(declaration("D_QUERYABLE", number + 1, "/".join(["a", "**"] * 16) + f"/{number}"), 0)
    for number in itertools.count(1):
        if done.is_set():
            return
        client.send(query(number, "/".join(["**/a"] * 300) + f"/{number}"))
        _hear(client)


def largest_gets(client: RawClient, done: threading.Event) -> None:
    """The same as large as it may be, over queryables that each look like all others."""
    for number in range(1_000):
        client.send(declaration("D_QUERYABLE", number + 1, f"a/{number}/" + "/".join(["**", "a"] * 15)), 0)
    for number in itertools.count(1):
        if done.is_set():
            return
        client.send(query(number, "/".join(["**/a"] * 31) + f"/**/{number}"))
        _hear(client)


def flood_of_patterns(client: RawClient, done: threading.Event) -> None:
    """Subscriptions without end, of patterns that all match, and puts between them."""
    chunks = ("a", "*", "a$*", "$*a", "**")
    number = 0
    for row in itertools.product(chunks, repeat=9):
        if done.is_set():
            return
        key = "/".join(row)
        if "**/**" in key or "**/*/" in key or key.endswith("**/*"):
            continue
        number += 1
        client.send(declaration("D_SUBSCRIBER", number, key), 0)
        if number % 50 == 0:
            client.send(put("a/" * 9 + f"a{number}"))
    done.wait(3)


def flood_of_changes(client: RawClient, done: threading.Event) -> None:
    """The same subscription declared and undeclared, which makes all routes be worked out again."""
    for number in range(4_000):
        client.send(declaration("D_SUBSCRIBER", number + 10, f"**/x{number}/$*{number}/*"), 0)
    gone = message_octets({"_": "DECLARE", "body": {"_": "U_SUBSCRIBER", "id": 1}})
    both = (declaration("D_SUBSCRIBER", 1, "trips/**") + gone) * 20
    while not done.is_set():
        client.send(both, 0)


def _hear(client: RawClient) -> None:
    client.socket.settimeout(0.0)
    try:
        while client.socket.recv(1 << 20):
            pass
    except OSError:
        pass
    client.socket.settimeout(PATIENCE)


ATTACKS: dict[str, Attack] = {
    "two messages": two_messages,
    "largest allowed": largest_allowed,
    "double star gets": double_star_gets,
    "largest gets": largest_gets,
    "flood of patterns": flood_of_patterns,
    "flood of changes": flood_of_changes,
}


# -- honest clients ---------------------------------------------------------------------------------------------------


class RoundTrips:
    """Seconds that puts and gets of honest clients took, one after the other, and the broker's CPU meanwhile."""

    def __init__(self) -> None:
        self.took: list[float] = []
        self.dearest = 0.0

    @property
    def longest(self) -> float:
        return max(self.took)

    def of(self, share: float) -> float:
        """The time that this share of them took at most."""
        return sorted(self.took)[int(share * (len(self.took) - 1))]


@contextlib.contextmanager
def honest(victim: Victim) -> Iterator[Callable[[int], float]]:
    """One client that puts and asks, one that sends back: a call makes one round trip, on a key not used before."""
    here, there = (elea.open(configuration("client", connect=[victim.tcp])) for _ in range(2))
    back = threading.Semaphore(0)
    try:
        there.declare_queryable("asked/**", lambda asked: asked.reply(str(asked.key_expr), b"answer"))
        there.declare_subscriber("trips/**", lambda sample: there.put(f"back/{sample.key_expr}", b"back"))
        here.declare_subscriber("back/**", lambda _: back.release())

        def trip(number: int) -> float:
            since = time.monotonic()
            here.put(f"trips/{number}", b"there")
            assert back.acquire(timeout=PATIENCE), "a put came back"
            assert [reply.ok.payload.to_bytes() for reply in here.get(f"asked/{number}", timeout=PATIENCE)]
            return time.monotonic() - since

        while True:  # until the subscriptions are known
            here.put("trips/first", b"")
            if back.acquire(timeout=0.05):
                break
        yield trip
    finally:
        here.close()
        there.close()


def round_trips(victim: Victim, attack: Attack, seconds: float) -> RoundTrips:
    """What honest clients notice while an attack goes on."""
    done = threading.Event()
    found = RoundTrips()
    client = RawClient(victim.tcp)

    def run() -> None:
        with contextlib.suppress(LinkEnded, OSError):  # thrown out, which is one way to defend oneself
            attack(client, done)

    thread = threading.Thread(target=run, name="attack")
    with honest(victim) as trip:
        thread.start()
        end = time.monotonic() + seconds
        try:
            for number in itertools.count():
                cpu = victim.cpu_seconds()
                found.took.append(trip(number))
                found.dearest = max(found.dearest, victim.cpu_seconds() - cpu)
                if time.monotonic() > end:
                    return found
                time.sleep(0.002)
        finally:
            done.set()
            client.close()
            thread.join(PATIENCE)
    return found


def main(names: list[str]) -> int:
    for name, attack in {"none": lambda client, done: None, **ATTACKS}.items():
        if names and name not in names:
            continue
        victim = Victim()
        try:
            found = round_trips(victim, attack, 5.0)
            print(
                f"{name:18} {len(found.took):5} round trips: half {found.of(0.5) * 1000:7.1f} ms,"
                f" p99 {found.of(0.99) * 1000:7.1f} ms, longest {found.longest * 1000:8.1f} ms,"
                f" dearest {found.dearest * 1000:6.0f} ms of CPU",
                flush=True,
            )
        finally:
            victim.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
