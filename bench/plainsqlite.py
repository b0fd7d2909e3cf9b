"""What the store is set beside: SQLite with a row a sample, write-ahead log, synchronous=FULL."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa

from elea.store import Receipt, Record

__all__ = ["Sqlite", "SqliteLog"]


class Sqlite:
    """The plain alternative: one row a sample."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path / "plain.sqlite", isolation_level=None, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        columns = (
            "key TEXT, payload BLOB, ntp64 INTEGER, stamp_id BLOB, arrival INTEGER, kind INTEGER, encoding INTEGER"
        )
        self.db.execute(f"CREATE TABLE IF NOT EXISTS log (position INTEGER PRIMARY KEY, {columns})")
        self.db.execute("CREATE TABLE IF NOT EXISTS latest (key TEXT PRIMARY KEY, position INTEGER) WITHOUT ROWID")
        self.end = int(self.db.execute("SELECT coalesce(max(position) + 1, 0) FROM log").fetchone()[0])

    def append(self, records: list[Record]) -> None:
        first, self.end = self.end, self.end + len(records)
        rows = [(first + at, *record[:7]) for at, record in enumerate(records)]
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self.db.executemany("INSERT OR REPLACE INTO latest VALUES (?, ?)", [(row[1], row[0]) for row in rows])
        self.db.execute("COMMIT")

    def latest(self, key: str) -> Any:
        sql = "SELECT log.* FROM latest JOIN log USING (position) WHERE latest.key = ?"
        return self.db.execute(sql, (key,)).fetchone()

    def scan(self) -> int:
        rows = 0
        cursor = self.db.execute("SELECT * FROM log ORDER BY position")
        while found := cursor.fetchmany(10_000):
            rows += pa.table([list(column) for column in zip(*found, strict=True)], names=list("abcdefgh")).num_rows
        return rows

    def close(self) -> None:
        self.db.close()


class SqliteLog:
    """SQLite behind the interface of a log, so that the same group commit drives it."""

    def __init__(self, path: Path) -> None:
        self.plain = Sqlite(path)

    def append(self, records: list[Record]) -> Any:
        first = self.plain.end
        self.plain.append(records)
        return Receipt(first, len(records), {})

    def close(self) -> None:
        self.plain.close()
