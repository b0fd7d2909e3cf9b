"""Which format a file has, and in which order several files are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elea.content.registry import SchemaRegistry
from elea.model.errors import CaptureDamaged

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "Capture", "check_format", "open_capture", "open_captures"]

FORMATS: Final = (".mcap", ".parquet", ".arrows")


class Capture(ABC):
    """The samples of a file, to iterate over once: record batches with the columns of live ones (docs/columnar.md)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self.done = 0
        """Bytes read so far, about."""
        self.is_cut = False
        """Whether the file ends before it is whole, as after a kill; known when all has been read."""
        self.facts: dict[str, str] = {}
        """What the recorder wrote of the capture as a whole, as far as it has been read."""
        self.types = SchemaRegistry()
        """The types of payloads that the file declares, as far as it has been read."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches, in the order of the file.

        Raises:
            CaptureDamaged: it is not what its name says, or something in it is not what it claims; the batches before
                are good.
        """


def check_format(path: Path) -> str:
    """The format of a file by its name.

    Raises:
        ValueError: its name does not tell.
    """
    if path.suffix not in FORMATS:
        raise ValueError(f"{path.name!r} ends with none of {', '.join(FORMATS)}, which say what it is")
    return path.suffix


def open_capture(path: Path | str) -> Capture:
    """The samples of a capture, in the order in which they were recorded.

    Raises:
        ValueError: its name does not tell its format.
        OSError: there is no such file.
    """
    path = Path(path)
    suffix = check_format(path)
    if suffix == ".mcap":
        from elea.recorder.mcapreader import McapCapture

        return McapCapture(path)
    from elea.recorder.arrowfile import ArrowCapture, ParquetCapture, journal_of

    if suffix == ".parquet":
        if not path.exists() and journal_of(path).exists():
            raise CaptureDamaged(str(path), 0, f"it was not finished; what was recorded is in {journal_of(path)}")
        return ParquetCapture(path)
    return ArrowCapture(path)


def open_captures(paths: Sequence[Path | str]) -> list[Capture]:
    """The same of several files, in the order of their first samples: that in which a recorder wrote them."""
    if len(paths) < 2:
        return [open_capture(path) for path in paths]
    found = []
    for number, path in enumerate(paths):
        first = next(iter(open_capture(path)), None)
        began = first.column("arrival")[0].value if first is not None else 0
        found.append((began, number, path))
    return [open_capture(path) for _, _, path in sorted(found, key=lambda one: one[:2])]
