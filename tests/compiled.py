"""`python -m tests.compiled DIR`: is the Elea that runs here the one of DIR, and are its codecs machine code?

Without a C compiler plain Python is all there can be, and that is said; with one it is a failure.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import elea
from elea.wire import compiled

__all__ = ["main"]

COMPILERS = ("cc", "gcc", "clang")


def main(arguments: list[str]) -> int:
    """0 if the codecs are compiled or cannot be, 1 if they could be and are not or are another Elea's, 2 for usage."""
    if len(arguments) != 1:
        print("usage: python -m tests.compiled DIR", file=sys.stderr)
        return 2
    wanted = Path(arguments[0]).resolve()
    # A package without __init__.py has no file, but always a place.
    places = [Path(place).resolve() for place in elea.__path__]
    if not any(place.is_relative_to(wanted) for place in places):
        print(f"elea comes from {', '.join(map(str, places))}, not from {wanted}")
        return 1
    if compiled():
        print(f"codecs of {wanted} are compiled")
        return 0
    found = next((compiler for compiler in COMPILERS if shutil.which(compiler)), None)
    if found is None:
        print(f"codecs of {wanted} are plain Python: no C compiler here")
        return 0
    print(f"codecs of {wanted} are plain Python although {found} is here")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
