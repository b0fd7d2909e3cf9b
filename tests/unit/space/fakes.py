"""A space with faces that only remember what they were sent."""

from __future__ import annotations

from elea.model.qos import QueryTarget, Role
from elea.space.face import (
    Control,
    Declare,
    Entity,
    Interest,
    InterestDone,
    InterestMode,
    Kinds,
    Region,
    Request,
    Subject,
    Undeclare,
)
from elea.space.questions import QueryBody
from elea.space.space import Space
from elea.space.way import NOWHERE

SUB, QBL, TOK = Entity.SUBSCRIBER, Entity.QUERYABLE, Entity.TOKEN
S, Q, T = Kinds.KEYEXPRS | Kinds.SUBSCRIBERS, Kinds.KEYEXPRS | Kinds.QUERYABLES, Kinds.KEYEXPRS | Kinds.TOKENS
CURRENT, FUTURE, BOTH = InterestMode.CURRENT, InterestMode.FUTURE, InterestMode.CURRENT_FUTURE
ROLES = {Region.CLIENTS: Role.CLIENT, Region.PEERS: Role.PEER, Region.ROUTERS: Role.ROUTER}

BODY = QueryBody("body")


class FakeFace:
    """A neighbour that speaks when told to and remembers what it hears."""

    def __init__(self, node: Node, name: str, region: Region) -> None:
        self._node = node
        self._heard: list[Control] = []
        self._ids = 0
        self.name = name
        self.subject = Subject(name.encode(), ROLES.get(region, node.space.role))
        self.region = region
        self.encoder = NOWHERE
        self.has_priorities = True
        self.lacks: dict[str, str] = {}

    def __repr__(self) -> str:
        return self.name

    def send(self, message: Control) -> None:
        self._heard.append(message)

    def await_room(self, qos: int, timeout: float) -> bool:
        return True

    def counters(self) -> dict[str, int]:
        return {}

    def heard(self) -> list[Control]:
        """What it was sent since the last time."""
        heard, self._heard = self._heard, []
        return heard

    def says(self, *messages: Control) -> None:
        for message in messages:
            self._node.space.receive(self, message, self._node.now)

    def declares(self, entity: Entity, key: str, *, complete: bool = False) -> int:
        self._ids += 1
        self.says(Declare(entity, self._ids, key, complete))
        return self._ids

    def undeclares(self, entity: Entity, number: int) -> None:
        self.says(Undeclare(entity, number))

    def asks(
        self, number: int, mode: InterestMode, kinds: Kinds, key: str | None = None, *, aggregate: bool = False
    ) -> list[Control]:
        """Send an interest; returns what is heard in answer."""
        self.says(Interest(number, mode, kinds, key, aggregate))
        return self.heard()

    def ends(self, number: int) -> None:
        self.says(InterestDone(number))

    def queries(
        self, number: int, key: str, target: QueryTarget = QueryTarget.BEST_MATCHING, timeout_ms: int | None = None
    ) -> None:
        self.says(Request(number, key, target, BODY, timeout_ms))


class Node:
    """A space, its own session, and a clock that stands still unless moved."""

    def __init__(self, role: Role) -> None:
        self.space = Space(role, b"self")
        self.now = 100.0
        self.local = self.add("self", Region.LOCAL)

    def add(self, name: str, region: Region) -> FakeFace:
        face = FakeFace(self, name, region)
        self.space.add_face(face)
        return face

    def client(self, name: str) -> FakeFace:
        return self.add(name, Region.CLIENTS)

    def peer(self, name: str) -> FakeFace:
        return self.add(name, Region.PEERS)

    def router(self, name: str) -> FakeFace:
        return self.add(name, Region.ROUTERS)

    def remove(self, face: FakeFace) -> None:
        self.space.remove_face(face, self.now)

    def targets(self, source: FakeFace, key: str) -> set[str]:
        """Who gets a sample, by name."""
        found = self.space.targets(source, key)
        names = [str(face) for face in found]
        assert len(set(names)) == len(names)
        return set(names)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.space.on_deadline(self.now)
