"""A file that is written piece by piece: a piece is in it as a whole, or not at all."""

from __future__ import annotations

import errno
import os
from os import write
from pathlib import Path
from typing import Final

from elea.model.errors import CaptureFull

__all__ = ["AppendFile"]

FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class AppendFile:
    """A new file of this process.

    Nothing waits in a buffer, so whatever was appended is there when the process is killed.

    Raises:
        FileExistsError: there is one of that name, and it is not to be overwritten.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if overwrite else os.O_EXCL)
        self._fd = os.open(path, flags, 0o666)
        self.size = 0
        """Bytes appended."""

    def append(self, data: bytes | memoryview) -> None:
        """Write a piece behind the last one.

        Raises:
            CaptureFull: there is no room for it; the file ends behind the piece before.
            OSError: it cannot be written; likewise.
        """
        left = memoryview(data)
        try:
            while left:
                left = left[write(self._fd, left) :]
        except OSError as error:
            os.ftruncate(self._fd, self.size)
            os.lseek(self._fd, self.size, os.SEEK_SET)
            if error.errno in FULL:
                raise CaptureFull(str(self.path), self.size) from error
            raise
        self.size += len(data)

    def close(self) -> None:
        """Have it on disk and let it go."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                os.fsync(fd)
            except OSError as error:
                if error.errno != errno.EINVAL:  # a pipe has no disk
                    raise
            finally:
                os.close(fd)
