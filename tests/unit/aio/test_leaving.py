"""Programs that leave the loop in every way: they end, soon and without complaints."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

PRELUDE = """
import asyncio, json, logging, socket, sys
from elea import aio

# What is slow on a busy machine is no complaint of the program.
logging.getLogger("asyncio").addFilter(lambda record: "took" not in record.getMessage())

def config(mode="peer", **entries):
    made = aio.Config()
    quiet = {"scouting/multicast/enabled": False, "scouting/delay": 0, "listen/endpoints": []}
    for path, value in {"mode": mode, **quiet, **entries}.items():
        made.insert_json5(path, json.dumps(value))
    return made
"""

PROGRAMS = {
    "without closing": """
async def main():
    session = await aio.open(config())
    subscriber = await session.declare_subscriber("x")
    await session.put("x", "1")
    await subscriber.recv(timeout=5)
    for number in range(1000):
        await session.put("x", str(number))
asyncio.run(main())
""",
    "while waiting": """
async def main():
    session = await aio.open(config())
    subscriber = await session.declare_subscriber("x")
    asyncio.create_task(subscriber.recv())
    await asyncio.sleep(0.01)
asyncio.run(main())
""",
    "a loop closed by hand": """
async def main():
    session = await aio.open(config())
    seen = asyncio.Event()
    async def called(sample): seen.set()
    await session.declare_subscriber("x", called)
    await session.put("x", "1")
    await seen.wait()
    return session
loop = asyncio.new_event_loop()
session = loop.run_until_complete(main())
loop.close()
session._inner.put("x", "nobody takes this")
session._inner.close()
""",
    "while opening": """
server = socket.create_server(("127.0.0.1", 0))
async def main():
    where = f"tcp/127.0.0.1:{server.getsockname()[1]}"
    opening = aio.open(config("client", **{"connect/endpoints": [where]}))
    try:
        async with asyncio.timeout(0.3):
            await opening
    except TimeoutError:
        print("given up")
asyncio.run(main())
server.close()
""",
    "during an exception": """
async def main():
    async with aio.open(config()) as session, session.declare_subscriber("x", lambda sample: None):
        raise SystemExit(0)
asyncio.run(main())
""",
    "from a cancelled task": """
async def main():
    async def work():
        async with aio.open(config()) as session:
            async with session.declare_subscriber("x") as subscriber:
                async for sample in subscriber:
                    pass
    task = asyncio.create_task(work())
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
asyncio.run(main())
""",
}


@pytest.mark.parametrize("name", PROGRAMS, ids=lambda name: name.replace(" ", "_"))
def test_program_ends_soon_and_quietly(name: str) -> None:
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PRELUDE + PROGRAMS[name]],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.stderr == ""
    assert done.returncode == 0
    assert time.monotonic() - started < 8


def test_plain_elea_does_not_import_asyncio() -> None:
    code = "import sys, elea; elea.open; elea.Session; elea.handlers; assert 'asyncio' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
