"""Looking through a whole log without changing it: every checksum, every row, every promise of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from elea.model.errors import StoreError
from elea.store.catalogue import Damage, catalogue_problem
from elea.store.columns import SCHEMA, facts_of
from elea.store.disk import DiskShelf
from elea.store.files import Handle
from elea.store.frames import BadFrame, Block
from elea.store.recovery import BASE, CATALOGUE, identify
from elea.store.segment import SUFFIX, Segment, read_header, scan

__all__ = ["Report", "verify"]

Watch = Callable[[int, int], None]
"""Octets looked at, octets in all."""

_QUIET: Final[Watch] = lambda done, total: None  # noqa: E731


@dataclass(slots=True)
class Report:
    """What was found."""

    segments: int = 0
    blocks: int = 0
    samples: int = 0
    octets: int = 0
    damage: list[Damage] = field(default_factory=list)
    torn: list[tuple[str, int, int]] = field(default_factory=list)
    """Unfinished ends: name, offset, octets. The next opening cuts them; a running writer may be at work there."""

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage

    @property
    def lost(self) -> int:
        """Samples that cannot be read."""
        lost: set[int] = set()
        return sum(_newly(lost, damage) for damage in self.damage)


def verify(path: Path, watch: Watch = _QUIET) -> Report:
    """Read everything in a log's directory; beside a running writer too.

    Raises:
        StoreError: there is no log.
    """
    if not path.is_dir():
        raise StoreError(f"there is no store in {path}; check the path")
    if not (path / CATALOGUE).exists() and identify(path) is None:
        raise StoreError(f"there is no store in {path}; check the path")
    report = Report()
    ends: dict[int, int] = {}
    promised = _check_catalogue(path, report, ends)
    files = sorted(path.glob(f"*{SUFFIX}"))
    total = sum(file.stat().st_size for file in files)
    for file in files:
        _check_segment(file, report, ends, partial(_add, watch, report.octets, total))
    for one in promised:
        _merge(report.damage, one)
    report.damage.sort(key=lambda one: (one.first, one.segment, one.offset))
    return report


def _merge(found: list[Damage], promised: Damage) -> None:
    """Add what the log knows it had: a file that was cut off does not tell how much is gone with its end."""
    for at, one in enumerate(found):
        if (one.segment, one.first) == (promised.segment, promised.first):
            if promised.last > one.last:
                why = one.why if promised.why in one.why else f"{one.why}; {promised.why}"
                found[at] = promised._replace(why=why)
            return
    found.append(promised)


def _add(watch: Watch, before: int, total: int, done: int) -> None:
    watch(before + done, total)


def _check_catalogue(path: Path, report: Report, ends: dict[int, int]) -> list[Damage]:
    """What the catalogue promises and the files do not keep, and what it remembers of damage.

    `ends` gets the position behind each segment.
    """
    problem = catalogue_problem(path / CATALOGUE)
    if problem is not None:
        report.damage.append(Damage(CATALOGUE, 0, 0, 0, -1, f"{problem}; cursors are lost"))
        return []
    shelf = DiskShelf(path, read_only=True, random=bytes)
    try:
        shelf.load_checkpoint()
        report.torn += shelf.torn
        ends.update((first, after) for first, after, _, _ in shelf.sizes())
        return list(shelf.damage)
    finally:
        shelf.close()


def _check_segment(file: Path, report: Report, ends: dict[int, int], watch: Callable[[int], None]) -> None:
    handle = Handle(file)
    size = handle.size()
    report.octets += size
    report.segments += 1
    is_base = file.name == BASE
    try:
        header = read_header(handle)
    except BadFrame as bad:
        if not any(file.name == name for name, _, _ in report.torn):
            report.damage.append(Damage(file.name, 0, size, _first(file), _first(file) - 1, f"header: {bad}"))
        return
    result = scan(
        handle, start=header.size, size=size, salt=header.salt, first=0 if is_base else header.first, bodies=True,
        dense=not is_base, watch=watch,
    )  # fmt: skip
    report.damage += result.damage
    segment = Segment(handle, header, size=result.end, blocks=result.blocks)
    if result.tail is not None and (file.name, result.end, size - result.end) not in report.torn:
        last = ends.get(header.first, segment.next) - 1
        report.damage.append(Damage(file.name, result.end, size - result.end, segment.next, last, result.tail))
    for block in result.blocks:
        report.blocks += 1
        report.samples += block.facts.rows
        problem = _block_problem(segment, block)
        if problem:
            facts = block.facts
            report.damage.append(Damage(file.name, block.offset, block.size, facts.first, facts.last, problem))


def _first(file: Path) -> int:
    return int(file.stem) if file.stem.isdigit() else 0


def _block_problem(segment: Segment, block: Block) -> str:
    """What is wrong with a block whose checksums are right: it was written wrong."""
    try:
        batch = segment.load(block)
        batch.validate(full=True)
    except pa.ArrowException as error:
        return f"its columns cannot be read: {error}"
    if batch.schema != SCHEMA or batch.num_rows != block.facts.rows:
        return "its rows are not those its head tells of"
    return "" if facts_of(batch) == block.facts else "its rows are not those its head tells of"


def _newly(lost: set[int], damage: Damage) -> int:
    """Positions of one damage that no other has counted. Large losses are few, so they are not spelled out."""
    if damage.last - damage.first > 1_000_000:
        return damage.last - damage.first + 1
    fresh = set(range(damage.first, damage.last + 1)) - lost
    lost |= fresh
    return len(fresh)
