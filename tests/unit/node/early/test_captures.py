"""Sessions of programs in the early dialects, recorded on their way and read back from a capture."""

from __future__ import annotations

import json
import select
import socket
import threading
from pathlib import Path

import pytest

import elea
from elea.cli import main
from elea.io.locator import Locator
from tests.unit.node.early.client import WAIT
from tests.unit.node.early.conftest import locator_of
from tests.unit.node.storage.serving import eventually
from tests.unit.node.test_dialect import await_subscriber, config
from tests.unit.spark.test_capture_reader import rows
from tests.unit.wire.frames import datagram, pcap, segment

BLOCK = elea.CongestionControl.BLOCK
CLIENT, SERVER = 40_000, 7447


class Relay:
    """Passes everything on between a program and a broker, and keeps it as frames."""

    def __init__(self, locator: str) -> None:
        where = Locator.parse(locator)
        self.is_streamed = where.protocol == "tcp"
        kind = socket.SOCK_STREAM if self.is_streamed else socket.SOCK_DGRAM
        self._listening = socket.socket(socket.AF_INET, kind)
        self._listening.bind(("127.0.0.1", 0))
        if self.is_streamed:
            self._listening.listen()
        self._broker = socket.socket(socket.AF_INET, kind)
        self._broker.connect((where.host, where.port))
        self._sequence = [1000, 9000]
        self.frames: list[bytes] = []
        self.locator = f"{where.protocol}/127.0.0.1:{self._listening.getsockname()[1]}?{where.wire.partition('?')[2]}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._listening.close()
        self._broker.close()

    def _run(self) -> None:
        program = self._listening
        if self.is_streamed:
            while not select.select([program], [], [], 0.02)[0]:
                if self._ended.is_set():
                    return
            program = self._listening.accept()[0]
            self._note(b"", 0, "S")
            self._note(b"", 1, "SA")
        source = ("", 0)
        while not self._ended.is_set():
            for ready in select.select([program, self._broker], [], [], 0.02)[0]:
                data, who = ready.recvfrom(65_536)
                if not data and self.is_streamed:
                    self._ended.set()
                    break
                side = int(ready is self._broker)
                self._note(data, side)
                if not side and not self.is_streamed:
                    source = who
                try:
                    if not side:
                        self._broker.send(data)
                    elif self.is_streamed:
                        program.send(data)
                    else:
                        program.sendto(data, source)
                except ConnectionError:
                    self._ended.set()
        if program is not self._listening:
            program.close()

    def _note(self, data: bytes, side: int, flags: str = "A") -> None:
        if not self.is_streamed:
            ports = (CLIENT, SERVER) if not side else (SERVER, CLIENT)
            self.frames.append(datagram(data, source=ports[0], target=ports[1]))
            return
        self.frames.append(segment(data, seq=self._sequence[side], flags=flags, reverse=bool(side)))
        self._sequence[side] += len(data) + ("S" in flags)


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("dialect", ["zenoh2018", "xrce2017"])
def test_a_session_is_read_back_from_its_capture(
    router: elea.Session, tmp_path: Path, dialect: str, protocol: str, capsys: pytest.CaptureFixture[str]
) -> None:
    relay = Relay(locator_of(router, dialect, protocol))
    try:
        with (
            elea.open(config("client", connect__endpoints=[relay.locator])) as program,
            program.declare_subscriber("a/**") as found,
            router.declare_subscriber("b/**") as others,
        ):
            await_subscriber(router, "a/1")
            router.put("a/1", "down", congestion_control=BLOCK)
            assert found.handler.recv(timeout=WAIT).payload.to_string() == "down"
            program.put("b/1", "up", congestion_control=BLOCK)
            assert others.handler.recv(timeout=WAIT).payload.to_string() == "up"
        eventually(lambda: not router._runtime.links.connections, "the session has ended")
    finally:
        relay.close()
    file = tmp_path / "session.pcap"
    file.write_bytes(pcap(relay.frames))

    scheme = "zenoh" if dialect == "zenoh2018" else "xrce"
    told = rows(file, dialect=dialect)
    assert not [row["error"] for row in told if row["error"]]
    messages = {(row["direction"], row["message"]) for row in told}
    assert {("connecting", one) for one in ("Open", "Declare", "WriteData", "AckNack", "Close")} <= messages
    assert {("accepting", one) for one in ("Accept", "Declare", "AckNack")} <= messages
    samples = {(row["direction"], row["key"], bytes(row["payload"])) for row in told if row["kind"] == "PUT"}
    assert samples == {
        ("connecting", f"{scheme}://b/1", b"up"),
        ("accepting", f"{scheme}://a/1", b"down"),
    }
    assert {row["transport"] for row in told} == {protocol}

    assert main(["decode", "--dialect", dialect, "--json", str(file)]) == 0
    packets = [json.loads(line)["decoded"]["messages"] for line in capsys.readouterr().out.splitlines()]
    kinds = [one["message"]["kind"] for packet in packets for one in packet]
    assert kinds[:2] == ["Open", "Accept"]
    assert kinds.count("WriteData") >= 1
