"""What a worker of Spark keeps is not looked through again after every task; elsewhere nothing is frozen."""

from __future__ import annotations

import gc
import subprocess
import sys

PROGRAM = """
import gc, sys
from importlib.machinery import ModuleSpec
from elea.spark.sessions import settle
sys.modules["__main__"].__spec__ = {spec}
settle()
first = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
settle()
print(first, gc.get_freeze_count() == first)
"""


def frozen(spec: str) -> tuple[int, bool]:
    """Objects frozen by the first call, and whether the second froze no more."""
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(spec=spec)], capture_output=True, text=True, check=True)
    count, same = done.stdout.split()
    return int(count), same == "True"


def test_worker_freezes_once_what_it_has() -> None:
    count, same = frozen('ModuleSpec("pyspark.daemon", None)')

    assert count > 1000
    assert same


def test_no_other_process_freezes_anything() -> None:
    before = gc.get_freeze_count()

    assert frozen("None")[0] == frozen('ModuleSpec("user.program", None)')[0] == before == 0
