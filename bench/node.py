"""How fast is a node, beside eclipse-zenoh? The same program runs with either library; rounds are interleaved.

    python -m bench.node [--cases put,callback,…] [--rounds 5] [--seconds 0.8] [--json] [--path DIR]

Every end is a process of its own on 127.0.0.1. `put`: a receiver that does no Python work (an unread ring channel);
`callback`: a Python function per sample; `rtt`: put, answered by a put from the callback; `query`: get and reply;
`router`: two clients with a router between them. CPU is process time per message, the steadier figure on shared cores.
With `--path` Elea is imported from there (a compiled installation).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

LIBRARIES = ("zenoh", "elea")
SIZES = (8, 64, 1024, 8192, 65_536)


# -- one end: a child process driven by lines of JSON -----------------------------------------------------------------


def config(lib: Any, mode: str, port: int, *, listen: bool) -> Any:
    side = "listen" if listen else "connect"
    scouting = "{multicast: {enabled: false}, gossip: {enabled: false}}"
    return lib.Config.from_json5(
        f'{{mode: "{mode}", {side}: {{endpoints: ["tcp/127.0.0.1:{port}"]}}, scouting: {scouting}}}'
    )


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rss() -> float:
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def child(spec: dict[str, Any]) -> None:
    start = time.perf_counter()
    lib = importlib.import_module(spec["lib"])
    session = lib.open(config(lib, spec["mode"], spec["port"], listen=spec["listen"]))
    opened = time.perf_counter() - start
    {
        "sink": sink,
        "count": count,
        "echo": echo,
        "answer": answer,
        "idle": idle,
        "send": send,
        "ping": ping,
        "ask": ask,
    }[spec["job"]](lib, session, spec, opened)
    session.close()


def wait_for_line() -> None:
    sys.stdin.readline()


def idle(lib: Any, session: Any, spec: dict[str, Any], opened: float) -> None:
    say(ready=True, opened=opened, rss=rss())
    before = cpu()
    wait_for_line()
    say(cpu=cpu() - before, rss=rss())


def sink(lib: Any, session: Any, spec: dict[str, Any], opened: float) -> None:
    keep = session.declare_subscriber("bench/**", lib.handlers.RingChannel(1))
    say(ready=True)
    wait_for_line()
    say(done=True)
    keep.undeclare()


def count(lib: Any, session: Any, spec: dict[str, Any], opened: float) -> None:
    seen = [0]
    times = [0.0, 0.0]

    def take(sample: Any) -> None:
        if not seen[0]:
            times[0] = time.perf_counter()
        seen[0] += 1
        times[1] = time.perf_counter() if not seen[0] & 1023 else times[1]

    keep = session.declare_subscriber("bench/**", take)
    say(ready=True)
    wait_for_line()
    before = cpu()
    wait_for_line()
    last = -1
    while seen[0] != last:  # until nothing more comes
        last = seen[0]
        time.sleep(0.15)
    span = max(times[1] - times[0], 1e-9)
    say(received=seen[0], rate=seen[0] / span if seen[0] > 2048 else 0.0, cpu=(cpu() - before) / max(seen[0], 1))
    keep.undeclare()


def send(lib: Any, session: Any, spec: dict[str, Any], opened: float) -> None:
    keys = spec.get("keys", 1)
    payload = bytes(spec["size"])
    block = lib.CongestionControl.BLOCK
    publishers = [session.declare_publisher(f"bench/{k}", congestion_control=block) for k in range(keys)]
    time.sleep(0.3)
    say(ready=True)
    wait_for_line()
    before, start, sent = cpu(), time.perf_counter(), 0
    seconds = spec["seconds"]
    puts = [publisher.put for publisher in publishers]
    step = max(1, min(200, 2_000_000 // max(spec["size"], 1)))
    while time.perf_counter() - start < seconds:
        if keys == 1:
            put = puts[0]
            for _ in range(step):
                put(payload)
        else:
            for k in range(step):
                puts[(sent + k) % keys](payload)
        sent += step
    span = time.perf_counter() - start
    say(sent=sent, rate=sent / span, cpu=(cpu() - before) / sent)
    wait_for_line()


def echo(lib: Any, session: Any, spec: dict[str, Any], opened: float) -> None:
    pong = session.declare_publisher("pong", express=True, congestion_control=lib.CongestionControl.BLOCK)
    keep = session.declare_subscriber("ping", lambda sample: pong.put(sample.payload))
    say(ready=True)
    wait_for_line()
    say(done=True)
    keep.undeclare()


def ping(lib: Any, session: Any, spec: dict[str, Any], opened: float) -> None:
    arrived = threading.Semaphore(0)
    keep = session.declare_subscriber("pong", lambda sample: arrived.release())
    publisher = session.declare_publisher("ping", express=True, congestion_control=lib.CongestionControl.BLOCK)
    payload = bytes(64)
    time.sleep(0.3)
    say(ready=True)
    wait_for_line()
    times = []
    end = time.perf_counter() + spec["seconds"]
    while time.perf_counter() < end:
        start = time.perf_counter()
        publisher.put(payload)
        if not arrived.acquire(timeout=2):
            break
        times.append(time.perf_counter() - start)
    times = sorted(times[len(times) // 10 :])
    say(p50=times[len(times) // 2] * 1e6, p99=times[len(times) * 99 // 100] * 1e6, count=len(times))
    wait_for_line()
    keep.undeclare()


def answer(lib: Any, session: Any, spec: dict[str, Any], opened: float) -> None:
    payload = bytes(64)
    keep = session.declare_queryable("ask", lambda query: query.reply("ask", payload))
    say(ready=True)
    wait_for_line()
    say(done=True)
    keep.undeclare()


def ask(lib: Any, session: Any, spec: dict[str, Any], opened: float) -> None:
    time.sleep(0.3)
    say(ready=True)
    wait_for_line()
    end, done = time.perf_counter() + spec["seconds"], 0
    start = time.perf_counter()
    flight = spec["flight"]
    if flight == 1:
        while time.perf_counter() < end:
            for _ in session.get("ask"):
                done += 1
    else:
        room = threading.Semaphore(flight)
        finished = [0]

        def over() -> None:
            finished[0] += 1
            room.release()

        while time.perf_counter() < end:
            room.acquire()
            session.get("ask", lib.handlers.Callback(lambda reply: None, over, indirect=spec.get("indirect", True)))
        for _ in range(flight):
            room.acquire(timeout=5)
        done = finished[0]
    say(rate=done / (time.perf_counter() - start))
    wait_for_line()


# -- the parent -------------------------------------------------------------------------------------------------------


class Child:
    def __init__(self, environment: dict[str, str], **spec: Any) -> None:
        command = [sys.executable, "-m", "bench.node", "--child", json.dumps(spec)]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.first = self.hear()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of the benchmark ended: {self.process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        try:
            self.process.communicate("\n\n", timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Bench:
    def __init__(self, seconds: float, path: str | None) -> None:
        self.seconds = seconds
        self.port = 27_000 + os.getpid() % 1000 * 10
        self.environment = dict(os.environ)
        if path:
            self.environment["PYTHONPATH"] = path

    def child(self, lib: str, job: str, **more: Any) -> Child:
        spec = {"lib": lib, "job": job, "port": self.port, "mode": "client", "listen": False, "seconds": self.seconds}
        return Child(self.environment, **(spec | more))

    def pair(self, lib: str, receiver: str, sender: str, *, router: bool = False, **more: Any) -> dict[str, Any]:
        """One run of a receiver and a sender, directly or through a router."""
        self.port += 1
        middle = self.child(lib, "idle", mode="router", listen=True) if router else None
        here = {} if router else {"mode": "router", "listen": True}
        far = [self.child(lib, receiver, **here, **more) for _ in range(more.get("receivers", 1))]
        near = self.child(lib, sender, **more)
        if receiver == "count":
            for end in far:
                end.go()
        near.go()
        found: dict[str, Any] = {"near": near.hear()}
        for end in far:
            end.go()
        found["far"] = [end.hear() for end in far]
        if middle:
            middle.go()
            found["router"] = middle.hear()
        for each in (near, *far, *([middle] if middle else [])):
            each.end()
        return found


def cases(bench: Bench, lib: str, wanted: set[str]) -> dict[str, float]:
    """One round: every wanted figure of one library."""
    out: dict[str, float] = {}
    for size in SIZES:
        if "put" in wanted:
            found = bench.pair(lib, "sink", "send", size=size)["near"]
            out[f"put/s, {size} B"] = found["rate"]
            out[f"put CPU µs, {size} B"] = found["cpu"] * 1e6
        if "callback" in wanted:
            found = bench.pair(lib, "count", "send", size=size)
            out[f"callback/s, {size} B"] = found["far"][0]["rate"]
            out[f"callback CPU µs, {size} B"] = found["far"][0]["cpu"] * 1e6
            out[f"lost, {size} B"] = found["near"]["sent"] - found["far"][0]["received"]
    if "rtt" in wanted:
        found = bench.pair(lib, "echo", "ping")["near"]
        out["round trip p50 µs"], out["round trip p99 µs"] = found["p50"], found["p99"]
        found = bench.pair(lib, "echo", "ping", router=True)["near"]
        out["round trip via router p50 µs"], out["round trip via router p99 µs"] = found["p50"], found["p99"]
    if "query" in wanted:
        out["query/s"] = bench.pair(lib, "answer", "ask", flight=1)["near"]["rate"]
        out["query/s, 64 in flight"] = bench.pair(lib, "answer", "ask", flight=64)["near"]["rate"]
    if "router" in wanted:
        for name, more in (("1→1", {}), ("1→10", {"receivers": 10}), ("1→1, 1000 keys", {"keys": 1000})):
            found = bench.pair(lib, "count", "send", router=True, size=64, **more)
            sent = found["near"]["sent"]
            out[f"router CPU µs per message, {name}"] = found["router"]["cpu"] / sent * 1e6
            out[f"router delivered/s, {name}"] = sum(end["rate"] for end in found["far"])
            out[f"router lost, {name}"] = sent * len(found["far"]) - sum(end["received"] for end in found["far"])
    if "idle" in wanted:
        bench.port += 1
        router = bench.child(lib, "idle", mode="router", listen=True)
        client = bench.child(lib, "idle")
        out["router RSS MB"], out["client RSS MB"] = router.first["rss"], client.first["rss"]
        out["import and open ms"] = client.first["opened"] * 1e3
        client.end()
        router.end()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", default="put,callback,rtt,query,router,idle")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.8)
    parser.add_argument("--path", help="directory with a (compiled) installation of elea")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    rounds: dict[str, list[dict[str, float]]] = {lib: [] for lib in LIBRARIES}
    bench = Bench(options.seconds, options.path)
    for number in range(options.rounds):
        for lib in LIBRARIES:
            if sys.stderr.isatty():
                sys.stderr.write(f"\rround {number + 1} of {options.rounds}, {lib}   ")
            rounds[lib].append(cases(bench, lib, set(options.cases.split(","))))
    table = {
        name: {lib: statistics.median(found[name] for found in rounds[lib]) for lib in LIBRARIES}
        for name in rounds["elea"][0]
    }
    if options.json:
        print(json.dumps(table))
        return
    print(f"\n{'':36}{'eclipse-zenoh':>16}{'elea':>16}{'ratio':>9}")
    for name, row in table.items():
        ratio = row["elea"] / row["zenoh"] if row["zenoh"] else float("nan")
        print(f"{name:36}{row['zenoh']:>16,.1f}{row['elea']:>16,.1f}{ratio:>8.2f}×")


if __name__ == "__main__":
    main()
