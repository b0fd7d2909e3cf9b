"""Every cut and every flipped bit of a small log, many of a large one, and many power cuts: nothing goes unnoticed.

    python -m tests.robust.damage [--bits 8] [--flips 1000] [--clones 100000] [--only cuts,flips,big,clones]

`cuts`: a log that was killed, cut at every octet of its last three records, opens with exactly the records before.
`flips`: of a closed log every octet of its segment has a bit flipped, `bits` of them in turn: it is reported with
segment and position, and the records outside its block are readable. `big`: random flips in a log of many segments are
all found by `verify`. `clones`: power is cut at points of appends, compactions and retentions; of what was not synced
any part is left. The unit tests of the store do a part of each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from elea.store import Range, Retention, open_log
from elea.store.verify import verify
from tests.unit.store.samples import filled, memory_directory, sample, stored, without_close
from tests.unit.store.test_crash import PowerCuts
from tests.unit.store.test_damage import FIRST, block_ends
from tests.unit.store.writer import SEGMENT_BYTES

__all__ = ["big", "clones", "cuts", "flips"]


def cuts(path: Path, stride: int = 1) -> int:
    """Cut at every octet; how often."""
    with open_log(path / "log") as log:
        for number in range(5):
            log.append([sample(number)])
        everything = stored(log)
        killed = without_close(path / "log", path / "killed")
    data = (killed / FIRST).read_bytes()
    ends = block_ends(killed / FIRST)
    sizes = range(ends[2], len(data) + 1, stride)
    for size in sizes:
        (killed / FIRST).write_bytes(data[:size])
        kept = sum(1 for end in ends[1:] if end <= size)
        with open_log(killed, read_only=True) as log:
            assert (stored(log), log.damage) == (everything[:kept], []), f"cut at {size}"
    return len(sizes)


def flips(path: Path, bits: int = 1, stride: int = 1) -> int:
    """Flip bits of every octet; how many."""
    everything = filled(path / "log", [1, 1, 1])
    file = path / "log" / FIRST
    data = bytearray(file.read_bytes())
    ends = block_ends(file)
    count = 0
    for at in range(0, len(data), stride):
        for bit in range(bits):
            mask = 1 << (at + bit) % 8
            data[at] ^= mask
            file.write_bytes(data)
            data[at] ^= mask
            with open_log(path / "log", read_only=True) as log:
                damage = [(one.segment, one.first, one.last) for one in log.damage]
                readable = list(log.read(Range(skip_damaged=True)))
            hit = [number for number in range(3) if ends[number] <= at < ends[number + 1]]
            assert damage == [(FIRST, hit[0], hit[0]) if hit else (FIRST, 0, -1)], f"octet {at}, bit {mask}"
            assert readable == [one for one in everything if one.position not in hit], f"octet {at}, bit {mask}"
            count += 1
    return count


def big(path: Path, count: int, seed: int) -> int:
    """Random flips in a log of many segments, each undone before the next."""
    chance = Random(seed)
    filled(path / "log", [chance.choice([1, 10, 100]) for _ in range(400)], segment_bytes=200_000)
    files = sorted((path / "log").glob("[0-9]*.arrows"))
    for number in range(count):
        file = chance.choice(files)
        at, bit = chance.randrange(file.stat().st_size), chance.randrange(8)
        with file.open("r+b") as octets:
            octets.seek(at)
            before = octets.read(1)
            octets.seek(at)
            octets.write(bytes([before[0] ^ 1 << bit]))
        found = verify(path / "log").damage
        assert [one.segment for one in found] == [file.name], f"flip {number}: {file.name}, octet {at}: {found}"
        assert found[0].offset <= at < max(found[0].offset + found[0].size, at + 1)
        with file.open("r+b") as octets:
            octets.seek(at)
            octets.write(before)
    assert verify(path / "log").sound
    return count


def clones(path: Path, count: int, seed: int) -> int:
    """Cut the power so often, on a copy each time."""
    chance, done, round_ = Random(seed), 0, 0
    while done < count:
        round_ += 1
        log_path = path / f"log{round_}"
        open_log(log_path).close()
        files = PowerCuts(log_path, chance)
        with open_log(log_path, segment_bytes=SEGMENT_BYTES, files=files) as log:
            for turn in range(120):
                size, first = chance.choice([1, 3, 40]), log.end
                log.append([sample(n, key="k", payload=b"%d" % n) for n in range(first, first + size)])
                files.acked = log.end
                if turn % 20 == 19:
                    log.checkpoint()
                    log.compact()
                    log.retain(Retention(samples=200), now_ns=0)
                if done + files.cuts >= count:
                    break
        done += files.cuts
    return done


def main() -> int:
    """For the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, default=1)
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--clones", type=int, default=5000)
    parser.add_argument("--only", default="cuts,flips,big,clones")
    parser.add_argument("--seed", type=int, default=Random().randrange(1 << 32))
    args = parser.parse_args()
    print(f"seed {args.seed}")
    works: dict[str, Callable[[Path], int]] = {
        "cuts": cuts,
        "flips": lambda path: flips(path, args.bits),
        "big": lambda path: big(path, args.flips, args.seed),
        "clones": lambda path: clones(path, args.clones, args.seed),
    }
    for name in args.only.split(","):
        with tempfile.TemporaryDirectory(dir=memory_directory()) as directory:
            begun = time.monotonic()
            done = works[name](Path(directory))
            print(f"{name:7} {done:7} of {done} as they should be, {time.monotonic() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
