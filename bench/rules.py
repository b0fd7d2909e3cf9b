"""What access rules cost a broker: its CPU for each message, with rules and without, in turns. `python -m bench.rules`

CPU time, not wall time: other work on the machine disturbs it little. The rules name a user by interface, allow what is
done and deny something else; so every message passes a verdict. Exit code 1 if a row costs more than `--most` percent.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import elea
from bench.commandline import positive, progress

MOST: Final = 2.0
"""Percent that rules may cost."""

PATIENCE: Final = 120.0
STEP: Final = 500
KEYS: Final = 1_000
RULES: Final = {
    "enabled": True,
    "default_permission": "deny",
    "rules": [
        {
            "id": "all",
            "permission": "allow",
            "messages": ["put", "delete", "declare_subscriber", "query", "declare_queryable", "reply"],
            "key_exprs": ["bench/**"],
        },
        {"id": "some", "permission": "deny", "messages": ["put", "reply", "query"], "key_exprs": ["bench/secret/**"]},
    ],
    "subjects": [{"id": "here", "link_protocols": ["tcp"]}],
    "policies": [{"rules": ["all", "some"], "subjects": ["here"]}],
}

Work = Callable[["Broker", int], float]
"""Does something so many times; the CPU seconds of the broker meanwhile, without what is declared for it."""


class Broker:
    """A broker in a process of its own, and two clients of it."""

    def __init__(self, rules: bool) -> None:
        command = [sys.executable, "-m", "elea", "broker", "--json", "--no-multicast-scouting", "-l", "tcp/127.0.0.1:0"]
        if rules:
            command += ["--cfg", f"access_control:{json.dumps(RULES)}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        locator = json.loads(self._process.stdout.readline())["locators"][0]
        config = elea.Config.from_json5(
            f"{{mode: 'client', scouting: {{multicast: {{enabled: false}}}}, connect: {{endpoints: ['{locator}']}}}}"
        )
        self.here, self.there = elea.open(config), elea.open(config)

    def cpu(self) -> float:
        """Seconds it has used, by the clock of its process."""
        return time.clock_gettime(~self._process.pid << 3 | 2)

    def close(self) -> None:
        self.here.close()
        self.there.close()
        self._process.terminate()
        self._process.wait(30)


def _samples(keys: int) -> Work:
    """Puts in steps, each when the one before has arrived: nothing is dropped, and all runs are alike."""

    def work(broker: Broker, count: int) -> float:
        got, arrived = [0], threading.Event()

        def take(_: elea.Sample) -> None:
            got[0] += 1
            arrived.set()

        here = broker.here
        with broker.there.declare_subscriber("bench/**", take), contextlib.ExitStack() as stack:
            block = elea.CongestionControl.BLOCK
            made = [here.declare_publisher(f"bench/{number}", congestion_control=block) for number in range(keys)]
            for publisher in made:
                stack.callback(publisher.undeclare)
            _until(lambda: made[0].put(b"") is None and got[0] > 0)
            for publisher in made:
                publisher.put(b"")
            _until(lambda: _settled(got))
            got[0] = 0
            data = bytes(64)
            before = broker.cpu()
            for start in range(0, count, STEP):
                for number in range(start, start + STEP):
                    made[number % keys].put(data)
                while got[0] < start + STEP:
                    arrived.wait(1.0)
                    arrived.clear()
            return broker.cpu() - before

    return work


def _settled(got: list[int]) -> bool:
    before = got[0]
    time.sleep(0.1)
    return got[0] == before


def _queries(broker: Broker, count: int) -> float:
    here = broker.here
    with broker.there.declare_queryable("bench/q", lambda query: query.reply("bench/q", b"answer")):
        _until(lambda: any(reply.ok for reply in here.get("bench/q")))
        before = broker.cpu()
        for _ in range(count // 10):
            assert [reply.ok for reply in here.get("bench/q", timeout=PATIENCE)]
        return broker.cpu() - before


ROWS: Final[dict[str, tuple[Work, int]]] = {
    "samples of one key": (_samples(1), 1),
    f"samples of {KEYS:,} keys": (_samples(KEYS), 1),
    "gets": (_queries, 10),
}
"""What is done, and how much fewer of it."""


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit("the broker does not serve")
        time.sleep(0.01)


@contextlib.contextmanager
def brokers() -> Iterator[dict[bool, Broker]]:
    """One with rules, one without."""
    made = {rules: Broker(rules) for rules in (False, True)}
    try:
        yield made
    finally:
        for one in made.values():
            one.close()


def measure(rounds: int, count: int) -> dict[str, dict[bool, list[float]]]:
    """CPU seconds of the brokers for each message, round by round."""
    found: dict[str, dict[bool, list[float]]] = {name: {False: [], True: []} for name in ROWS}
    with brokers() as both:
        for number in range(rounds + 1):  # the first fills caches, and does not count
            for name, (work, fewer) in ROWS.items():
                for rules in (False, True) if number % 2 else (True, False):
                    progress(f"round {number} of {rounds}: {name}, {'with' if rules else 'without'} rules")
                    took = work(both[rules], count)
                    if number:
                        found[name][rules].append(took / (count // fewer))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rules", description=__doc__)
    parser.add_argument("--rounds", type=positive, default=7, help="how often each is measured (7)")
    parser.add_argument("--messages", type=positive, default=50_000, help="of each measurement (50000)")
    parser.add_argument("--most", type=float, default=MOST, help=f"percent that rules may cost ({MOST:g})")
    wanted = parser.parse_args()
    failed = 0
    for name, took in measure(wanted.rounds, wanted.messages).items():
        without, having = (1e6 * statistics.median(took[rules]) for rules in (False, True))
        # Each round beside its neighbour: what disturbs one disturbs the other.
        more = statistics.median(100 * (b / a - 1) for a, b in zip(took[False], took[True], strict=True))
        failed += more > wanted.most
        print(f"{name:22} {without:7.2f} µs of CPU without rules, {having:7.2f} with: {more:+.1f} %")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
