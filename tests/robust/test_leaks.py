"""Sessions that come and go leave nothing behind, in either process: no thread, no socket, no memory."""

from __future__ import annotations

import socket

import pytest

import elea
from elea.node.connection import Connection
from tests.robust.children import PATIENCE, config, eventually, node
from tests.robust.cycles import FAR, left, run

WARM = 10
"""Cycles after which everything that is made once has been made."""

CYCLES = 100
MEMORY = 40_000
"""kB that either process may grow by: a link that stays has a buffer of a MiB, and there are 100 of them."""


@pytest.mark.parametrize("role", FAR)
def test_opening_and_closing_leaves_nothing_behind(role: str) -> None:
    with node(FAR[role], "listen", "tcp/127.0.0.1:0") as far:
        far.ask("subscribe", "leak/data")
        locator = far.ask("locators")[0]
        for _ in run(role, far, locator, WARM):
            pass
        before = left(far)

        for _ in run(role, far, locator, CYCLES):
            pass

        def settled() -> bool:
            after = left(far)
            counted = all(after[name] <= before[name] for name in before if "memory" not in name)
            return counted and all(after[name] < before[name] + MEMORY for name in before if "memory" in name)

        eventually(settled, f"everything as it was: {before}")
        eventually(lambda: far.ask("count", "leak/data") == 2 * (WARM + CYCLES), "all that was put has arrived")


def test_link_that_cannot_be_served_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the system gives no more threads, neither the link nor its place among those that open stays behind."""
    patient = {"transport__unicast__accept_timeout": 600_000}  # else time would do it
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0", **patient)) as router:
        host, port = router.info.locators()[0].removeprefix("tcp/").split(":")

        def no_thread(connection: Connection) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(Connection, "_begin_reading", no_thread)
            for _ in range(5):
                with socket.create_connection((host, int(port))) as link:
                    link.settimeout(PATIENCE)
                    assert link.recv(1) == b""

        eventually(lambda: not router._runtime.links._opening, "none of them is waited for")
        with elea.open(config("client", "connect", router.info.locators()[0])) as client:
            assert client.info.routers_zid()
