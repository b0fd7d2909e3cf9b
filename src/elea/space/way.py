"""How samples leave a node: encoded once for all neighbours of one dialect, handed over a batch at a time.

    route   where the samples of one key go                             (`elea.node.route`)
    way     the part of a route that leads to the faces of one encoder
    encoder makes the ways of one dialect; faces that are encoded alike share it

A source (a session that is being read) has a *collector* of each encoder it sends through: it adds the runs of a batch
and flushes it at the end. A put of this process goes over the way directly, since its caller may have to wait.

The classes here do nothing: a node without neighbours has them. Dialects inherit from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from elea.model.values import mypyc_attr
from elea.wire.details import RawSample

if TYPE_CHECKING:
    from elea.model.errors import EleaError
    from elea.space.face import Face

__all__ = ["NOWHERE", "Collector", "Encoder", "Filtered", "Publication", "Way"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Collector:
    """What one source has for neighbours until the end of a batch; used by one thread at a time."""

    def add(self, way: Way, run: list[RawSample], reliable: bool, now_ns: int, is_stamped: bool) -> None:
        """Take a run of samples that have one key and one quality of service."""

    def flush(self) -> None:
        """Send what was collected. What must not be dropped and has no room holds up the link that is being read."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Publication:
    """Samples of one publisher on a way: whatever they have in common is encoded once."""

    def put(self, payload: bytes) -> EleaError | None:
        """Send a sample to all faces; waits as its quality of service says. What it returns, `Way.put` says."""
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class Way:
    """Samples of one key to the faces of one encoder."""

    def __init__(self, key: str, faces: tuple[Face, ...], encoder: Encoder) -> None:
        self.key = key
        self.faces = faces
        self.encoder = encoder
        self.filtered: Filtered | None = None
        """What holds samples against predicates, if these faces do not want all of them."""

    def put(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> EleaError | None:
        """Send one sample of this process to all faces; waits as its quality of service says.

        Returns the error of a link that ended meanwhile, which has counted the sample; the others have got it.
        """
        return None

    def publication(self, meta: bytes | None, qos: int, reliable: bool) -> Publication:
        """For many samples with the same details and quality of service."""
        return Publication()

    def is_full(self, qos: int, reliable: bool) -> bool:
        """Whether a put would wait."""
        return False

    def put_columns(self, columns: Any, ways: Sequence[Way], chosen: Any, qos: int) -> bool | EleaError:
        """Send rows of `columnar.pushwriter.Outgoing` at once: those `chosen`, or all; `ways` are those of its keys.

        False if this encoder cannot; then they are put one by one.
        """
        return False


class Filtered(Protocol):
    """Which samples go a way."""

    way: Way
    """The way of those that do, to the same faces."""

    def chosen(self, key: str, run: list[RawSample]) -> list[RawSample]:
        """Those of a run that are wanted."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class Encoder:
    """Makes messages of samples, for all faces that have it."""

    def way(self, key: str, faces: tuple[Face, ...], declared: bool) -> Way:
        """The way of a key to some faces; `declared` says that the key is worth a number of its own."""
        return Way(key, faces, self)

    def collector(self, *, waits: bool = True) -> Collector:
        """For a new source; one that never `waits` has what must not be dropped queued beyond the bound."""
        return Collector()


NOWHERE: Final = Encoder()
"""The encoder of a face whose samples are not encoded: the local one, which has mailboxes."""
