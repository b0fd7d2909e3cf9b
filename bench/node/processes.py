"""The measuring process's side: starts ends, talks with them, and never waits for one that is dead or stuck."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["End", "EndFailed", "Stage", "environment", "missing"]

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 600  # seconds after which an end stops by itself
PATIENCE = 60.0  # seconds an end may take for one step, besides the measuring itself
PORTS = range(20_000, 32_000)  # below the ports that systems give to outgoing connections
ATTEMPTS = 5


class EndFailed(Exception):
    """An end of a benchmark died or did not answer; the text says which, and its last words."""


class End:
    """A process of the benchmark."""

    def __init__(self, spec: dict[str, Any], environment: dict[str, str], module: str = "bench.node.ends") -> None:
        self.name = f"{spec['lib']} {spec['job']}"
        self.patience = PATIENCE + spec.get("seconds", 0.0)
        self._rest = b""
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the end
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                module,
                json.dumps(spec | {"started": time.monotonic(), "limit": LIMIT + 2 * self.patience}),
            ],
            env=environment,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            bufsize=0,
        )

    def hear(self, fact: str, timeout: float | None = None) -> dict[str, Any]:
        """What the end says next; it must contain `fact`."""
        assert self.process.stdout is not None
        timeout = self.patience if timeout is None else timeout
        end = time.monotonic() + timeout
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise EndFailed(f"{self.name}: no `{fact}` within {timeout:.0f} s{self._last_words()}")
            data = os.read(self.process.stdout.fileno(), 65_536)
            if not data:
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(5)
                raise EndFailed(f"{self.name}: ended with {self.process.poll()} before `{fact}`{self._last_words()}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        if fact not in found:
            raise EndFailed(f"{self.name}: `{fact}` expected, got {found}")
        return found

    def tell(self, **order: object) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            raise EndFailed(f"{self.name}: ended with {self.process.poll()}{self._last_words()}") from None

    def ask(self, fact: str, **order: object) -> dict[str, Any]:
        self.tell(**order)
        return self.hear(fact)

    def close(self, grace: float = 5.0) -> None:
        """A leaving end closes its session; one that does not is killed."""
        if self.closed:
            return
        try:
            with suppress(EndFailed):
                self.tell(do="end")
            self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        finally:
            for stream in (self.process.stdin, self.process.stdout, self._words):
                if stream is not None:
                    stream.close()

    @property
    def closed(self) -> bool:
        return self._words.closed

    def check(self) -> None:
        """Is it there, unless we ended it ourselves?"""
        if not self.closed and self.process.poll() is not None:
            raise EndFailed(f"{self.name}: ended with {self.process.poll()} during the run{self._last_words()}")

    def _last_words(self) -> str:
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return ": " + lines[-1].strip() if lines else ""


class Stage:
    """The ends of one measurement; all are gone when it is left."""

    def __init__(self, lib: str, seconds: float, variables: dict[str, str]) -> None:
        self.lib = lib
        self.port = 0
        self._spec: dict[str, Any] = {"lib": lib, "seconds": seconds, "size": 64, "indirect": True, "shm": True}
        self._environment = variables
        self._made: list[End] = []
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def check(self) -> None:
        """An end that died unnoticed fails the measurement: the figures of the others would mean little."""
        for end in self._made:
            end.check()

    def end(self, job: str, mode: str = "client", **more: Any) -> End:
        """An end that connects to the listening one; `hear("open")` when it matters."""
        spec = self._spec | {"job": job, "mode": mode, "listen": False, "port": self.port} | more
        made = End(spec, self._environment)
        self._ends.callback(made.close)
        self._made.append(made)
        return made

    def listener(self, job: str, mode: str, **more: Any) -> End:
        """An end that listens, on a port nobody else had: if somebody is quicker, the next one."""
        for _ in range(ATTEMPTS):
            self.port = free_port()
            made = self.end(job, mode, listen=True, **more)
            try:
                made.hear("open")
                return made
            except EndFailed as failed:
                made.close()
                if "in use" not in str(failed):
                    raise
        raise EndFailed(f"{self.lib} {job}: no free port in {ATTEMPTS} attempts")

    def redis_server(self) -> None:
        """A Redis server of our own, without persistence; it too stops by itself (the alarm survives exec)."""
        self.port = free_port()
        words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.alarm(LIMIT))
        self._ends.callback(process.wait)
        self._ends.callback(process.kill)
        end = time.monotonic() + PATIENCE
        while not answers(self.port):
            if process.poll() is not None or time.monotonic() > end:
                raise EndFailed(f"redis-server: does not answer (exit code {process.poll()})")
            time.sleep(0.02)


def free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def environment(path: Path | None, cache: Path) -> dict[str, str]:
    """Variables for ends: they find their byte code in `cache`, so that compiling costs neither time nor memory."""
    found = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found["PYTHONPYCACHEPREFIX"] = str(cache)
    if path is not None:
        found["PYTHONPATH"] = str(path.resolve())
    return found


def missing(lib: str) -> bool:
    """Is what the comparison with `lib` needs absent from this machine?"""
    probe = subprocess.run([sys.executable, "-c", f"import {lib}"], capture_output=True, check=False)
    return probe.returncode != 0 or (lib == "redis" and shutil.which("redis-server") is None)
