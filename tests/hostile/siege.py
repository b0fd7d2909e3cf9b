"""Random attackers of all kinds at a broker that honest clients use: what they lose, how long they wait, what it costs.

`python -m tests.hostile.siege --minutes 10 --seed 1` prints a line every ten seconds and a page at the end; the exit
code is 1 if something did not hold. Attackers are processes of their own (`--attack KIND LOCATOR`), some at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import elea
from tests.hostile import halfopen, keyattack
from tests.hostile.arrows import bomb, lies
from tests.hostile.slow import asking, subscribing
from tests.robust.hostile import STATES, Victim, attack, attack_datagrams, configuration, octets
from tests.vectors.rawclient import LinkEnded, RawClient

__all__ = ["ATTACKS", "Siege", "main"]

AT_ONCE = 3
LONGEST = 8.0
"""Seconds of one attack."""

MEMORY = 256 << 20
"""The broker's budget for the messages of others."""

GROWTH_MIB = 400
"""What the broker may grow by: its budget, queues of links that take nothing, what its store has in memory."""

P99_SECONDS = 1.0
"""For honest clients; the catalogue has it for connecting, and for urgent samples of a busy link."""

STALL_SECONDS = 6.0
"""The longest that anybody may wait: a stopped neighbour is given up after 5 s."""


# -- attackers, each in a process -------------------------------------------------------------------------------------


def _bytes(locator: str, udp: str, chance: random.Random) -> None:
    host, _, port = udp.removeprefix("udp/").rpartition(":")
    while True:
        with contextlib.suppress(OSError, LinkEnded):
            attack(locator, chance.choice(STATES), octets(chance), chance)
            attack_datagrams((host, int(port)), chance, 5)


def _endless(locator: str, udp: str, chance: random.Random) -> None:
    from tests.hostile.test_memory import fragments

    while True:
        with contextlib.suppress(OSError, LinkEnded):
            client = RawClient(locator)
            for priority in range(1, 8):
                fragments(client, chance.choice((1, 10, 60)) << 20, priority)
            time.sleep(chance.random())
            client.close()


def _stopped(locator: str, udp: str, chance: random.Random) -> None:
    while True:
        with contextlib.suppress(OSError, LinkEnded):
            client = RawClient(locator)
            client.send(subscribing(chance.choice(("**", "honest/**", "log/**"))))
            for _ in range(chance.choice((0, 20))):
                client.send(asking("log/**", chance.choice(("_history", ""))))
            time.sleep(LONGEST)
            client.close()


def _keys(locator: str, udp: str, chance: random.Random) -> None:
    kinds = (
        keyattack.two_messages,
        keyattack.largest_allowed,
        keyattack.double_star_gets,
        keyattack.largest_gets,
        keyattack.flood_of_patterns,
        keyattack.flood_of_changes,
    )
    while True:
        done = threading.Event()
        timer = threading.Timer(2.0, done.set)
        timer.start()
        with contextlib.suppress(OSError, LinkEnded):
            client = RawClient(locator)
            chance.choice(kinds)(client, done)
            client.close()
        timer.cancel()


def _arrow(locator: str, udp: str, chance: random.Random) -> None:
    payloads = [data for _, data in lies()] + [bomb("zstd", 1 << 26)]
    with elea.open(configuration("client", connect=[locator])) as session:
        while True:
            verb = chance.choice(("batch", "stage", "puts"))
            selector = f"@store/{verb}/log/**?src=1.1.{chance.randrange(9)};piece=a"
            list(session.get(selector, payload=chance.choice(payloads), timeout=5))


def _puts(locator: str, udp: str, chance: random.Random) -> None:
    """As much as it can, on keys that nobody and somebody wants, and that are stored."""
    with elea.open(configuration("client", connect=[locator])) as session:
        data = chance.randbytes(chance.choice((10, 1_000, 60_000)))
        while True:
            session.put(f"{chance.choice(('flood', 'log/flood'))}/{chance.randrange(10_000)}", data)


def _gets(locator: str, udp: str, chance: random.Random) -> None:
    with elea.open(configuration("client", connect=[locator])) as session:
        while True:
            with contextlib.suppress(elea.ZError):
                selector = chance.choice(("log/**?_history", "**", "log/**?_time=[now(-1h)..]", "@/**"))
                list(session.get(selector, timeout=3))


def _churn(locator: str, udp: str, chance: random.Random) -> None:
    while True:
        with contextlib.suppress(elea.ZError):
            session = elea.open(configuration("client", connect=[locator]))
            for number in range(chance.randrange(20)):
                session.declare_subscriber(f"churn/{number}/**", lambda _: None)
                session.liveliness().declare_token(f"churn/{number}")
            session.close()


