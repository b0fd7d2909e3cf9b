"""A device of the 2018 protocol over UDP: it publishes a reading and prints what others say. For MicroPython too.

python examples/device.py 127.0.0.1 7448
micropython examples/device.py 127.0.0.1 7448        (with src/elea/tiny as elea/tiny on its path)
"""

import gc
import select
import socket
import sys
import time

from elea.tiny import Client, publisher, resource, subscriber, turn

READINGS = 5


def clock() -> float:
    """Seconds; MicroPython counts milliseconds."""
    if hasattr(time, "ticks_ms"):
        return float(time.ticks_ms() / 1000)
    return time.monotonic()


def main(host: str, port: int) -> None:
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.connect(socket.getaddrinfo(host, port)[0][-1])
    poller = select.poll()
    poller.register(link, select.POLLIN)

    def read(seconds: float) -> "bytes | None":
        return link.recv(1500) if poller.poll(int(seconds * 1000) + 1) else None

    gc.collect()
    before = gc.mem_alloc() if hasattr(gc, "mem_alloc") else 0
    device = Client(b"device", mtu=64, sn_bits=7, lease=3.0)
    device.open(clock())
    sent = 0
    while device.state or not sent:
        for event in turn(device, link.send, read, clock, 0.2):
            if event.kind == "opened":
                device.declare(resource(2, b"zenoh://lamp/light"), publisher(2))
                device.declare(resource(4, b"zenoh://lamp/switch"), subscriber(4))
                if before:
                    gc.collect()
                    print("bytes of a session:", gc.mem_alloc() - before)
            elif event.kind == "sample":
                print("told:", event.id, event.payload.decode())
            elif event.kind == "closed":
                print("closed:", event.status)
                return
        if device.is_open and sent < READINGS and device.put(2, b"%d" % sent, clock()):
            sent += 1
        if sent == READINGS and device.is_settled and device.is_open:
            device.close(clock())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
