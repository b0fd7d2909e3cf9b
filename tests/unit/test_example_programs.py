"""The programs under examples/ run, and print the same with `import elea as zenoh` and with eclipse-zenoh."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.inbox import free_port

pytestmark = pytest.mark.interop

EXAMPLES = Path(__file__).parents[2] / "examples"
LIBRARIES = ("zenoh", "elea")
LONG = 20.0
TIMING = re.compile(r"\d+ µs|\d+ a second")
NODE = re.compile(r"\b[0-9a-f]{20,32}\b")
PORT = re.compile(r"127\.0\.0\.1:\d+")


class Program:
    """A running example; its lines are read as they come."""

    def __init__(self, name: str, library: str, *arguments: str) -> None:
        command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), "--library", library, *arguments]
        pipe = subprocess.PIPE
        self.name = name
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
        self.lines: list[str] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self.lines.append(line.rstrip("\n"))
                self._more.notify_all()

    def says(self, beginning: str) -> None:
        """Wait for a line."""
        with self._more:
            heard = self._more.wait_for(lambda: any(x.startswith(beginning) for x in self.lines), LONG)
        assert heard, f"{self.name} did not say {beginning!r}: {self.lines}"

    def enter(self) -> None:
        """Press enter."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> list[str]:
        """Wait for its end; what it printed, without what differs each time."""
        try:
            code = self.process.wait(LONG)
        except subprocess.TimeoutExpired:
            self.stop()
            raise AssertionError(f"{self.name} does not end: {self.lines}") from None
        self._reader.join(LONG)
        assert code == 0, "\n".join(self.lines)
        return [PORT.sub("PLACE", NODE.sub("NODE", TIMING.sub("TIME", line))) for line in self.lines]

    def stop(self) -> None:
        """End it at once."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(LONG)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Stage:
    """A router of one library, and programs of the same one that are its clients."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.locator = f"tcp/127.0.0.1:{free_port()}"
        self._lib: Any = importlib.import_module(library)
        config = self._lib.Config()
        entries = {"mode": "router", "listen/endpoints": [self.locator], "scouting/multicast/enabled": False}
        for path, value in entries.items():
            config.insert_json5(path, json.dumps(value))
        self._router: Any = self._lib.open(config)
        self._programs: list[Program] = []

    def start(self, name: str, *arguments: str) -> Program:
        """A program connected to the router."""
        where = ("-m", "client", "-e", self.locator, "--no-multicast-scouting")
        return self.alone(name, *where, *arguments)

    def alone(self, name: str, *arguments: str) -> Program:
        """A program that needs no router."""
        program = Program(name, self.library, *arguments)
        self._programs.append(program)
        return program

    def clear(self) -> None:
        """End the programs of one test."""
        for program in self._programs:
            program.stop()
        self._programs.clear()

    def close(self) -> None:
        """End all."""
        self.clear()
        self._router.close()


@pytest.fixture(scope="module")
def stages() -> Iterator[list[Stage]]:
    opened = [Stage(library) for library in LIBRARIES]
    yield opened
    for stage in opened:
        stage.close()


def compared(stages: list[Stage], play: Any) -> list[str]:
    """Play with both libraries; what both printed."""
    printed = []
    for stage in stages:
        try:
            printed.append(play(stage))
        finally:
            stage.clear()
    assert printed[1] == printed[0]
    return [line for lines in printed[0] for line in lines]


@pytest.mark.parametrize("name", ["quickstart", "bytes", "channels"])
def test_program_alone_prints_the_same(stages: list[Stage], name: str) -> None:
    lines = compared(stages, lambda stage: [stage.start(name).end()])

    assert len(lines) >= 6


