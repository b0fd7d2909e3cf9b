"""Compile the codecs to machine code where a C compiler is at hand; install them as they are where it is not.

`ELEA_COMPILE=0` skips the compilation (editable installs do, so that an edit takes effect at once), `ELEA_COMPILE=1`
makes a failure an error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

WIRE = Path("src/elea/wire")
CODECS = [
    WIRE / "primitives.py",
    WIRE / "markers.py",
    *(WIRE / dialect / "codec.py" for dialect in ("xrce2017", "zenoh2018", "zenoh1")),
    WIRE / "zenoh1" / "samples.py",
]
WANTED = os.environ.get("ELEA_COMPILE", "auto")


def extensions() -> list[Extension]:
    """The codecs as C extensions, or none if that is not wanted or cannot be."""
    if WANTED == "0":
        return []
    try:
        from mypyc.build import mypycify

        modules: list[Extension] = mypycify(
            [*map(str, CODECS), "--ignore-missing-imports"], opt_level="3", strip_asserts=False
        )
    except BaseException as error:  # mypyc ends the process on what it cannot compile
        if WANTED == "1" or isinstance(error, KeyboardInterrupt):
            raise
        sys.stderr.write(f"elea: codecs stay plain Python: {error}\n")
        return []
    return modules


class OptionalBuild(build_ext):
    """A build whose failure leaves the plain modules to do the work."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            if WANTED == "1":
                raise
            sys.stderr.write(f"elea: codecs stay plain Python: {error}\n")
            self.extensions.clear()

    def get_outputs(self, *args: Any) -> list[str]:
        return [] if not self.extensions else super().get_outputs(*args)


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
