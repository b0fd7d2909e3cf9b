"""Runs inputs through a target and keeps what must not happen: undocumented errors, broken laws, slowness, greed."""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Final

from tests.fuzz.clock import Clock
from tests.fuzz.laws import LawBroken
from tests.fuzz.mutate import shrunk
from tests.fuzz.target import Target

__all__ = ["PATIENT_MS", "SLOW_MS", "Finding", "Watch"]

SLOW_MS: Final = 50.0
"""CPU one input may cost on a quiet machine; the tests, which run on any machine, allow `PATIENT_MS`."""

PATIENT_MS: Final = 2_000.0
PEAK_BYTES: Final = 32 << 20
"""What one input may allocate; a full batch of the smallest messages takes some ten million octets."""

GROWTH_KIB: Final = 16 << 10
"""Growth of the process by one input that makes it suspect."""

STUCK_SECONDS: Final = 5.0
MEASURED_EVERY: Final = 2_000
"""One input in so many has its memory measured, suspect or not."""

SLOWEST: Final = 8


class Stuck(BaseException):
    """An input used up all its time; a BaseException, so that no decoder can catch it."""


@dataclass(slots=True)
class Finding:
    """One way in which a target fails, its smallest input so far, and how often it was met."""

    key: str
    text: str
    data: bytes
    count: int = 1
    path: str = ""


class Watch:
    """Call it with inputs; `findings` holds what came of them."""

    def __init__(self, target: Target, folder: Path, clock: Clock, slow_ms: float = SLOW_MS) -> None:
        self.target = target
        self.runs = 0
        self.refused = 0
        self.findings: dict[str, Finding] = {}
        self._folder = folder
        self._clock = clock
        self._slow_ms = slow_ms
        self._slowest: list[tuple[float, bytes]] = []
        self._floor = 0.0
        self._worst = 0.0
        self._peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def __call__(self, data: bytes) -> None:
        """Run one input."""
        self.runs += 1
        start = process_time()
        failure = self._fails(data)
        took = (process_time() - start) * 1000
        if failure is not None:
            self._keep(*failure, data)
        if took > self._floor:
            self._note_time(took, data)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        suspect = peak - self._peak > GROWTH_KIB
        self._peak = peak
        if suspect or took > self._slow_ms or self.runs % MEASURED_EVERY == 0:
            self.measure(data)

    def measure(self, data: bytes) -> float:
        """Have an input measured apart; returns its milliseconds."""
        if any(key.startswith(Stuck.__name__) for key in self.findings):
            return 0.0  # the clock would be stuck as well
        known = [self.findings[key] for key in ("Slow", "Greedy") if key in self.findings]
        if any(len(data) >= len(finding.data) for finding in known):
            return 0.0  # once one is known, only a smaller one is of interest
        found = self._clock.measure(data)
        self._worst = max(self._worst, found.ms)
        if found.ms > self._slow_ms:
            self._keep("Slow", f"{found.ms:.1f} ms of CPU for {len(data)} octets", data)
        if found.peak > PEAK_BYTES:
            self._keep("Greedy", f"{found.peak} octets allocated for {len(data)} octets", data)
        return found.ms

    def slowest(self) -> float:
        """Milliseconds of the slowest input, measured apart, those of the storm included."""
        for _, data in self._slowest:
            self.measure(data)
        return self._worst

    def shrink(self) -> None:
        """Make the inputs of findings small, except where a try would take long."""
        for key, finding in self.findings.items():
            if key in ("Slow", "Greedy") or key.startswith((Stuck.__name__, "MemoryError")):
                continue

            def still(data: bytes, key: str = key) -> bool:
                failure = self._fails(data)
                return failure is not None and failure[0] == key

            self._write(finding, shrunk(finding.data, still))

    def _fails(self, data: bytes) -> tuple[str, str] | None:
        """What is wrong with an input: what tells it from other findings, and a text."""
        signal.setitimer(signal.ITIMER_VIRTUAL, STUCK_SECONDS)
        try:
            try:
                value = self.target.decode(data)
            except self.target.refusals:
                self.refused += 1
                return None
            self.target.law(data, value)
        except LawBroken as error:
            return f"{error.law}", "; ".join(map(str, error.args))
        except (Exception, Stuck) as error:  # noqa: BLE001 - what it may be is just the question
            return f"{type(error).__name__} {_place(error)}", f"{_place(error)}: {error!r}"[:400]
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return None

    def _note_time(self, took: float, data: bytes) -> None:
        self._slowest = sorted([*self._slowest, (took, data)], reverse=True)[:SLOWEST]
        if len(self._slowest) == SLOWEST:
            self._floor = self._slowest[-1][0]

    def _keep(self, key: str, text: str, data: bytes) -> None:
        finding = self.findings.get(key)
        if finding is None:
            self.findings[key] = finding = Finding(key, text, data, count=0)
            self._write(finding, data)
        elif len(data) < len(finding.data):
            finding.text = text
            self._write(finding, data)
        finding.count += 1

    def _write(self, finding: Finding, data: bytes) -> None:
        finding.data = data
        name = hashlib.sha256(finding.key.encode()).hexdigest()[:12]
        path = self._folder / f"{self.target.name}-{name}"
        path.write_bytes(data)
        path.with_suffix(".json").write_text(
            json.dumps({"target": self.target.name, "finding": finding.key, "text": finding.text, "hex": data.hex()})
        )
        finding.path = str(path)


def stop_when_stuck() -> Callable[[], None]:
    """Make inputs that use up their time raise Stuck; returns what undoes it."""

    def ring(_: int, frame: FrameType | None) -> None:
        raise Stuck

    before = signal.signal(signal.SIGVTALRM, ring)
    return lambda: (signal.signal(signal.SIGVTALRM, before), None)[1]


def _place(error: BaseException) -> str:
    """The last place in the product that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/elea/" in frame.filename] or frames
    if isinstance(error, RecursionError):
        ours = ours[:1]  # where it runs out is chance
    if isinstance(error, Stuck):
        return ""
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
