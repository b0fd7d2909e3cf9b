"""A process that writes to a log until it is killed, and keeps a ledger of what it tried and what was acknowledged.

Every line on standard input starts a writer, as a fork of this process, which saves it the start of an interpreter. The
line says where log and ledger are, the seed, and either after how many milliseconds the writer is killed from outside
or at which point it kills itself.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from elea.store import Log, Retention, open_log
from elea.store.files import Files
from tests.unit.store.faults import DeadlyFiles
from tests.unit.store.samples import sample

WRITERS = 4
SEGMENT_BYTES = 12_000


def write(job: dict[str, Any], started: int) -> None:
    """Append, retry, checkpoint, compact and trim, until the end comes from somewhere."""
    choose = random.Random(job["seed"])
    files = DeadlyFiles(job["point"], job["count"]) if job["point"] else Files()
    ledger = os.open(job["ledger"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    numbers = [int(number) for number in job["numbers"]]
    with open_log(job["path"], segment_bytes=SEGMENT_BYTES, files=files) as log:
        for _ in range(job["rounds"]):
            writer = choose.randrange(WRITERS)
            first, size = numbers[writer], choose.choice([1, 1, 2, 7, 30])
            batch = [
                sample(number, key=f"writer/{writer}", source=(b"w", writer, number), payload=b"%d" % number)
                for number in range(first, first + size)
            ]
            os.write(ledger, b"tried %d %d\n" % (writer, first + size))
            log.append(batch)
            os.write(ledger, b"acked %d %d\n" % (writer, first + size))
            os.write(started, b"!")
            numbers[writer] += size
            if choose.random() < 0.3:
                log.append(batch)  # the acknowledgement was lost on its way: the writer tries again
            upkeep(log, choose.random(), trim=job["trim"])


def upkeep(log: Log, chance: float, *, trim: bool) -> None:
    if chance < 0.03:
        log.checkpoint()
    elif chance < 0.06:
        log.compact()
    elif chance < 0.25 and trim:
        log.retain(Retention(samples=100), now_ns=0)


def main() -> None:
    """Serve jobs."""
    for line in sys.stdin:
        job = json.loads(line)
        heard, started = os.pipe()
        child = os.fork()
        if child == 0:
            write(job, started)
            os._exit(0)
        os.close(started)
        if job["after_ms"]:
            if job["after_ack"]:
                os.read(heard, 1)
            time.sleep(job["after_ms"] / 1000)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(heard)
        print(
            json.dumps({"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None, "status": status}),
            flush=True,
        )


class Ledger:
    """What the ledger says: per writer the numbers below which all was tried, and below which all was acknowledged."""

    def __init__(self, path: Path) -> None:
        self.tried = [0] * WRITERS
        self.acked = [0] * WRITERS
        for line in path.read_text().splitlines() if path.exists() else []:
            word, writer, number = line.split()
            known = self.tried if word == "tried" else self.acked
            known[int(writer)] = max(known[int(writer)], int(number))


if __name__ == "__main__":
    main()
