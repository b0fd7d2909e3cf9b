"""Nodes in processes of their own, that can be stopped and killed, and what the system says of them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import elea

__all__ = ["PATIENCE", "QUIET", "Child", "broker", "config", "entries", "eventually", "facts", "node"]

PATIENCE = 60.0
"""Seconds after which an expected thing will not happen any more, also on a loaded machine."""

QUIET: Mapping[str, Any] = {"scouting/multicast/enabled": False, "scouting/delay": 50}
"""Nobody is to be found unasked."""


def config(mode: str, side: str, locator: str, **more: Any) -> elea.Config:
    """A configuration; in the names of `more`, `__` stands for a slash."""
    made = elea.Config()
    for path, value in entries(mode, side, locator, **more).items():
        made.insert_json5(path, json.dumps(value))
    return made


def entries(mode: str, side: str, locator: str, **more: Any) -> dict[str, Any]:
    """The same as entries, for either library."""
    return {
        **QUIET,
        "mode": mode,
        f"{side}/endpoints": [locator],
        **{name.replace("__", "/"): value for name, value in more.items()},
    }


def eventually(condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
    """Poll until `condition` is true; its value."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {timeout} s: {what}"
        time.sleep(0.01)


class Child:
    """A process that answers each line with one line; `start` is another way to start it than `Popen`."""

    def __init__(
        self, arguments: list[str], *, start: Callable[..., subprocess.Popen[Any]] = subprocess.Popen, **options: Any
    ) -> None:
        self.process = start(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
            **options,
        )
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, *command: Any, timeout: float = PATIENCE) -> Any:
        """Give a command and wait for its answer."""
        self.tell(*command)
        return self.answer(timeout)

    def tell(self, *command: Any) -> None:
        """Give a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self, timeout: float = PATIENCE) -> Any:
        """The next line it says."""
        try:
            line = self.lines.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no answer within {timeout} s") from None
        assert line, f"the process has ended with {self.process.wait()}"
        return json.loads(line)

    def signal(self, number: signal.Signals) -> None:
        """Stop it, let it go on, or kill it."""
        os.kill(self.process.pid, number)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """Whatever state it is in, it is gone afterwards."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")


@contextlib.contextmanager
def node(mode: str, side: str, locator: str, *, library: str = "elea", **more: Any) -> Iterator[Child]:
    """A node of either library in a process of its own."""
    child = Child(["tests.robust.node", library, json.dumps(entries(mode, side, locator, **more))])
    try:
        assert child.answer() == "open"
        yield child
    finally:
        child.end()


@contextlib.contextmanager
def broker(*options: str, listen: str = "tcp/127.0.0.1:0", **popen: Any) -> Iterator[tuple[Child, str]]:
    """`elea broker` and where it listens."""
    child = Child(["elea", "broker", "--json", "--quiet", "--no-multicast-scouting", "-l", listen, *options], **popen)
    try:
        first = child.answer()
        yield child, first["locators"][0]
    finally:
        child.end()


def facts(process_id: int) -> dict[str, int]:
    """Open files, threads, memory in use now and at most, in kB, and processor time so far, in ms."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{process_id}/status").read_text().splitlines() if ":" in line
    )
    spent = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return {
        "files": len(os.listdir(f"/proc/{process_id}/fd")),
        "threads": int(status["Threads"]),
        "memory": int(status["VmRSS"].split()[0]),
        "peak": int(status["VmHWM"].split()[0]),
        "cpu": (int(spent[11]) + int(spent[12])) * 1000 // os.sysconf("SC_CLK_TCK"),
    }
