"""The processes of the demo: a broker, a driver of Spark, publishers; and what they have said so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from elea.demo.child import Child
from elea.model.errors import DemoFailed

__all__ = ["Heard", "Processes", "missing"]

KEPT: Final = ("myhouse/**", "fleet/**", "up/**", "lamp/**", "alerts/**")
SHARES: Final = {"house": 0.4, "fleet": 0.3, "eclipse": 0.2, "vehicle": 0.1}
"""Of the rate, by publisher."""

POLL_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 600.0
"""How long anything may take before the demo gives up; busy machines are slow."""

DRIVERS_MOST: Final = 10
"""Drivers that may fail by themselves: a busy machine can be too slow for time limits of Spark's."""


def missing() -> list[str]:
    """Packages that the demo cannot do without and that are not installed."""
    found = [name for name in ("pyspark", "pyarrow", "deltalake") if find_spec(name) is None]
    return found + (["protobuf"] if find_spec("google") is None or find_spec("google.protobuf") is None else [])


@dataclass
class Heard:
    """What the processes have said so far."""

    tried: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    rows: dict[str, dict[int, int]] = field(default_factory=dict)
    """By query and batch; one that comes again after a kill is the same batch."""

    batches: list[dict[str, Any]] = field(default_factory=list)
    lag: dict[str, int] = field(default_factory=dict)
    alerts: list[tuple[str, float]] = field(default_factory=list)
    """Origins, and when they came."""

    is_drained: bool = False
    fresh: int = 0
    """Batches of bronze with rows since the last kill."""

    failure: str = ""


class Processes:
    """Starts, tells, hears and kills them. `tell` gets events, `mark` what has happened for the first time."""

    def __init__(
        self, place: Path, tell: Callable[[str, dict[str, Any]], None], mark: Callable[[str], None], *, seed: int
    ) -> None:
        self.heard = Heard()
        self.drivers = 0
        self.locators = ["tcp/127.0.0.1:0"]
        """Where the broker listens."""
        self.publishers: dict[str, Child] = {}
        self.broker: Child | None = None
        self.driver: Child | None = None
        self._failures = 0
        self._place = place
        self._tell = tell
        self._mark = mark
        self._seed = seed

    @property
    def locator(self) -> str:
        """Where the broker listens for nodes of 1.x."""
        return self.locators[0]

    # -- starting and ending -------------------------------------------------------------------------------------------

    def start_broker(self) -> None:
        """At any address; the second time, at the same."""
        there: list[str] = []

        def hear(form: dict[str, Any]) -> None:
            if form.get("event") == "listening":
                there.extend(form["locators"])

        options = [word for keys in KEPT for word in ("--persist", keys)]
        broker = self.broker = Child(
            ["elea.demo.child", "elea", "broker", "--json", "--quiet", "--no-multicast-scouting",
             *(word for locator in self.locators for word in ("-l", locator)),
             "--store", str(self._place / "store"), *options],
            self._place / "broker.log", hear,
        )  # fmt: skip
        self.wait(lambda: bool(there) or not broker.is_running, "the broker listens")
        if not there:
            raise DemoFailed("the broker", f"it has ended with {broker.process.poll()}", self._place / "broker.log")
        # A serial line is where it is; what a port of 0 has become is known now.
        self.locators = [
            asked
            if asked.startswith("serial/")
            else f"{found.partition('?')[0]}{asked[asked.find('?') :]}"
            if "?" in asked
            else found
            for asked, found in zip(self.locators, there, strict=True)
        ]
        self._tell("broker", {"locator": self.locator, "keeps": list(KEPT), "place": str(self._place)})

    def start_driver(self, file: Path) -> None:
        """Of the pipeline in `file`."""
        self._file = file
        self.drivers += 1
        self.heard.is_drained = False
        self.driver = Child(["elea.demo.driver", str(file)], self._place / "driver.log", self._hear_driver)

    def see_to_driver(self) -> bool:
        """Start another driver if it has ended by itself; whether it had."""
        assert self.driver is not None
        if self.driver.is_running:
            return False
        self._failures += 1
        self.driver.kill()
        if self._failures > DRIVERS_MOST:
            raise DemoFailed("the pipeline", self.heard.failure or "no reason is known", self._place / "driver.log")
        self._tell("driver", {"problem": self.heard.failure, "drivers": self.drivers + 1})
        self.start_driver(self._file)
        return True

    def start_publishers(self, rate: float) -> None:
        """Those whose library is installed; they wait for a `go`."""
        shares = {by: share for by, share in SHARES.items() if by != "eclipse" or find_spec("zenoh") is not None}
        for by, share in shares.items():
            own = rate * share / sum(shares.values())
            words = [by, self.locator, str(self._place / "ledger" / f"{by}.jsonl")]
            self.publishers[by] = Child(
                ["elea.demo.demopublisher", *words, "--rate", str(own), "--seed", str(self._seed)],
                self._place / f"{by}.log", partial(self._hear_publisher, by),
            )  # fmt: skip
        self._tell("publishers", {"by": list(shares), "rate": rate})

    def ask_publishers(self, word: str) -> None:
        """Say `go` or `stop`, and wait until they do."""
        self.heard.answers.clear()
        for child in self.publishers.values():
            child.tell(word)
        for by, child in self.publishers.items():
            self.wait(lambda: self.heard.answers.get(by) == word or not child.is_running, f"{by} does {word}")  # noqa: B023
            if not child.is_running:
                raise DemoFailed(f"publisher {by}", f"ended with {child.process.poll()}", self._place / f"{by}.log")

    def end(self) -> None:
        """All of them, whatever state they are in."""
        for child in self.publishers.values():
            child.end()
        if self.driver is not None:
            self.driver.kill()
        if self.broker is not None:
            self.broker.end()

    def wait(self, is_so: Callable[[], bool], what: str, each: Callable[[], object] = lambda: None) -> None:
        """Until something is so.

        Raises:
            DemoFailed: it takes too long.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            if time.monotonic() > end:
                raise DemoFailed(what, f"it was waited for {PATIENCE_SECONDS:g} s", self._place)
            each()
            time.sleep(POLL_SECONDS)

    # -- hearing, each in a thread of its process ----------------------------------------------------------------------

    def _hear_publisher(self, by: str, form: dict[str, Any]) -> None:
        if not form:
            return
        self.heard.tried[by] = form["tried"]
        self.heard.acknowledged[by] = form["acknowledged"]
        if form["acknowledged"]:
            self._mark("first sample")
        if "answer" in form:
            self.heard.answers[by] = form["answer"]

    def _hear_driver(self, form: dict[str, Any]) -> None:
        heard = self.heard
        match form.get("event"):
            case "ready":
                self._mark("Spark")
            case "batch":
                rows = heard.rows.setdefault(form["query"], {})
                rows[form["batch"]] = max(form["rows"], rows.get(form["batch"], 0))
                heard.batches.append(form)
                heard.lag[form["query"]] = form["lag"] or 0
                if form["query"] == "bronze" and form["rows"]:
                    heard.fresh += 1
                    self._mark("first row")
            case "drained":
                heard.is_drained = True
            case "failed":
                heard.failure = form["text"]
