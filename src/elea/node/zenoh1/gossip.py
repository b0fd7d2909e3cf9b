"""What nodes tell each other of third ones: what to say on which link, and whom to connect to because of it.

`Gossip` owns the numbers given to nodes and what is known of them; it knows no sockets, no clock, and not how a link
is made. Peers tell where they and their neighbours can be reached, so that the mesh becomes full; a router, which does
not relay between its peers, introduces them to each other. Clients take no part.
Spec: zenoh-1 §13.3, §13.4, §17.1, §17.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from elea.model.errors import DecodeError
from elea.model.limits import MAX_LOCATORS, MAX_NODES
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.values import field, value_class
from elea.node.discovery import GossipRules
from elea.wire.zenoh1.codec import read_link_states, write_link_states
from elea.wire.zenoh1.messages import BodyForm, LinkState, LinkStates, Oam

__all__ = [
    "LINK_STATE",
    "MAX_LOCATORS",
    "MAX_NODES",
    "Candidate",
    "Gossip",
    "GossipRules",
    "Said",
    "read_oam",
    "write_oam",
]

LINK_STATE: Final = 1
"""The id of OAM messages that carry link states; others are passed over."""

CONTROL_QOS: Final = 0x08

SWEEP: Final = 64
"""Nodes remembered before those that are gone are looked for; looking at each going would cost the square of a mesh."""


@value_class
class Said:
    """Something to tell a neighbour."""

    to: bytes
    states: LinkStates


@value_class
class Candidate:
    """A node we have no session with and should connect to."""

    node_id: bytes
    role: Role
    locators: tuple[str, ...]


@value_class(frozen=False)
class _Known:
    """A node heard of or met; `index` is what we call it on all links, for as long as we remember it."""

    node_id: bytes
    index: int
    role: Role
    sn: int = 0
    locators: tuple[str, ...] = ()


@value_class(frozen=False)
class _Neighbour:
    """A link that gossip goes over: the node, and the numbers it gives to others."""

    known: _Known
    heard: bool = False
    numbers: dict[int, bytes] = field(default_factory=dict)


class Gossip:
    """The gossip of one node. `locators` says where it can be reached now."""

    def __init__(
        self, node_id: bytes, role: Role, rules: GossipRules, *, locators: Callable[[], Sequence[str]]
    ) -> None:
        self.ignored = 0
        """Entries passed over: they made no sense, or there were too many nodes."""
        self._id = node_id
        self._role = role
        self._rules = rules
        self._locators = locators
        self._sn = 1
        self._nodes: dict[bytes, _Known] = {}
        self._neighbours: dict[bytes, _Neighbour] = {}
        self._free: list[int] = []
        self._sweep_at = SWEEP

    # -- neighbours ---------------------------------------------------------------------------------------------------

    def takes_part(self, role: Role) -> bool:
        """Whether we exchange gossip with neighbours of a role."""
        # Between routers link states mean more: the graph they route by.
        apart = {self._role, role} == {Role.ROUTER}
        return self._role is not Role.CLIENT and role is not Role.CLIENT and not apart and role in self._rules.targets

    def joined(self, node_id: bytes, role: Role) -> list[Said]:
        """A session with a node begins: what to say, before anything else is said to it."""
        if not self.takes_part(role):
            return []
        known = self._know(node_id, role)
        if known is None:
            return []
        self._sn += 1
        self._neighbours[node_id] = _Neighbour(known)
        said = [Said(node_id, LinkStates(tuple(self._introduction(known))))]
        if self._role is Role.PEER:
            # A router is told who our neighbours are; among peers links mean nothing. It may not know our number of
            # this one yet: if we heard of it from others we kept that to ourselves.
            update = LinkStates((_named(known), self._self(Role.ROUTER, named=False)))
            said += [Said(other, update) for other in self._others(node_id) if self._is_router(other)]
        return said

    def left(self, node_id: bytes) -> None:
        """A session has ended. Nothing is said: whoever else knows that node finds out for himself."""
        neighbour = self._neighbours.pop(node_id, None)
        if neighbour is not None:
            # It may come back with the same id: then it is introduced as if it were new.
            self._sn += 1
            neighbour.known.sn = 0
            neighbour.known.locators = ()

    def has_heard(self, node_id: bytes) -> bool:
        """Whether a neighbour has told us its first; always true of those that tell nothing."""
        neighbour = self._neighbours.get(node_id)
        return neighbour is None or neighbour.heard

    # -- hearing ------------------------------------------------------------------------------------------------------

    def heard(self, source: bytes, states: LinkStates) -> tuple[list[Said], list[Candidate]]:
        """A neighbour tells us something: what to pass on, and whom to connect to."""
        neighbour = self._neighbours.get(source)
        if neighbour is None:
            return [], []
        neighbour.heard = True
        said: list[Said] = []
        candidates: list[Candidate] = []
        for entry in states.entries:
            known = self._entry(neighbour, entry)
            if known is None or entry.locators is None:
                continue
            is_direct = known.node_id == source
            if not is_direct and known.node_id in self._neighbours:
                continue  # it speaks for itself
            locators = entry.locators[:MAX_LOCATORS]
            if self._update(known, entry.sn, locators) and (is_direct or self._rules.multihop):
                passed_on = LinkStates((_named(known, located=True),))
                said += [Said(other, passed_on) for other in self._others(known.node_id, source)]
            if not is_direct and locators and self._wants(known):
                candidates.append(Candidate(known.node_id, known.role, locators))
        return said, candidates

    def _entry(self, neighbour: _Neighbour, entry: LinkState) -> _Known | None:
        """The node an entry is about, if it is about another one and makes sense."""
        if entry.zid is not None:
            if not any(entry.zid):
                self.ignored += 1
                return None
            node_id = NodeId(entry.zid).data
            if len(neighbour.numbers) >= MAX_NODES and entry.psid not in neighbour.numbers:
                self.ignored += 1
                return None
            neighbour.numbers[entry.psid] = node_id
        else:
            found = neighbour.numbers.get(entry.psid)
            if found is None:
                self.ignored += 1
                return None
            node_id = found
        if node_id == self._id:
            return None
        role = self._role_of(node_id, entry)
        if role is None:
            self.ignored += 1
            return None
        return self._know(node_id, role)

    def _role_of(self, node_id: bytes, entry: LinkState) -> Role | None:
        if entry.whatami is None:
            known = self._nodes.get(node_id)
            return Role.ROUTER if known is None else known.role
        return Role(entry.whatami) if entry.whatami in (1, 2, 4) else None

    def _know(self, node_id: bytes, role: Role) -> _Known | None:
        known = self._nodes.get(node_id)
        if known is None:
            if len(self._nodes) >= self._sweep_at:
                self._sweep()
            if len(self._nodes) >= MAX_NODES:
                self.ignored += 1
                return None
            # A number that is free may mean another node to somebody else, but we never use one without its name first.
            index = self._free.pop() if self._free else len(self._nodes) + 1
            known = self._nodes[node_id] = _Known(node_id, index, role)
        return known

    def _sweep(self) -> None:
        """Forget the nodes that are no neighbours, and that none of them may speak of."""
        heard = {node_id for neighbour in self._neighbours.values() for node_id in neighbour.numbers.values()}
        for node_id in [one for one in self._nodes if one not in self._neighbours and one not in heard]:
            self._free.append(self._nodes.pop(node_id).index)
        self._sweep_at = min(max(SWEEP, 2 * len(self._nodes)), MAX_NODES)

    def _update(self, known: _Known, sn: int, locators: tuple[str, ...]) -> bool:
        """Take over where a node is; False if that is known, as is all but always so when only its links changed."""
        if sn < known.sn or locators == known.locators:
            known.sn = max(known.sn, sn)
            return False
        known.sn, known.locators = sn, locators
        return True

    def _wants(self, known: _Known) -> bool:
        rules = self._rules
        return may_connect(self._id, known.node_id, known.role, rules.autoconnect, rules.greater)

    # -- telling ------------------------------------------------------------------------------------------------------

    def _introduction(self, to: _Known) -> Iterable[LinkState]:
        """What a new neighbour is told: us, and all we know; by a router only its other peers."""
        if self._role is Role.ROUTER:
            return [_named(n.known, located=True) for n in self._neighbours.values() if n.known.locators]
        others = (_named(known, located=self._is_told(known, to)) for known in self._nodes.values())
        return [self._self(to.role, named=True), *others]

    def _is_told(self, known: _Known, to: _Known) -> bool:
        """Whether a new neighbour is told where another node is: of our neighbours, and with multihop of all."""
        return bool(known.locators) and (known.node_id in self._neighbours or self._rules.multihop) and known is not to

    def _self(self, to: Role, *, named: bool) -> LinkState:
        links = tuple(n.known.index for n in self._neighbours.values()) if to is Role.ROUTER else ()
        zid = self._id if named else None
        return LinkState(0, 0, self._sn, links, zid=zid, whatami=int(self._role), locators=tuple(self._locators()))

    def _others(self, *but: bytes) -> list[bytes]:
        return [node_id for node_id in self._neighbours if node_id not in but]

    def _is_router(self, node_id: bytes) -> bool:
        return self._neighbours[node_id].known.role is Role.ROUTER


def may_connect(own: bytes, other: bytes, role: Role, wanted: frozenset[Role], greater: frozenset[Role]) -> bool:
    """Whether to connect to a node found: its role is wanted, and it is not up to it to connect to us."""
    return other != own and role in wanted and (role not in greater or NodeId(own) > NodeId(other))


def write_oam(states: LinkStates) -> Oam:
    """Link states as the message they travel in."""
    body = bytearray()
    write_link_states(body, states)
    return Oam(BodyForm.ZBufForm, LINK_STATE, qos=CONTROL_QOS, body=bytes(body))


def read_oam(message: Oam) -> LinkStates | None:
    """The link states a message carries; None if it is about something else, or cannot be read."""
    if message.id != LINK_STATE or not isinstance(message.body, bytes):
        return None
    try:
        return read_link_states(message.body, 0)[0]
    except (DecodeError, IndexError):
        return None


def _named(known: _Known, *, located: bool = False) -> LinkState:
    return LinkState(
        0,
        known.index,
        known.sn,
        (),
        gateway=known.role is Role.ROUTER,
        zid=known.node_id,
        whatami=int(known.role),
        locators=known.locators if located else None,
    )
