"""What is measured: each case sets a stage with one library and yields figures, the rows of the table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.node.processes import End, Stage

__all__ = ["CASES", "OTHERS", "Case", "Figure", "Goal", "Options"]

SMALL = 64
LARGE = 65_536
SHARED = 3_072  # eclipse-zenoh's threshold for implicit shared memory
STARTS = 3  # processes started a round to learn the time to the first sample
DECLARING = 300.0  # seconds that ten thousand declarations may take at most
SPREAD = 1_000  # keys of the case with many keys
RATES = (1, 10, 100, 1_000)  # samples a second of the case `rate`
WILDCARD = "wildcard key"  # of the subscriber; eclipse-zenoh is much faster with an exact one
EXACT = "exact key"
OTHERS = {"zmq": "pyzmq", "redis": "Redis"}


@dataclass(frozen=True, slots=True)
class Goal:
    """What is wanted of a row: of the ratio to eclipse-zenoh, or of Elea's own figure if `absolute`."""

    at_least: float | None = None
    at_most: float | None = None
    absolute: bool = False

    def met(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        bound = f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"
        return bound if self.absolute else bound + "×"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; `lost` counts what was sent or asked and never came, where that can be known."""

    row: str
    value: float
    lost: int | None = None
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Options:
    seconds: float
    sizes: tuple[int, ...]
    subscribers: int
    environment: dict[str, str]
    rate_seconds: float = 5.0

    def stage(self, lib: str) -> Stage:
        return Stage(lib, self.seconds, self.environment)


@dataclass(frozen=True, slots=True)
class Case:
    run: Callable[[Options, str], Iterator[Figure]]
    about: str
    libraries: tuple[str, ...] = ("zenoh", "elea")


def octets(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def payloads(options: Options) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Name, size and settings of each payload. Large ones come twice: by default eclipse-zenoh hands them to processes
    of the same machine in shared memory, whatever the link; between machines, and with Elea, they travel as octets."""
    for size in options.sizes:
        yield octets(size), size, {"size": size}
        if size >= SHARED:
            yield f"{octets(size)}, no shared memory", size, {"size": size, "shm": False}


# -- setting the stage ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Flow:
    """What one sender, its receivers and the router between them said."""

    near: dict[str, Any]
    far: list[dict[str, Any]]
    ready: list[dict[str, Any]]
    router: dict[str, Any]
    router_alone: dict[str, Any]

    @property
    def lost(self) -> int:
        return sum(int(self.near["sent"] - end["received"]) for end in self.far)


def flow(options: Options, lib: str, receiver: str, *, router: bool = False, receivers: int = 1, **more: Any) -> Flow:
    """Samples from one sender to receivers: directly between two peers, or between clients of a router."""
    with options.stage(lib) as stage:
        middle = stage.listener("idle", "router") if router else None
        alone = middle.ask("cpu", do="tell") if middle else {}
        if middle:
            near = stage.end("send", **more)
            near.hear("open")  # it probes before the first receiver declares
            far = [stage.end(receiver, **more) for _ in range(receivers)]
            for end in far:
                end.hear("open", DECLARING)
        else:
            far = [stage.listener(receiver, "peer", **more)]
            near = stage.end("send", "peer", **more)
            near.hear("open")
        ready = [end.hear("ready", DECLARING) for end in far]
        near.ask("ready", do="stop probing")
        counting = far if receiver == "count" else []
        for end in (*counting, *([middle] if middle else [])):
            end.ask("cpu", do="mark")  # what opening and declaring cost is not the samples'
        sent = near.ask("sent", do="go")
        came = [end.ask("received", do="finish", expect=sent["sent"]) for end in counting]
        found = Flow(sent, came, ready, middle.ask("cpu", do="tell") if middle else {}, alone)
        stage.check()
        return found


def exchange(options: Options, lib: str, far: str, near: str, *, router: bool = False, **more: Any) -> dict[str, Any]:
    """Ping-pong or queries between two ends; `cpu` becomes what all processes on the way used for one of them."""
    with options.stage(lib) as stage:
        if router:
            others = [stage.listener("idle", "router"), stage.end(far, **more)]
            others[1].hear("open")
        else:
            others = [stage.listener(far, "peer", **more)]
        asking = stage.end(near, "client" if router else "peer", **more)
        asking.hear("open")
        asking.hear("ready")
        for end in others:
            end.ask("cpu", do="mark")
        found = asking.ask("lost", do="go")
        used = sum((end.ask("cpu", do="tell")["cpu"] for end in others), found["cpu"])
        stage.check()
        return found | {"cpu": used / max(1, found["done"]) * 1e6}


def go(stage: Stage, end: End) -> dict[str, Any]:
    end.hear("open")
    end.hear("ready")
    found = end.ask("lost", do="go")
    stage.check()
    return found


# -- cases ------------------------------------------------------------------------------------------------------------


def put(options: Options, lib: str) -> Iterator[Figure]:
    for way, size, more in payloads(options):
        near = flow(options, lib, "sink", fence=True, **more).near
        goal = {SMALL: Goal(at_least=3), LARGE: Goal(at_least=0.8)}.get(size)
        yield Figure(f"put/s, {way}", near["rate"], goal=goal)
        yield Figure(f"CPU µs per put, {way}", near["cpu"] * 1e6)


def callback(options: Options, lib: str) -> Iterator[Figure]:
    four = Goal(at_least=4)
    for way, size, more in payloads(options):
        found = flow(options, lib, "count", **more)
        goal = {SMALL: four, LARGE: Goal(at_least=0.8)}.get(size)
        yield Figure(f"callback samples/s, {WILDCARD}, {way}", found.far[0]["rate"], found.lost, goal)
        yield Figure(f"CPU µs per callback, {WILDCARD}, {way}", found.far[0]["cpu"] * 1e6)
    others: tuple[tuple[str, str, dict[str, Any]], ...] = (
        (EXACT, "", {"exact": True}),
        (WILDCARD, ", payload and key read", {"read": True}),
        (EXACT, ", payload and key read", {"read": True, "exact": True}),
        (WILDCARD, ", indirect=False", {"indirect": False}),
    )
    for key, name, more in others:
        found = flow(options, lib, "count", size=SMALL, **more)
        way = f"{key}, {octets(SMALL)}{name}"
        yield Figure(f"callback samples/s, {way}", found.far[0]["rate"], found.lost, four)
        yield Figure(f"CPU µs per callback, {way}", found.far[0]["cpu"] * 1e6)


def rtt(options: Options, lib: str) -> Iterator[Figure]:
    half = Goal(at_most=0.5)
    ways: tuple[tuple[str, dict[str, Any]], ...] = (
        ("direct", {}),
        ("direct, indirect=False", {"indirect": False}),
        ("direct, by recv", {"recv": True}),
        ("through the broker", {"router": True}),
        ("through the broker, by recv", {"router": True, "recv": True}),
    )
    for way, more in ways:
        found = exchange(options, lib, "echo", "ping", **more)
        yield Figure(f"round trip µs p50, {way}", found["p50"], found["lost"], half)
        yield Figure(f"round trip µs p99, {way}", found["p99"], goal=half)
        yield Figure(f"CPU µs per round trip, all processes, {way}", found["cpu"])


def rtt_other(options: Options, lib: str) -> Iterator[Figure]:
    """pyzmq has no broker, Redis no direct way: each stands beside the way it shares."""
    with options.stage(lib) as stage:
        if lib == "redis":
            stage.redis_server()
        ports = stage.end("echo").hear("open").get("ports")
        found = go(stage, stage.end("ping", ports=ports))
    way = "through the broker" if lib == "redis" else "direct"
    yield Figure(f"round trip µs p50, {way}", found["p50"], found["lost"])
    yield Figure(f"round trip µs p99, {way}", found["p99"])


def any_rtt(options: Options, lib: str) -> Iterator[Figure]:
    return rtt_other(options, lib) if lib in OTHERS else rtt(options, lib)


def query(options: Options, lib: str) -> Iterator[Figure]:
    ways: tuple[tuple[str, dict[str, Any]], ...] = (
        ("one by one", {"flight": 1}),
        ("64 in flight", {"flight": 64}),
        ("64 in flight, indirect=False", {"flight": 64, "indirect": False}),
    )
    for way, more in ways:
        found = exchange(options, lib, "answer", "ask", **more)
        yield Figure(f"queries/s, {way}", found["rate"], found["lost"], Goal(at_least=4))
        yield Figure(f"CPU µs per query, both processes, {way}", found["cpu"])


def router(options: Options, lib: str) -> Iterator[Figure]:
    ways = [(f"1→1, {way}", more) for way, _, more in payloads(options)]
    ways += [
        (f"1→10, {octets(SMALL)}", {"size": SMALL, "receivers": 10}),
        (f"1→1, {SPREAD} keys, {octets(SMALL)}", {"size": SMALL, "keys": SPREAD}),
    ]
    for way, more in ways:
        found = flow(options, lib, "count", router=True, **more)
        cpu = found.router["cpu"] / found.near["sent"] * 1e6
        yield Figure(f"broker CPU µs per message, {way}", cpu, found.lost, Goal(at_most=1))
        yield Figure(f"broker delivered/s, {way}", sum(end["rate"] for end in found.far))


def rate(options: Options, lib: str) -> Iterator[Figure]:
    """What a calm stream costs the client that receives it and the router that passes it on."""
    with options.stage(lib) as stage:
        broker = stage.listener("idle", "router")
        sender = stage.end("pace")
        sender.hear("open")  # it probes before the receiver declares
        client = stage.end("follow")
        client.hear("open")
        client.hear("ready")
        sender.ask("ready", do="stop probing")
        for each in RATES:
            for end in (broker, client):
                end.ask("cpu", do="mark")
            seconds = max(options.rate_seconds, 1 / each)
            sender.patience += seconds
            sent = sender.ask("sent", do="pace", rate=each, seconds=seconds)
            passed = broker.ask("cpu", do="tell")
            came = client.ask("received", do="finish", expect=sent["sent"])
            lost = int(sent["sent"] - came["received"])
            yield Figure(f"client CPU ms per second, {each} samples/s", came["cpu"] / sent["took"] * 1e3, lost)
            yield Figure(f"broker CPU ms per second, {each} samples/s", passed["cpu"] / sent["took"] * 1e3)
        stage.check()


def memory(options: Options, lib: str) -> Iterator[Figure]:
    with options.stage(lib) as stage:
        broker = stage.listener("idle", "router")
        client = stage.end("idle")
        client.hear("open")
        yield Figure("idle client, RSS MB", client.ask("rss", do="tell")["rss"], goal=Goal(at_most=20, absolute=True))
        yield Figure("idle broker, RSS MB", broker.ask("rss", do="tell")["rss"])


def first(options: Options, lib: str) -> Iterator[Figure]:
    with options.stage(lib) as stage:
        stage.listener("idle", "router")
        stage.end("tick").hear("open")
        found = []
        for _ in range(STARTS):
            end = stage.end("first")
            found.append(end.hear("exec"))
            end.close()
        for since in ("exec", "import", "open"):
            yield Figure(f"first sample, ms from {since}", statistics.median(each[since] for each in found))


def many(options: Options, lib: str) -> Iterator[Figure]:
    """A client with very many subscribers behind a router; then samples for a thousand of them."""
    number = options.subscribers
    found = flow(
        options, lib, "count", router=True, size=SMALL, keys=min(SPREAD, number), subscribers=number, indirect=False
    )
    ready, name = found.ready[0], f"{number} subscribers"
    yield Figure(f"{name}, declare calls/s", number / ready["called"])
    yield Figure(f"{name}, declared/s until the far client knows", number / ready["known"])
    yield Figure(f"{name}, client RSS KB each", (ready["rss"] - ready["before"]) * 1024 / number)
    yield Figure(f"{name}, broker RSS KB each", (found.router["rss"] - found.router_alone["rss"]) * 1024 / number)
    yield Figure(f"{name}, put/s then", found.near["rate"])
    yield Figure(f"{name}, callback samples/s then", found.far[0]["rate"], found.lost)


CASES = {
    "put": Case(put, "put/s and CPU per put, the receiver idle in Python"),
    "callback": Case(callback, "samples/s into a Python function"),
    "rtt": Case(any_rtt, "round trips, also with pyzmq and Redis", ("zenoh", "elea", "zmq", "redis")),
    "query": Case(query, "get and reply"),
    "router": Case(router, "CPU of a router between clients"),
    "rate": Case(rate, "CPU of a client and a router at 1 to 1000 samples a second"),
    "memory": Case(memory, "resident memory of idle nodes"),
    "first": Case(first, "time to the first sample of a new process"),
    "many": Case(many, "ten thousand subscribers"),
}
