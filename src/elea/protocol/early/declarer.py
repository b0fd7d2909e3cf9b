"""Our own declarations on their way to another node.

Spec: zenoh-2018 §5.7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from elea.model.errors import DeclarationRejected
from elea.protocol.early.commit import may_send
from elea.protocol.early.generation import Generation
from elea.protocol.early.numbered import Entry, plain_entry, vle

__all__ = ["Declarer", "declares"]


def declares(
    generation: Generation,
    listed: Sequence[Any],
    *,
    room: int,
    space: int = 0,
    committed: bool = False,
    alone: bool = False,
) -> list[Entry]:
    """Declares of at most `room` octets: a declaration that is larger cannot be cut, a list of them can.

    Args:
        alone: whether each declaration has a Declare of its own.
    """

    def entry(batch: Sequence[Any]) -> Entry:
        message = generation.messages.Declare(0, tuple(batch), committed=committed)
        return plain_entry(generation, message, space=space)

    fixed = sum(len(part) for part in entry(()))  # with one octet for how many there are
    found: list[Entry] = []
    batch: list[Any] = []
    size = fixed
    for declaration in listed:
        more = sum(len(part) for part in entry((declaration,))) - fixed
        if batch and (alone or size + more + len(vle(len(batch) + 1)) - 1 > room):
            found.append(entry(batch))
            batch, size = [], fixed
        batch.append(declaration)
        size += more
    if batch:
        found.append(entry(batch))
    return found


class Declarer:
    """Our own declarations on their way: a transaction each, as fast as the other node's commit mode allows.

    `take` gives the Declares that may be sent now; `result` tells what became of the oldest.
    """

    def __init__(self, generation: Generation, *, mode: int = 0, room: int = 1 << 16, alone: bool = False) -> None:
        self._generation = generation
        self._alone = alone
        self._mode = mode
        self._room = room
        self._waiting: deque[tuple[int, list[Any], Callable[[DeclarationRejected | None], None]]] = deque()
        self._unanswered: deque[tuple[int, Callable[[DeclarationRejected | None], None]]] = deque()
        self._next = 0

    def __len__(self) -> int:
        """How many transactions have no result."""
        return len(self._waiting) + len(self._unanswered)

    def declare(
        self,
        declarations: Sequence[Any],
        done: Callable[[DeclarationRejected | None], None] = lambda error: None,
        *,
        space: int = 0,
    ) -> None:
        """Queue a transaction; `done` is told how it ended."""
        self._waiting.append((space, list(declarations), done))

    def take(self) -> list[Entry]:
        """The Declares that may be sent now."""
        found: list[Entry] = []
        while self._waiting and may_send(self._mode, len(self._unanswered)).commit:
            space, listed, done = self._waiting.popleft()
            self._next = self._next + 1 & 0xFF
            listed.append(self._generation.messages.CommitDecl(self._next))
            self._unanswered.append((self._next, done))
            found += declares(self._generation, listed, room=self._room, space=space, alone=self._alone)
        return found

    def result(self, declaration: Any) -> None:
        """A ResultDecl has come; one for no commit of ours is ignored (Z18-DCL-11)."""
        if self._unanswered and self._unanswered[0][0] == declaration.commitId:
            _, done = self._unanswered.popleft()
            done(DeclarationRejected(declaration.id or 0, declaration.status) if declaration.status else None)
