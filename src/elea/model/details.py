"""`Details`: what a sample says besides its key, its quality of service and its payload. The same in every dialect.

Samples travel through a node as flat tuples whose details are packed (`elea.wire.details`); this is what they unpack
to. The class is written out, not a `value_class`, because compiled code makes it at a tenth of the cost.
"""

from __future__ import annotations

from elea.model.encoding import Encoding
from elea.model.qos import SampleKind
from elea.model.timestamp import Timestamp

__all__ = ["Details", "Source"]

Source = tuple[bytes, int, int]
"""Who made a sample: the id of the node, the number of the entity there, the number that it gave the sample."""


class Details:
    """Kind, encoding, timestamp, attachment and source of a sample. Nobody changes one that has been made."""

    __slots__ = ("attachment", "encoding", "kind", "source", "timestamp")

    def __init__(
        self,
        kind: SampleKind = SampleKind.PUT,
        encoding: Encoding = Encoding.ZENOH_BYTES,
        timestamp: Timestamp | None = None,
        attachment: bytes | None = None,
        source: Source | None = None,
    ) -> None:
        self.kind = kind
        self.encoding = encoding
        self.timestamp = timestamp
        self.attachment = attachment
        self.source = source

    def _parts(self) -> tuple[object, ...]:
        return self.kind, self.encoding, self.timestamp, self.attachment, self.source

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Details) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Details{self._parts()!r}"
