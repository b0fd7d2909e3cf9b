"""Laws of the space: the key tree against a linear scan, a router against a list of who said what."""

from __future__ import annotations

from collections.abc import Sized

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from elea.model import keyexpr
from elea.model.qos import QueryTarget, Role
from elea.space.face import (
    Declare,
    Entity,
    Final,
    Interest,
    InterestDone,
    InterestMode,
    Kinds,
    Region,
    Request,
    Response,
    ResponseFinal,
    Undeclare,
)
from elea.space.keytree import KeyTree
from elea.space.questions import QueryBody
from tests.unit.space.fakes import FakeFace, Node

CHUNK = st.sampled_from(["a", "b", "ab", "@a", "@a$*", "*", "**", "**", "a$*", "$*b", "a$*b"])
KEY_EXPRS = st.lists(CHUNK, min_size=1, max_size=5).map("/".join).map(keyexpr.canonize)
KEYS = st.lists(st.sampled_from(["a", "b", "ab", "@a"]), min_size=1, max_size=5).map("/".join)


@given(st.lists(KEY_EXPRS, max_size=12), KEY_EXPRS | KEYS)
def test_tree_answers_as_a_linear_scan(stored: list[str], asked: str) -> None:
    tree = KeyTree[str]()
    for key in stored:
        tree.add(key, key)

    intersecting, including = tree.intersecting(asked), tree.including(asked)

    assert sorted(intersecting) == sorted(key for key in set(stored) if keyexpr.intersects(key, asked))
    assert sorted(including) == sorted(key for key in set(stored) if keyexpr.includes(key, asked))


@given(st.lists(st.tuples(KEY_EXPRS, st.booleans()), max_size=40))
def test_tree_holds_what_a_dictionary_holds(steps: list[tuple[str, bool]]) -> None:
    tree, model = KeyTree[str](), dict[str, str]()
    for key, add in steps:
        if add:
            tree.add(key, key)
            model[key] = key
        elif key in model:
            tree.remove(key)
            del model[key]

    assert len(tree) == len(model)
    assert sorted(tree) == sorted(model)
    assert all(tree.get(key) == model.get(key) for key, _ in steps)


FEW = st.sampled_from(["a", "a/b", "a/c", "a/*", "**", "a/**", "*/b", "b"])
ENTITIES = st.sampled_from(list(Entity))
PICK = st.integers(0, 59)
KIND = {Entity.SUBSCRIBER: Kinds.SUBSCRIBERS, Entity.TOKEN: Kinds.TOKENS}


