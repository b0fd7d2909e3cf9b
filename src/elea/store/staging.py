"""Batches of named writers that become part of a log as a whole, and once: what has to be remembered for it.

A writer numbers its batches upwards. The pieces of a batch are staged in any order, by whoever has them; then one
request says which of them are the batch. From that decision on it is carried out, after a crash too, and no other
version of the batch counts any more: a repetition is told that it is done, an older number is refused. The pieces
nobody decided on are forgotten when the writer goes on, or after a day.

In a directory every change is on the disk when its call returns; without one everything ends with the process, as the
log in memory does. See `elea.node.storage.stagerequest` for how a batch is carried out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, NamedTuple

from elea.model.errors import StoreError, StoreFenced, StoreFull
from elea.model.limits import STORE_STAGED_BYTES, STORE_STAGED_SECONDS, STORE_WRITERS
from elea.store.checksum import crc32
from elea.store.files import Files, make_directory

__all__ = ["Mark", "Staging"]

PIECE: Final = re.compile(r"[0-9a-z-]{1,64}")
_DECISION: Final = "commit"
_MARK: Final = "last"
_HEAD: Final = 8


class Mark(NamedTuple):
    """The newest batch of a writer that is in the log: its number, position (None: there is none) and samples."""

    number: int
    first: int | None
    rows: int


class Staging:
    """The staged pieces, decisions and marks of one log. Calls that decide or finish take turns by their caller."""

    def __init__(self, directory: Path | None, files: Files | None = None) -> None:
        self._place = _Memory() if directory is None else _Directory(directory, files or Files())
        self._marks: dict[str, Mark] = {}
        self._decided: dict[str, tuple[int, dict[str, Any]]] = {}
        self._pieces: dict[tuple[str, int], dict[str, int]] = {}
        self._times: dict[tuple[str, int], float] = {}
        self._broken: dict[str, StoreError] = {}
        self.octets = 0
        """What is staged now."""
        self._load()

    def _load(self) -> None:
        for name, size, time in self._place.names():
            writer, kind = _parsed(name)
            try:
                if kind == _MARK:
                    self._marks[writer] = Mark(*json.loads(self._place.get(name)))
                elif isinstance(kind, tuple) and kind[1] == _DECISION:
                    self._decided[writer] = kind[0], json.loads(self._place.get(name))
                elif isinstance(kind, tuple):
                    self._note(writer, kind[0], kind[1], size, time)
            except StoreError as error:  # one writer cannot go on; nobody else has to suffer for it
                self._broken[writer] = error
        for writer, (number, _) in list(self._decided.items()):
            if writer in self._marks and self._marks[writer].number >= number:  # it was finished, and the rest is left
                self._clear(writer, number)

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def decided(self) -> list[tuple[str, int, dict[str, Any]]]:
        """Batches that are decided on and not finished: writer, number, and what was decided."""
        return [(writer, number, form) for writer, (number, form) in list(self._decided.items())]

    def is_decided(self, writer: str) -> bool:
        """Whether a batch of the writer is decided on and not finished."""
        return writer in self._decided

    @property
    def writers(self) -> int:
        """Writers that are remembered."""
        return len(self._marks)

    def committed(self, writer: str, number: int) -> Mark | None:
        """What is known of a batch that is in the log; None if it is not.

        Raises:
            StoreFenced: the writer has gone on to a later one.
            StoreError: what is remembered of the writer is damaged.
        """
        if writer in self._broken:
            raise self._broken[writer]
        mark = self._marks.get(writer)
        decided = self._decided.get(writer)
        last = max(-1 if mark is None else mark.number, -1 if decided is None else decided[0])
        if number < last:
            raise StoreFenced(writer, number, last)
        return mark if mark is not None and mark.number == number else None

    def staged(self, writers: Collection[str]) -> int:
        """Octets that some writers have staged and not committed."""
        return sum(sum(sizes.values()) for (writer, _), sizes in list(self._pieces.items()) if writer in writers)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def stage(self, writer: str, number: int, piece: str, data: bytes, now: float) -> None:
        """Keep a piece of a batch.

        Raises:
            StoreFull: too much is staged, or the disk is full.
        """
        if not PIECE.fullmatch(piece) or piece == _DECISION:
            raise StoreError(f"{piece!r} is no name of a piece: 1 to 64 of 0-9, a-z and -, but not {_DECISION}")
        self.sweep(now)
        if self.octets + len(data) > STORE_STAGED_BYTES:
            raise StoreFull(
                f"{self.octets} octets are staged and not committed, the limit is {STORE_STAGED_BYTES}; "
                "commit smaller batches, or drop those that never will be"
            )
        self._place.put(f"{writer}.{number}.{piece}", data)
        self._note(writer, number, piece, len(data), now)

    def load(self, writer: str, number: int, piece: str) -> bytes:
        """A piece.

        Raises:
            StoreError: there is none, or it is damaged.
        """
        if piece not in self._pieces.get((writer, number), ()):
            raise StoreError(f"piece {piece} of batch {number} of writer {writer} is not staged; write the batch again")
        return self._place.get(f"{writer}.{number}.{piece}")

    def _note(self, writer: str, number: int, piece: str, size: int, time: float) -> None:
        pieces = self._pieces.setdefault((writer, number), {})
        self.octets += size - pieces.get(piece, 0)
        pieces[piece] = size
        self._times[writer, number] = max(time, self._times.get((writer, number), time))

    # -- decisions -----------------------------------------------------------------------------------------------------

    def decide(self, writer: str, number: int, form: dict[str, Any]) -> None:
        """These pieces are the batch, for good."""
        for piece in form["pieces"]:
            self.load(writer, number, piece)
        self._place.put(f"{writer}.{number}.{_DECISION}", json.dumps(form).encode())
        self._decided[writer] = number, form

    def finish(self, writer: str, number: int, first: int | None, rows: int) -> Mark:
        """The batch is in the log: remember it, and forget its pieces."""
        mark = Mark(number, first, rows)
        self._place.put(f"{writer}.{_MARK}", json.dumps(mark).encode())
        self._marks.pop(writer, None)  # the last that was heard of goes to the end
        self._marks[writer] = mark
        self._clear(writer, number)
        while len(self._marks) > STORE_WRITERS:
            silent = next(iter(self._marks))
            self._place.remove(f"{silent}.{_MARK}")
            del self._marks[silent]
        return mark

    def drop(self, writer: str, number: int) -> None:
        """Forget the pieces of a batch that nobody has decided on."""
        if self._decided.get(writer, (-1,))[0] != number:
            self._forget(writer, number)

    def sweep(self, now: float) -> int:
        """Forget what was staged more than a day ago and never decided on; how many batches that were."""
        old = [known for known, time in list(self._times.items()) if time < now - STORE_STAGED_SECONDS]
        for writer, number in old:
            self.drop(writer, number)
        return len(old)

    def _clear(self, writer: str, number: int) -> None:
        """A batch is done: it, and whatever is left of those before it."""
        for known, older in list(self._pieces):
            if known == writer and older <= number:
                self._forget(known, older)
        decided = self._decided.pop(writer, None)
        if decided is not None:
            self._place.remove(f"{writer}.{decided[0]}.{_DECISION}")

    def _forget(self, writer: str, number: int) -> None:
        self._times.pop((writer, number), None)
        for piece, size in self._pieces.pop((writer, number), {}).items():
            self._place.remove(f"{writer}.{number}.{piece}")
            self.octets -= size


def _parsed(name: str) -> tuple[str, str | tuple[int, str] | None]:
    """Writer (id and entity) and what a file is: a mark, or number and piece; None if it is none of ours."""
    parts = name.split(".")
    if len(parts) == 3 and parts[2] == _MARK:
        return ".".join(parts[:2]), _MARK
    if len(parts) == 4 and parts[2].isdigit() and PIECE.fullmatch(parts[3]):
        return ".".join(parts[:2]), (int(parts[2]), parts[3])
    return "", None


def _head(data: bytes) -> bytes:
    return crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")


class _Memory:
    """Octets by name."""

    def __init__(self) -> None:
        self._all: dict[str, bytes] = {}

    def names(self) -> list[tuple[str, int, float]]:
        return []

    def put(self, name: str, data: bytes) -> None:
        self._all[name] = data

    def get(self, name: str) -> bytes:
        return self._all[name]

    def remove(self, name: str) -> None:
        self._all.pop(name, None)


class _Directory:
    """Octets by name, each in a file that begins with their checksum and their length (32 bits each)."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path = path
        self._files = files

    def names(self) -> list[tuple[str, int, float]]:
        """Name, size and time of every one, the oldest first."""
        if not self._path.is_dir():
            return []
        found = []
        for entry in self._path.iterdir():
            if entry.suffix == ".new":  # a write that was never finished
                entry.unlink()
                continue
            facts = entry.stat()
            found.append((entry.name, max(facts.st_size - _HEAD, 0), facts.st_mtime))
        return sorted(found, key=lambda one: one[2])

    def put(self, name: str, data: bytes) -> None:
        try:
            if not self._path.is_dir():
                make_directory(self._path)
                self._files.sync_directory(self._path.parent)
            self._files.replace(self._path / name, [_head(data), data])
        except OSError as error:
            raise StoreFull(
                f"{name} cannot be staged: {error.strerror}; free some space, then write the batch again"
            ) from error

    def get(self, name: str) -> bytes:
        path = self._path / name
        try:
            whole = path.read_bytes()
        except OSError as error:
            raise StoreError(f"staged file {path} cannot be read: {error.strerror}") from error
        data = whole[_HEAD:]
        if whole[:_HEAD] != _head(data):
            raise StoreError(f"staged file {path} is damaged: its checksum is wrong; move it away, and write again")
        return data

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)
