"""`StoredSample`: a sample out of a log, with its position, decoded when it is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from elea.api.sample import Sample
from elea.model.details import Details
from elea.model.encoding import Encoding
from elea.model.node_id import NodeId
from elea.model.qos import SampleKind
from elea.model.timestamp import Timestamp
from elea.model.values import mypyc_attr

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StoredSample", "samples_of"]

_LATER: Final = (
    "kind",
    "ntp64",
    "stamp_id",
    "encoding",
    "schema",
    "attachment",
    "source_id",
    "source_eid",
    "source_sn",
)
"""Columns that few look at, in the order in which `StoredSample` has them."""


@mypyc_attr(acyclic=True)
class StoredSample(Sample):
    """A sample that a broker has kept; `position` is its place in the log."""

    __slots__ = ("_row", "position")

    def __init__(self, key: str, payload: bytes, qos: int, position: int, row: tuple[Any, ...]) -> None:
        super().__init__(key, (0, 0, b"", qos, None, payload))
        self.position = position
        self._row = row

    def _details(self) -> Details:
        kind, ntp64, stamp_id, encoding, schema, attachment, source_id, source_eid, source_sn = self._row
        self._more = more = Details(
            SampleKind.DELETE if kind else SampleKind.PUT,
            Encoding.of(encoding, schema),
            Timestamp(ntp64, NodeId(stamp_id)),
            attachment,
            None if source_id is None else (source_id, source_eid, source_sn),
        )
        return more


def samples_of(batch: pa.RecordBatch) -> list[StoredSample]:
    """The rows of a range read as samples, in their order."""
    # By columns: 1.5 µs a sample, where a look at each cell would take 10.
    key, payload, qos, position = (batch.column(name).to_pylist() for name in ("key", "payload", "qos", "position"))
    rows = zip(*(batch.column(name).to_pylist() for name in _LATER), strict=True)
    return list(map(StoredSample, key, payload, qos, position, rows))
