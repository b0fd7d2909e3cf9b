"""What a router does for one client does not grow with the number of the others."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from elea.model.qos import QueryTarget, Role
from elea.wire import compiled
from tests.unit.space.fakes import QBL, SUB, Node

pytestmark = pytest.mark.skipif(compiled(), reason="plain only: the lines that run are counted")


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python some work takes."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    gc.collect()
    gc.disable()  # it would run what other tests have left to be ended
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def router_with(clients: int) -> Node:
    node = Node(Role.ROUTER)
    for number in range(clients):
        node.client(f"client-{number}")
    return node


def effort(clients: int) -> list[int]:
    """Lines run for a client that declares, is sent to and asked, and leaves."""
    node = router_with(clients)
    speaker, other = node.client("speaker"), node.client("other")
    space = node.space
    return [
        lines_run(lambda: other.declares(SUB, "a/b")),
        lines_run(lambda: other.declares(QBL, "a/b")),
        lines_run(lambda: space.targets(speaker, "a/b")),
        lines_run(lambda: speaker.queries(1, "a/b", QueryTarget.BEST_MATCHING)),
        lines_run(lambda: space.remove_face(other, 0.0)),
    ]


def test_silent_clients_cost_the_others_nothing() -> None:
    effort(5)  # what is found out once is remembered

    assert effort(500) == effort(5)
