"""Inputs made of other inputs: the mutator used where atheris is not at hand, and a shrinker for what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

__all__ = ["Mutator", "shrunk"]

MAX_INPUT = 65_535
"""The largest batch and the largest packet: nothing larger reaches a decoder."""

SHRINK_STEPS = 1_500


class Mutator:
    """Endless inputs from seeds and a dictionary; the same `random` gives the same inputs."""

    def __init__(self, seeds: Sequence[bytes], tokens: Sequence[bytes], random: Random) -> None:
        self._seeds = list(seeds) or [b""]
        self._tokens = list(tokens) or [b"\0"]
        self._random = random
        self._steps: tuple[Callable[[bytearray], None], ...] = (
            self._flip,
            self._set,
            self._token,
            self._over,
            self._cut,
            self._splice,
            self._repeat,
            self._truncate,
        )

    def next(self) -> bytes:
        """One more input: a seed changed in a few places, seldom something wholly random."""
        random = self._random
        if random.random() < 0.02:
            return random.randbytes(random.randrange(64))
        data = bytearray(random.choice(self._seeds))
        for _ in range(1 + int(random.expovariate(0.5))):
            random.choice(self._steps)(data)
        return bytes(data[:MAX_INPUT])

    def _place(self, data: bytearray) -> int:
        return self._random.randrange(len(data) + 1)

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)

    def _set(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] = self._random.choice((0, 1, 0x7F, 0x80, 0xFF))

    def _token(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = self._random.choice(self._tokens)

    def _over(self, data: bytearray) -> None:
        at, token = self._place(data), self._random.choice(self._tokens)
        data[at : at + len(token)] = token

    def _cut(self, data: bytearray) -> None:
        at = self._place(data)
        del data[at : at + 1 + self._random.randrange(8)]

    def _splice(self, data: bytearray) -> None:
        other = self._random.choice(self._seeds)
        data[self._place(data) :] = other[self._random.randrange(len(other) + 1) :]

    def _repeat(self, data: bytearray) -> None:
        at = self._place(data)
        piece = data[at : at + 1 + self._random.randrange(16)]
        # Long inputs are rare: they cost as much as hundreds of short ones.
        times = self._random.randrange(4) if self._random.random() < 0.98 else self._random.randrange(2_000)
        data[at:at] = piece * times

    def _truncate(self, data: bytearray) -> None:
        del data[self._place(data) :]


def shrunk(data: bytes, still: Callable[[bytes], bool]) -> bytes:
    """A smaller input for which `still` holds: pieces are taken away, then octets made zero."""
    steps = 0
    size = max(1, len(data) // 2)
    while size:
        at = 0
        while at < len(data) and steps < SHRINK_STEPS:
            steps += 1
            smaller = data[:at] + data[at + size :]
            if still(smaller):
                data = smaller
            else:
                at += size
        size //= 2
    for at in range(min(len(data), SHRINK_STEPS - steps)):
        zeroed = data[:at] + b"\0" + data[at + 1 :]
        if data[at] and still(zeroed):
            data = zeroed
    return data
