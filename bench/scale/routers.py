"""The routers under test: `elea broker`, and eclipse-zenoh's by `python -m bench.scale.routers FILE`.

Both get the same configuration. A router never outlives the process that started it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bench.node.processes import ATTEMPTS, PATIENCE, ROOT, EndFailed, free_port

__all__ = ["Router", "configuration"]

PR_SET_PDEATHSIG: Final = 1
SPARE_SESSIONS: Final = 16  # of the probe, also of one that has just left
GRACE: Final = 20.0  # seconds to say goodbye to every client

_libc: Final = ctypes.CDLL(None)


def configuration(port: int, clients: int, certificate: tuple[Path, Path] | None) -> dict[str, Any]:
    """What both libraries understand: all defaults, but as many sessions as are wanted."""
    found: dict[str, Any] = {
        "mode": "router",
        "listen": {"endpoints": [f"{'tls' if certificate else 'tcp'}/127.0.0.1:{port}"]},
        "scouting": {"multicast": {"enabled": False}},
        "transport": {"unicast": {"max_sessions": clients + SPARE_SESSIONS}},
    }
    if certificate:
        names = ("listen_certificate", "listen_private_key")
        found["transport"]["link"] = {"tls": dict(zip(names, map(str, certificate), strict=True))}
    return found


class Router:
    """A router that listens when it is entered."""

    def __init__(
        self, lib: str, clients: int, *, variables: dict[str, str], certificate: tuple[Path, Path] | None = None
    ) -> None:
        self.lib = lib
        self.port = 0
        self._clients = clients
        self._variables = variables
        self._certificate = certificate
        self._directory = tempfile.TemporaryDirectory(prefix="elea-bench-")
        # Files, because a pipe that nobody reads would stop a router with much to say.
        self._said, self._words = (Path(self._directory.name, name) for name in ("said", "words"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        try:
            for _ in range(ATTEMPTS):
                self.port = free_port()
                self._start()
                if self._listens():
                    return self
            raise EndFailed(f"{self.lib} router: no free port in {ATTEMPTS} attempts")
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> None:
        """Is it still there?"""
        if self._process is not None and self._process.poll() is not None:
            raise EndFailed(f"{self.lib} router: ended with {self._process.returncode}{self._last_words()}")

    def close(self) -> None:
        self._stop()
        self._directory.cleanup()

    def _start(self) -> None:
        text = json.dumps(configuration(self.port, self._clients, self._certificate))
        file = Path(self._directory.name, "router.json5")
        file.write_text(text, encoding="utf-8")
        if self.lib == "elea":
            words = ["elea", "broker", "--quiet", "--json", "-c", str(file)]
        else:
            words = ["bench.scale.routers", str(file)]
        with self._said.open("wb") as said, self._words.open("wb") as last_words:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *words],
                env=self._variables,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=last_words,
                preexec_fn=die_with_parent,
            )

    def _listens(self) -> bool:
        """Whether it does; not, if somebody else was quicker to take the port."""
        assert self._process is not None
        end = time.monotonic() + PATIENCE
        while b"\n" not in self._said.read_bytes():
            if self._process.poll() is not None:
                if "in use" in self._last_words():
                    return False
                self.check()
            if time.monotonic() > end:
                raise EndFailed(f"{self.lib} router: does not listen after {PATIENCE:.0f} s{self._last_words()}")
            time.sleep(0.02)
        return True

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self._process.kill()
        self._process.wait()

    def _last_words(self) -> str:
        lines = (self._said.read_bytes() + self._words.read_bytes()).decode(errors="replace").strip().splitlines()
        return ": " + lines[-1].strip() if lines else ""


def die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """A router of eclipse-zenoh; says so in one line, as `elea broker --json` does."""
    zenoh: Any = importlib.import_module("zenoh")
    session = zenoh.open(zenoh.Config.from_file(sys.argv[1]))
    print(json.dumps({"event": "listening"}), flush=True)
    signal.sigwait({signal.SIGTERM})
    session.close()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # before there are other threads to take it
    main()
