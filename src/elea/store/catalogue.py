"""The catalogue of a log: what is small and transactional, in SQLite: epoch, sealed segments, cursors, known damage.

Everything but the cursors can be made again from the segments. SQLite checks no sums of its own, so every row has one
and a last row sums up all of them: a row that changed or vanished is noticed when the catalogue is opened. It keeps a
rollback journal and not a write-ahead log, of which a flipped bit silently takes away the later commits.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from elea.model.errors import StoreError, StoreFull
from elea.store.files import FILE_MODE

__all__ = ["Catalogue", "CatalogueDamaged", "Damage", "SegmentRow", "catalogue_problem"]

_TABLES: Final = {
    "facts": "name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL",
    "segments": "first INTEGER PRIMARY KEY, last INTEGER, size INTEGER, blocks INTEGER, min_ntp TEXT, max_ntp TEXT,"
    " min_arrival INTEGER, max_arrival INTEGER, crc INTEGER NOT NULL",
    "cursors": "name TEXT PRIMARY KEY, position INTEGER NOT NULL, crc INTEGER NOT NULL",
    "damage": "segment TEXT, offset INTEGER, size INTEGER, first INTEGER, last INTEGER, why TEXT,"
    " crc INTEGER NOT NULL, PRIMARY KEY (segment, offset, first)",
}
_SUM: Final = "sum"
_NOTE: Final = "note:"
"""What names of notes begin with among the facts."""

_NOTE_END: Final = "note;"

_CIRCUMSTANCES: Final = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
}
"""Errors that say nothing about the file itself."""


class CatalogueDamaged(StoreError):
    """The file is no sound catalogue; never leaves the store, which makes a new one."""


class SegmentRow(NamedTuple):
    """A sealed segment."""

    first: int
    last: int
    size: int
    blocks: int
    min_ntp: int
    max_ntp: int
    min_arrival: int
    max_arrival: int


class Damage(NamedTuple):
    """A stretch of a file that cannot be read, and the positions that are lost with it (none if last < first)."""

    segment: str
    offset: int
    size: int
    first: int
    last: int
    why: str


class Catalogue:
    """An open catalogue; every change is on disk when its call returns."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """
        Raises:
            CatalogueDamaged: the file is no sound catalogue; its text says what is wrong.
            StoreError: it cannot be used at present.
        """
        self._lock = threading.RLock()
        self._sum = 0
        self._read_only = read_only
        self._db = _connect(path, "ro" if read_only else "rwc")
        try:
            try:
                self._prepare()
            except sqlite3.Error as error:
                if not read_only or _primary_code(error) != sqlite3.SQLITE_READONLY:
                    raise
                # A writer died within a change, which has to be undone by whoever comes first.
                self._db.close()
                self._db = _connect(path, "rw")
                self._prepare()
        except (sqlite3.Error, ValueError, TypeError) as error:  # a damaged file also gives text that is none
            self._db.close()
            if _primary_code(error) in _CIRCUMSTANCES:
                raise _translated(error) from error
            raise CatalogueDamaged(f"the catalogue is damaged: {error}") from error
        except StoreError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        if self._read_only:
            self._check()
            return
        self._db.execute("PRAGMA journal_mode=TRUNCATE")
        self._db.execute("PRAGMA synchronous=FULL")
        if not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
            with self._change():
                for name in _TABLES:
                    self._db.execute(_create(name))
        self._check()
        # A flipped bit can also make SQLite read what it will not write: better known now than at the first seal.
        self._write_sum()

    def _check(self) -> None:
        answer = self._db.execute("PRAGMA integrity_check(1)").fetchone()
        if answer is None or answer[0] != "ok":
            raise CatalogueDamaged(f"the catalogue is damaged: {answer and answer[0]}")
        shape = dict(self._db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
        if shape != {name: _create(name) for name in _TABLES}:
            raise CatalogueDamaged("the catalogue is damaged: its tables are not those of a catalogue")
        total, stored = 0, "0"
        for table in _TABLES:
            for *values, crc in self._db.execute(f"SELECT * FROM {table}"):
                if table == "facts" and values[0] == _SUM:
                    stored = values[1]
                    continue
                if _crc(table, values) != crc:
                    raise CatalogueDamaged(f"the catalogue is damaged: {table} row {values[0]!r} has a wrong checksum")
                total ^= crc
        if str(total) != stored:
            raise CatalogueDamaged("the catalogue is damaged: rows are missing or too many")
        self._sum = total

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._db.close()

    # -- facts -------------------------------------------------------------------------------------------------

    def fact(self, name: str) -> str | None:
        """A fact by name."""
        row = self._one("SELECT value FROM facts WHERE name = ?", name)
        return None if row is None else str(row[0])

    def set_facts(self, **facts: str) -> None:
        """Changes facts, all at once."""
        with self._change():
            for name, value in facts.items():
                self._put("facts", [name, value], "name = ?", name)

    # -- notes -------------------------------------------------------------------------------------------------

    def notes(self) -> dict[str, str]:
        """Small texts that the user of a log keeps with it, by name."""
        rows = self._all("SELECT name, value FROM facts WHERE name >= ? AND name < ? ORDER BY name", _NOTE, _NOTE_END)
        return {row[0].removeprefix(_NOTE): row[1] for row in rows}

    def put_note(self, name: str, value: str) -> None:
        """Sets a note."""
        self.set_facts(**{f"{_NOTE}{name}": value})

    def drop_note(self, name: str) -> bool:
        """Takes a note away; whether there was one."""
        with self._change():
            return self._delete("facts", "name = ?", f"{_NOTE}{name}")

    # -- segments ----------------------------------------------------------------------------------------------

    def segments(self) -> list[SegmentRow]:
        """The sealed segments in the order of their positions."""
        rows = self._all("SELECT * FROM segments ORDER BY first")
        return [SegmentRow(*map(int, row[:8])) for row in rows]

    def put_segment(self, row: SegmentRow, **facts: str) -> None:
        """Enters or changes a sealed segment, and facts with it."""
        with self._change():
            # Times are unsigned 64-bit numbers, which SQLite has no integers for.
            values = [*row[:4], str(row.min_ntp), str(row.max_ntp), *row[6:]]
            self._put("segments", values, "first = ?", row.first)
            for name, value in facts.items():
                self._put("facts", [name, value], "name = ?", name)

    def drop_segments(self, before: int, **facts: str) -> None:
        """Forgets segments whose positions are all below `before`, and sets facts."""
        with self._change():
            for row in self._all("SELECT first FROM segments WHERE last < ?", before):
                self._delete("segments", "first = ?", row[0])
            for name, value in facts.items():
                self._put("facts", [name, value], "name = ?", name)

    # -- cursors -----------------------------------------------------------------------------------------------

    def cursors(self) -> dict[str, int]:
        """Every cursor by name."""
        return {row[0]: row[1] for row in self._all("SELECT name, position FROM cursors ORDER BY name")}

    def put_cursor(self, name: str, position: int) -> None:
        """Sets a cursor."""
        with self._change():
            self._put("cursors", [name, position], "name = ?", name)

    def drop_cursor(self, name: str) -> bool:
        """Takes a cursor away; whether there was one."""
        with self._change():
            return self._delete("cursors", "name = ?", name)

    # -- damage ------------------------------------------------------------------------------------------------

    def damage(self) -> list[Damage]:
        """Everything found damaged so far."""
        rows = self._all("SELECT * FROM damage ORDER BY first, segment, offset")
        return [Damage(*row[:6]) for row in rows]

    def put_damage(self, damage: Damage) -> None:
        """Remembers damage."""
        with self._change():
            self._put("damage", list(damage), "segment = ? AND offset = ? AND first = ?", *damage[:2], damage.first)

    def clear_damage(self) -> None:
        """Forgets all damage: it was looked into."""
        with self._change():
            for row in self._all("SELECT segment, offset, first FROM damage"):
                self._delete("damage", "segment = ? AND offset = ? AND first = ?", *row)

    # -- underneath --------------------------------------------------------------------------------------------

    def _one(self, sql: str, *values: object) -> tuple[str | int, ...] | None:
        with self._lock, _errors():
            row: tuple[str | int, ...] | None = self._db.execute(sql, values).fetchone()
            return row

    def _all(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock, _errors():
            return self._db.execute(sql, values).fetchall()

    def _put(self, table: str, row: list[object], where: str, *key: object) -> None:
        self._delete(table, where, *key)
        crc = _crc(table, row)
        marks = ", ".join("?" * (len(row) + 1))
        self._db.execute(f"INSERT INTO {table} VALUES ({marks})", [*row, crc])
        self._sum ^= crc

    def _delete(self, table: str, where: str, *key: object) -> bool:
        old = self._db.execute(f"SELECT crc FROM {table} WHERE {where}", key).fetchone()
        if old is None:
            return False
        self._db.execute(f"DELETE FROM {table} WHERE {where}", key)
        self._sum ^= old[0]
        return True

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        with self._lock, _errors():
            before = self._sum
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, 0)", (_SUM, str(self._sum)))
                self._db.execute("COMMIT")
            except BaseException:
                self._sum = before
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _write_sum(self) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, 0)", (_SUM, str(self._sum)))


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    # As a URI, in which whatever has a meaning there is escaped.
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        if "c" in mode and not path.exists():  # SQLite gives its other files the mode of this one
            os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10.0)
    except sqlite3.Error as error:
        raise StoreError(f"the catalogue cannot be opened: {error}") from error


def catalogue_problem(path: Path) -> str | None:
    """What is wrong with a catalogue, or None; it is opened for reading only."""
    try:
        Catalogue(path, read_only=True).close()
    except StoreError as error:
        return str(error)
    return None


def _create(table: str) -> str:
    return f"CREATE TABLE {table} ({_TABLES[table]}) WITHOUT ROWID"


def _crc(table: str, values: list[object]) -> int:
    return zlib.crc32(repr((table, *values)).encode())


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error) from error


def _translated(error: Exception) -> StoreError:
    if _primary_code(error) == sqlite3.SQLITE_FULL:
        return StoreFull(f"no room for the catalogue: {error}")
    return StoreError(f"the catalogue: {error}")


def _primary_code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
