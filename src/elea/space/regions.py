"""The rules of each role: who stands where, who is told without asking, and between whom things pass.

Only tables and small functions, so that what differs between a client, a peer and a router is found in one place.
Spec: zenoh-1 sections 9.3, 13.1 to 13.4, 17.5.
"""

from __future__ import annotations

from typing import Final

from elea.model.qos import Role
from elea.space.face import Region

__all__ = ["bloc", "is_equal", "is_gateway", "is_north", "is_sourced", "passes_within"]

_NORTH: Final = {
    Role.CLIENT: frozenset({Region.CLIENTS, Region.PEERS, Region.ROUTERS}),
    Role.PEER: frozenset({Region.PEERS, Region.ROUTERS}),
    Role.ROUTER: frozenset({Region.ROUTERS}),
}
_GATEWAYS: Final = {
    Role.CLIENT: _NORTH[Role.CLIENT],
    Role.PEER: frozenset({Region.ROUTERS}),
    Role.ROUTER: frozenset[Region](),
}
_RELAYED: Final = frozenset({Region.LOCAL, Region.CLIENTS})


def is_north(role: Role, region: Region) -> bool:
    """Whether our declarations are pushed there; the others hear of them when they ask."""
    return region in _NORTH[role]


def is_gateway(role: Role, region: Region) -> bool:
    """Whether what we know of the world is behind that neighbour: we ask it, and send when in doubt."""
    return region in _GATEWAYS[role]


def is_equal(role: Role, region: Region) -> bool:
    """Whether both sides tell each other all they have at the start, ended by a Final of interest 0."""
    return role is Role.PEER and region is Region.PEERS


def is_sourced(role: Role, region: Region) -> bool:
    """Whether declarations are named by their keys and have no ids: between routers (17.4)."""
    return role is Role.ROUTER and region is Region.ROUTERS


def bloc(role: Role, region: Region) -> Region:
    """The region that counts for relaying and for choosing queryables.

    All north neighbours are one: a peer's routers and peers know each other, so nothing passes between them.
    """
    return Region.ROUTERS if is_north(role, region) else region


def passes_within(bloc: Region) -> bool:
    """Whether neighbours of the same bloc need us to hear each other."""
    return bloc in _RELAYED
