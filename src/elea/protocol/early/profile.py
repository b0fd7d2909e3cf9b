"""Programs of the papers' time that still run, and what they do otherwise than the papers say.

Nothing of it is in the machines but the places where a profile is asked; the default profile is the papers. Spec:
zenoh-2018 §9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = ["PAPERS", "PROFILES", "Profile"]


@dataclass(frozen=True, slots=True)
class Profile:
    """How one kind of node is spoken to."""

    name: str = "papers"
    prefix: str | None = None
    """What its names begin with in place of a scheme; None for the scheme of the dialect."""
    has_tags: bool = True
    """Whether names may have markers."""
    is_lenient: bool = False
    """Whether padded numbers are taken from it (DEC-04)."""
    one_message: bool = False
    """Whether a packet holds one message at most."""
    one_declaration: bool = False
    """Whether a Declare holds one declaration at most."""
    acknowledges: bool = True
    """Whether it knows AckNack, Synch, KeepAlive and Ping. If not, the link must be reliable by itself: nothing is
    sent again, nothing is acknowledged, and numbers are taken as they come.
    """
    synch_first: bool = False
    """Whether it ignores reliable messages until a Synch has said where they begin."""
    opens_at_hello: bool = False
    """Whether it sends Open at every Hello, also in a session."""
    declares_publishers: bool = True
    """Whether it says what it publishes. If not, it may publish to every resource that it declares."""
    ids_above: int = 0
    """What ids of our own resources are larger than, where an id means one resource at all nodes: theirs are small."""
    takes_properties: bool = True
    """Whether Open and Accept may have properties."""
    ascii_reasons: bool = False
    """Whether the reason of its Close is a digit (48 is 0, in good order)."""

    def received(self, message: Any) -> Any:
        """A message as the papers would have it: names have a scheme."""
        if self.prefix is None:
            return message
        declarations = getattr(message, "declarations", None)
        if declarations is not None:
            return message._replace(declarations=tuple(map(self.declared, declarations)))
        return message._replace(resource=_named(message.resource)) if hasattr(message, "resource") else message

    def declared(self, declaration: Any) -> Any:
        """The same for a declaration."""
        if self.prefix is None:
            return declaration
        if hasattr(declaration, "resource"):
            return declaration._replace(resource=_named(declaration.resource))
        return declaration._replace(query=_named(declaration.query)) if hasattr(declaration, "query") else declaration


def _named(name: bytes) -> bytes:
    # An empty one is that of a fragment (DEC-28).
    return name if b"://" in name or not name else b"zenoh://" + name.lstrip(b"/")


PAPERS: Final = Profile()
PROFILES: Final = {
    one.name: one
    for one in (
        PAPERS,
        Profile(
            "zhe",
            prefix="/",
            has_tags=False,
            is_lenient=True,
            synch_first=True,
            opens_at_hello=True,
            declares_publishers=False,
            ids_above=1 << 20,
        ),
        Profile("zenohd2018", is_lenient=True, one_declaration=True, takes_properties=False, ascii_reasons=True),
        Profile(
            "zenoh-python2018",
            prefix="//",
            is_lenient=True,
            one_message=True,
            one_declaration=True,
            acknowledges=False,
            takes_properties=False,
        ),
    )
}
"""By the name that a locator gives: `?profile=zhe`."""