def test_sub_prints_what_pub_puts(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        sub = stage.start("sub", "--count", "4")
        sub.says("subscriber")
        pub = stage.start("pub", "--count", "4", "--interval", "0", "--attachment", "extra", "--wait")
        return [pub.end(), sub.end()]

    lines = compared(stages, play)

    assert "put demo/example/pub: [   3] Hello [text/plain] (extra)" in lines


def test_pull_finds_the_newest_in_its_ring(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        pull = stage.start("pull", "--count", "3", "--interval", "2")
        pull.says("ring")
        pub = stage.start("pub", "--count", "10", "--interval", "0", "--wait")
        pub.end()
        return [[line for line in pull.end() if line != "nothing new"]]

    lines = compared(stages, play)

    assert lines[1:] == [f"pulled demo/example/pub: [   {number}] Hello" for number in (7, 8, 9)]


def test_get_prints_what_queryable_answers(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        queryable = stage.start("queryable", "--count", "3")
        queryable.says("queryable")
        selector = "demo/example/queryable?unit=C"
        first = stage.start("get", "--count", "2", "--selector", selector, "--payload", "how warm").end()
        second = stage.start("get", "--selector", "demo/example/*?error=broken", "--target", "ALL").end()
        return [first, second, queryable.end()]

    lines = compared(stages, play)

    assert "answer demo/example/queryable: 21.5 [text/plain]" in lines
    assert "error: broken" in lines


def test_querier_asks_a_queryable(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        querier = stage.start("querier", "--count", "3", "--interval", "0", "--wait")
        querier.says("querier")
        queryable = stage.start("queryable", "--count", "3")
        return [querier.end(), queryable.end()]

    lines = compared(stages, play)

    assert "query demo/example/queryable?number=2 with [   2]" in lines


def test_liveliness_programs_notice_a_token(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        watcher = stage.start("liveliness_sub", "--count", "4")
        watcher.says("watching")
        token = stage.start("liveliness_token", "--count", "2")
        token.says("alive group1/me/0")
        watcher.says("came group1/me/0")
        found = stage.start("liveliness_get").end()
        late = stage.start("liveliness_sub", "--history", "--count", "1").end()
        token.enter()
        token.enter()
        return [watcher.end(), token.end(), found, late]

    lines = compared(stages, play)

    assert "went group1/me/1" in lines
    assert "1 in all" in lines


def test_storage_answers_with_the_latest(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        storage = stage.start("storage", "--count", "4")
        storage.says("storage")
        pub = stage.start("pub", "--count", "4", "--interval", "0", "--wait").end()
        storage.says("holds")
        found = stage.start("get").end()
        storage.enter()
        return [pub, found, storage.end()]

    lines = compared(stages, play)

    assert "answer demo/example/pub: [   3] Hello [text/plain]" in lines


def test_ping_hears_pong(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        pong = stage.start("pong", "--count", "20")
        pong.says("echoing")
        ping = stage.start("ping", "--count", "20", "--size", "100")
        return [ping.end(), pong.end()]

    lines = compared(stages, play)

    assert lines[-1] == "echoed 20"


def test_throughput_sub_counts_all(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        sub = stage.start("throughput_sub", "--count", "20000", "--round", "10000")
        sub.says("counting")
        pub = stage.start("throughput_pub", "--count", "20000", "--size", "64")
        return [pub.end(), sub.end()]

    lines = compared(stages, play)

    assert lines[-1] == "received 20000"


def test_info_names_the_router(stages: list[Stage]) -> None:
    lines = compared(stages, lambda stage: [stage.start("info").end()])

    assert "router NODE" in lines


def test_scout_finds_a_peer(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        place = f"224.0.0.224:{free_port()}"
        lib: Any = importlib.import_module(stage.library)
        config = lib.Config()
        entries = {
            "mode": "peer",
            "listen/endpoints": ["tcp/127.0.0.1:0"],
            "scouting/multicast/address": place,
            "scouting/multicast/interface": "lo",
        }
        for path, value in entries.items():
            config.insert_json5(path, json.dumps(value))
        with lib.open(config):
            return [
                stage.alone("scout", "--address", place, "--interface", "lo", "--count", "1", "--seconds", "60").end()
            ]

    lines = compared(stages, play)

    assert lines == ["peer NODE at tcp/PLACE", "1 found"]


def test_matching_notices_a_subscriber(stages: list[Stage]) -> None:
    def play(stage: Stage) -> list[list[str]]:
        matching = stage.start("matching", "--count", "2")
        matching.says("matching now")
        sub = stage.start("sub", "--count", "1")
        return [matching.end(), sub.end()]

    lines = compared(stages, play)

    assert lines[1:3] == ["somebody listens", "nobody listens any more"]
