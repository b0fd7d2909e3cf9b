"""A home for Spark on this machine in which its Python processes start three times as fast.

Spark puts `$SPARK_HOME/python/lib/pyspark.zip` before everything else its Python processes import. That archive holds
sources only, so each process compiles PySpark anew: 0.8 s of processor time instead of 0.25 s, several times a query,
and Spark waits for it no longer than ten seconds. A home without that archive has them import the installed package,
which is the same and compiled.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Final

from elea.spark.java import cache_place

__all__ = ["remove_scratch", "spark_home", "sweep_scratch", "took_scratch"]

LEFT_OUT: Final = frozenset({"python", "__pycache__"})

WORK: Final = "work"
"""Where `local-cluster` puts the directories of its executors: one for each application, which Spark never removes."""

DRIVER: Final = ".driver"
"""What the name of the file ends with that says which process an application's directory belongs to."""

OLD_SECONDS: Final = 86_400.0
"""A directory that nobody has signed is of an earlier version; after a day without a change it is left over."""

GOING_SECONDS: Final = 5.0
"""How long executors that were told to end may go on writing."""


def spark_home(package: Path) -> Path:
    """The directory to name in `SPARK_HOME`: beside everything of the package but that archive, or the package itself.

    Args:
        package: where PySpark is installed.
    """
    # Another Python need not have PySpark installed: there the archive is what it has.
    if os.name == "nt" or os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return package
    home = cache_place() / "elea" / f"spark-{zlib.crc32(str(package).encode()):08x}"
    if _is_whole(home, package):
        return home
    try:
        return _made(home, package)
    except OSError:
        return package


def _entries(package: Path) -> list[Path]:
    return [entry for entry in sorted(package.iterdir()) if entry.is_dir() and entry.name not in LEFT_OUT]


def _is_whole(home: Path, package: Path) -> bool:
    return all((home / entry.name).exists() for entry in _entries(package))


def _made(home: Path, package: Path) -> Path:
    """Several processes may do this at the same time: whoever comes second finds it made."""
    home.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=home.parent))
    for entry in _entries(package):
        (made / entry.name).symlink_to(entry)
    if home.exists() and not _is_whole(home, package):  # of a package that was installed anew
        shutil.rmtree(home, ignore_errors=True)
    try:
        made.rename(home)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not _is_whole(home, package):
            raise
    return home


# -- what clusters on this machine leave behind ------------------------------------------------------------------------


def took_scratch(home: Path, application: str) -> None:
    """Sign the directory of an application, so that whoever comes later knows when it is left over."""
    with contextlib.suppress(OSError):
        (home / WORK).mkdir(exist_ok=True)
        (home / WORK / f"{application}{DRIVER}").write_text(str(os.getpid()), encoding="utf-8")


def remove_scratch(home: Path, application: str) -> None:
    """Remove the directory of an application that has ended."""
    until = time.monotonic() + GOING_SECONDS
    place = home / WORK / application
    while True:
        shutil.rmtree(place, ignore_errors=True)
        if not place.exists() or time.monotonic() > until:
            break
        time.sleep(0.1)
    if not place.exists():
        (home / WORK / f"{application}{DRIVER}").unlink(missing_ok=True)


def sweep_scratch(home: Path) -> None:
    """Remove what applications have left behind whose driver was killed."""
    work = home / WORK
    for place in list(work.glob("app-*")) if work.is_dir() else ():
        if place.is_dir() and _is_left_over(place, work / f"{place.name}{DRIVER}"):
            shutil.rmtree(place, ignore_errors=True)
            (work / f"{place.name}{DRIVER}").unlink(missing_ok=True)


def _is_left_over(place: Path, signed: Path) -> bool:
    try:
        os.kill(int(signed.read_text(encoding="utf-8")), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):  # nobody has signed, or it is the process of another user
        with contextlib.suppress(OSError):
            return not signed.exists() and time.time() - place.stat().st_mtime > OLD_SECONDS
    return False
