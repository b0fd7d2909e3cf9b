"""Where tables are: a directory that driver and executors see, or a place in an object store.

Object stores are what `deltalake` knows (`s3://`, `abfs://`, `gs://`, …); credentials and endpoints come from the
environment, in the driver and on executors: `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …. A file there appears when it is
whole, and a commit is a write that fails if the file exists, so two writers cannot both win.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from elea.model.errors import ConfigError

__all__ = ["STORES", "beside", "copy_file", "finished", "is_remote", "new_file", "place_of", "read_file", "remove"]

STORES: Final = ("s3", "s3a", "gs", "az", "abfs", "abfss", "adl", "azure")
"""Schemes of object stores."""

BUFFER: Final = 8 << 20
"""Bytes that are held until they are sent; without it `deltalake` does not take what pyarrow hands over."""


def is_remote(path: str | Path) -> bool:
    """Whether a place is in an object store."""
    return urlsplit(str(path)).scheme in STORES and "://" in str(path)


def place_of(path: str | Path) -> str:
    """A place as it is written down: an absolute path, or the address in an object store.

    Raises:
        ConfigError: it is neither.
    """
    text = str(path)
    parts = urlsplit(text)
    if parts.scheme == "file":
        return unquote(parts.path)
    if not parts.scheme or "://" not in text:
        return str(Path(text).absolute())
    if parts.scheme not in STORES or not parts.netloc:
        hint = f"name a directory that driver and executors see, or one of {', '.join(one + '://…' for one in STORES)}"
        raise ConfigError(f"table {text}", f"nobody can write tables to {parts.scheme}://{parts.netloc}", hint)
    return text.rstrip("/")


def beside(path: Path | str, suffix: str) -> Path | str:
    """The place of the same name with more behind it.

    >>> beside("s3://lake/gold/", "_deleted")
    's3://lake/gold_deleted'
    """
    if isinstance(path, Path):
        return path.with_name(f"{path.name}{suffix}")
    return f"{path.rstrip('/')}{suffix}"


# -- files of a table --------------------------------------------------------------------------------------------------


def _store(directory: str) -> Any:
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler(directory))


def new_file(directory: str, name: str) -> Any:
    """What a new file is written to: a path, or a stream, which `finished` closes."""
    if is_remote(directory):
        return _store(directory).open_output_stream(name, buffer_size=BUFFER)
    path = Path(directory) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def finished(directory: str, name: str, sink: Any) -> int:
    """How large a file is that was written; it is safe where it is."""
    if is_remote(directory):
        sink.close()
        return int(_store(directory).get_file_info(name).size)
    with sink.open("rb") as file:
        os.fsync(file.fileno())
    return int(sink.stat().st_size)


def read_file(directory: str, name: str) -> Any:
    """What a reader of Parquet takes."""
    return _store(directory).open_input_file(name) if is_remote(directory) else Path(directory) / name


def remove(directory: str) -> None:
    """Everything that is there; nothing is fine, too."""
    if not is_remote(directory):
        shutil.rmtree(directory, ignore_errors=True)
        return
    from pyarrow.fs import FileSelector, FileType

    store = _store(directory)
    for one in store.get_file_info(FileSelector("", allow_not_found=True, recursive=True)):
        if one.type == FileType.File:
            store.delete_file(one.path)


def copy_file(source: str, target: str, name: str) -> None:
    """The same file in another place; it may be there already, from a time before a crash."""
    if is_remote(source) or is_remote(target):
        with _store(source).open_input_stream(name) as found, new_file(target, name) as made:
            while piece := found.read(BUFFER // 8):
                made.write(piece)
        return
    before, after = Path(source) / name, Path(target) / name
    after.parent.mkdir(parents=True, exist_ok=True)
    if after.exists() and after.stat().st_size == before.stat().st_size:
        return
    after.unlink(missing_ok=True)
    try:
        os.link(before, after)
    except OSError:  # not every file system has links
        shutil.copy2(before, after)
