"""The files of a recording: one, or one after the other by size and time."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elea.content.contents import PLAIN
from elea.model.errors import CaptureFull
from elea.recorder.appendfile import AppendFile
from elea.recorder.arrowfile import ArrowWriter, ParquetWriter, journal_of
from elea.recorder.capturefiles import check_format
from elea.recorder.declaredtypes import Types, types_of
from elea.recorder.mcapwriter import McapWriter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CaptureFiles", "Rotation"]

DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Rotation:
    """When another file begins: when this one has so many bytes, or is so old."""

    max_bytes: int | None = None
    max_seconds: float | None = None

    def is_due(self, size: int, age: float) -> bool:
        """Whether the samples that come next belong into another file."""
        return (self.max_bytes is not None and size >= self.max_bytes) or (
            self.max_seconds is not None and age >= self.max_seconds
        )


class CaptureFiles:
    """Where batches go. Files are numbered if there may be several: `drive-0001.mcap`, `drive-0002.mcap`, …

    Args:
        facts: what is written into each of them, of the recording as a whole.
        compression: of the chunks of MCAP: zstd, lz4 or none.
        types: what is declared of payloads, for the schemas of MCAP.

    Raises:
        FileExistsError: there is a file of that name already, and it is not to be overwritten.
        ValueError: the name does not tell a format.
    """

    def __init__(
        self,
        path: Path,
        facts: Mapping[str, str],
        rotation: Rotation,
        *,
        now: float,
        compression: str = "zstd",
        overwrite: bool = False,
        types: Types | None = None,
    ) -> None:
        self._path = path
        self._types = types_of(PLAIN) if types is None else types
        self._format = check_format(path)
        self._facts = dict(facts)
        self._rotation = rotation
        self._compression = compression
        self._overwrite = overwrite
        self._capture = secrets.token_hex(8)
        self._before = 0  # bytes of the files before
        self.paths: list[Path] = []
        """The files, in the order in which they were written."""
        self._begin(now)

    @property
    def size(self) -> int:
        """Bytes written, of all files."""
        return self._before + self._file.size

    def write(self, batch: pa.RecordBatch, now: float) -> None:
        """Append a batch, in another file if it is time for that.

        Raises:
            CaptureFull, OSError: it could not be written; what was written before can be read.
        """
        if self._writer.samples and self._rotation.is_due(self._file.size, now - self._began):
            self._next(now)
        done = self._writer.write(batch)
        while done < batch.num_rows:  # the format has no numbers left
            self._next(now)
            done += self._writer.write(batch.slice(done))

    def finish(self, facts: Mapping[str, str]) -> None:
        """Make the last file whole.

        Raises:
            CaptureFull, OSError: there was no room for its end; it can be read as it is.
        """
        try:
            self._writer.finish({"samples": str(self._writer.samples), **facts})
        finally:
            self._file.close()

    def _next(self, now: float) -> None:
        size = self._file.size
        self.finish({})
        self._before += size
        self._begin(now)

    def _begin(self, now: float) -> None:
        number = len(self.paths) + 1
        numbered = number > 1 or self._rotation != Rotation()
        name = f"{self._path.stem}-{number:0{DIGITS}}{self._path.suffix}" if numbered else self._path.name
        path = self._path.with_name(name)
        facts = {**self._facts, "file": str(number)}
        is_parquet = self._format == ".parquet"
        if is_parquet and path.exists() and not self._overwrite:
            raise FileExistsError(17, "File exists", str(path))
        file = self._file = AppendFile(journal_of(path) if is_parquet else path, overwrite=self._overwrite)
        try:
            self._writer: McapWriter | ArrowWriter
            if self._format == ".mcap":
                self._writer = McapWriter(
                    file, facts, capture=f"{self._capture}-{number}", compression=self._compression, types=self._types
                )
            elif is_parquet:
                self._writer = ParquetWriter(file, facts, path)
            else:
                self._writer = ArrowWriter(file, facts)
        except CaptureFull:
            file.close()
            raise
        self._began = now
        self.paths.append(path)
