"""Commands that run beside the test: `elea broker`, `elea sub` and the like as processes of their own."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

WAIT = 20.0


class Running:
    """One `elea` process, and the lines it prints as they come."""

    def __init__(self, *words: str, stdin: bytes | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "elea", *words],
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._errors: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._readers = [
            threading.Thread(target=_read, args=(stream, lines), daemon=True)
            for stream, lines in ((self.process.stdout, self._lines), (self.process.stderr, self._errors))
        ]
        for reader in self._readers:
            reader.start()
        if stdin is not None and self.process.stdin is not None:
            self.process.stdin.write(stdin)
            self.process.stdin.close()

    def line(self, wait: float = WAIT) -> str:
        """The next line on standard output."""
        return _next(self._lines, self, wait)

    def error_line(self) -> str:
        """The next line on the error stream."""
        return _next(self._errors, self)

    def form(self, wait: float = WAIT) -> dict[str, Any]:
        """The next line, which is a JSON object."""
        form = json.loads(self.line(wait))
        assert isinstance(form, dict)
        return form

    def form_where(self, wanted: Callable[[dict[str, Any]], bool], wait: float = WAIT) -> dict[str, Any]:
        """The next JSON object that is `wanted`."""
        until = time.monotonic() + wait
        while time.monotonic() < until:
            form = self.form(wait)
            if wanted(form):
                return form
        raise AssertionError("the line never came")

    def wait_for_error(self, text: str) -> str:
        """The next line on the error stream with `text` in it."""
        while text not in (line := self.error_line()):
            pass
        return line

    def stop(self, how: signal.Signals = signal.SIGINT, wait: float = WAIT) -> int:
        """Tells it to end, and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.end(wait)

    def end(self, wait: float = WAIT) -> int:
        """Its exit code, once it has ended of itself."""
        code = self.process.wait(wait)
        for reader in self._readers:
            reader.join(WAIT)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code

    def rest(self) -> list[str]:
        """The lines nobody has looked at; after `end`."""
        found = []
        while (line := self._lines.get(timeout=WAIT)) is not None:
            found.append(line)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.end()


def _read(stream: Any, lines: queue.SimpleQueue[str | None]) -> None:
    for line in stream:
        lines.put(line.decode().rstrip("\n"))
    lines.put(None)


def _next(lines: queue.SimpleQueue[str | None], of: Running, wait: float = WAIT) -> str:
    line = lines.get(timeout=wait)
    assert line is not None, f"{of.process.args!r} printed no more lines"
    return line


def start_broker(*words: str) -> tuple[Running, str]:
    """A broker on a free port of this machine, and its locator."""
    quiet = ("--json", "-l", "tcp/127.0.0.1:0", "--no-multicast-scouting")
    broker = Running("broker", *quiet, *words)
    try:
        return broker, str(broker.form()["locators"][0])
    except BaseException:
        broker.__exit__(None, None, None)
        raise
