"""The judge of the ledger test: what the broker has at the end, against what the writers wrote down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import elea
from tests.robust.ledgerwriter import KEPT, TRIMMED, Ledger, payload_of, place_of

__all__ = ["Verdict", "judge"]

Found = tuple[int, str, int, bytes]
"""Position, key, kind (1 is a deletion), payload."""


class Verdict(NamedTuple):
    """What was found wrong; lost, phantom, dup and inversions should be 0."""

    stored: int
    lost: int
    """Acknowledged, and not there."""

    phantom: int
    """There, or seen by a subscriber, and never tried; or with another payload or key than it was put with."""

    dup: int
    """There more than once."""

    inversions: int
    """Acknowledged, and behind one of the same writer that was put later; or a position that is missing."""

    late: int
    """The same, of those the writer gave up before: nobody was told that they are stored, so this is no fault."""

    examples: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.phantom or self.dup or self.inversions)


class _Judge:
    def __init__(self, ledgers: Mapping[int, Ledger]) -> None:
        self.ledgers = ledgers
        self.stored = self.late = 0
        self.wrong: dict[str, list[str]] = {"lost": [], "phantom": [], "dup": [], "inversions": []}
        self.there: dict[int, dict[int, int]] = {writer: {} for writer in ledgers}
        """Per writer: number → position, over both logs."""

    def log(self, name: str, samples: Iterable[Found]) -> int | None:
        """Look at the samples of a log; its first position."""
        last: dict[int, int] = {}
        first = due = None
        for position, key, kind, payload in samples:
            self.stored += 1
            if due is not None and position != due:
                self.wrong["inversions"].append(f"{name}: position {position} where {due} was due")
            first, due = position if first is None else first, position + 1
            self._sample(name, position, key, kind, payload, last)
        return first

    def _sample(self, name: str, position: int, key: str, kind: int, payload: bytes, last: dict[int, int]) -> None:
        writer, number = _identity(key, kind, payload)
        ledger = self.ledgers.get(writer)
        what = ledger.tried.get(number) if ledger is not None else None
        place = None if what is None else place_of(what, writer, number)
        whole = bool(kind) or payload == payload_of(writer, number, len(payload))
        if place is None or place != (key, bool(kind)) or not whole:
            self.wrong["phantom"].append(f"{name} {position}: {writer}:{number} on {key}, tried as {what}")
            return
        before = self.there[writer].get(number)
        if before is not None:
            self.wrong["dup"].append(f"{name}: {writer}:{number} at {before} and {position}")
            return
        self.there[writer][number] = position
        told = -1 if ledger is None else ledger.acked.get(number, -1)
        if told not in (-1, position):
            self.wrong["inversions"].append(f"{name}: {writer}:{number} is at {position}, it was told to be at {told}")
        if number < last.get(writer, -1):
            if ledger is not None and number in ledger.acked:
                self.wrong["inversions"].append(f"{name} {position}: {writer}:{number} behind {last[writer]}")
            else:
                self.late += 1
        last[writer] = max(number, last.get(writer, -1))

    def kept(self) -> None:
        """Everything acknowledged is in the log of which everything is kept."""
        for writer, ledger in self.ledgers.items():
            for number in sorted(ledger.acked):
                if ledger.tried[number] != "trimmed" and number not in self.there[writer]:
                    self.wrong["lost"].append(f"{writer}:{number} ({ledger.tried[number]})")

    def told(self) -> None:
        """No position was told twice: who was told it first would have lost the sample, though it be trimmed now."""
        holders: dict[tuple[bool, int], str] = {}
        for writer, ledger in self.ledgers.items():
            for number, position in ledger.acked.items():
                place = (ledger.tried[number] == "trimmed", position)
                other = holders.setdefault(place, f"{writer}:{number}")
                if position >= 0 and other != f"{writer}:{number}":
                    self.wrong["lost"].append(f"{other} or {writer}:{number}, both told to be at {position}")

    def trimmed(self, first: int | None, values: Mapping[str, bytes]) -> None:
        """Of the other log: what was acknowledged behind its oldest sample, and the newest of every key."""
        for writer, ledger in self.ledgers.items():
            there = self.there[writer]
            newest: dict[str, int] = {}
            for number, position in sorted(ledger.acked.items()):
                if ledger.tried[number] != "trimmed":
                    continue
                newest[place_of("trimmed", writer, number).key] = number
                if number not in there and first is not None and position >= first:
                    self.wrong["lost"].append(f"{writer}:{number} at {position} (trimmed, which begins at {first})")
            for key, number in newest.items():
                found = _identity(key, 0, values.get(key, b"-1:-1:"))[1]
                if found < number:
                    self.wrong["lost"].append(f"{key} has {found}, and {number} was acknowledged")

    def gone(self, keys: Iterable[str]) -> None:
        """No key has a value whose deletion was acknowledged."""
        for key in keys:
            _, writer, _, number = key.split("/")
            if int(number) + 1 in self.ledgers[int(writer)].acked:
                self.wrong["lost"].append(f"the deletion of {key}")

    def seen(self, samples: Iterable[tuple[str, int, bytes]]) -> None:
        """What a subscriber saw of acknowledged puts had been stored before."""
        for key, kind, payload in samples:
            writer, number = _identity(key, kind, payload)
            if not key.startswith(TRIMMED) and number not in self.there.get(writer, {}):
                self.wrong["phantom"].append(f"a subscriber saw {writer}:{number} on {key}")

    def verdict(self) -> Verdict:
        examples = tuple(f"{name}: {text}" for name, texts in self.wrong.items() for text in texts[:5])
        lost, phantom, dup, inversions = (len(texts) for texts in self.wrong.values())
        return Verdict(self.stored, lost, phantom, dup, inversions, self.late, examples)


def _identity(key: str, kind: int, payload: bytes) -> tuple[int, int]:
    try:
        if kind:
            _, writer, _, number = key.split("/")
            return int(writer), int(number) + 1
        name, number_, _ = payload[:40].split(b":", 2)
        return int(name), int(number_)
    except ValueError:
        return -1, -1


def judge(
    session: elea.Session, ledgers: Mapping[int, Ledger], seen: Iterable[tuple[str, int, bytes]], timeout: float,
    *, skip_damaged: bool = False,
) -> Verdict:  # fmt: skip
    """Read both logs through a session, and what a subscriber has seen."""
    judging = _Judge(ledgers)
    judging.log(KEPT, _samples(session, f"{KEPT}/**", skip_damaged))
    first = judging.log(TRIMMED, _samples(session, f"{TRIMMED}/**", skip_damaged))
    judging.told()
    judging.kept()
    judging.trimmed(first, _values(session, f"{TRIMMED}/**", timeout))
    judging.gone(_values(session, f"{KEPT}/*/gone/*", timeout))
    judging.seen(seen)
    return judging.verdict()


def _samples(session: elea.Session, keys: str, skip_damaged: bool) -> Iterable[Found]:
    for batch in session.read(keys, skip_damaged=skip_damaged):
        columns = (batch.column(name).to_pylist() for name in ("position", "key", "kind", "payload"))
        yield from zip(*columns, strict=True)


def _values(session: elea.Session, keys: str, timeout: float) -> dict[str, bytes]:
    replies = list(session.get(keys, timeout=timeout))
    assert all(reply.ok for reply in replies), [reply.err for reply in replies if not reply.ok]
    return {str(reply.ok.key_expr): reply.ok.payload.to_bytes() for reply in replies if reply.ok}
