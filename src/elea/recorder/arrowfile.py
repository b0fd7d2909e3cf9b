"""Captures as columns: an Arrow IPC stream, which can be read up to its last batch at any time, or a Parquet file.

A Parquet file is of no use without its end. So what is recorded goes into an Arrow IPC stream beside it (its *journal*)
and becomes Parquet when the file is finished; after a kill the journal is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from elea.model.errors import ArrowRefused, CaptureDamaged, CaptureFull, InvalidSample
from elea.recorder.appendfile import FULL, AppendFile
from elea.recorder.capturefiles import Capture
from elea.recorder.samplebatch import SCHEMA, sample_batch
from elea.store.entrance import CUT_OFF, Form, read_file

__all__ = ["ArrowCapture", "ArrowWriter", "ParquetCapture", "ParquetWriter", "journal_of"]

END: Final = b"\xff\xff\xff\xff\0\0\0\0"
"""What an Arrow IPC stream ends with."""

ROWS: Final = 65_536

_COLUMNS: Final = {
    **{field.name: field.type for field in SCHEMA},
    "position": pa.int64(),
    "once": pa.bool_(),
}
_WHOLE: Final = frozenset(field.name for field in SCHEMA if not field.nullable)
FORM: Final = Form("the Arrow IPC stream", _COLUMNS, _WHOLE, _WHOLE, batches=1 << 62)
"""A capture, or the export of a log; a file may have any number of batches, since one is in memory at a time."""


class ArrowWriter:
    """Writes an Arrow IPC stream, which other programs can read as it is."""

    def __init__(self, file: AppendFile, facts: Mapping[str, str]) -> None:
        self._file = file
        self.samples = 0
        file.append(memoryview(SCHEMA.with_metadata(dict(facts)).serialize()))

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._file.size

    def write(self, batch: pa.RecordBatch) -> int:
        """Append samples in their order; how many, which are all."""
        rows: int = batch.num_rows
        if rows:
            self._file.append(memoryview(batch.serialize()))
            self.samples += rows
        return rows

    def finish(self, facts: Mapping[str, str]) -> None:
        """Make the file whole."""
        self._file.append(END)


class ParquetWriter(ArrowWriter):
    """Writes the journal of a Parquet file, and the file when it is finished."""

    def __init__(self, file: AppendFile, facts: Mapping[str, str], path: Path) -> None:
        super().__init__(file, facts)
        self._facts = dict(facts)
        self._path = path

    def finish(self, facts: Mapping[str, str]) -> None:
        """Turn the journal into Parquet.

        Raises:
            CaptureFull, OSError: there is no room for both; the journal stays, and can be read.
            CaptureDamaged: the journal has not what was written to it; it stays.
        """
        super().finish(facts)
        part = self._path.with_name(f"{self._path.name}.part")
        try:
            with part.open("wb") as out:
                rows = self._convert(out, {**self._facts, **facts})
                if rows != self.samples:
                    problem = f"{self.samples} samples were written to it, and {rows} were found"
                    raise CaptureDamaged(str(self._file.path), self._file.size, problem)
                out.flush()
                os.fsync(out.fileno())
            part.replace(self._path)
        except BaseException as error:
            part.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno in FULL:
                raise CaptureFull(str(self._file.path), self._file.size) from error
            raise
        self._file.path.unlink()

    def _convert(self, out: BinaryIO, facts: Mapping[str, str]) -> int:
        """Write what the journal has; how many samples."""
        from pyarrow import parquet

        rows = 0
        with parquet.ParquetWriter(out, SCHEMA, compression="zstd", write_page_checksum=True) as writer:
            some: list[pa.RecordBatch] = []
            for batch in ArrowCapture(self._file.path):
                some.append(batch)
                rows += batch.num_rows
                if sum(each.num_rows for each in some) >= ROWS or sum(each.nbytes for each in some) > 64 << 20:
                    writer.write_table(pa.Table.from_batches(some))
                    some = []
            if some:
                writer.write_table(pa.Table.from_batches(some))
            writer.add_key_value_metadata(dict(facts))
        return rows


def journal_of(path: Path) -> Path:
    """Where the samples of a Parquet file are until it is finished."""
    return path.with_name(f"{path.name}.arrows")


class ArrowCapture(Capture):
    """The samples of an Arrow IPC stream: a capture, a journal, or what `elea store export` wrote."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with self.path.open("rb") as file:
            try:
                for batch in read_file(file, FORM):
                    self.done = file.tell()
                    if batch.num_rows:
                        yield sample_batch({name: batch.column(name) for name in batch.schema.names}, batch.num_rows)
                self.is_cut = not self._has_end(file)
            except ArrowRefused as error:
                if error.problem != CUT_OFF:
                    raise CaptureDamaged(str(self.path), self.done, error.problem) from error
                self.is_cut = True
            except InvalidSample as error:
                raise CaptureDamaged(str(self.path), self.done, error.problem) from error
            self.done = self.size

    def _has_end(self, file: BinaryIO) -> bool:
        file.seek(max(self.size - len(END), 0))
        return file.read() == END


class ParquetCapture(Capture):
    """The samples of a Parquet file: a capture, or what `elea store read --parquet` wrote."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        from pyarrow import parquet

        rows = 0
        try:
            with parquet.ParquetFile(self.path, page_checksum_verification=True) as file:
                metadata: dict[bytes, Any] = file.metadata.metadata or {}
                self.facts = {name.decode(): _text(value) for name, value in metadata.items() if b"ARROW" not in name}
                total = max(file.metadata.num_rows, 1)
                names = [name for name in file.schema_arrow.names if name in _COLUMNS]
                for batch in file.iter_batches(ROWS, columns=names):
                    batch.validate(full=True)
                    rows += batch.num_rows
                    self.done = self.size * rows // total
                    if batch.num_rows:
                        yield sample_batch({name: batch.column(name) for name in names}, batch.num_rows)
            self.done = self.size
        except InvalidSample as error:
            raise CaptureDamaged(str(self.path), self.done, error.problem) from error
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the disk; those of Arrow have no number
            raise CaptureDamaged(str(self.path), self.done, str(error)) from error


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
