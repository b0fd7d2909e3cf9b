"""The same seed gives the same run, byte for byte; another seed gives another."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import elea
from elea.testing import Network

PROGRAM = """
from tests.unit.testing.test_determinism import fingerprint
print(fingerprint(7))
"""


def play(seed: int) -> Network:
    """A bit of everything: samples, queries, tokens, losses, a partition, a kill, an orderly end."""
    net = Network(seed=seed)
    router = net.router("router")
    robots = [net.client(f"robot{number}") for number in range(4)]
    desk, logger = net.client("desk"), net.client("logger")
    for robot in robots:
        net.link(robot, router, delay=(0.001, 0.02))
    net.link(desk, router, delay=0.001)
    net.link(logger, router, delay=(0.0, 0.05), loss=0.1, reorder=0.2, duplicate=0.1, datagrams=True, mtu=200)
    handles: list[object] = []  # whoever has the handle has what is undeclared at the end
    for node in (desk, logger):
        handles.append(node.declare_subscriber("fleet/**", lambda sample: None))
        handles.append(node.liveliness().declare_subscriber("alive/*", lambda sample: None))
    for number, robot in enumerate(robots):
        handles.append(robot.liveliness().declare_token(f"alive/{number}"))
        handles.append(robot.declare_queryable(f"fleet/{number}/state", _answer))
        handles += [robot.declare_subscriber(f"orders/{order}", lambda sample: None) for order in range(5)]
    for step in range(40):
        for number, robot in enumerate(robots):
            if robot.is_closed():
                continue
            robot.put(f"fleet/{number}/position", f"{step}" * 20)
        if step == 5:
            net.part(robots[0])
        if step == 25:
            net.heal()
        if step == 30:
            robots[1].kill()
        desk.get("fleet/*/state", lambda reply: None, timeout=3.0)
        net.run(0.7)
    net.close()
    net.run(1.0)
    return net


def _answer(query: elea.Query) -> None:
    query.reply(query.key_expr, "fine")


def fingerprint(seed: int) -> str:
    """Everything that crossed every link, and when."""
    digest = hashlib.sha256()
    for crossing in play(seed).trace:
        digest.update(repr((crossing.sent, crossing.ended, crossing.source, crossing.target)).encode())
        digest.update(crossing.fate.value.encode() + crossing.data)
    return digest.hexdigest()


def test_same_seed_gives_the_same_trace() -> None:
    first, second = play(7), play(7)

    assert list(first.trace) == list(second.trace)
    assert str(first.trace) == str(second.trace)


def test_other_seed_gives_another_trace() -> None:
    assert str(play(7).trace) != str(play(8).trace)


def test_one_more_node_changes_nothing_for_the_others() -> None:
    def between_two(more: bool) -> list[str]:
        net = Network(seed=3)
        router, robot = net.router("router"), net.client("robot")
        net.link(robot, router, delay=(0.0, 1.0))
        if more:
            net.link(net.client("desk"), router, delay=(0.0, 1.0))
        net.run(20.0)
        return [str(crossing) for crossing in net.trace.between(robot, router)]

    assert between_two(False) == between_two(True)


def test_trace_does_not_depend_on_the_process() -> None:
    """Hashes of texts differ from process to process, and addresses in memory do."""
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=Path(__file__).parents[3],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2", "3")
    }

    assert found == {fingerprint(7) + "\n"}
