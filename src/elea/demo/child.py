"""Processes of the demo, which end when it ends, however it ends.

As a program, `python -m elea.demo.child MODULE ARGUMENTS…` runs a module until standard input is closed: the operating
system closes it when the parent is gone, even one that was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

__all__ = ["Child"]

END_SECONDS: Final = 10.0
"""How long a process may take to end in order."""


class Child:
    """A process in a group of its own, which prints lines of JSON and is told words."""

    def __init__(self, module: list[str], errors: Path, hear: Callable[[dict[str, Any]], None]) -> None:
        """Start it; `hear` gets every line as it comes, in a thread, and `{}` at the end."""
        self._errors = errors.open("ab")
        self._hear = hear
        self.process = subprocess.Popen(
            [sys.executable, "-m", *module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def tell(self, word: str) -> None:
        """Say something; one that has gone hears nothing."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()

    def kill(self) -> None:
        """The whole group, without a word."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        """Ask it to end, by the end of its input; see that it does."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(END_SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._errors.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError):  # closed while it was waited for
            for line in self.process.stdout:
                with contextlib.suppress(json.JSONDecodeError):  # what a library says is no event
                    form = json.loads(line)
                    if isinstance(form, dict):
                        self._hear(form)
        self._hear({})


def main() -> None:
    """Run a module as a program, until it or the input ends."""

    def listen() -> None:
        sys.stdin.buffer.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=listen, daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
