"""The seam for dialects: what a node needs of a wire language, and how one is found by its name.

A *dialect* makes a *machine* for each link. The machine takes bytes and time, and gives bytes, its next deadline and,
once the session is open, a face (`elea.space.face`), through which everything else goes. It owns no clock and no
socket: its connection (`elea.node.connection`) reads, writes and looks at the time. What must not be known outside of a
dialect is in its folder, `elea.node.<name>`; nothing but this registry imports from there, by name.

`elea.testing.textdialect` is a whole dialect in two hundred lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from elea.io.linkerrors import LocatorError, UnsupportedLink
from elea.io.locator import Locator, nearest
from elea.model.values import mypyc_attr

if TYPE_CHECKING:
    from elea.io.batchreader import BatchReader
    from elea.io.outbox import Outbox
    from elea.model.errors import EleaError
    from elea.node.connection import Connection
    from elea.node.discovery import Discovery, DiscoverySettings
    from elea.node.links import Links
    from elea.space.face import Face

__all__ = ["ANY", "DEFAULT", "Dialect", "Machine", "Refusal", "dialect_named", "dialect_of", "module_of", "register"]

DEFAULT: Final = "zenoh1"
"""The dialect of a locator that names none."""

ANY: Final = "any"
"""A listener that hears which dialect a node speaks, 1.x or an early one."""


class Refusal(Enum):
    """Why a session over a link is not wanted."""

    SELF = "it is this node itself"
    DUPLICATE = "there is a session with that node already"
    FULL = "there are too many sessions"


@mypyc_attr(allow_interpreted_subclasses=True)
class Machine:
    """One end of one link, from its first bytes to its last. Whatever it raises, an `EleaError`, ends the link."""

    def __init__(self, reader: BatchReader) -> None:
        self.reader = reader
        """Cuts what the link brings into what `receive` takes."""
        self.face: Face | None = None
        """The neighbour, from when the session is open."""
        self.outbox: Outbox | None = None
        """Where the face puts what it says, from when the session is open."""
        self.closed = False
        """Whether the other node has ended the session in good order."""
        self.joined = False
        """Whether its link is one more link of a session that another machine has."""

    def start(self, now: float) -> None:
        """The link is there."""

    def receive(self, batch: bytes | memoryview, now: float) -> None:
        """Take a batch. It may wait for no one: what has no room holds up this link (`Loop.hold`)."""

    def to_send(self, now: float) -> list[bytes]:
        """What is to be sent before the session is open, or instead of it; afterwards its face has an outbox."""
        return []

    def next_deadline(self) -> float | None:
        """When `on_deadline` is to be called."""
        return None

    def on_deadline(self, now: float) -> None:
        """Time has passed: keep the session alive, say things again, or raise that the other node is gone."""

    def on_joining(self) -> None:
        """The face is about to become part of the space, which is locked: the first words to it."""

    def refuse(self, error: EleaError) -> None:
        """The link is about to end because of what came, or a limit: say so if that is usual."""

    @property
    def is_settled(self) -> bool:
        """Whether the other node has everything that was written, as far as it can be known."""
        return True

    def say_goodbye(self) -> None:
        """The session is about to end in good order: tell the other node, before everything that waits."""

    def on_end(self) -> None:
        """The link has ended: let go of everything."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Dialect:
    """A wire language, as one node speaks it: one object a node."""

    def __init__(self, name: str, links: Links) -> None:
        self.name = name
        self.links = links

    def check(self, locator: str) -> None:
        """Raise if the options of a locator make no sense to this dialect.

        Raises:
            LocatorError: they do not.
        """

    def found(self, locator: str, timeout: float) -> Iterator[str] | None:
        """If a locator is none of a node but of a place where nodes are looked for: those that are found, in time."""
        return None

    def initiate(self, connection: Connection, timeout: float) -> Machine:
        """For a link of ours: open a session within `timeout` seconds."""
        return Machine(connection.batches())

    def accept(self, connection: Connection) -> Machine:
        """For a link of another node."""
        return Machine(connection.batches())

    def discovery(self, settings: DiscoverySettings) -> Discovery | None:
        """How nodes of this dialect are found; None if they are not."""
        return None

    def close(self) -> None:
        """The node ends."""


_MODULES: Final = {
    "zenoh1": "elea.node.zenoh1.dialect",
    "zenoh2018": "elea.node.early.dialect",
    "xrce2017": "elea.node.early.dialect",
    ANY: "elea.node.anydialect",
}
_added: Final[dict[str, Callable[[Links], Dialect]]] = {}


def register(name: str, make: Callable[[Links], Dialect]) -> None:
    """Add a dialect: `make` is called once for each node that speaks it."""
    _added[name] = make


def dialect_of(locator: Locator | str) -> str:
    """The name of the dialect that a locator asks for.

    Raises:
        LocatorError: nobody knows that dialect.
    """
    where = Locator.parse(locator) if isinstance(locator, str) else locator
    name = where.meta("dialect") or DEFAULT
    known = sorted({*_MODULES, *_added})
    if name not in known:
        raise LocatorError(str(where), f"unknown dialect {name!r}", nearest(name, known))
    if where.protocol == "serial" and name == DEFAULT:
        # Its frames on a serial line are others than on any stream, and no node to compare them with is at hand.
        raise UnsupportedLink(
            str(where), "Zenoh 1.x does not go over serial lines here", "add ?dialect=zenoh2018 or ?dialect=xrce2017"
        )
    return name


def dialect_named(name: str, links: Links) -> Dialect:
    """A dialect for a node."""
    made: Dialect = _added[name](links) if name in _added else module_of(name).make(links, name)
    return made


def module_of(name: str) -> Any:
    """The module of a dialect: imported by its name, since nothing else may know it."""
    return import_module(_MODULES[name])
