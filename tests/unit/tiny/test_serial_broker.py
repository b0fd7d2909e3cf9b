"""A device on a serial line (a pseudo-terminal), a broker at its other end, and a Zenoh 1.x client of that broker."""

from __future__ import annotations

import os
import select
import threading
import time
import tty
from collections.abc import Iterator

import pytest

import elea
from elea.io.locator import Locator
from elea.io.serial import open_line
from elea.tiny import publisher, resource, subscriber
from elea.tiny.client import CLOSED
from tests.unit.tiny.serialdevice import WAIT, SerialDevice, serial_line


@pytest.fixture
def line() -> Iterator[tuple[int, str]]:
    """The device's end, and the file of the broker's."""
    with serial_line() as made:
        yield made


def broker_at(locator: str) -> elea.Session:
    config = elea.Config.from_json5("{mode: 'router', scouting: {multicast: {enabled: false}}}")
    config.insert_json5("listen/endpoints", f'["tcp/127.0.0.1:0", "{locator}"]')
    return elea.open(config)


@pytest.mark.parametrize("dialect", ["zenoh2018", "xrce2017"])
def test_a_device_on_a_serial_line_joins_the_space(line: tuple[int, str], dialect: str) -> None:
    near, path = line
    scheme = b"xrce" if dialect == "xrce2017" else b"zenoh"
    with broker_at(f"serial/{path}?dialect={dialect}#mtu=64;chunk=20") as broker:
        with broker.declare_subscriber("lamp/**") as lamps:
            device = SerialDevice(near, dialect, 64)
            device.client.open(time.monotonic())
            device.until(lambda: device.client.is_open)
            device.client.declare(resource(2, scheme + b"://lamp/light/of/the/hall"), publisher(2))
            device.client.declare(resource(4, scheme + b"://lamp/switch"), subscriber(4))
            device.until(lambda: device.client.is_settled and 2 in device.client.wanted)

            for payload in (b"1", bytes(500)):
                assert device.client.put(2, payload, time.monotonic())
                device.until(lambda: device.client.is_settled)
                sample = lamps.handler.recv(timeout=WAIT)
                assert (str(sample.key_expr), sample.payload.to_bytes()) == ("lamp/light/of/the/hall", payload)
            broker.put("lamp/switch", b"on", congestion_control=elea.CongestionControl.BLOCK)
            broker.put("lamp/switch", bytes(300), congestion_control=elea.CongestionControl.BLOCK)
            device.until(lambda: len(device.samples()) == 2)

            assert device.samples() == [b"on", bytes(300)]
            assert max(device.writes) <= 20
            device.client.close(time.monotonic())
            device.until(lambda: device.client.state == CLOSED)
        # The line is listened to again: a device that starts anew finds the broker.
        again = SerialDevice(near, dialect, 64)
        again.client.open(time.monotonic())
        again.until(lambda: again.client.is_open)


def test_a_program_connects_over_a_serial_line(line: tuple[int, str]) -> None:
    """`elea.open` at one end, a broker at the other; two pseudo-terminals with a cable between them."""
    near, path = line
    other, device = os.openpty()
    tty.setraw(other)
    ended = threading.Event()

    def cable() -> None:
        while not ended.is_set():
            for ready in select.select([near, other], [], [], 0.02)[0]:
                os.write(other if ready == near else near, os.read(ready, 4096))

    thread = threading.Thread(target=cable)
    thread.start()
    held = open_line(Locator.parse(f"serial/{os.ttyname(device)}#exclusive=false"))
    try:
        with broker_at(f"serial/{path}?dialect=zenoh2018#mtu=64") as broker, broker.declare_subscriber("a/**") as found:
            config = elea.Config.from_json5("{mode: 'client', scouting: {multicast: {enabled: false}}}")
            config.insert_json5("connect/endpoints", f'["serial/{os.ttyname(device)}?dialect=zenoh2018#mtu=64"]')
            with elea.open(config) as program:
                program.put("a/b", bytes(1000), congestion_control=elea.CongestionControl.BLOCK)
                assert found.handler.recv(timeout=WAIT).payload.to_bytes() == bytes(1000)
    finally:
        ended.set()
        thread.join()
        os.close(held)
        os.close(other)
        os.close(device)
