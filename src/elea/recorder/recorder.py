"""The recorder: what is put to keys, into files, as it comes.

It never holds up who publishes, unless it is asked to: what the disk does not take in time waits in memory, up to a
bound, and then the oldest is dropped and counted here, where somebody can be told.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from elea.api.arrowhandler import Arrow
from elea.api.sinks import FifoChannel
from elea.model.errors import CaptureFull
from elea.recorder.declaredtypes import types_of
from elea.recorder.following import followed
from elea.recorder.rotation import CaptureFiles, Rotation
from elea.recorder.samplebatch import nanoseconds

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from types import TracebackType

    import pyarrow as pa

    from elea.api.sample import Sample
    from elea.api.session import Session
    from elea.model.keyexpr import KeyExpr
    from elea.model.predicate import Predicate

__all__ = ["BUFFER", "Figures", "Recorder"]

_log: Final = logging.getLogger("elea.recorder")

BATCH: Final = 4 << 20
"""Bytes of payload from which on a batch is written; about the size of a chunk."""

BUFFER: Final = 64 << 20
"""Bytes of payload that wait in memory for a disk that is slower than the network."""

FLUSH: Final = 1.0
FOLLOWED: Final = 256
"""Samples of a log that wait here, however large they are; the others wait in the log."""

ENDING: Final = 600.0
"""Seconds that the last file may take to be finished: a Parquet file is written from its journal."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How a recording is doing."""

    samples: int
    """Samples written."""
    size: int
    """Bytes written."""
    dropped: int
    """Samples that came here and are in no file."""
    lag: float
    """Seconds since the oldest sample came that is not written yet."""
    files: int
    seconds: float
    """How long it has been recording."""


class Recorder:
    """Records the samples of a key expression from its making to `close`.

    ::

        with Recorder(session, "home/**", "drive.mcap", where="speed > 2") as recorder:
            time.sleep(60)
            print(recorder.figures())

    Args:
        path: the first file; its ending (`.mcap`, `.parquet`, `.arrows`) says the format.
        where: a predicate; only samples for which it holds are recorded.
        history, since: begin with what a broker has kept: the last so many samples, or from a time or position on, as
            for `declare_subscriber`. Then all is read from its log, and nothing is dropped.
        rotation: when another file begins.
        overflow: what happens when the disk is slower than the network: `drop` forgets the oldest samples that wait,
            `block` holds up the link they come by, and so those who publish with BLOCK.
        buffer: bytes of payload that may wait.
        flush: seconds after which a sample is written at the latest: what a kill may lose.

    Raises:
        FileExistsError: there is such a file, and `overwrite` is not set.
        ValueError: the name of the file does not tell its format.
    """

    def __init__(
        self,
        session: Session,
        key_expr: KeyExpr | str,
        path: Path | str,
        *,
        where: Predicate | str | None = None,
        history: int | None = None,
        since: datetime | timedelta | int | None = None,
        rotation: Rotation | None = None,
        compression: str = "zstd",
        overflow: Literal["drop", "block"] = "drop",
        buffer: int = BUFFER,
        flush: float = FLUSH,
        overwrite: bool = False,
    ) -> None:
        self._began = time.monotonic()
        self.problem: Exception | None = None
        """Why nothing is written any more; None while all is well."""
        self._written = 0
        self._lost = 0
        self._oldest: int | None = None  # arrival of the first sample that is being written
        self._closing = threading.Event()
        self.subscriber: Any
        self._batches: Iterable[pa.RecordBatch]
        if history is None and since is None:
            handler = Arrow(
                seconds=flush,
                octets=min(BATCH, buffer),
                capacity=max(buffer // BATCH, 1),
                overflow="block" if overflow == "block" else "drop_oldest",
            )
            self._batches = self.subscriber = session.declare_subscriber(key_expr, handler, where=where)
        else:
            kept: FifoChannel[Sample] = FifoChannel(FOLLOWED)
            self.subscriber = session.declare_subscriber(key_expr, kept, where=where, history=history, since=since)
            self._batches = followed(self.subscriber, flush, self._closing)
        try:
            facts = {"key_expr": str(key_expr), "where": "" if where is None else str(where)}
            self._files = CaptureFiles(
                Path(path),
                facts,
                Rotation() if rotation is None else rotation,
                now=self._began,
                compression=compression,
                overwrite=overwrite,
                types=types_of(session._node.schemas.contents),
            )
        except BaseException:
            self.subscriber._finish()
            raise
        self._thread = threading.Thread(target=self._run, name="elea-recorder", daemon=True)
        self._thread.start()

    @property
    def paths(self) -> list[Path]:
        """The files so far."""
        return list(self._files.paths)

    def figures(self) -> Figures:
        """How it is doing."""
        oldest = self._oldest
        lag = 0.0 if oldest is None else max(time.time_ns() - oldest, 0) / 1e9
        return Figures(
            self._written,
            self._files.size,
            self.subscriber.dropped + self._lost,
            lag,
            len(self._files.paths),
            time.monotonic() - self._began,
        )

    def close(self) -> Figures:
        """Write what has come, make the file whole, and end; how it was.

        Raises:
            CaptureFull, OSError: something was not written; what was can be read.
        """
        self._closing.set()
        self.subscriber._finish()
        self._thread.join(ENDING)
        if self._thread.is_alive():
            raise TimeoutError(f"{self._files.paths[-1]} was not finished in {ENDING:.0f} s; the disk takes nothing")
        if self.problem is not None:
            raise self.problem
        return self.figures()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:  # which is what the user should hear of
            self._closing.set()
            self.subscriber._finish()
            self._thread.join(ENDING)

    # -- the thread that writes

    def _run(self) -> None:
        try:
            self._write(self._batches)
        except Exception as error:  # noqa: BLE001 - whatever it was, nothing is recorded any more, and that must be told
            self._fail(error)
        try:
            self._files.finish({"dropped": str(self.subscriber.dropped + self._lost)})
        except Exception as error:  # noqa: BLE001 - likewise
            self._fail(error)
        self._oldest = None

    def _write(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            self._oldest = int(nanoseconds(batch)[0][0])
            try:
                self._files.write(batch, time.monotonic())
            except BaseException:
                self._lost += batch.num_rows
                raise
            self._written += batch.num_rows
            self._oldest = None

    def _fail(self, error: Exception) -> None:
        """Nothing can be written any more: say so once, and count what comes until somebody closes this."""
        if self.problem is not None:
            return
        self.problem = error
        full = isinstance(error, CaptureFull)
        _log.error("recording ended: reason=%s problem=%s", "disk full" if full else "write failed", error)
        self._closing.set()
        self.subscriber._finish()
        for item in self.subscriber.handler:
            self._lost += getattr(item, "num_rows", 1)
