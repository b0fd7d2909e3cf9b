"""One end of a benchmark, a process of its own: `python -m bench.node.ends SPEC`. The same code drives both libraries.

An end opens a session, says so, and follows the orders of its parent. Receivers say `ready` when a probe has reached
them: their declarations, which went before on the same link, are then known on the whole way.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Semaphore
from typing import Any

from bench.node.talk import Parent, cpu, rss

PATIENCE = 30.0  # seconds; for what only takes long when it does not work at all
QUIET = 5.0  # seconds without a sample after which the missing ones are lost
PROBE = "probe"

Job = Callable[[Any, Any, dict[str, Any], Parent], None]


def main() -> None:
    begun = time.monotonic()
    spec = json.loads(sys.argv[1])
    signal.alarm(int(spec["limit"]))  # whatever happens to the parent, no end outlives the run
    parent = Parent()
    if spec["lib"] == "none":
        parent.say(rss=rss())
        return
    if spec["lib"] in ("zmq", "redis"):
        importlib.import_module("bench.node.others").run(spec, parent)
        return
    lib = importlib.import_module(spec["lib"])
    imported = time.monotonic()
    session = lib.open(config(lib, spec))
    spec |= {"begun": begun, "imported": imported, "opened": time.monotonic()}
    JOBS[spec["job"]](lib, session, spec, parent)
    session.close()


def config(lib: Any, spec: dict[str, Any]) -> Any:
    side = "listen" if spec["listen"] else "connect"
    text = f"""{{
        mode: "{spec["mode"]}", {side}: {{endpoints: ["tcp/127.0.0.1:{spec["port"]}"], exit_on_failure: true}},
        scouting: {{multicast: {{enabled: false}}, gossip: {{enabled: false}}}},
        transport: {{shared_memory: {{enabled: {json.dumps(spec["shm"])}}}}}
    }}"""
    return lib.Config.from_json5(text)


# -- receivers --------------------------------------------------------------------------------------------------------


def idle(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """A router in the middle, or a client with a publisher and a subscriber at rest."""
    keep: list[Any] = []
    if spec["mode"] == "client":
        keep = [session.declare_publisher("idle/out"), session.declare_subscriber("idle/in", lambda sample: None)]
    parent.say(open=True)
    tell_cpu(parent)
    del keep


def tell_cpu(parent: Parent) -> None:
    """Says what this end has used since the last mark, as often as it is asked."""
    before = cpu()
    while order := parent.hear():
        if order["do"] == "mark":
            before = cpu()
        elif order["do"] == "end":
            break
        parent.say(cpu=cpu() - before, rss=rss())


def sink(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """Takes samples without a line of Python of ours; answers the fence, which travels behind the samples."""
    keep = session.declare_subscriber("bench/**", lib.handlers.RingChannel(1))
    fence = session.declare_queryable("fence", lambda query: query.reply("fence", b""))
    await_probe(lib, session, parent)
    parent.hear()
    fence.undeclare()
    keep.undeclare()


def count(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """A Python function per sample; tells how many came, how fast, at what CPU."""
    seen = 0
    stamps: list[float] = []
    # A look at the clock costs as much as a small sample: one of 256 gets it, but every large one.
    mask = 255 if spec["size"] < 8192 else 0
    now = time.perf_counter

    def take(sample: Any) -> None:
        nonlocal seen
        if not seen & mask:
            stamps.append(now())
        seen += 1

    def read(sample: Any) -> None:
        bytes(sample.payload)
        str(sample.key_expr)
        take(sample)

    handler = lib.handlers.Callback(read if spec.get("read") else take, indirect=spec["indirect"])
    number = spec.get("subscribers", 0)
    before, start = rss(), now()
    if number:
        keep = [session.declare_subscriber(f"bench/{index}", handler) for index in range(number)]
    else:
        keep = [session.declare_subscriber("bench/0" if spec.get("exact") else "bench/**", handler)]
    called = now() - start
    await_probe(lib, session, parent, called=called, before=before, since=start)

    parent.hear()
    used = cpu()
    parent.say(cpu=used)
    order = parent.hear() or {}
    wait_until(lambda: seen >= order["expect"], lambda: seen)
    used = cpu() - used
    if len(stamps) < 2:
        raise SystemExit(f"{seen} of {order['expect']} samples came, too few for a rate")
    rate = (len(stamps) - 1) * (mask + 1) / (stamps[-1] - stamps[0])
    parent.say(received=seen, rate=rate, cpu=used / seen)
    parent.hear()
    del keep


def follow(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """Counts what comes, and tells after each stretch what came and what it cost."""
    seen = 0

    def take(sample: Any) -> None:
        nonlocal seen
        seen += 1

    def await_all(number: int) -> None:
        wait_until(lambda: seen >= number, lambda: seen)

    keep = session.declare_subscriber("bench/0", lib.handlers.Callback(take, indirect=spec["indirect"]))
    await_probe(lib, session, parent)
    used = cpu()
    while (order := parent.hear()) and order["do"] != "end":
        if order["do"] == "mark":
            seen, used = 0, cpu()
            parent.say(cpu=used)
        else:
            await_all(order["expect"])
            parent.say(received=seen, cpu=cpu() - used)
    keep.undeclare()


def await_probe(lib: Any, session: Any, parent: Parent, since: float = 0.0, **facts: float) -> None:
    arrived = Event()
    probe = session.declare_subscriber(PROBE, lib.handlers.Callback(lambda sample: arrived.set(), indirect=False))
    parent.say(open=True)
    if not arrived.wait(10 * PATIENCE):  # ten thousand declarations may go before
        raise SystemExit("no probe arrived")
    parent.say(ready=True, known=time.perf_counter() - since, rss=rss(), **facts)
    probe.undeclare()


def wait_until(done: Callable[[], bool], progress: Callable[[], int]) -> None:
    """Until `done`, or nothing more happens."""
    last, since = -1, time.monotonic()
    while not done() and time.monotonic() - since < QUIET:
        time.sleep(0.01)
        if progress() != last:
            last, since = progress(), time.monotonic()


def echo(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    pong = session.declare_publisher("pong", express=True, congestion_control=lib.CongestionControl.BLOCK)
    handler = lib.handlers.Callback(lambda sample: pong.put(sample.payload), indirect=spec["indirect"])
    keep = session.declare_subscriber("ping", handler)
    parent.say(open=True)
    tell_cpu(parent)
    keep.undeclare()


def answer(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    payload = bytes(spec["size"])
    handler = lib.handlers.Callback(lambda query: query.reply("ask", payload), indirect=spec["indirect"])
    keep = session.declare_queryable("ask", handler)
    parent.say(open=True)
    tell_cpu(parent)
    keep.undeclare()


# -- senders ----------------------------------------------------------------------------------------------------------


def send(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """Puts as fast as it may. With a fence, time and CPU run until the last sample is off the link at the far end."""
    keys, payload = spec.get("keys", 1), bytes(spec["size"])
    block = lib.CongestionControl.BLOCK
    publishers = [session.declare_publisher(f"bench/{index}", congestion_control=block) for index in range(keys)]
    probe(session, publishers, parent)

    parent.hear()
    puts = [publisher.put for publisher in publishers]
    step = max(1, min(200, 2_000_000 // (spec["size"] + 1)))  # between two looks at the clock
    least = 1_024 if spec["size"] < 8192 else 2  # what `count` needs for a rate, however slow the machine
    sent, used, start = 0, cpu(), time.perf_counter()
    while time.perf_counter() - start < spec["seconds"] or sent < least:
        if keys == 1:
            put = puts[0]
            for _ in range(step):
                put(payload)
        else:
            for index in range(sent, sent + step):
                puts[index % keys](payload)
        sent += step
    if spec.get("fence"):
        await_reply(session, "fence")
    parent.say(sent=sent, rate=sent / (time.perf_counter() - start), cpu=(cpu() - used) / sent)
    parent.hear()


def pace(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """Puts as often as it is told to, spread evenly over the seconds."""
    payload = bytes(spec["size"])
    publisher = session.declare_publisher("bench/0", congestion_control=lib.CongestionControl.BLOCK)
    probe(session, [publisher], parent)
    while (order := parent.hear()) and order["do"] != "end":
        number, start = max(1, round(order["rate"] * order["seconds"])), time.monotonic()
        for index in range(1, number + 1):
            time.sleep(max(0.0, start + index / order["rate"] - time.monotonic()))
            publisher.put(payload)
        parent.say(sent=number, took=time.monotonic() - start)


def probe(session: Any, publishers: list[Any], parent: Parent) -> None:
    """Until receivers have heard of us, and we of them."""
    parent.say(open=True)
    while parent.hear(0.005) is None:
        session.put(PROBE, b"")
    for publisher in publishers:
        wait_for_match(publisher)
    parent.say(ready=True)


def wait_for_match(publisher: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not publisher.matching_status.matching:
        if time.monotonic() > end:
            raise SystemExit(f"no subscriber of {publisher.key_expr} in sight")
        time.sleep(0.005)


def await_reply(session: Any, key: str) -> None:
    end = time.monotonic() + PATIENCE
    while not [reply for reply in session.get(key) if reply.ok is not None]:
        if time.monotonic() > end:
            raise SystemExit(f"nobody answers {key}")
        time.sleep(0.01)


def ping(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    arrived: SimpleQueue[None] = SimpleQueue()
    handler = lib.handlers.Callback(lambda sample: arrived.put(None), indirect=spec["indirect"])
    keep = session.declare_subscriber("pong", None if spec.get("recv") else handler)
    publisher = session.declare_publisher("ping", express=True, congestion_control=lib.CongestionControl.BLOCK)
    payload = bytes(spec["size"])
    came = received(keep) if spec.get("recv") else taken(arrived)
    round_trips(parent, spec["seconds"], lambda: publisher.put(payload), came)
    keep.undeclare()


def received(subscriber: Any) -> Callable[[float], bool]:
    """Whether something comes in time, by `recv`. That of eclipse-zenoh waits for ever: for long times, so do we."""

    def came(timeout: float) -> bool:
        if timeout >= QUIET:
            subscriber.recv()
            return True
        end = time.monotonic() + timeout
        while subscriber.try_recv() is None:
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    return came


def taken(arrived: SimpleQueue[None]) -> Callable[[float], bool]:
    """Whether something comes in time, out of a queue that a callback fills."""

    def came(timeout: float) -> bool:
        try:
            arrived.get(timeout=timeout)
        except Empty:
            return False
        return True

    return came


def round_trips(parent: Parent, seconds: float, put: Callable[[], object], came: Callable[[float], bool]) -> None:
    """Ping-pong over whatever `put` sends to and whatever `came` waits for."""
    parent.say(open=True)
    end = time.monotonic() + PATIENCE
    while not came(0.05):  # until both ways are known
        if time.monotonic() > end:
            raise SystemExit("no answer to the first ping")
        put()
    while came(0.3):
        pass
    parent.say(ready=True)

    parent.hear()
    times: list[float] = []
    lost, used = 0, cpu()
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end and lost < 3:
        put()
        if came(QUIET):
            times.append(time.perf_counter() - start)
        else:
            lost += 1
    used, done = cpu() - used, len(times)
    times = sorted(times[len(times) // 10 :])
    if not times:
        raise SystemExit("no ping was answered")
    half, most = times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6
    parent.say(p50=half, p99=most, lost=lost, cpu=used, done=done)
    parent.hear()


def ask(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """Gets one after the other, or `flight` at a time."""
    parent.say(open=True)
    await_reply(session, "ask")
    parent.say(ready=True)

    parent.hear()
    flight, asked, answered, used = spec["flight"], 0, 0, cpu()
    start = time.perf_counter()
    end = start + spec["seconds"]
    if flight == 1:
        while time.perf_counter() < end:
            asked += 1
            for _ in session.get("ask"):
                answered += 1
    else:
        room = Semaphore(flight)

        def reply(_: Any) -> None:
            nonlocal answered
            answered += 1

        handler = lib.handlers.Callback(reply, room.release, indirect=spec["indirect"])
        while time.perf_counter() < end:
            if not room.acquire(timeout=PATIENCE):
                raise SystemExit("queries do not come to an end")
            asked += 1
            session.get("ask", handler)
        for _ in range(flight):
            room.acquire(timeout=PATIENCE)
    rate = answered / (time.perf_counter() - start)
    parent.say(rate=rate, lost=asked - answered, cpu=cpu() - used, done=answered)
    parent.hear()


# -- time to the first sample -----------------------------------------------------------------------------------------


def tick(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    """A sample every millisecond."""
    publisher = session.declare_publisher("tick", express=True)
    parent.say(open=True)
    while parent.hear(0.001) is None:
        publisher.put(b"tick")


def first(lib: Any, session: Any, spec: dict[str, Any], parent: Parent) -> None:
    arrived: SimpleQueue[float] = SimpleQueue()
    keep = session.declare_subscriber("tick", lambda sample: arrived.put(time.monotonic()))
    try:
        came = arrived.get(timeout=PATIENCE)
    except Empty:
        raise SystemExit("no sample arrived") from None
    starts = {"exec": spec["started"], "import": spec["begun"], "open": spec["imported"]}
    parent.say(**{name: (came - start) * 1e3 for name, start in starts.items()})
    parent.hear()
    keep.undeclare()


JOBS: dict[str, Job] = {
    job.__name__: job for job in (idle, sink, count, follow, echo, answer, send, pace, ping, ask, tick, first)
}

if __name__ == "__main__":
    main()
