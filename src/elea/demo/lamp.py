"""The lamp of the demo: one key of six nodes of all generations, each of which puts to it and sees what the others put.

A device of 2017 over UDP, devices of 2018 over TCP (it sleeps, and pulls) and over a serial line with packets of 20
bytes, Elea and eclipse-zenoh in 1.x; the sixth is Spark, which puts what is hot, and has a row of every put.
"""

from __future__ import annotations

import json
import os
import threading
import time
import tty
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elea.demo import ledger
from elea.demo.demopublisher import config_of
from elea.demo.lampdevice import PULL, Device, Kind, Line, first_stored
from elea.demo.lampjudge import PROBE, SPARK, put_of
from elea.demo.world import Origin

if TYPE_CHECKING:
    import elea

__all__ = ["ECLIPSE", "ELEA", "LAMP", "LAMP_LEDGER", "Lamp", "listening"]

LAMP: Final = "lamp/1"
"""With the scheme before it and in a declaration it just fits a packet of 20 bytes."""

LAMP_LEDGER: Final = "lamp "
"""What names of its ledgers begin with."""

ELEA: Final = "Elea 1.x"
ECLIPSE: Final = "eclipse-zenoh 1.x"
UDP_2017: Final = Kind("2017 udp", "xrce2017", b"xrce://lamp/1")
TCP_2018: Final = Kind("2018 tcp, pulling", "zenoh2018", b"zenoh://lamp/1", mode=PULL)
SERIAL_2018: Final = Kind("2018 serial", "zenoh2018", b"zenoh://lamp/1", mtu=20, sn_bits=7, window=48)

BETWEEN_SECONDS: Final = 0.5
"""Of each node, between two puts."""

PATIENCE_SECONDS: Final = 300.0
LATE_SECONDS: Final = 10.0
END_SECONDS: Final = 5.0
PROBE_SECONDS: Final = 0.5


def listening(serial: str) -> tuple[str, ...]:
    """Where the broker is to listen for the devices; a short lease, so that a broker that was killed is missed soon.

    Nothing negotiates the size of packets, so the listener says what the devices take.
    """
    return (
        "udp/127.0.0.1:0?dialect=xrce2017;lease=2000",
        f"tcp/127.0.0.1:0?dialect=zenoh2018;lease=2000;mtu={TCP_2018.mtu}",
        f"serial/{serial}?dialect=zenoh2018;lease=2000#mtu=20",
    )


