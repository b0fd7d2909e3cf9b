"""What a target is: a decoder, the laws of what it gives, the errors it may refuse with, inputs to start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from elea.model.errors import EleaError

__all__ = ["Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """`decode` is timed and may refuse; `law` is called with what it gave, and any error of it is a finding."""

    name: str
    decode: Callable[[bytes], object]
    law: Callable[[bytes, Any], None]
    refusals: tuple[type[EleaError], ...]
    seeds: Callable[[], Sequence[bytes]]
    tokens: Callable[[], Sequence[bytes]]
    max_size: int = 65_535
    repeats: bool = True
    """Whether a seed repeated up to the largest size is an input worth measuring."""
    room: int = 2 << 30
    """Address space of the process; every thread reserves some, whether it needs it or not."""
