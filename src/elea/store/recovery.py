"""Opening a log: what the files of its directory are, which of them are whole, and where the next sample goes.

Only a torn end is cut, and its octets are kept in a file of their own. Whatever else is wrong is fenced off and
reported; no file is removed because it is not understood. What is promised is known from the catalogue (sealed
segments, and a mark in the active one, moved at every seal, checkpoint and close): a bad end before the mark is
damage and not a torn write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from elea.model.errors import StoreError
from elea.store.catalogue import Catalogue, Damage, SegmentRow
from elea.store.files import Files, Handle
from elea.store.frames import BadFrame
from elea.store.segment import SUFFIX, Header, Scan, Segment, header_frame, read_header, scan

__all__ = ["BASE", "CATALOGUE", "Mark", "Recovery", "recover", "row_of", "segment_name"]

BASE: Final = f"base{SUFFIX}"
"""Samples that retention kept because they are the newest of their key."""

CATALOGUE: Final = "catalogue.sqlite"
_NAME: Final = re.compile(r"\d{20}" + re.escape(SUFFIX))


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of what is known to be on disk: a segment, an offset in it, and the next position."""

    first: int
    offset: int
    position: int

    @classmethod
    def parse(cls, text: str | None) -> Mark:
        """The inverse of `str`."""
        return cls(*map(int, text.split(":"))) if text else cls(0, 0, 0)

    def __str__(self) -> str:
        return f"{self.first}:{self.offset}:{self.position}"


@dataclass(slots=True)
class Recovery:
    """What was found."""

    first: int = 0
    segments: list[Segment] = field(default_factory=list)
    base: Segment | None = None
    active: Segment | None = None
    next: int = 0
    damage: list[Damage] = field(default_factory=list)
    torn: list[tuple[str, int, int]] = field(default_factory=list)
    """Ends that were cut: name, offset, octets."""

    unknown: list[str] = field(default_factory=list)
    """Files that are no part of the log, and were left alone."""


def segment_name(first: int) -> str:
    """The file name of the segment that starts at a position."""
    return f"{first:020}{SUFFIX}"


def row_of(segment: Segment, last: int | None = None) -> SegmentRow:
    """What the catalogue says of a segment."""
    facts = [block.facts for block in segment.blocks]
    ends = (segment.next - 1 if last is None else last, segment.size, len(facts))
    if not facts:
        return SegmentRow(segment.first, *ends, 0, 0, 0, 0)
    ntp = (min(fact.min_ntp for fact in facts), max(fact.max_ntp for fact in facts))
    arrival = (min(fact.min_arrival for fact in facts), max(fact.max_arrival for fact in facts))
    return SegmentRow(segment.first, *ends, *ntp, *arrival)


def recover(path: Path, catalogue: Catalogue, files: Files, *, read_only: bool) -> Recovery:
    """Look at every file of the log and repair what may be repaired (nothing if `read_only`).

    Raises:
        StoreError: a file was written by a later version.
    """
    return _Recoverer(path, catalogue, files, read_only).run()