class Lamp:
    """The nodes, in threads; they put from `go` to `hush`, and see until `close`."""

    def __init__(self, place: Path, mark: Callable[[str], None]) -> None:
        self.seen: dict[str, list[str]] = {}
        self._mark = mark
        self._place = place
        self._near, self._far = os.openpty()
        tty.setraw(self._near)
        self.serial = os.ttyname(self._far)
        """The broker's end of the line."""
        self._devices: list[Device] = []
        self._ledgers: dict[str, ledger.Writer] = {}
        self._tried: dict[str, int] = {}
        self._put: dict[str, float] = {}
        self._is_going = False
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._peer: Any = None
        self._lock = threading.Lock()
        self._pairs: set[tuple[str, str]] = set()

    @property
    def nodes(self) -> tuple[str, ...]:
        """All but Spark."""
        return tuple(self._ledgers)

    @property
    def own(self) -> frozenset[str]:
        """Those that see their own puts."""
        return frozenset({ELEA, ECLIPSE})

    def start(self, session: elea.Session, locators: Mapping[str, str]) -> None:
        """All nodes join; `session` is the one of 1.x, `locators` where the broker listens, by kind. Returns at once.

        Args:
            locators: with the keys `modern`, `2017 udp` and `2018 tcp`.
        """
        self._locators = locators
        (self._place / "ledger").mkdir(parents=True, exist_ok=True)
        for kind, connect in (
            (UDP_2017, lambda: Line(locators["2017 udp"])),
            (TCP_2018, lambda: Line(locators["2018 tcp"])),
            (SERIAL_2018, lambda: Line(f"serial/{self.serial}", self._near)),
        ):
            self._joins(kind.by)
            device = Device(kind, connect, due=self._due, acknowledged=self._acknowledged, seen=self._take)
            self._devices.append(device)
            device.start()
        self._joins(ELEA)
        self._session = session
        session.declare_subscriber(LAMP, lambda sample: self._take(ELEA, sample.payload.to_bytes()))
        self._thread(self._put_with_elea)
        if find_spec("zenoh") is not None:
            self._joins(ECLIPSE)
            self._open_peer(locators["modern"])
        self._thread(self._probe)

    @property
    def is_there(self) -> bool:
        """Whether every node sees what is put."""
        return all(self.seen[name] for name in self._ledgers)

    def go(self) -> None:
        """Put, from now on."""
        self._is_going = True

    def hush(self) -> None:
        """Put nothing more."""
        self._is_going = False

    def late(self) -> str | None:
        """What a node finds that comes now."""
        try:
            found = first_stored(self._locators["2018 tcp"], b"zenoh://lamp/1#persistent", LATE_SECONDS)
        except OSError:
            return None
        return None if found is None else found.decode()

    def close(self) -> None:
        """All nodes leave."""
        self._over.set()
        for device in self._devices:
            device.stop()
        for thread in self._threads:
            thread.join(END_SECONDS)
        if self._peer is not None:
            self._peer.close()
        for writer in self._ledgers.values():
            writer.close()
        os.close(self._near)
        os.close(self._far)

    # -- what all nodes do ---------------------------------------------------------------------------------------------

    def _joins(self, by: str) -> None:
        self.seen[by] = []
        self._tried[by] = 0
        self._put[by] = 0.0
        self._ledgers[by] = ledger.Writer(self._place / "ledger" / f"{LAMP_LEDGER}{by}.jsonl")

    def _due(self, by: str) -> str | None:
        """The next payload of a node, if it is time; it is put down as tried."""
        now = time.monotonic()
        if not self._is_going or now < self._put[by] + BETWEEN_SECONDS:
            return None
        self._put[by] = now
        number = self._tried[by]
        self._ledgers[by].note("tried", number, number + 1)
        self._tried[by] = number + 1
        return Origin(by, number, int(time.time() * 1e6)).text()

    def _acknowledged(self, by: str) -> None:
        self._ledgers[by].note("acknowledged", self._tried[by] - 1, self._tried[by])

    def _take(self, by: str, payload: bytes) -> None:
        text = payload.decode()
        self.seen[by].append(text)
        source = put_of(text)[0]
        if source in (PROBE, by):
            return
        with self._lock:
            self._pairs.add((by, source))
            sources = {*self._ledgers, SPARK}
            if len(self._pairs) == len(self._ledgers) * len(sources) - len(self._ledgers):
                self._mark("all generations")

    # -- programs of 1.x -----------------------------------------------------------------------------------------------

    def _thread(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name="elea-demo-lamp", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _put_with_elea(self) -> None:
        while not self._over.wait(0.1):
            payload = self._due(ELEA)
            if payload is not None:
                self._session.put(LAMP, payload, durability="persistent", ack=True, timeout=PATIENCE_SECONDS)
                self._acknowledged(ELEA)

    def _open_peer(self, locator: str) -> None:
        import zenoh

        config: Any = zenoh.Config()
        for path, value in config_of(locator).items():
            config.insert_json5(path, json.dumps(value))
        self._peer = zenoh.open(config)
        self._peer_subscriber = self._peer.declare_subscriber(
            LAMP, lambda sample: self._take(ECLIPSE, sample.payload.to_bytes())
        )

        def put() -> None:
            while not self._over.wait(0.1):
                payload = self._due(ECLIPSE)
                if payload is not None:
                    self._peer.put(LAMP, payload, congestion_control=zenoh.CongestionControl.BLOCK)

        self._thread(put)

    def _probe(self) -> None:
        """Put until everybody has seen something: nobody else begins before."""
        number = 0
        while not self.is_there and not self._over.wait(PROBE_SECONDS):
            self._session.put(LAMP, Origin(PROBE, number, 0).text())
            number += 1