def _halfopen(locator: str, udp: str, chance: random.Random) -> None:
    source = chance.choice(("127.0.0.1", "127.0.0.2"))
    halfopen._Siege(locator, chance.choice(list(halfopen.KINDS)), 130, source).run()


ATTACKS: dict[str, Callable[[str, str, random.Random], None]] = {
    "bytes": _bytes,
    "endless messages": _endless,
    "stopped readers": _stopped,
    "keys": _keys,
    "arrow": _arrow,
    "puts": _puts,
    "gets": _gets,
    "churn": _churn,
    "half-open": _halfopen,
}


# -- honest clients ---------------------------------------------------------------------------------------------------


@dataclass
class Figures:
    """What one kind of honest work has come to."""

    took: list[float] = field(default_factory=list)
    failed: int = 0

    def line(self, name: str) -> str:
        took = sorted(self.took) or [0.0]
        p50, p99 = (took[int(part * (len(took) - 1))] for part in (0.5, 0.99))
        times = f"p50 {1e3 * p50:7.1f} ms   p99 {1e3 * p99:7.1f} ms   longest {1e3 * took[-1]:8.1f} ms"
        return f"{name:14} {len(took):7} done   {times}   {self.failed} failed"

    @property
    def p99(self) -> float:
        return sorted(self.took)[int(0.99 * (len(self.took) - 1))] if self.took else 0.0


class Honest:
    """Clients that must not notice: samples one to another, acknowledged puts, gets of what was put, newcomers."""

    def __init__(self, victim: Victim) -> None:
        self._victim = victim
        self.figures = {name: Figures() for name in ("samples", "acknowledged", "gets", "newcomers")}
        self.acknowledged: dict[str, bytes] = {}
        self._ended = threading.Event()
        self._here = elea.open(configuration("client", connect=[victim.tcp]))
        self._there = elea.open(configuration("client", connect=[victim.tcp]))
        self._arrived = threading.Event()
        self._last = b""
        self._subscriber = self._there.declare_subscriber("honest/1", self._take)
        self._publisher = self._here.declare_publisher("honest/1", congestion_control=elea.CongestionControl.BLOCK)
        self._threads = [
            threading.Thread(target=self._work, args=(name, step, pause), name=f"honest-{name}")
            for name, step, pause in (
                ("samples", self._sample, 0.005),
                ("acknowledged", self._acknowledge, 0.02),
                ("gets", self._get, 0.05),
                ("newcomers", self._come, 0.2),
            )
        ]
        for thread in self._threads:
            thread.start()

    def _take(self, sample: elea.Sample) -> None:
        self._last = sample.payload.to_bytes()
        self._arrived.set()

    def _work(self, name: str, step: Callable[[int], bool], pause: float) -> None:
        figures, number = self.figures[name], 0
        while not self._ended.wait(pause):
            since = time.monotonic()
            try:
                is_done = step(number)
            except elea.ZError as error:
                print(f"    {name}: {error}", flush=True)
                is_done = False
            number += 1
            if is_done:
                figures.took.append(time.monotonic() - since)
            else:
                figures.failed += 1

    def _sample(self, number: int) -> bool:
        self._arrived.clear()
        wanted = str(number).encode()
        self._publisher.put(wanted)
        end = time.monotonic() + 20
        while self._last != wanted and time.monotonic() < end:
            self._arrived.wait(0.5)
            self._arrived.clear()
        return self._last == wanted

    def _acknowledge(self, number: int) -> bool:
        key, value = f"log/honest/{number % 50}", f"{number}".encode()
        self._here.put(key, value, ack=True, durability="persistent")
        self.acknowledged[key] = value
        return True

    def _get(self, number: int) -> bool:
        known = list(self.acknowledged.items())
        if not known:
            return True
        key, value = random.choice(known)
        replies = list(self._there.get(key, timeout=20))
        found = [reply.ok.payload.to_bytes() for reply in replies if reply.ok is not None]
        return len(found) == 1 and int(found[0]) >= int(value)

    def _come(self, number: int) -> bool:
        with elea.open(configuration("client", connect=[self._victim.tcp])) as session:
            session.put("honest/new", b"x")
        return True

    def end(self) -> None:
        """Stop working; everything acknowledged is there."""
        self._ended.set()
        for thread in self._threads:
            thread.join(60)
        lost = 0
        for key, value in self.acknowledged.items():
            replies = [reply.ok for reply in self._there.get(key, timeout=20) if reply.ok is not None]
            lost += not replies or replies[0].payload.to_bytes() != value
        self.lost = lost
        self._here.close()
        self._there.close()


# -- the siege --------------------------------------------------------------------------------------------------------


