"""A hostile neighbour: octets that no honest node would send, in every state of a session.

`python -m tests.robust.hostile --seconds 300 --seed 1` goes on attacking a broker of its own and clients of ours, and
checks after every round that the broker serves others, has no more threads than before and has not grown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import elea
from elea.model.errors import EleaError
from elea.model.qos import Role
from elea.protocol.zenoh1.opening import Acceptor, Initiator
from elea.protocol.zenoh1.terms import Offer
from tests.vectors.rawclient import LinkEnded, RawClient, framed

__all__ = ["STATES", "HostileListener", "Victim", "attack", "attack_datagrams", "configuration", "eventually", "octets"]

PATIENCE = 60.0
VECTORS = Path(__file__).parents[1] / "vectors" / "zenoh1"

STATES = ("connected", "after INIT_ACK", "with OPEN_SYN", "established", "within a fragment", "after CLOSE")
"""Where in the life of a link the octets come."""


# -- octets -----------------------------------------------------------------------------------------------------------


def _batches() -> list[bytes]:
    found = {
        bytes.fromhex(record["hex"])
        for path in sorted(VECTORS.glob("*.json"))
        for record in json.loads(path.read_text())
        if isinstance(record, dict) and record.get("hex") and "decoded" in record
    }
    return sorted(batch for batch in found if len(batch) < 2_000)


BATCHES = _batches()


def _prefixed(batch: bytes) -> bytes:
    return len(batch).to_bytes(2, "little") + batch


def _random(chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice((1, 2, 3, 17, 200, 5_000)))


def _random_batch(chance: random.Random) -> bytes:
    return _prefixed(chance.randbytes(chance.randrange(1, 300)))


def _valid(chance: random.Random) -> bytes:
    """What honest nodes say, at the wrong time or to the wrong node."""
    return b"".join(_prefixed(chance.choice(BATCHES)) for _ in range(chance.randrange(1, 6)))


def _flipped(chance: random.Random) -> bytes:
    batch = bytearray(chance.choice(BATCHES))
    for _ in range(chance.choice((1, 1, 2, 8))):
        batch[chance.randrange(len(batch))] ^= 1 << chance.randrange(8)
    return _prefixed(bytes(batch))


def _truncated(chance: random.Random) -> bytes:
    batch = chance.choice(BATCHES)
    return _prefixed(batch[: chance.randrange(len(batch))])


def _spliced(chance: random.Random) -> bytes:
    one, other = chance.choice(BATCHES), chance.choice(BATCHES)
    return _prefixed(one[: chance.randrange(len(one) + 1)] + other[chance.randrange(len(other)) :])


def _absurd_length(chance: random.Random) -> bytes:
    """Lengths that promise far more than comes, in the prefix or inside a message."""
    inner = framed(0, bytes.fromhex("3d00016b01") + b"\xff" * chance.randrange(1, 10))
    return chance.choice((b"\xff\xff", b"\xff\xff" + chance.randbytes(40), _prefixed(inner), b"\x00\x00" * 50))


def _framed_rubbish(chance: random.Random) -> bytes:
    """Behind a header that is right, so that it gets past the transport."""
    return _prefixed(framed(chance.randrange(1 << 28), chance.randbytes(chance.randrange(1, 60)), chance.randrange(8)))


KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    _random,
    _random_batch,
    _valid,
    _flipped,
    _truncated,
    _spliced,
    _absurd_length,
    _framed_rubbish,
)


def octets(chance: random.Random) -> bytes:
    """Something hostile for a stream link."""
    return b"".join(chance.choice(KINDS)(chance) for _ in range(chance.choice((1, 1, 3))))


# -- against those who listen -----------------------------------------------------------------------------------------


def attack(locator: str, state: str, data: bytes, chance: random.Random) -> None:
    """Bring a link into a state, say `data` there, and leave."""
    if state in ("connected", "after INIT_ACK", "with OPEN_SYN"):
        host, _, port = locator.removeprefix("tcp/").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as link, contextlib.suppress(OSError):
            if state != "connected":
                data = _half_opened(link, state) + data
            link.sendall(data)
            _linger(link, chance)
        return
    client = RawClient(locator)
    try:
        if state == "within a fragment":
            client.send_batch(b"\x66" + _sn(client) + chance.randbytes(50))
        elif state == "after CLOSE":
            client.send_batch(b"\x03\x00")
        elif chance.random() < 0.5:
            # With the number that is expected next, else most of it would be taken for late.
            data = _prefixed(framed(client.next_sn(5), chance.choice(BATCHES)[2:])) + data
        client.socket.sendall(data)
        _linger(client.socket, chance)
    except (OSError, LinkEnded):
        pass  # thrown out, which is what is deserved
    finally:
        client.close()


def _sn(client: RawClient) -> bytes:
    from elea.wire.primitives import write_z

    out = bytearray()
    write_z(out, client.next_sn(5), 32, "sn")
    return bytes(out)


def _half_opened(link: socket.socket, state: str) -> bytes:
    """Says INIT_SYN and hears INIT_ACK; the OPEN_SYN if it is to stand before the rubbish."""
    machine = Initiator(Offer(random.randbytes(16), Role.CLIENT), time.monotonic())
    machine.start()
    link.sendall(_prefixed(machine.to_send(0.0)[0]))
    size = int.from_bytes(_exactly(link, 2), "little")
    machine.receive(_exactly(link, size), time.monotonic())
    return _prefixed(machine.to_send(0.0)[0]) if state == "with OPEN_SYN" else b""


def _exactly(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = link.recv(count - len(data))
        if not piece:
            raise ConnectionResetError("closed by the other side")
        data += piece
    return data


def _linger(link: socket.socket, chance: random.Random) -> None:
    """Leave in one of three ways: at once, with a reset, or politely after the answer."""
    way = chance.randrange(3)
    if way == 0:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    elif way == 1:
        link.shutdown(socket.SHUT_WR)
        link.settimeout(PATIENCE)
        while link.recv(1 << 16):
            pass


def attack_datagrams(address: tuple[str, int], chance: random.Random, count: int = 20) -> None:
    """Throw datagrams at a udp listener or a scouting socket, some from one source, some each from its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for _ in range(count):
            data = octets(chance)[chance.choice((0, 2)) :][:60_000]
            if chance.random() < 0.5:
                one.sendto(data, address)
            else:
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                    other.sendto(data, address)


