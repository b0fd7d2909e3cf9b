"""The directories `elea store` is given: that of one log, or the one a broker was given as `--store`, with several."""

from __future__ import annotations

from pathlib import Path

from elea.cli.style import CliError

__all__ = ["check_import", "logs_in", "one_log"]


def is_log(path: Path) -> bool:
    """Whether a directory holds a log."""
    return (path / "catalogue.sqlite").exists() or next(path.glob("*.arrows"), None) is not None


def logs_in(path: Path) -> list[Path]:
    """The log of a directory, or those of the storages below it, by name.

    Raises:
        CliError: there is none.
    """
    if path.is_dir():
        found = (
            [path] if is_log(path) else sorted(below for below in path.iterdir() if below.is_dir() and is_log(below))
        )
        if found:
            return found
    raise CliError(f"there is no store in {path}", "the directory given to the broker as --store, or one storage in it")


def one_log(path: Path) -> Path:
    """The log of a directory, if it holds one only.

    Raises:
        CliError: there is none, or several.
    """
    found = logs_in(path)
    if len(found) > 1:
        raise CliError(f"{path} holds {len(found)} storages: {_names(found)}", f"name one of them: {found[0]}", 2)
    return found[0]


def check_import(path: Path) -> None:
    """Whether samples may be imported into a directory.

    Raises:
        CliError: a broker has it, or none would ever read it there.
    """
    if path.is_dir() and not is_log(path) and any(path.iterdir()):
        below = [one for one in path.iterdir() if one.is_dir() and is_log(one)]
        if below:
            hint = f"import into one of them: {min(below)}"
            raise CliError(f"no broker would read it there: {path} holds the storages {_names(below)}", hint, 4)
        raise CliError(f"{path} holds other files", "a new directory, or that of a storage", 4)
    beside = path.absolute().parent
    for log in () if is_log(path) or not beside.is_dir() else beside.iterdir():
        if log.is_dir() and is_log(log) and _holder(log) is not None:
            problem = f"a broker ({_holder(log)}) runs on {beside} and would not see a new storage there"
            raise CliError(problem, "stop the broker first, or put the samples over the network", 4)


def _names(logs: list[Path]) -> str:
    return ", ".join(sorted(log.name for log in logs))


def _holder(log: Path) -> str | None:
    from elea.store.files import Lock

    if not (log / "lock").exists():
        return None
    lock = Lock(log / "lock")
    try:
        return lock.holder()
    finally:
        lock.release()
