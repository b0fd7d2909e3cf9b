"""Subscribers and askers that stop reading, and what the others notice of them.

`python -m tests.hostile.slow` prints, for each case of the matrix, how fast honest clients are with and without one.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import elea
from tests.hostile.keyattack import declaration
from tests.robust.hostile import PATIENCE, Victim, configuration
from tests.vectors.rawclient import RawClient, message_octets

__all__ = ["CASES", "Case", "Stopped", "asking", "keeping_broker", "measured", "subscribing"]

NONE = elea.ConsolidationMode.NONE
LARGE = bytes(8_000)
LARGER = bytes(100_000)
HISTORY = 4_000
"""Samples of 8 kB: more than socket buffers and queues hold."""

SLOTS = 80
"""Unread answers at once; a broker makes 64 at a time."""

_numbers = itertools.count(1)


class Stopped:
    """A client that says something and reads nothing from then on; it comes back as often as it is thrown out."""

    def __init__(self, victim: Victim, *messages: bytes) -> None:
        self._where = victim.tcp
        self._messages = messages
        self.came = 0
        self.client = self._come()

    def _come(self) -> RawClient:
        client = RawClient(self._where)
        for message in self._messages:
            client.send(message)
        self.came += 1
        return client

    def come_again(self) -> None:
        """If the link is gone: back at once."""
        client = self.client
        client.socket.setblocking(False)
        try:
            client.socket.send(b"")
            client.send_batch(b"\x04")  # a keep-alive
        except Exception:  # noqa: BLE001 - whatever it is, it is gone
            client.close()
            self.client = self._come()
        else:
            client.socket.settimeout(PATIENCE)

    def close(self) -> None:
        self.client.close()


class Holding(Stopped):
    """The same, and somebody who puts to it with BLOCK: it is that one's business to wait."""

    def __init__(self, victim: Victim) -> None:
        super().__init__(victim, subscribing("held/**"))
        self._session = elea.open(configuration("client", connect=[victim.tcp]))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._put, name="held")
        self._thread.start()

    def _put(self) -> None:
        publisher = self._session.declare_publisher("held/1", congestion_control=elea.CongestionControl.BLOCK)
        with contextlib.suppress(elea.ZError):  # it may wait in vain
            while not self._ended.wait(0.001):
                publisher.put(LARGE)

    def close(self) -> None:
        self._ended.set()
        super().close()
        self._thread.join()
        self._session.close()


def subscribing(key: str) -> bytes:
    """Wants everything of a key."""
    return declaration("D_SUBSCRIBER", next(_numbers), key)


def asking(key: str, parameters: str = "") -> bytes:
    """Asks for what is stored, for an hour."""
    expr = {"scope": 0, "suffix": key, "mapping": "sender"}
    body = {"_": "QUERY", "consolidation": "none", "parameters": parameters}
    form = {"_": "REQUEST", "id": next(_numbers), "wire_expr": expr, "ext": {"timeout_ms": 3_600_000}, "body": body}
    return message_octets(form)


Case = tuple[Callable[[Victim], Stopped], Callable[[elea.Session, elea.Session], float]]
"""Who has stopped, and how long the honest ones take for their work."""


def _puts(key: str, congestion: elea.CongestionControl) -> Callable[[elea.Session, elea.Session], float]:
    """A thousand puts of 8 kB in steps of 50, each step when the one before has arrived."""

    def work(here: elea.Session, there: elea.Session) -> float:
        got = [0]
        with there.declare_subscriber(key, lambda _: got.__setitem__(0, got[0] + 1)):
            publisher = here.declare_publisher(key, congestion_control=congestion)
            while not got[0]:
                publisher.put(LARGE)
                time.sleep(0.01)
            time.sleep(0.05)
            since, got[0] = time.monotonic(), 0
            for step in range(1, 21):
                for _ in range(50):
                    publisher.put(LARGE)
                end = time.monotonic() + 10
                while got[0] < 50 * step and time.monotonic() < end:
                    time.sleep(0.0005)
            took = time.monotonic() - since
            publisher.undeclare()
        assert got[0] >= 900, f"the others got {got[0]} of 1,000"
        return took

    return work


def _acknowledged(here: elea.Session, there: elea.Session) -> float:
    since = time.monotonic()
    for number in range(200):
        here.put(f"log/live/{number % 7}", LARGER, ack=True, durability="persistent")
    return time.monotonic() - since


def _gets(here: elea.Session, there: elea.Session) -> float:
    since = time.monotonic()
    for _ in range(30):
        assert [reply.ok for reply in here.get("log/old/*", timeout=PATIENCE)]
    return time.monotonic() - since


def _histories(here: elea.Session, there: elea.Session) -> float:
    since = time.monotonic()
    for _ in range(2):
        assert len(list(here.get("log/old/1?_history", timeout=PATIENCE, consolidation=NONE))) >= HISTORY // 2
    return time.monotonic() - since


CASES: dict[str, Case] = {
    "drop": (lambda v: Stopped(v, subscribing("fast/**")), _puts("fast/drop", elea.CongestionControl.DROP)),
    "block, others": (
        Holding,
        _puts("fast/block", elea.CongestionControl.BLOCK),
    ),
    "acknowledged": (lambda v: Stopped(v, subscribing("log/**")), _acknowledged),
    "get": (lambda v: Stopped(v, *(asking("log/old/*", "_history") for _ in range(SLOTS))), _gets),
    "history": (lambda v: Stopped(v, *(asking("log/old/*", "_history") for _ in range(SLOTS))), _histories),
    "get, acknowledged": (
        lambda v: Stopped(v, subscribing("log/**"), *(asking("log/old/*", "_history") for _ in range(SLOTS))),
        _acknowledged,
    ),
}


@contextlib.contextmanager
def keeping_broker() -> Iterator[tuple[Victim, elea.Session, elea.Session]]:
    """A broker with a log and something in it, and two honest clients."""
    with tempfile.TemporaryDirectory() as directory:
        victim = Victim(options=("--store", directory, "--persist", "log/**"))
        here, there = (elea.open(configuration("client", connect=[victim.tcp])) for _ in range(2))
        try:
            here.put_batch([(f"log/old/{number % 2}", LARGE) for number in range(HISTORY)])
            yield victim, here, there
        finally:
            here.close()
            there.close()
            victim.close()


@dataclass(frozen=True)
class Seconds:
    """How long honest clients took for the same work, alone and beside somebody who has stopped."""

    alone: list[float]
    beside: list[float]

    @property
    def stalled(self) -> float:
        """How much longer the longest took."""
        return max(self.beside) - max(self.alone)


def measured(victim: Victim, case: Case, here: elea.Session, there: elea.Session, *, rounds: int = 3) -> Seconds:
    """A case of the matrix."""
    stop, work = case
    alone, beside = [], []
    work(here, there)
    for _ in range(rounds):
        alone.append(work(here, there))
        stopped = stop(victim)
        try:
            time.sleep(0.2)
            beside.append(work(here, there))
            stopped.come_again()
            beside.append(work(here, there))
        finally:
            stopped.close()
    return Seconds(alone, beside)


def main() -> int:
    with keeping_broker() as (victim, here, there):
        for name, case in CASES.items():
            took = measured(victim, case, here, there)
            alone = statistics.median(took.alone)
            median, worst = alone / statistics.median(took.beside), alone / max(took.beside)
            print(f"{name:20} {median:5.2f} of the speed alone, at worst {worst:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