# -- against those who connect ----------------------------------------------------------------------------------------


class HostileListener:
    """Accepts links, plays the handshake up to a state, says something hostile there, and hangs up or not."""

    def __init__(self, state: str, chance: random.Random) -> None:
        self.state = state
        self.accepted = 0
        self._chance = chance
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.locator = f"tcp/127.0.0.1:{self._socket.getsockname()[1]}"
        self._links: list[socket.socket] = []
        self._thread = threading.Thread(target=self._run, name="hostile")
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            self.accepted += 1
            self._links.append(link)
            link.settimeout(PATIENCE)
            with contextlib.suppress(OSError, EleaError):
                self._play(link)

    def _play(self, link: socket.socket) -> None:
        acceptor = Acceptor(
            Offer(random.randbytes(16), Role.ROUTER), time.monotonic(), cookie_key=bytes(32), random=self._chance
        )
        if self.state != "connected":
            steps = 1 if self.state == "after INIT_ACK" else 2
            for _ in range(steps):
                acceptor.receive(_exactly(link, int.from_bytes(_exactly(link, 2), "little")), time.monotonic())
                if self.state == "with OPEN_SYN" and steps == 2 and acceptor.state.value == "open":
                    break  # instead of the OPEN_ACK
                for batch in acceptor.to_send(0.0):
                    link.sendall(_prefixed(batch))
        if self.state == "within a fragment":
            link.sendall(_prefixed(b"\x66\x00" + bytes(20)))
        elif self.state == "after CLOSE":
            link.sendall(_prefixed(b"\x03\x00"))
        link.sendall(octets(self._chance))
        if self._chance.random() < 0.7:
            link.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(PATIENCE)
        for link in self._links:
            link.close()


def client_meets(state: str, chance: random.Random) -> None:
    """A client of ours connects to a hostile listener: it is refused or has a session, and ends in either case."""
    listener = HostileListener(state, chance)
    try:
        config = configuration("client", connect=[listener.locator], more={"transport/unicast/open_timeout": 2_000})
        try:
            session = elea.open(config)
        except elea.ZError:
            return
        with contextlib.suppress(elea.ZError):  # the link may be gone at any moment, and either may say so
            session.put("hostile/1", b"x" * 100)
            list(session.get("hostile/**", timeout=0.2))
        session.close()
    finally:
        listener.close()


# -- the one that is to survive ---------------------------------------------------------------------------------------


def configuration(mode: str, *, connect: list[str] | None = None, more: dict[str, Any] | None = None) -> Any:
    """A configuration of ours that looks for nobody."""
    config = elea.Config()
    entries = {"mode": mode, "scouting/multicast/enabled": False, "scouting/delay": 0, **(more or {})}
    if connect is not None:
        entries["connect/endpoints"] = connect
    for path, value in entries.items():
        config.insert_json5(path, json.dumps(value))
    return config