class _Recoverer:
    def __init__(self, path: Path, catalogue: Catalogue, files: Files, read_only: bool) -> None:
        self.path = path
        self.catalogue = catalogue
        self.files = files
        self.read_only = read_only
        self.log = catalogue.fact("log") or ""
        self.salt = int(catalogue.fact("salt") or "0", 16)
        self.first = int(catalogue.fact("first") or "0")
        self.mark = Mark.parse(catalogue.fact("mark"))
        self.rows = {row.first: row for row in catalogue.segments()}
        self.found = Recovery(first=self.first, next=self.first)

    def run(self) -> Recovery:
        names = {int(path.name[:20]) for path in self.path.iterdir() if _NAME.fullmatch(path.name)}
        due = {self.mark.first} if self.mark.position > self.mark.first >= self.first else set()
        starts = sorted(names | set(self.rows) | due)
        for start in starts:
            self._segment(start, is_newest=start == starts[-1])
        self.found.next = max(self.found.next, self.mark.position)
        self._base()
        if not self.read_only:
            for damage in self.found.damage:
                self.catalogue.put_damage(damage)
        return self.found

    # -- one file ----------------------------------------------------------------------------------------------

    def _segment(self, start: int, *, is_newest: bool) -> None:
        name = segment_name(start)
        row = self.rows.get(start)
        promised = row.last + 1 if row else self.mark.position if self.mark.first == start else start
        try:
            handle = self._open(self.path / name, sealed=row is not None)
        except FileNotFoundError:
            self._lost(name, 0, 0, max(start, self.found.next), promised - 1, "the file is missing")
            return
        header = self._header(handle, start, promised, is_newest=is_newest)
        if header is None:
            return
        if start < self.first:
            self._leftover(handle.path)
            return
        if start > self.found.next:
            self._lost(name, 0, 0, self.found.next, start - 1, "samples before the segment are missing")
        if row is not None:
            self._sealed(handle, header, row)
        else:
            self._unsealed(handle, header, promised, is_newest=is_newest)

    def _open(self, path: Path, *, sealed: bool) -> Handle:
        return Handle(path) if self.read_only or sealed else self.files.open(path)

    def _header(self, handle: Handle, start: int, promised: int, *, is_newest: bool) -> Header | None:
        name = handle.path.name
        try:
            header = read_header(handle)
        except BadFrame as bad:
            if is_newest and promised == start:
                # The process died while it made the file, before any sample was in it.
                self._set_aside(handle)
                return None
            # All segments of a log start with the same octets but for the position, so the rest can be read.
            size = len(header_frame(self.log, self.salt, start))
            self.found.damage.append(Damage(name, 0, size, start, start - 1, f"header: {bad}"))
            return Header(self.log, self.salt, start, size)
        problem = ""
        if header.log != self.log:
            problem = "the file belongs to another log"
        elif header.first != start:
            problem = f"the file is the segment of position {header.first}"
        if not problem:
            return header
        self.found.unknown.append(name)
        self._lost(name, 0, handle.size(), max(start, self.found.next), promised - 1, problem)
        return None

    def _sealed(self, handle: Handle, header: Header, row: SegmentRow) -> None:
        if handle.size() == row.size:
            self.found.segments.append(Segment(handle, header, size=row.size, blocks=None))
            self.found.next = row.last + 1
            return
        # Either somebody cut or lengthened it, or it was compacted and the process died before it said so.
        result = self._scan(handle, header)
        segment = Segment(handle, header, size=result.end, blocks=result.blocks)
        self.found.segments.append(segment)
        self.found.damage += result.damage
        extra = handle.size() - result.end
        if segment.next <= row.last:
            self._lost(segment.name, result.end, extra, segment.next, row.last, result.tail or "the file is cut off")
        elif result.tail:
            self.found.damage.append(Damage(segment.name, result.end, extra, row.last + 1, row.last, "foreign octets"))
        elif not result.damage and not self.read_only:
            self.catalogue.put_segment(row_of(segment))
        self.found.next = row.last + 1

    def _unsealed(self, handle: Handle, header: Header, promised: int, *, is_newest: bool) -> None:
        result = self._scan(handle, header)
        segment = Segment(handle, header, size=result.end, blocks=result.blocks)
        self.found.segments.append(segment)
        self.found.damage += result.damage
        extra = handle.size() - result.end
        self.found.next = segment.next
        if segment.next < promised:
            self._lost(segment.name, result.end, extra, segment.next, promised - 1, result.tail or "the end is missing")
        elif result.tail is not None:
            self._cut(handle, result.end, extra)
        sound = all(damage.segment != segment.name for damage in self.found.damage)
        if is_newest and sound:
            self.found.active = segment
        elif not self.read_only:
            self.catalogue.put_segment(row_of(segment, max(segment.next, promised) - 1))

    def _scan(self, handle: Handle, header: Header) -> Scan:
        return scan(handle, start=header.size, size=handle.size(), salt=header.salt, first=header.first, bodies=True)

    def _base(self) -> None:
        path = self.path / BASE
        if not path.exists():
            return
        try:
            handle = Handle(path)
            header = read_header(handle)
        except BadFrame as bad:
            self.found.damage.append(Damage(BASE, 0, handle.size(), 0, self.first - 1, f"header: {bad}"))
            return
        result = scan(
            handle, start=header.size, size=handle.size(), salt=header.salt, first=0, bodies=True, dense=False
        )
        self.found.base = Segment(handle, header, size=result.end, blocks=result.blocks, dense=False)
        self.found.damage += result.damage
        if result.tail is not None:
            after = self.found.base.next
            size = handle.size() - result.end
            self.found.damage.append(Damage(BASE, result.end, size, after, self.first - 1, result.tail))

    # -- what to do about it -----------------------------------------------------------------------------------

    def _lost(self, name: str, offset: int, size: int, first: int, last: int, why: str) -> None:
        """Positions up to `last` are gone; they are not given out again."""
        self.found.damage.append(Damage(name, offset, size, first, last, why))
        if last >= first:
            self.found.next = max(self.found.next, last + 1)

    def _cut(self, handle: Handle, offset: int, size: int) -> None:
        """Cut a torn end off, and keep its octets: it was never acknowledged, but somebody may want to look."""
        self.found.torn.append((handle.path.name, offset, size))
        if self.read_only:
            return
        kept = handle.path.with_name(f"{handle.path.name}.{offset}.torn")
        self.files.replace(kept, [handle.read(size, offset)])
        self.files.truncate(handle, offset)
        self.files.sync(handle)

    def _set_aside(self, handle: Handle) -> None:
        self.found.torn.append((handle.path.name, 0, handle.size()))
        if not self.read_only:
            self.files.rename(handle.path, handle.path.with_name(f"{handle.path.name}.0.torn"))
            self.files.sync_directory(self.path)

    def _leftover(self, path: Path) -> None:
        """A segment of this log below its first position: retention died before it removed the file."""
        if not self.read_only:
            self.files.remove(path)


def identify(path: Path) -> tuple[str, int, int] | None:
    """The log, salt and first position that the oldest readable segment of a directory tells; None if there is none."""
    names = sorted(entry.name for entry in path.iterdir() if _NAME.fullmatch(entry.name))
    for name in names:
        try:
            header = read_header(Handle(path / name))
        except BadFrame:
            continue
        return header.log, header.salt, int(names[0][:20])
    return None


def check_no_orphans(path: Path) -> None:
    """Refuse to start an empty log among segments that nobody can read."""
    if any(_NAME.fullmatch(entry.name) for entry in path.iterdir()):
        raise StoreError(
            f"{path} has segments but none has a readable header; restore a backup, or choose another place"
        )
