"""Nodes of all generations at one key, for tests.

Devices of 2017 and 2018, one of them on a serial line with packets of 20 bytes, and programs of Elea and eclipse-zenoh.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import zenoh

import elea
from elea.tiny import publisher, resource, subscriber
from elea.tiny.client import CLOSED
from tests.interop.inbox import DEADLINE, eventually
from tests.unit.node.early.client import EarlyClient
from tests.unit.tiny.serialdevice import SerialDevice, serial_line

__all__ = [
    "KEY",
    "GenerationNode",
    "Program",
    "all_nodes",
    "check_all_seen",
    "meanwhile",
    "pump",
    "storing",
    "subscribers",
]

KEY = "lamp/1"
"""With `zenoh://` before it, it just fits a declaration in 20 bytes (Z18-FRM-08)."""

LISTENING = ["tcp/127.0.0.1:0", "udp/127.0.0.1:0?dialect=xrce2017", "tcp/127.0.0.1:0?dialect=zenoh2018"]


class GenerationNode(Protocol):
    """One of them: puts to the key, and tells what it has seen of it."""

    sees_own: bool
    """Programs of 1.x get their own puts, too; in the early dialects nothing comes back (Z18-DAT-10)."""

    def put(self, payload: bytes) -> None: ...
    def seen(self) -> list[bytes]: ...


class Device:
    """A node that is driven by hand."""

    sees_own = False

    def __init__(self, locator: str, pid: bytes) -> None:
        self.client = EarlyClient(locator, pid)
        self.name = self.client.generation.scheme + KEY
        assert self.client.subscribe(2, self.name) == 0

    def put(self, payload: bytes) -> None:
        self.client.write_data(self.name, payload)
        self.client.until(lambda: self.client.session.is_settled)

    def seen(self) -> list[bytes]:
        self.client.step(0.01)
        return self.client.payloads()

    def leave(self) -> None:
        """In good order, so that nobody waits for what it would say."""
        self.client.session.close(self.client.now())
        self.client.until(lambda: self.client.ended is not None or self.client.is_over)
        self.client.socket.close()


class SerialNode:
    """A device on a line whose packets have 20 bytes."""

    sees_own = False

    def __init__(self, line: int) -> None:
        self.device = SerialDevice(line, "zenoh2018", 20)
        client = self.device.client
        client.open(self.now())
        self.device.until(lambda: client.is_open)
        client.declare(resource(2, b"zenoh://" + KEY.encode()), publisher(2), subscriber(2))
        self.device.until(lambda: client.is_settled)

    @staticmethod
    def now() -> float:
        return time.monotonic()

    def put(self, payload: bytes) -> None:
        client = self.device.client
        self.device.until(lambda: 2 in client.wanted)
        self.device.until(lambda: client.put(2, payload, self.now()))
        self.device.until(lambda: client.is_settled)

    def seen(self) -> list[bytes]:
        self.device.step(0.01)
        return self.device.samples()

    def leave(self) -> None:
        """In good order."""
        self.device.client.close(self.now())
        self.device.until(lambda: self.device.client.state == CLOSED)


class Program:
    """A session of either library."""

    sees_own = True

    def __init__(self, library: Any, session: Any) -> None:
        self.session = session
        self._wait = library.CongestionControl.BLOCK
        self._got: list[bytes] = []
        self._subscriber = session.declare_subscriber(KEY, lambda sample: self._got.append(sample.payload.to_bytes()))

    def put(self, payload: bytes) -> None:
        self.session.put(KEY, payload, congestion_control=self._wait)

    def seen(self) -> list[bytes]:
        return list(self._got)


def config_of(library: Any, **entries: Any) -> Any:
    made = library.Config()
    for name, value in {"scouting/multicast/enabled": False, **entries}.items():
        made.insert_json5(name.replace("__", "/"), json.dumps(value))
    return made


@contextlib.contextmanager
def storing(place: Path) -> Iterator[tuple[elea.Session, int]]:
    """A broker that keeps the key, one of its listeners at a serial line; and the device's end of that."""
    storages = {"lamp": {"key_expr": "lamp/**", "volume": "log"}}
    plugins = {"storage_manager": {"volumes": {"log": {"dir": str(place)}}, "storages": storages}}
    with serial_line() as (near, path):
        listening = [*LISTENING, f"serial/{path}?dialect=zenoh2018#mtu=20"]
        with elea.open(config_of(elea, mode="router", listen__endpoints=listening, plugins=plugins)) as session:
            yield session, near


@contextlib.contextmanager
def all_nodes(broker: elea.Session, line: int) -> Iterator[dict[str, GenerationNode]]:
    """One of each, all of them known to the broker as subscribers."""
    links = broker._runtime.links
    (modern,), (of_2017,) = links.locators("zenoh1"), links.locators("xrce2017")
    (of_2018,) = (one for one in links.locators("zenoh2018") if one.startswith("tcp/"))
    with contextlib.ExitStack() as stack:
        devices: dict[str, Device | SerialNode] = {
            "2017 udp": Device(of_2017, b"d17"),
            "2018 tcp": Device(of_2018, b"d18"),
            "2018 serial": SerialNode(line),
        }
        made: dict[str, GenerationNode] = {}
        for name, device in devices.items():
            stack.callback(device.leave)
            made[name] = device
        for name, library, locator in (
            ("elea 2018", elea, of_2018),
            ("elea 1.x", elea, modern),
            ("eclipse-zenoh", zenoh, modern),
        ):
            session = library.open(config_of(library, mode="client", connect__endpoints=[locator]))
            stack.callback(session.close)
            made[name] = Program(library, session)
        eventually(lambda: len(subscribers(broker)) >= len(made), "everybody subscribes")
        yield made


def subscribers(broker: elea.Session) -> list[Any]:
    """The faces of those that would get a sample."""
    with broker._node.lock:
        return [face for face in broker._node.space.targets(broker._node.local, KEY) if face is not broker._node.local]


def pump(
    nodes: Mapping[str, GenerationNode], condition: Callable[[], bool], what: str, timeout: float = DEADLINE
) -> None:
    """Wait, and let devices talk meanwhile."""

    def look() -> bool:
        for node in nodes.values():
            if not isinstance(node, Program):
                node.seen()
        return condition()

    eventually(look, what, timeout)


def meanwhile(nodes: Mapping[str, GenerationNode], work: Callable[[], Any]) -> Any:
    """Do something that takes long, and let devices talk: one that acknowledges nothing is given up."""
    with ThreadPoolExecutor(1) as pool:
        doing = pool.submit(work)
        pump(nodes, doing.done, "it is done", timeout=300.0)
        return doing.result()


def check_all_seen(nodes: Mapping[str, GenerationNode], put: Mapping[str, list[bytes]]) -> None:
    """Every put of every node is seen by all, once and in the order of its node."""
    for name, node in nodes.items():
        wanted = sorted(one for other, puts in put.items() if node.sees_own or other != name for one in puts)
        pump(nodes, lambda node=node, wanted=wanted: len(node.seen()) >= len(wanted), f"{name} has all")  # type: ignore[misc]
        found = node.seen()
        assert sorted(found) == wanted, name
        for other, puts in put.items():
            mine = [payload for payload in found if payload in puts]
            assert mine in (puts, []), f"{name} has those of {other} in their order"
