"""`elea demo --tour`: what the core can do, in half a minute, with nothing but Python: no Spark, no extra.

Every figure shown is measured while it runs; every answer is computed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from elea.cli.style import Style
from elea.model.pattern import Pattern
from elea.model.resource import Resource

__all__ = ["run"]

RECORDED: Final = (
    ("zenoh1", "batch", "a5b290f6363101fd000864656d6f2f742f312119e1d1a0d6aab796fdfc6a01c1010173c10500c101ac0243020"
     "0ff0568656c6c6f", "a put of eclipse-zenoh 1.10.2 with everything set"),
    ("zenoh2018", "packet", "b36600010701000f01470002027a7a", "a broker of 2018: result, acknowledgement, data"),
    ("xrce2017", "packet", "4b000301020c07", "a device of 2017: pull two samples, then ping"),
)  # fmt: skip

KEYS: Final = (
    ("myhouse/**/LightStatus", "zenoh://myhouse/floor/*/bedroom/?/LightStatus"),
    ("fleet/*/gps", "fleet/robot$*/gps"),
    ("**", "@/a1/router"),
    ("zenoh://a/**/b", "a/b"),
)

MUTATIONS: Final = 20_000
SAMPLES: Final = 50_000


class Step(NamedTuple):
    """One part of the demo: a title, lines for people, facts for programs."""

    title: str
    lines: list[str]
    facts: dict[str, Any]


def run(args: argparse.Namespace) -> int:
    """Runs the parts in turn."""
    style = Style(False) if args.json else Style.for_stream(sys.stdout, args.color)
    start = time.perf_counter()
    parts: tuple[Callable[[Style], Iterator[Step]], ...] = (
        _dialects,
        _one_space,
        _speed,
        _node,
        lambda paint: _hostile(paint, random.Random(args.seed)),
    )
    for part in parts:
        for step in part(style):
            _show(step, style, args.json)
    if not args.json:
        print(
            style.paint(f"\ndone in {time.perf_counter() - start:.1f} s", "bold", "green"),
            "— try these yourself:",
        )
        for command in ("elea broker", "elea sub '**' -e tcp/127.0.0.1:7447", "elea decode --help", "elea info"):
            print(f"  {style.paint(command, 'cyan')}")
    return 0


def _show(step: Step, style: Style, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"part": step.title, **step.facts}), flush=True)
        return
    print(f"\n{style.paint(step.title, 'bold', 'magenta')}")
    for line in step.lines:
        print(f"  {line}", flush=True)


def _dialects(style: Style) -> Iterator[Step]:
    """Three wire languages, read from one notation."""
    from elea.cli.dissection import field_lines
    from elea.wire import dialect_named

    for name, unit, text, what in RECORDED:
        dialect = dialect_named(name)
        data = bytes.fromhex(text)
        value = dialect.decode(unit, data)
        same = dialect.encode(unit, value) == data
        lines = [
            *field_lines(style, data, dialect.dissect(unit, data)),
            style.paint("encoded again: the same bytes", "green")
            if same
            else style.paint("encoded again: OTHER bytes", "red"),
        ]
        facts = {"dialect": name, "decoded": dialect.to_json(unit, value), "same_bytes": same}
        yield Step(f"{name}: {what}", lines, facts)


def _one_space(style: Style) -> Iterator[Step]:
    """Keys of all dialects meet in one space."""
    lines, facts = [], []
    for left, right in KEYS:
        a, b = _pattern(left), _pattern(right)
        witness = a.witness(b)
        met = witness is not None
        answer = style.paint(f"meet, for example in {witness}", "green") if met else style.paint("never meet", "yellow")
        lines.append(f"{left:28} {right:48} {answer}")
        facts.append({"a": left, "b": right, "intersects": met, "witness": witness})
    yield Step("one space: expressions of 1.x and of 2018, intersected exactly", lines, {"pairs": facts})


def _pattern(text: str) -> Pattern:
    return Pattern.of(Resource.parse(text) if "://" in text else text)


def _speed(style: Style) -> Iterator[Step]:
    """Samples read and written a second."""
    from elea.wire import compiled
    from elea.wire.zenoh1 import codec, samples
    from elea.wire.zenoh1.messages import Push, Put, WireExpr

    out = bytearray()
    payload = bytes(64)
    for _ in range(900):
        codec.write_network_message(out, Push(WireExpr(1, True), Put(payload)))
    frame = bytes(out)
    template = samples.PutTemplate(WireExpr(1, True))

    def read() -> int:
        found: list[samples.Pushed] = []
        samples.read_pushes(frame, 0, found)
        return len(found)

    def write() -> int:
        parts: list[bytes] = []
        for _ in range(900):
            parts += (template.header(64), payload)
        return len(b"".join(parts)) // 68

    how = "compiled" if compiled() else "plain Python"
    rates = {"read": _rate(read), "written": _rate(write)}
    lines = [
        f"{rate / 1e6:5.2f} million samples of 64 octets {verb} per second, one core" for verb, rate in rates.items()
    ]
    lines.append(style.paint("measured now; `make bench` has the whole table, compiled codecs included", "dim"))
    yield Step(f"speed of the codec, {how}", lines, {"decoders": how, **{k: round(v) for k, v in rates.items()}})


def _node(style: Style) -> Iterator[Step]:
    """A router and two clients, all in this process, over real sockets."""
    import threading

    import elea

    def config(mode: str, side: str, locator: str) -> elea.Config:
        rest = "scouting: {multicast: {enabled: false}}"
        return elea.Config.from_json5(f"{{mode: '{mode}', {side}: {{endpoints: ['{locator}']}}, {rest}}}")

    router = elea.open(config("router", "listen", "tcp/127.0.0.1:0"))
    where = router._runtime.links.locators()[0]
    robot, program = (elea.open(config("client", "connect", where)) for _ in range(2))
    arrived, done = [0], threading.Event()

    def take(sample: elea.Sample) -> None:
        arrived[0] += 1
        if arrived[0] == SAMPLES:
            done.set()

    with router, robot, program:
        program.declare_subscriber("fleet/**", take)
        program.liveliness().declare_token("fleet/program")
        robot.declare_queryable("fleet/*/status", lambda query: query.reply(query.key_expr, "rolling"), complete=True)
        publisher = robot.declare_publisher("fleet/1/gps", congestion_control=elea.CongestionControl.BLOCK)
        while not publisher.matching_status.matching:
            time.sleep(0.01)
        start = time.perf_counter()
        for _ in range(SAMPLES):
            publisher.put(b"48.8566,2.3522")
        done.wait(20)
        span = time.perf_counter() - start
        reply = next(iter(program.get("fleet/1/status"))).ok
        alive = [str(answer.ok.key_expr) for answer in robot.liveliness().get("fleet/*") if answer.ok]
    answer = "" if reply is None else reply.payload.to_string()
    lines = [
        f"{arrived[0]:,} of {SAMPLES:,} samples through the router in {span:.2f} s, {arrived[0] / span:,.0f} a second",
        f"get fleet/1/status: {style.paint(answer, 'green')}",
        f"alive: {style.paint(', '.join(alive), 'green')}",
    ]
    facts = {"sent": SAMPLES, "received": arrived[0], "seconds": round(span, 3), "reply": answer, "alive": alive}
    yield Step("a router and two clients on loopback, three nodes in one process", lines, facts)


def _rate(work: Callable[[], int]) -> float:
    done, start = 0, time.process_time()
    while time.process_time() - start < 1.0:
        done += work()
    return done / (time.process_time() - start)


def _hostile(style: Style, source: random.Random) -> Iterator[Step]:
    """Broken input gets a typed error, never anything else."""
    from elea.model.errors import DecodeError
    from elea.wire import dialect_named

    found: dict[str, int] = {}
    slowest = 0.0
    for number in range(MUTATIONS):
        name, unit, text, _ = RECORDED[number % len(RECORDED)]
        data = bytearray.fromhex(text)
        for _ in range(source.randint(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        start = time.perf_counter()
        try:
            dialect_named(name).decode(unit, bytes(data[: source.randint(1, len(data))]))
            outcome = "valid"
        except DecodeError as error:
            outcome = error.code
        slowest = max(slowest, time.perf_counter() - start)
        found[outcome] = found.get(outcome, 0) + 1
    order = sorted(found.items(), key=lambda item: -item[1])
    lines = [f"{count:6}  {outcome}" for outcome, count in order]
    lines.append(style.paint(f"no crash, no other exception; the slowest took {slowest * 1e3:.2f} ms", "green"))
    yield Step(
        f"{MUTATIONS:,} broken messages",
        lines,
        {"outcomes": dict(order), "slowest_ms": round(slowest * 1e3, 3)},
    )
