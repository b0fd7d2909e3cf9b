"""Round trips of two clients through a router: `python -m bench.scale.probe SPEC`.

A process of its own with blocking sockets: what the crowd of other clients does to its own process must not count.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

from bench.scale.light import KEEP_ALIVE, LightSession, key, put, subscriber
from bench.scale.tls import HOST, client_context

__all__ = ["Latency", "Probe"]

GAP: Final = 0.002  # seconds between two round trips, so that the router comes to rest
PATIENCE: Final = 30.0
QUIET: Final = 5.0  # seconds after which a sample is lost
MOST_LOST: Final = 3
PING: Final = "scale/probe/ping"
PONG: Final = "scale/probe/pong"
ROOM: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Latency:
    """In µs."""

    p50: float
    p99: float
    lost: int


class Line:
    """A session over a blocking socket, with one subscriber and one publisher."""

    def __init__(self, port: int, context: ssl.SSLContext | None, *, listens: str, says: str) -> None:
        self._socket = socket.create_connection((HOST, port), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            self._socket = context.wrap_socket(self._socket, server_hostname=HOST)
        self._session = LightSession(0, time.monotonic())
        self._socket.sendall(self._session.begin(time.monotonic()))
        while not self._session.opened:
            self._take()
        self._socket.sendall(self._session.frame(subscriber(1, listens) + key(1, says)))
        self._put = put(1)

    def put(self) -> None:
        self._socket.sendall(self._session.frame(self._put))

    def keep_alive(self) -> None:
        self._socket.sendall(KEEP_ALIVE)

    def came(self, timeout: float) -> bool:
        """Whether a sample comes in time."""
        before = self._session.samples
        self._socket.settimeout(timeout)
        try:
            while self._session.samples == before:
                self._take()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()

    def _take(self) -> None:
        data = self._socket.recv(ROOM)
        if not data:
            raise SystemExit("the router closed the link of the probe")
        if answer := self._session.receive(data, time.monotonic()):
            self._socket.sendall(answer)


class Probe:
    """Two clients that play ping-pong."""

    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        self._near = Line(port, context, listens=PONG, says=PING)
        self._far = Line(port, context, listens=PING, says=PONG)
        end = time.monotonic() + PATIENCE
        for line, other in ((self._near, self._far), (self._far, self._near)):
            line.put()
            while not other.came(0.2):  # until its declaration is known
                if time.monotonic() > end:
                    raise SystemExit(f"no sample came through the router in {PATIENCE:.0f} s")
                line.put()
                other.keep_alive()  # a busy router takes its time
            while other.came(0.2):
                pass

    def measure(self, seconds: float) -> Latency:
        times: list[float] = []
        lost = 0
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end and lost < MOST_LOST:
            if self._round_trip():
                times.append(time.perf_counter() - start)
            else:
                lost += 1
            time.sleep(GAP)
        times = sorted(times[len(times) // 10 :])  # the first ones warm up
        if not times:
            raise SystemExit("no ping was answered")
        return Latency(times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6, lost)

    def close(self) -> None:
        self._near.close()
        self._far.close()

    def _round_trip(self) -> bool:
        self._near.put()
        if not self._far.came(QUIET):
            return False
        self._far.put()
        return self._near.came(QUIET)


def main() -> None:
    spec: dict[str, Any] = json.loads(sys.argv[1])
    context = client_context(spec["certificate"]) if spec["certificate"] else None
    probe = Probe(spec["port"], context)
    found = probe.measure(spec["seconds"])
    probe.close()
    print(json.dumps({"p50": found.p50, "p99": found.p99, "lost": found.lost}), flush=True)


if __name__ == "__main__":
    main()
