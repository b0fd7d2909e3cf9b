"""The same ping-pong with pyzmq (direct) and Redis (through its server): a reader thread that calls back, as in Zenoh.

Both libraries are extras (`pip install '.[bench]'`); the types below are theirs and unknown to the checker.
"""

from __future__ import annotations

import importlib
import os
from queue import SimpleQueue
from threading import Thread
from typing import Any

from bench.node.ends import round_trips, taken
from bench.node.talk import Parent

__all__ = ["run"]


def run(spec: dict[str, Any], parent: Parent) -> None:
    jobs = {("zmq", "echo"): zmq_echo, ("zmq", "ping"): zmq_ping, ("redis", "echo"): redis_echo}
    jobs.get((spec["lib"], spec["job"]), redis_ping)(spec, parent)
    os._exit(0)  # the reader threads wait for messages that never come


# -- pyzmq: PUB and SUB both ways; a socket belongs to one thread, so each direction has its own ----------------------


def zmq_echo(spec: dict[str, Any], parent: Parent) -> None:
    zmq: Any = importlib.import_module("zmq")
    context = zmq.Context()
    pong, inbox = context.socket(zmq.PUB), context.socket(zmq.SUB)
    ports = [socket.bind_to_random_port("tcp://127.0.0.1") for socket in (inbox, pong)]
    inbox.subscribe(b"ping")
    Thread(target=zmq_read, args=(inbox, lambda parts: pong.send_multipart((b"pong", parts[1]))), daemon=True).start()
    parent.say(open=True, ports=ports)
    parent.hear()


def zmq_ping(spec: dict[str, Any], parent: Parent) -> None:
    zmq: Any = importlib.import_module("zmq")
    context = zmq.Context()
    out, inbox = context.socket(zmq.PUB), context.socket(zmq.SUB)
    inbox.subscribe(b"pong")
    for socket, port in zip((out, inbox), spec["ports"], strict=True):
        socket.connect(f"tcp://127.0.0.1:{port}")
    arrived: SimpleQueue[None] = SimpleQueue()
    Thread(target=zmq_read, args=(inbox, lambda parts: arrived.put(None)), daemon=True).start()
    message = (b"ping", bytes(spec["size"]))
    round_trips(parent, spec["seconds"], lambda: out.send_multipart(message), taken(arrived))


def zmq_read(socket: Any, callback: Any) -> None:
    while True:
        callback(socket.recv_multipart())


# -- Redis: publish and subscribe, one connection for each direction --------------------------------------------------


def redis_echo(spec: dict[str, Any], parent: Parent) -> None:
    client: Any = importlib.import_module("redis").Redis(port=spec["port"])
    redis_read(client, "ping", lambda message: client.publish("pong", message["data"]))
    parent.say(open=True)
    parent.hear()


def redis_ping(spec: dict[str, Any], parent: Parent) -> None:
    client: Any = importlib.import_module("redis").Redis(port=spec["port"])
    arrived: SimpleQueue[None] = SimpleQueue()
    redis_read(client, "pong", lambda message: arrived.put(None))
    payload = bytes(spec["size"])
    round_trips(parent, spec["seconds"], lambda: client.publish("ping", payload), taken(arrived))


def redis_read(client: Any, channel: str, callback: Any) -> None:
    inbox = client.pubsub(ignore_subscribe_messages=True)
    inbox.subscribe(channel)

    def read() -> None:
        for message in inbox.listen():
            callback(message)

    Thread(target=read, daemon=True).start()
