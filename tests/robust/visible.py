"""An acknowledged put is seen by everybody who asks after it: `python -m tests.robust.visible --pairs 10000`.

One session puts and waits for the acknowledgement, another one asks at once; the answer must be that sample. Puts of a
publisher, batches and deletions take turns with plain ones.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time

import elea
from tests.robust.children import PATIENCE, broker, config

__all__ = ["run"]

KEYS = 97


def run(pairs: int) -> float:
    """Put and ask so many times, at a broker of its own; the seconds it took.

    Raises:
        AssertionError: an acknowledged sample was not there, or a deleted one was.
    """
    with (
        tempfile.TemporaryDirectory() as directory,
        broker("--store", directory, "--persist", "v/**") as (_, locator),
        elea.open(config("client", "connect", locator)) as writer,
        elea.open(config("client", "connect", locator)) as reader,
        writer.declare_publisher("v/published", durability="persistent") as publisher,
    ):
        begun = time.monotonic()
        for number in range(pairs):
            key, wanted = f"v/{number % KEYS}", [str(number)]
            if number % 4 == 0:
                writer.put(key, str(number), ack=True, timeout=PATIENCE)
            elif number % 4 == 1:
                key = "v/published"
                publisher.put(str(number), ack=True, timeout=PATIENCE)
            elif number % 4 == 2:
                writer.put_batch([(key, "older"), (key, str(number))], timeout=PATIENCE)
            else:
                wanted = []
                writer.delete(key, ack=True, timeout=PATIENCE)
            found = [reply.ok.payload.to_string() for reply in reader.get(key, timeout=PATIENCE) if reply.ok]
            assert found == wanted, f"pair {number}: {found} instead of {wanted} on {key}"
        return time.monotonic() - begun


def main() -> int:
    """For the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    pairs = parser.parse_args().pairs
    seconds = run(pairs)
    print(f"{pairs} pairs in {seconds:.1f} s: every acknowledged sample was seen at once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
