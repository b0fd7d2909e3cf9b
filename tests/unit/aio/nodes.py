"""Nodes of this process, linked over the loopback interface."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from elea import aio

__all__ = ["config", "eventually", "linked", "locator_of"]


def config(mode: str, **entries: Any) -> Any:
    """A configuration that finds nobody unasked; `__` stands for `/`."""
    made = aio.Config()
    entries = {"scouting/multicast/enabled": False, "scouting/delay": 0, "listen/endpoints": [], **entries}
    for path, value in {"mode": mode, **entries}.items():
        made.insert_json5(path.replace("__", "/"), json.dumps(value))
    return made


def locator_of(session: Any) -> str:
    """Where a node listens."""
    inner = getattr(session, "_inner", session)
    return str(inner._runtime.links.locators()[0])


async def eventually(check: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(seconds):
        while not check():
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def linked() -> AsyncIterator[tuple[aio.Session, aio.Session]]:
    """Two peers with a link between them."""
    async with (
        aio.open(config("peer", listen__endpoints=["tcp/127.0.0.1:0"])) as a,
        aio.open(config("peer", connect__endpoints=[locator_of(a)])) as b,
    ):
        await eventually(lambda: a.info.transports() and b.info.transports())
        yield a, b
