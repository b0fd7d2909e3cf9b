"""A search for pairs of key expressions that cost most: `python -m tests.property.worstkeys --seconds 60 --seed 1`.

It starts from a random pair, changes a chunk here or there, and goes on from whatever costs no less. The cost is
counted, not timed: what a tree says it has looked at (`KeyTree.visited`).
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from elea.model.errors import InvalidKeyExpr
from elea.model.keyexpr import canonize
from elea.model.limits import KEY_EXPR_CHUNKS, KEY_EXPR_WILDCARDS
from elea.space.keytree import KeyTree

__all__ = ["BOUND", "cost", "search"]

BOUND = 2 * KEY_EXPR_CHUNKS + 2 * KEY_EXPR_WILDCARDS * KEY_EXPR_CHUNKS
"""What one pair may cost: each chunk of either once, each wildcard of either with each chunk of the other."""

CHUNKS = ("a", "aa", "b", "*", "**", "a$*", "$*a", "$*a$*", "a$*a", "@a")


def cost(stored: str, asked: str) -> int:
    """What both questions about a pair cost."""
    tree = KeyTree[str]()
    tree.add(stored, stored)
    tree.intersecting(asked)
    met = tree.visited
    tree.including(asked)
    return max(met, tree.visited - met)


def _changed(text: str, chance: random.Random) -> str:
    chunks = text.split("/")
    for _ in range(chance.choice((1, 1, 3, 20))):
        at = chance.randrange(len(chunks) + 1)
        way = chance.randrange(4)
        if way == 0 and len(chunks) > 1:
            del chunks[at : at + chance.choice((1, 4))]
            chunks = chunks or ["a"]
        elif way == 1:
            chunks[at:at] = [chance.choice(CHUNKS)] * chance.choice((1, 2, 10))
        elif way == 2:
            chunks[at:at] = chunks[: chance.randrange(1, 9)]
        elif at < len(chunks):
            chunks[at] = chance.choice(CHUNKS)
    try:
        return canonize("/".join(chunks))
    except InvalidKeyExpr:
        return text


def search(chance: random.Random, tries: int) -> tuple[int, str, str]:
    """The worst pair found in so many tries, and what it costs."""
    stored, asked = "**/a", "a/a"
    worst = cost(stored, asked)
    for _ in range(tries):
        one, other = _changed(stored, chance), _changed(asked, chance)
        if chance.random() < 0.5:
            one = stored
        found = cost(one, other)
        if found >= worst:
            worst, stored, asked = found, one, other
    return worst, stored, asked


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.property.worstkeys", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    end, seed = time.monotonic() + options.seconds, options.seed
    while time.monotonic() < end:
        worst, stored, asked = search(random.Random(seed), 3_000)
        print(f"seed {seed}: {worst} of {BOUND}\n  stored {stored}\n  asked  {asked}", flush=True)
        seed += 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