class Victim:
    """`elea broker` in a process of its own, and two honest clients that use it all the time."""

    def __init__(self, *settings: str, listen: Sequence[str] = (), options: Sequence[str] = ()) -> None:
        command = [sys.executable, "-m", "elea", "broker", "--json", *options]
        for locator in ("tcp/127.0.0.1:0", "udp/127.0.0.1:0", *listen):
            command += ["-l", locator]
        if not any(setting.startswith("scouting/multicast") for setting in settings):
            command.append("--no-multicast-scouting")
        for setting in settings:
            command += ["--cfg", setting]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        first = json.loads(self.process.stdout.readline())
        self.locators: list[str] = first["locators"]
        self.tcp, self.udp = self.locators[:2]
        self.events: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._event), name="victim-out"),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors.append), name="victim-err"),
        ]
        for reader in self._readers:
            reader.start()
        self._number = 0
        self._arrived: list[bytes] = []
        self.subscriber = elea.open(configuration("client", connect=[self.tcp]))
        self._declared = self.subscriber.declare_subscriber(
            "served/**", lambda sample: self._arrived.append(sample.payload.to_bytes())
        )
        self.publisher = elea.open(configuration("client", connect=[self.tcp]))
        self.serves()
        self.threads = self.count("task")
        self.descriptors = self.count("fd")
        self.memory = self.resident()

    @staticmethod
    def _read(stream: Any, take: Callable[[str], None]) -> None:
        for line in stream:
            take(line)

    def _event(self, line: str) -> None:
        self.events.append(json.loads(line))

    def serves(self) -> None:
        """A put of one honest client reaches the other, and a newcomer is let in."""
        self._number += 1
        token = f"{self._number}".encode()

        def reached() -> bool:
            self.publisher.put("served/1", token)
            return token in self._arrived

        eventually(reached, "a put reaches an honest subscriber", pause=0.01)
        self._arrived.clear()
        with elea.open(configuration("client", connect=[self.tcp])) as newcomer:
            newcomer.put("served/new", b"new")

    def count(self, what: str) -> int:
        """How many threads (`task`) or descriptors (`fd`) the broker has."""
        return len(os.listdir(f"/proc/{self.process.pid}/{what}"))

    def resident(self) -> int:
        """Its resident memory in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) >> 10

    def cpu_seconds(self) -> float:
        """CPU that it has used, which does not depend on who else runs on this machine."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def refusals(self) -> list[dict[str, Any]]:
        """What it said of links and messages it would not have."""
        refused = ("link refused", "session ended", "sample dropped", "message ignored", "session closed by the other")
        return [event for event in list(self.events) if str(event["event"]).startswith(refused)]

    def check(self, *, room: int = 64) -> None:
        """It serves, leaks no thread and no descriptor, and has grown by at most `room` MiB."""
        assert self.process.poll() is None, f"the broker ended: {self.errors[-5:]}"
        self.serves()
        # Its delivery threads go when they have been idle for a second; a few may come and go at any time.
        eventually(lambda: self.count("task") <= self.threads + 3, "threads go", show=lambda: self.count("task"))
        eventually(lambda: self.count("fd") <= self.descriptors + 3, "links are closed", show=lambda: self.count("fd"))
        grown = self.resident() - self.memory
        assert grown <= room, f"the broker has grown by {grown} MiB"
        assert not self.errors, self.errors[-20:]
        assert not [event for event in self.events if event.get("level") in ("error", "critical")], self.events[-5:]

    def close(self) -> None:
        """End it as an operator does; it must do so by itself."""
        self.publisher.close()
        self.subscriber.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            for reader in self._readers:
                reader.join(PATIENCE)
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    stream.close()


def eventually(
    condition: Callable[[], bool], what: str, *, pause: float = 0.05, show: Callable[[], object] = lambda: ""
) -> None:
    """Wait for something that comes by itself; long, since only a failure waits that long."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE} s: {what} {show()}"
        time.sleep(pause)


# -- the long run -----------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Attack until the time is over; prints what was done each round."""
    parser = argparse.ArgumentParser(prog="python -m tests.robust.hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}")
    victim = Victim("transport/unicast/accept_timeout:3000", "transport/link/rx/max_message_size:1048576")
    done: Counter[str] = Counter()
    try:
        for number in _rounds(options.seconds):
            chance = random.Random(f"{options.seed}/{number}")
            for state in STATES:
                for _ in range(30):
                    attack(victim.tcp, state, octets(chance), chance)
                client_meets(state, chance)
                done[state] += 30
            host, _, port = victim.udp.removeprefix("udp/").rpartition(":")
            attack_datagrams((host, int(port)), chance, 100)
            done["udp"] += 100
            victim.check(room=96)
            print(
                f"round {number}: {sum(done.values())} attacks, {victim.count('task')} threads, "
                f"{victim.resident()} MiB, {len(victim.refusals())} refusals told",
                flush=True,
            )
    finally:
        victim.close()
    print(dict(done))
    return 0


def _rounds(seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        yield number
        number += 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
