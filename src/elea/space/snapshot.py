"""What the space knows at one moment, for the admin space and for people. Spec: zenoh-1 section 19."""

from __future__ import annotations

from collections.abc import Iterable

from elea.model.qos import Role
from elea.model.values import field, value_class
from elea.space.entities import Declarations
from elea.space.face import Entity, Face, Kinds, Region
from elea.space.interests import Interests

__all__ = ["SessionInfo", "Snapshot", "Sources", "take_snapshot"]


@value_class(frozen=False)
class Sources:
    """The node ids of those who declared something, by their roles."""

    routers: list[bytes] = field(default_factory=list)
    peers: list[bytes] = field(default_factory=list)
    clients: list[bytes] = field(default_factory=list)

    def add(self, face: Face) -> None:
        """Count a neighbour in, once."""
        by_role = {Role.ROUTER: self.routers, Role.PEER: self.peers, Role.CLIENT: self.clients}
        subject = face.subject
        if subject.node_id not in by_role[subject.role]:
            by_role[subject.role].append(subject.node_id)


@value_class
class SessionInfo:
    """One neighbour."""

    node_id: bytes
    role: Role
    region: Region


@value_class
class Snapshot:
    """Neighbours, and for each key expression who declared it. Publishers and queriers are known by their interests."""

    sessions: tuple[SessionInfo, ...]
    subscribers: dict[str, Sources]
    queryables: dict[str, Sources]
    tokens: dict[str, Sources]
    publishers: dict[str, Sources]
    queriers: dict[str, Sources]


def take_snapshot(faces: Iterable[Face], declarations: Declarations, interests: Interests) -> Snapshot:
    """Write down what is known now."""
    return Snapshot(
        tuple(
            SessionInfo(face.subject.node_id, face.subject.role, face.region)
            for face in faces
            if face.region is not Region.LOCAL
        ),
        _declared(declarations, Entity.SUBSCRIBER),
        _declared(declarations, Entity.QUERYABLE),
        _declared(declarations, Entity.TOKEN),
        _interested(interests, Kinds.SUBSCRIBERS),
        _interested(interests, Kinds.QUERYABLES),
    )


def _declared(declarations: Declarations, entity: Entity) -> dict[str, Sources]:
    found: dict[str, Sources] = {}
    for record in declarations.all(entity):
        sources = found[record.key] = Sources()
        for source in record.sources:
            sources.add(source.face)
    return found


def _interested(interests: Interests, kind: Kinds) -> dict[str, Sources]:
    found: dict[str, Sources] = {}
    for asked in interests.standing():
        if asked.key is not None and asked.kinds & kind:
            found.setdefault(asked.key, Sources()).add(asked.neighbour.face)
    return found
