"""Finding other nodes, as the node sees it; how it is done, a dialect knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from elea.io.scoutsockets import SCOUTING_GROUP
from elea.model.found import Found
from elea.model.qos import Role
from elea.model.values import field, value_class
from elea.node.dialect import DEFAULT, module_of

if TYPE_CHECKING:
    from elea.io.loop import Loop
    from elea.node.connection import Connection

__all__ = ["GREETING_SECONDS", "Discovery", "DiscoverySettings", "GossipRules", "Seeker", "seek"]

GREETING_SECONDS: Final = 0.5


@value_class
class GossipRules:
    """What the configuration says (`scouting/gossip`).

    Args:
        targets: the roles that are told anything.
        autoconnect: the roles to connect to when heard of.
        greater: of those, the ones to connect to only if our id is the greater.
        multihop: pass on what was heard of nodes that are no neighbours, too.
    """

    targets: frozenset[Role] = frozenset({Role.ROUTER, Role.PEER})
    autoconnect: frozenset[Role] = frozenset(Role)
    greater: frozenset[Role] = frozenset()
    multihop: bool = False


@value_class
class DiscoverySettings:
    """What the configuration says of scouting.

    Args:
        timeout: seconds a client looks for a node.
        delay: seconds opening waits for nodes and their declarations.
        group: where to scout; None for not at all.
        answers: whether others that scout find us.
        autoconnect: the roles to connect to when found.
        greater: of those, the ones to connect to only if our id is the greater.
        gossip: None for not at all.
        wait_connected, wait_declared: what opening waits for.
    """

    timeout: float = 3.0
    delay: float = GREETING_SECONDS
    group: str | None = SCOUTING_GROUP
    interface: str = "auto"
    ttl: int = 1
    answers: bool = True
    autoconnect: frozenset[Role] = frozenset(Role)
    greater: frozenset[Role] = frozenset()
    gossip: GossipRules | None = field(default_factory=GossipRules)
    wait_connected: bool = True
    wait_declared: bool = True


class Discovery(Protocol):
    """How one node finds others, and is found."""

    def start(self) -> None:
        """Answer those who scout, and scout; called once the node listens, since its locators are told."""
        ...

    def find_one(self) -> None:
        """Scout and connect to the first node that answers and can be reached, as a client does.

        Raises:
            OperationTimeout: nobody was there in time.
            ConfigError: there is no way to find anybody.
        """
        ...

    def wait(self, *, expected: bool) -> None:
        """Wait until the nodes found have told what they have; `expected` says that a locator was configured."""
        ...

    def left(self, connection: Connection) -> None:
        """A session has ended."""
        ...

    def close(self) -> None:
        """Find nobody any more, and be found by nobody."""
        ...


class Seeker(Protocol):
    """Asks for nodes until it is closed."""

    def close(self) -> None: ...


def seek(loop: Loop, what: int, on_found: Callable[[Found], None], *, group: str, interface: str, ttl: int) -> Seeker:
    """Look for nodes of some roles without being one; `on_found` gets every answer, in a turn of the loop."""
    seeker: Seeker = module_of(DEFAULT).Seeker(loop, what, on_found, group=group, interface=interface, ttl=ttl)
    return seeker
