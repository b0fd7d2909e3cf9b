"""What one node has declared to another: transactions that hold as a whole or not at all.

Resources, selections, publishers and subscribers of one direction of a session, in all its resource spaces.
Declarations wait for their commit, are evaluated in order, and undone together when one fails. Names are checked, not
understood: where a declaration leads is its owner's to say (`judge`). Spec: zenoh-2018 §5.7.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

from elea.model.errors import InvalidResource, InvalidSelector, RuleBroken
from elea.model.limits import EARLY_DECLARED, EARLY_DECLARED_OCTETS, EARLY_PENDING, EARLY_SPACES
from elea.model.qos import Durability
from elea.model.resource import Resource, Selection
from elea.protocol.early.commit import tolerates_commit
from elea.protocol.early.generation import Generation
from elea.protocol.early.rules import check_declaration, declared_id
from elea.protocol.early.terms import PropertyId, property_number

__all__ = ["Change", "Declarations", "Space", "Status", "durability_of"]


class Status:
    """What a result says (Z18-DCL-06)."""

    SUCCESS: Final = 0
    NO_SPACE: Final = 1
    CONFLICT: Final = 2
    TOO_LARGE: Final = 3
    TRY_AGAIN: Final = 4
    INVALID: Final = 5
    UNSUPPORTED: Final = 6
    OTHER: Final = 7


class Change(NamedTuple):
    """Something is declared that was not (`now`), or no longer (`before`), or otherwise than before (both)."""

    space: int
    kind: str
    """`resource`, `selection`, `publisher` or `subscriber`."""
    id: int
    before: Any
    now: Any


class Space:
    """What is declared in one resource space, by id."""

    def __init__(self) -> None:
        self.resources: dict[int, Any] = {}
        self.selections: dict[int, Any] = {}
        self.publishers: dict[int, Any] = {}
        self.subscribers: dict[int, Any] = {}

    def table(self, kind: str) -> dict[int, Any]:
        found: dict[int, Any] = getattr(self, f"{kind}s")
        return found

    def is_anonymous(self, id: int) -> bool:
        """Whether an id is in use for a resource without a name (DEC-30)."""
        return id % 2 == 0 and id not in self.resources and (id in self.publishers or id in self.subscribers)


class _Refused(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def durability_of(resource: Resource, properties: Sequence[Any] | None) -> Durability:
    """What tags and property 8 say together.

    Raises:
        ValueError: they contradict each other, or the property makes no sense (Z18-DUR-01).
    """
    said = property_number(properties, PropertyId.DURABILITY, -1, most=2)
    tagged = resource.durability
    if said < 0:
        return tagged
    given = (Durability.VOLATILE, Durability.TRANSIENT, Durability.PERSISTENT)[said]
    if tagged is not Durability.VOLATILE and given is not tagged:
        raise ValueError(f"tagged {tagged.name.lower()}, and declared {given.name.lower()}")
    return given


class Declarations:
    """What the other node has declared.

    Args:
        mode: our commit mode, by which it knows how far it may run ahead.
        judge: asked about each declaration, with its space and what it says in text if that is a resource or a
            selection; a status other than 0 refuses it.
        others: what was declared in the other direction, whose ids may be used too.
    """

    def __init__(
        self,
        generation: Generation,
        *,
        mode: int = 0,
        judge: Callable[[int, Any, Resource | Selection | None], int] = lambda space, declaration, named: 0,
        limit: int = EARLY_DECLARED,
        others: Declarations | None = None,
    ) -> None:
        self.spaces: dict[int, Space] = {}
        self._generation = generation
        self._mode = mode
        self._judge = judge
        self._limit = limit
        self._others = others
        self._unanswered: dict[int, int] = {}
        self._pending: dict[int, list[tuple[int, Any]]] = {}
        self._pending_octets = 0
        self._octets = 0
        self._too_many: set[int] = set()
        self._undo: list[tuple[int, str, int, Any]] = []
        self._ids: dict[tuple[int, str, str], set[int]] = {}
        self._changes: list[Change] = []

    def space(self, id: int) -> Space:
        found = self.spaces.get(id)
        if found is None:
            found = self.spaces[id] = Space()
        return found

    @property
    def pending(self) -> int:
        """How many declarations wait for a commit."""
        return sum(len(listed) for listed in self._pending.values())

    def receive(self, conduit: int, space: int, message: Any) -> tuple[list[Change], Any, list[Any]]:
        """A Declare: what changes by it, the ResultDecl to answer with if there is one, and results that it holds.

        Raises:
            RuleBroken: with the reason to close the session with.
        """
        results = [one for one in message.declarations if type(one).__name__ == "ResultDecl"]
        listed = [one for one in message.declarations if type(one).__name__ != "ResultDecl"]
        if message.committed:
            return self._committed(space, listed), None, results
        waiting = self._pending.setdefault(conduit, [])
        for declaration in listed:
            if type(declaration).__name__ == "CommitDecl":
                changes, result = self._commit(conduit, declaration.commitId)
                return changes, result, results
            if len(waiting) >= EARLY_PENDING or self._pending_octets > EARLY_DECLARED_OCTETS:
                self._too_many.add(conduit)
            else:
                waiting.append((space, declaration))
                self._pending_octets += _octets(declaration)
        return [], None, results

    def _committed(self, space: int, listed: Sequence[Any]) -> list[Change]:
        """Declarations that cannot be refused except by ending the session (Z18-DCL-05)."""
        status, id, changes = self._evaluate([(space, one) for one in listed])
        if status:
            raise RuleBroken("PRECOMMITTED", "close-6", f"declaration {id} would have status {status}")
        return changes

    def _commit(self, conduit: int, commit_id: int) -> tuple[list[Change], Any]:
        unanswered = self._unanswered.get(conduit, 0)
        if not tolerates_commit(self._mode, unanswered):
            problem = f"one more commit while {unanswered} have no result, in commit mode {self._mode}"
            raise RuleBroken("COMMIT_FLOOD", "close-255", problem)
        self._unanswered[conduit] = unanswered + 1
        waiting = self._pending.pop(conduit, [])
        self._pending_octets -= sum(_octets(declaration) for _, declaration in waiting)
        result = self._generation.messages.ResultDecl
        if conduit in self._too_many:
            self._too_many.discard(conduit)
            return [], result(commit_id, Status.TOO_LARGE, declared_id(waiting[0][1]))
        status, id, changes = self._evaluate(waiting)
        return changes, result(commit_id, status, id if status else None)

    def _evaluate(self, listed: Sequence[tuple[int, Any]]) -> tuple[int, int, list[Change]]:
        self._undo, self._changes = [], []
        for space, declaration in listed:
            try:
                check_declaration(declaration)
                if type(declaration).__name__ == "CommitDecl":
                    raise _Refused(Status.INVALID)
                self._declare(space, declaration)
            except (RuleBroken, InvalidResource, InvalidSelector, ValueError):
                return self._undone(Status.INVALID, declaration)
            except _Refused as refused:
                return self._undone(refused.status, declaration)
        return Status.SUCCESS, 0, self._changes

    def _undone(self, status: int, declaration: Any) -> tuple[int, int, list[Change]]:
        for space, kind, id, before in reversed(self._undo):
            self._put(space, kind, id, before)
        return status, declared_id(declaration), []

    # -- each kind ----------------------------------------------------------------------------------------------------

    def _declare(self, space: int, declaration: Any) -> None:
        if space and not self._generation.has_spaces:
            raise _Refused(Status.UNSUPPORTED)
        if space not in self.spaces and len(self.spaces) >= EARLY_SPACES:
            raise _Refused(Status.NO_SPACE)
        where = self.space(space)
        match type(declaration).__name__:
            case "ResourceDecl":
                self._resource(space, where, declaration)
            case "SelectionDecl":
                self._selection(space, where, declaration, declaration.sid)
            case "BindingDecl":
                self._binding(space, where, declaration)
            case "PublisherDecl":
                self._reference(space, where, "publisher", declaration)
            case "SubscriberDecl":
                self._reference(space, where, "subscriber", declaration)
            case "ForgetResourceDecl":
                self._forget(space, where, "resource", declaration.rid)
            case "ForgetSelectionDecl":
                self._forget(space, where, "selection", declaration.sid)
            case "ForgetPublisherDecl":
                self._drop(space, where, "publisher", declaration.id)
            case "ForgetSubscriberDecl":
                self._drop(space, where, "subscriber", declaration.id)

    def _resource(self, space: int, where: Space, declaration: Any) -> None:
        known = where.resources.get(declaration.rid)
        if known is not None:
            if known.resource != declaration.resource or _as_set(known) != _as_set(declaration):
                raise _Refused(Status.CONFLICT)
            return
        if where.is_anonymous(declaration.rid):
            raise _Refused(Status.CONFLICT)
        resource = Resource.parse(declaration.resource.decode("ascii"))
        durability_of(resource, declaration.properties)
        property_number(declaration.properties, PropertyId.RELIABILITY, 1, most=1)
        self._consult(space, declaration, resource)
        self._set(space, where, "resource", declaration.rid, declaration)

    def _selection(self, space: int, where: Space, declaration: Any, id: int) -> None:
        known = where.selections.get(id)
        if known is not None:
            if known != declaration:
                raise _Refused(Status.CONFLICT)
            return
        self._consult(space, declaration, Selection.parse(declaration.query.decode("ascii")))
        self._set(space, where, "selection", id, declaration)

    def _binding(self, space: int, where: Space, declaration: Any) -> None:
        old = where.selections.get(declaration.oldId)
        if old is None:
            raise _Refused(Status.INVALID)
        self._selection(space, where, old, declaration.newId)

    def _reference(self, space: int, where: Space, kind: str, declaration: Any) -> None:
        id = declaration.id
        if id % 2 and not self._is_selection(space, id):
            raise _Refused(Status.INVALID)
        property_number(declaration.properties, PropertyId.RELIABILITY, 1, most=1)
        property_number(declaration.properties, PropertyId.DURABILITY, 0, most=2)
        if where.table(kind).get(id) != declaration:
            self._consult(space, declaration, None)
            self._set(space, where, kind, id, declaration)

    def _forget(self, space: int, where: Space, kind: str, id: int) -> None:
        """A resource or selection, and who published or subscribed to it (Z18-DCL-15)."""
        for user in ("publisher", "subscriber"):
            if id in where.table(kind):
                self._drop(space, where, user, id)
        self._drop(space, where, kind, id)

    def _consult(self, space: int, declaration: Any, named: Resource | Selection | None) -> None:
        status = self._judge(space, declaration, named)
        if status:
            raise _Refused(status)

    def _set(self, space: int, where: Space, kind: str, id: int, declaration: Any) -> None:
        table = where.table(kind)
        before = table.get(id)
        if before is None and sum(len(one.table(kind)) for one in self.spaces.values()) >= self._limit:
            raise _Refused(Status.NO_SPACE)
        if self._octets + _octets(declaration) > EARLY_DECLARED_OCTETS:
            raise _Refused(Status.NO_SPACE)
        self._undo.append((space, kind, id, before))
        self._changes.append(Change(space, kind, id, before, declaration))
        self._put(space, kind, id, declaration)

    def _drop(self, space: int, where: Space, kind: str, id: int) -> None:
        before = where.table(kind).get(id)
        if before is not None:
            self._undo.append((space, kind, id, before))
            self._changes.append(Change(space, kind, id, before, None))
            self._put(space, kind, id, None)

    def _put(self, space: int, kind: str, id: int, declaration: Any) -> None:
        """Write something into its table, or take it out; resources are found by their paths too."""
        table = self.space(space).table(kind)
        before = table.pop(id, None)
        self._octets += _octets(declaration) - _octets(before)
        if declaration is not None:
            table[id] = declaration
        if kind == "resource":
            if before is not None:
                self._ids[_place(space, before)].discard(id)
            if declaration is not None:
                self._ids.setdefault(_place(space, declaration), set()).add(id)
            elif not self._ids[_place(space, before)]:
                del self._ids[_place(space, before)]

    def ids_of(self, space: int, path: str, meta: str) -> Collection[int]:
        """The ids of the resources with a path, whatever their tags."""
        return self._ids.get((space, path, meta), ())

    def answered(self, conduit: int) -> None:
        """The result of the oldest commit has left (Z18-DCL-12)."""
        self._unanswered[conduit] -= 1

    def _is_selection(self, space: int, id: int) -> bool:
        found = self._others.spaces.get(space) if self._others is not None else None
        return id in self.space(space).selections or (found is not None and id in found.selections)


def _place(space: int, declaration: Any) -> tuple[int, str, str]:
    resource = Resource.parse(declaration.resource.decode("ascii"))
    return space, resource.path, resource.meta


def _octets(declaration: Any) -> int:
    """Roughly what it takes to remember a declaration, beyond a fixed size."""
    if declaration is None:
        return 0
    text = getattr(declaration, "resource", b"") or getattr(declaration, "query", b"")
    return len(text) + sum(len(one.value) + 16 for one in getattr(declaration, "properties", None) or ())


def _as_set(declaration: Any) -> frozenset[tuple[int, bytes]]:
    return frozenset((one.id, one.value) for one in declaration.properties or ())
