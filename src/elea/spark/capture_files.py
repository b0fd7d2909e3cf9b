"""Which files are read: paths, globs and directories, on a file system that driver and executors share."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO, Final, cast
from urllib.parse import unquote, urlsplit

from elea.model.errors import ConfigError

__all__ = ["files_of", "opened"]

ENDINGS: Final = (".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".cap.gz")
"""What is taken from a directory; a file named by itself may have any name."""

GZIP: Final = b"\x1f\x8b"


def files_of(options: Mapping[str, str]) -> list[str]:
    """The files that `load(…)` means, sorted, each once.

    Raises:
        ConfigError: none is named, or there is no such file.
    """
    named = _named(options)
    if not named:
        raise ConfigError("path", "no capture is named", "write .load('captures/*.pcap')")
    found: set[str] = set()
    for text in named:
        matches = _matches(_local(text))
        if not matches:
            hint = f"in a directory, files are taken that end in {', '.join(ENDINGS[:3])} or these with .gz"
            raise ConfigError("path", f"there is no capture at {text}", hint)
        found.update(matches)
    return sorted(found)


def opened(file: str) -> BinaryIO:
    """The file, unpacked on the way if it is compressed."""
    stream = open(file, "rb")  # noqa: SIM115 - closed by whoever reads
    if stream.peek(2)[:2] == GZIP:
        stream.close()
        return cast(BinaryIO, gzip.open(file, "rb"))
    return stream


def _named(options: Mapping[str, str]) -> list[str]:
    """`load("a")` is the option `path`; `load(["a", "b"])` is `paths`, a JSON list."""
    named = []
    for name in ("path", "paths"):
        text = options.get(name)
        if text is not None and text.lstrip().startswith("["):
            try:
                named += [str(one) for one in json.loads(text)]
                continue
            except ValueError:
                pass  # a glob may begin with a bracket
        if text:
            named.append(text)
    return named


def _local(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme == "file":
        return unquote(parts.path)
    if parts.scheme and "//" in text:
        hint = "copy it to a file system that driver and executors share"
        raise ConfigError("path", f"captures are read from local files only, not from {parts.scheme}", hint)
    return text


def _matches(text: str) -> list[str]:
    path = Path(text).expanduser()
    if path.is_file():
        return [str(path.absolute())]
    if path.is_dir():
        return [str(one.absolute()) for one in path.iterdir() if one.is_file() and one.name.lower().endswith(ENDINGS)]
    if has_magic(text):
        inside = (_matches(one) for one in glob(str(path), recursive=True) if not has_magic(one) or Path(one).is_file())
        return [one for some in inside for one in some]
    return []