class Siege:
    """Attackers come and go until the time is over."""

    def __init__(self, minutes: float, seed: int) -> None:
        self._chance = random.Random(seed)
        self._until = time.monotonic() + 60 * minutes
        self.waves: Counter[str] = Counter()
        self.memory: list[int] = []
        self.cpu: list[float] = []

    def run(self) -> list[str]:
        """What did not hold; empty if all did."""
        with tempfile.TemporaryDirectory() as directory:
            store = ("--store", str(Path(directory) / "store"), "--persist", "log/**")
            victim = Victim(f"transport/link/rx/memory:{MEMORY}", options=store)
            try:
                return self._besiege(victim)
            finally:
                victim.close()

    def _besiege(self, victim: Victim) -> list[str]:
        honest = Honest(victim)
        running: list[tuple[float, str, subprocess.Popen[bytes]]] = []
        last = time.monotonic()
        spent = self._cpu_of(victim)
        try:
            while time.monotonic() < self._until and victim.process.poll() is None:
                now = time.monotonic()
                running = [one for one in running if not self._is_over(one, now)]
                while len(running) < AT_ONCE:
                    running.append(self._attacker(victim, now))
                time.sleep(0.5)
                self.memory.append(victim.resident())
                if now - last >= 10:
                    used = self._cpu_of(victim)
                    self.cpu.append((used - spent) / (now - last))
                    kinds = ", ".join(kind for _, kind, _ in running)
                    print(f"  {self.memory[-1]:5} MiB  cpu {self.cpu[-1]:.2f}  {kinds}", flush=True)
                    last, spent = now, used
        finally:
            for _, _, process in running:
                process.kill()
                process.wait()
        return self._judge(victim, honest)

    def _attacker(self, victim: Victim, now: float) -> tuple[float, str, subprocess.Popen[bytes]]:
        kind = self._chance.choice(list(ATTACKS))
        self.waves[kind] += 1
        seed = str(self._chance.randrange(1 << 30))
        command = [sys.executable, "-m", "tests.hostile.siege", "--attack", kind, victim.tcp, victim.udp, seed]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        return now + self._chance.uniform(1, LONGEST), kind, process

    def _is_over(self, one: tuple[float, str, subprocess.Popen[bytes]], now: float) -> bool:
        until, _, process = one
        if now < until and process.poll() is None:
            return False
        process.kill()
        process.wait()
        return True

    @staticmethod
    def _cpu_of(victim: Victim) -> float:
        fields = Path(f"/proc/{victim.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _judge(self, victim: Victim, honest: Honest) -> list[str]:
        wrong: list[str] = []
        if victim.process.poll() is not None:
            honest._ended.set()
            return [f"the broker ended: {victim.errors[-5:]}"]
        honest.end()
        for name, figures in honest.figures.items():
            print(figures.line(name))
            wrong += [f"{name}: {figures.failed} failed"] if figures.failed else []
            wrong += [f"{name}: p99 is {figures.p99:.2f} s"] if figures.p99 > P99_SECONDS else []
            wrong += (
                [f"{name}: one took {max(figures.took):.1f} s"] if max(figures.took, default=0) > STALL_SECONDS else []
            )
        wrong += [f"{honest.lost} acknowledged puts are not there"] if honest.lost else []
        grown = max(self.memory) - victim.memory
        time.sleep(3)
        left = victim.resident() - victim.memory
        cpu = sum(self.cpu) / len(self.cpu) if self.cpu else 0.0
        print(
            f"broker         {victim.memory} MiB before, {max(self.memory)} at most, {left} more after; cpu {cpu:.2f}"
        )
        print(f"attacks        {dict(self.waves)}")
        wrong += [f"the broker grew by {grown} MiB"] if grown > GROWTH_MIB else []
        # That samples which may be dropped find no room on the disk is what a flood of them is told.
        told = [event for event in victim.events if event.get("event") != "samples not kept"]
        errors = [event for event in told if event.get("level") in ("error", "critical")]
        wrong += [f"the broker said {errors[:3]}"] if errors or victim.errors else []
        return wrong


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.siege", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--attack", nargs=4, metavar=("KIND", "TCP", "UDP", "SEED"), help="be one of the attackers")
    options = parser.parse_args(arguments)
    if options.attack:
        kind, tcp, udp, seed = options.attack
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        ATTACKS[kind](tcp, udp, random.Random(int(seed)))
        return 0
    print(f"seed {options.seed}, {options.minutes} minutes", flush=True)
    wrong = Siege(options.minutes, options.seed).run()
    for one in wrong:
        print(f"NOT HELD: {one}")
    print("held" if not wrong else f"{len(wrong)} figures not held")
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
