"""Memory that threads have freed goes back to the system; in a process of its own, whose memory nobody else uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from elea.io import allocator

SCRIPT = """
import threading
from elea.io import allocator

def resident():
    return int(open("/proc/self/statm").read().split()[1]) >> 8

def fill(barrier):
    held = []
    for number in range(1_000):
        held.append(b"x" * 60_000)
        if number % 10 == 0:
            pinned.append(b"y" * 5_000)  # so that there is something above what is freed
    barrier.wait()

if {few}:
    allocator.few_arenas()
pinned = []
barrier = threading.Barrier(8)
threads = [threading.Thread(target=fill, args=(barrier,)) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
before = resident()
kept = allocator.KeptMemory()
done = kept.look()
print(before, done, resident(), kept.look())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is asked, which is Linux's")
@pytest.mark.parametrize("few", [False, True], ids=["as it is", "few arenas"])
def test_what_eight_threads_have_freed_is_returned_if_it_is_much(few: bool) -> None:
    command = [sys.executable, "-c", SCRIPT.replace("{few}", str(few))]
    before, done, after, again = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert int(before) > 300  # the allocator keeps most of 480 MB
    assert done == "True"
    assert int(after) < 100
    assert again == "False"


def test_what_could_not_be_returned_is_no_reason_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    sizes = iter([500, 300, 300, 310, 340, 320, 200, 240, 200])
    monkeypatch.setattr(allocator, "_kept", lambda: next(sizes) << 20)
    monkeypatch.setattr(allocator, "return_to_system", lambda: tried.append(1))
    kept = allocator.KeptMemory()

    assert kept.look()  # 500, and 300 is left of it
    assert [kept.look(), kept.look(), kept.look()] == [False, False, True]  # 300, 310; 340, and 320 is left
    assert [kept.look(), kept.look()] == [False, True]  # less by itself: 200; so 240 is much again
    assert len(tried) == 3