class RouterMachine(RuleBasedStateMachine):
    """A router with faces coming, declaring, asking, querying and going; and a plain account of all of it."""

    @initialize()
    def start(self) -> None:
        self.node = Node(Role.ROUTER)
        self.present: list[FakeFace] = [self.node.local]
        self.entities: dict[tuple[FakeFace, Entity, int], str] = {}
        self.asked: dict[tuple[FakeFace, int], tuple[Entity, str]] = {}
        self.pictures: dict[FakeFace, dict[tuple[Entity, int], str]] = {self.node.local: {}}
        self.branches: list[tuple[FakeFace, int, object]] = []
        self.unanswered: dict[tuple[FakeFace, int], int] = {}
        self.counter = 0
        for region in (Region.CLIENTS, Region.CLIENTS, Region.PEERS):
            self.join(region)

    @precondition(lambda self: len(self.present) < 6)
    @rule(region=st.sampled_from([Region.CLIENTS, Region.CLIENTS, Region.PEERS]))
    def join(self, region: Region) -> None:
        face = self.node.add(f"n{self._next()}", region)
        self.present.append(face)
        self.pictures[face] = {}

    @precondition(lambda self: len(self.present) > 2)
    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        face = self.present.pop(1 + pick % (len(self.present) - 1))  # the own session stays
        self.entities = {name: key for name, key in self.entities.items() if name[0] is not face}
        self.asked = {name: what for name, what in self.asked.items() if name[0] is not face}
        self.unanswered = {name: left for name, left in self.unanswered.items() if name[0] is not face}
        for branch in [branch for branch in self.branches if branch[0] is face]:
            self._branch_over(branch)
        self.node.remove(face)
        self._listen()

    @rule(pick=PICK, entity=ENTITIES, key=FEW)
    def declare(self, pick: int, entity: Entity, key: str) -> None:
        face, number = self._face(pick), self._next()
        self.entities[face, entity, number] = key
        face.says(Declare(entity, number, key))
        self._listen()

    @precondition(lambda self: self.entities)
    @rule(pick=PICK)
    def undeclare(self, pick: int) -> None:
        name = face, entity, number = list(self.entities)[pick % len(self.entities)]
        del self.entities[name]
        face.says(Undeclare(entity, number))
        self._listen()

    @rule(pick=PICK, entity=st.sampled_from([Entity.SUBSCRIBER, Entity.TOKEN]), key=FEW)
    def ask(self, pick: int, entity: Entity, key: str) -> None:
        face, number = self._face(pick), self._next()
        self.asked[face, number] = (entity, key)
        face.says(Interest(number, InterestMode.CURRENT_FUTURE, KIND[entity], key))
        answers = self._listen()[face]
        assert answers[-1] == Final(number)
        assert all(isinstance(a, Declare) and a.interest_id == number for a in answers[:-1])

    @precondition(lambda self: self.asked)
    @rule(pick=PICK)
    def end_interest(self, pick: int) -> None:
        name = face, number = list(self.asked)[pick % len(self.asked)]
        del self.asked[name]
        face.says(InterestDone(number))
        assert not any(self._listen().values())

    @rule(pick=PICK, key=FEW)
    def query(self, pick: int, key: str) -> None:
        face, number = self._face(pick), self._next()
        expected = self._reached(face, Entity.QUERYABLE, key)
        if expected:
            self.unanswered[face, number] = len(expected)
        face.says(Request(number, key, QueryTarget.ALL, QueryBody(str(number))))
        heard = self._listen()
        requests = [
            (f, m.id, (face, int(m.body.parameters))) for f, got in heard.items() for m in got if isinstance(m, Request)
        ]
        assert {request[0] for request in requests} == expected
        assert len(requests) == len(expected)
        assert (ResponseFinal(number) in heard[face]) == (not expected)
        self.branches += requests

    @precondition(lambda self: self.branches)
    @rule(pick=PICK, final=st.booleans())
    def respond(self, pick: int, final: bool) -> None:
        branch = face, number, asker = self.branches[pick % len(self.branches)]
        alive = asker in self.unanswered
        face.says(Response(number, "a", b"reply"))
        assert sum(isinstance(m, Response) for got in self._listen().values() for m in got) == alive
        if final:
            self._branch_over(branch)
            face.says(ResponseFinal(number))
            self._listen()

    @invariant()
    def targets_are_those_of_the_account(self) -> None:
        for face in getattr(self, "present", ()):
            for key in ("a", "a/b", "*/b", "**"):
                expected = {str(reached) for reached in self._reached(face, Entity.SUBSCRIBER, key)}
                assert self.node.targets(face, key) == expected

    @invariant()
    def pictures_are_those_of_the_account(self) -> None:
        for face in getattr(self, "present", ()):
            for entity in (Entity.SUBSCRIBER, Entity.TOKEN):
                known = [key for (kind, _), key in self.pictures[face].items() if kind is entity]
                audible = {
                    key
                    for (source, kind, _), key in self.entities.items()
                    if kind is entity and self._hears(face, source, entity)
                }
                wanted = [key for (asker, _), (kind, key) in self.asked.items() if asker is face and kind is entity]
                needed = {key for key in audible if any(keyexpr.intersects(key, want) for want in wanted)}
                assert len(set(known)) == len(known)
                assert needed <= set(known) <= audible

    @invariant()
    def queries_end_once_all_branches_have(self) -> None:
        if hasattr(self, "unanswered"):
            assert len(self.node.space._queries) == len(self.unanswered)

    def teardown(self) -> None:
        """Nothing is left of neighbours that are gone."""
        for face in getattr(self, "present", ()):
            self.node.remove(face)
        if hasattr(self, "node"):
            space = self.node.space
            books: list[Sized] = [*space._declarations._trees.values(), space._declarations._held]
            books += [space._interests._by_id, space._interests._by_key, space._interests._unrestricted]
            books += [space._announcements._told, space._queries._asked, space._queries._passed_on]
            books += [space._queries._deadlines, space._upstream._of, space._routes.known]
            assert [len(book) for book in books] == [0] * len(books)

    def _branch_over(self, branch: tuple[FakeFace, int, object]) -> None:
        self.branches.remove(branch)
        asker: tuple[FakeFace, int] = branch[2]  # type: ignore[assignment]
        if asker in self.unanswered:
            self.unanswered[asker] -= 1
            if not self.unanswered[asker]:
                del self.unanswered[asker]

    def _passes(self, source: FakeFace, face: FakeFace) -> bool:
        return source is not face and not (source.region is face.region is Region.PEERS)

    def _hears(self, face: FakeFace, source: FakeFace, entity: Entity) -> bool:
        own_token = face is source and entity is Entity.TOKEN and face.region is Region.CLIENTS
        return own_token or self._passes(source, face)

    def _reached(self, source: FakeFace, entity: Entity, key: str) -> set[FakeFace]:
        return {
            face
            for (face, kind, _), declared in self.entities.items()
            if kind is entity and self._passes(source, face) and keyexpr.intersects(declared, key)
        }

    def _listen(self) -> dict[FakeFace, list[object]]:
        """Hand out what was sent and keep each face's picture by it."""
        heard: dict[FakeFace, list[object]] = {}
        for face in self.pictures:
            heard[face] = list(face.heard())
            assert face in self.present or not heard[face]
            for message in heard[face]:
                if isinstance(message, Declare):
                    known = self.pictures[face].setdefault((message.entity, message.id), message.key)
                    assert known == message.key
                elif isinstance(message, Undeclare):
                    del self.pictures[face][message.entity, message.id]
        return heard

    def _face(self, pick: int) -> FakeFace:
        return self.present[pick % len(self.present)]

    def _next(self) -> int:
        self.counter += 1
        return self.counter


TestRouter = RouterMachine.TestCase
