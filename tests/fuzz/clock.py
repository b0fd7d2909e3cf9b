"""A process that measures single inputs of one target with no instruments and no fuzzer in the way.

    python -m tests.fuzz.clock TARGET

reads an input a line, in hexadecimal, and answers a line with the milliseconds of CPU its decoding takes (the best of
some times) and the octets it had allocated at its peak.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import tracemalloc
from time import process_time
from types import TracebackType
from typing import NamedTuple

from tests.fuzz.target import Target

__all__ = ["Clock", "Measured", "target_named"]

TIMES = 12
ENOUGH_MS = 30.0
"""An input decoded in less than this is not measured again. One that takes longer is measured up to `TIMES` times, and
the best counts: on a busy machine the same work takes up to twice the CPU time."""

HOPELESS_MS = 100.0
"""One that takes longer than this will not be found fast enough by trying again."""


class Measured(NamedTuple):
    """Milliseconds of CPU, and octets allocated at the peak."""

    ms: float
    peak: int


def target_named(name: str) -> Target:
    """A target, be it real or planted."""
    from tests.fuzz.planted import PLANTED
    from tests.fuzz.targets import TARGETS

    return TARGETS[name] if name in TARGETS else PLANTED[name]


class Clock:
    """The measuring process of a target, started when first asked."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._process: subprocess.Popen[str] | None = None

    def measure(self, data: bytes) -> Measured:
        """How an input does when nothing disturbs."""
        if self._process is None:
            command = [sys.executable, "-m", "tests.fuzz.clock", self._target]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(data.hex() + "\n")
        self._process.stdin.flush()
        ms, peak = self._process.stdout.readline().split()
        return Measured(float(ms), int(peak))

    def __enter__(self) -> Clock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()


def _decode(target: Target, data: bytes) -> float:
    start = process_time()
    with contextlib.suppress(*target.refusals, Exception):
        target.decode(data)
    return (process_time() - start) * 1000


def _measured(target: Target, data: bytes) -> Measured:
    gc.collect()
    best = _decode(target, data)
    for _ in range(TIMES - 1):
        if not ENOUGH_MS < best < HOPELESS_MS:
            break
        best = min(best, _decode(target, data))
    tracemalloc.start()
    _decode(target, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Measured(best, peak)


def main(name: str) -> None:
    """Answer until there are no more questions."""
    target = target_named(name)
    _decode(target, b"")  # what is made once is not the fault of an input
    for line in sys.stdin:
        found = _measured(target, bytes.fromhex(line))
        print(f"{found.ms:.3f} {found.peak}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
