"""Many nodes in one process: a fleet of fifty on one router."""

from __future__ import annotations

import time

from elea.testing import Network

ROBOTS = 50
LIMIT_S = 30.0
"""Processor seconds; it takes 1.5 of them. Not of the wall, since others work on the same machine."""


def test_fifty_nodes_talk_for_a_minute() -> None:
    began = time.process_time()
    net = Network(seed=9)
    router, desk = net.router("router"), net.client("desk")
    net.link(desk, router)
    robots = [net.client(f"robot{number}") for number in range(ROBOTS)]
    for robot in robots:
        net.link(robot, router, delay=(0.001, 0.05))
    got = desk.subscribe("fleet/*/position")
    for robot in robots:
        robot.subscribe("orders/*")
    tokens = [robot.liveliness().declare_token(f"alive/{number}") for number, robot in enumerate(robots)]
    net.settle()

    for second in range(60):
        for number, robot in enumerate(robots):
            robot.put(f"fleet/{number}/position", str(second))
        net.run(1.0)
    alive = list(desk.liveliness().get("alive/*"))

    assert len(got) == 60 * ROBOTS
    assert len(alive) == len(tokens) == ROBOTS
    assert time.process_time() - began < LIMIT_S
