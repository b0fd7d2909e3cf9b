"""Samples for the tests of the store, and a plain model of what a log is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from elea.model.keyexpr import includes
from elea.store import DEL, PUT, Log, Record, Stored, open_log
from elea.store.recovery import CATALOGUE

SECOND = 1 << 32
"""One second of NTP64."""

BEGIN = 10_000_000
"""The second in which the first sample arrives: behind the times of all of them."""


def sample(
    number: int = 0, *, key: str | None = None, time: int | None = None, kind: int = PUT, node: bytes = b"\x01",
    payload: bytes | None = None, source: tuple[bytes, int, int] | None = None,
) -> Record:  # fmt: skip
    """A sample of which every field can be told from those of others."""
    id, entity, sn = source or (None, None, None)
    return Record(
        key=key or f"room/{number % 5}/temp",
        payload=b"" if kind == DEL else f"value {number}".encode() if payload is None else payload,
        ntp64=(1_000_000 + number if time is None else time) * SECOND,
        stamp_id=node,
        arrival_ns=(BEGIN + number) * 1_000_000_000,
        kind=kind,
        encoding=number % 3,
        schema=b"v1" if number % 4 == 0 else None,
        attachment=b"note" if number % 7 == 0 else None,
        source_id=id,
        source_eid=entity,
        source_sn=sn,
        once=source is not None,
    )


def memory_directory() -> Path | None:
    """A directory in memory, if the system has one: for tests that sync thousands of times."""
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else None


def stored(log: Log) -> list[Stored]:
    return list(log.read())


def time_of(one: Stored) -> int:
    """The time for which a sample counts: that of its arrival, if it was stamped more than a second after it."""
    arrival = one.record.arrival_ns // 10**9 * SECOND
    return arrival if arrival and one.record.ntp64 > arrival + SECOND else one.record.ntp64


def newest(samples: Iterable[Stored]) -> dict[str, Stored]:
    """The newest sample per key by (time, node, position), deletions included: the plain definition."""
    found: dict[str, Stored] = {}
    for one in sorted(samples, key=lambda one: (time_of(one), one.record.stamp_id, one.position)):
        found[one.record.key] = one
    return found


def values(samples: Iterable[Stored]) -> list[Stored]:
    """The newest samples that are no deletions, in the order of positions."""
    return sorted(one for one in newest(samples).values() if one.record.kind == PUT)


def matching(samples: Iterable[Stored], keys: str) -> list[Stored]:
    return [one for one in samples if includes(keys, one.record.key)]


def filled(path: Path, groups: Iterable[int], **options: object) -> list[Stored]:
    """A log with groups of so many samples, closed again; what it holds."""
    with open_log(path, **options) as log:  # type: ignore[arg-type]
        number = 0
        for size in groups:
            log.append([sample(number + index) for index in range(size)])
            number += size
        return stored(log)


def without_close(path: Path, copy: Path) -> Path:
    """The files of an open log as a killed process leaves them."""
    copy.mkdir()
    for file in path.iterdir():
        if file.name not in ("lock", f"{CATALOGUE}-journal"):
            (copy / file.name).write_bytes(file.read_bytes())
    return copy
