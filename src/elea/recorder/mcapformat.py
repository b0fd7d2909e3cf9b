"""How samples lie in an MCAP file; docs/recorder.md tells it to those who read such files with other tools.

A sample is a message: its payload as it is, in a channel for its key, kind and encoding. What MCAP has no field for
(the exact timestamp, attachment, quality of service, source) is in one more message of the same chunk, on the channel
`@details`: columns as an Arrow IPC stream, one row for each sample, in their order from `sequence` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from elea.columnar.gather import SCHEMA
from elea.model.encoding import Encoding
from elea.model.limits import MCAP_CHUNK_ROWS
from elea.store.entrance import Form

__all__ = [
    "CAPTURE",
    "DETAILS",
    "DETAILS_FORM",
    "ENCODINGS",
    "HEAD",
    "INDEX",
    "MESSAGE_ENCODINGS",
    "ChannelName",
    "details_of",
]

HEAD: Final = np.dtype(
    [
        ("opcode", "u1"),
        ("length", "<u8"),
        ("channel", "<u2"),
        ("sequence", "<u4"),
        ("log_time", "<u8"),
        ("publish_time", "<u8"),
    ]
)
"""What stands before the payload in a record of a message."""

INDEX: Final = np.dtype([("time", "<u8"), ("offset", "<u8")])

DETAILS: Final = "@details"
"""The topic, and the message encoding, of what MCAP has no field for."""

CAPTURE: Final = "elea.capture"
"""In the metadata of every channel: the number of the capture, to which details belong. Files may be merged."""

DETAILS_COLUMNS: Final = ("ntp64", "stamp_id", "attachment", "source_id", "source_eid", "source_sn", "qos")
DETAILS_FORM: Final = Form(
    "the details of a chunk",
    {name: SCHEMA.field(name).type for name in DETAILS_COLUMNS},
    frozenset({"qos"}),
    frozenset({"qos"}),
    rows=MCAP_CHUNK_ROWS,
    batches=1,
)

MESSAGE_ENCODINGS: Final[Mapping[int, str]] = {
    Encoding.APPLICATION_JSON.id: "json",
    Encoding.TEXT_JSON.id: "json",
    Encoding.APPLICATION_CBOR.id: "cbor",
    Encoding.APPLICATION_CDR.id: "cdr",
    Encoding.APPLICATION_PROTOBUF.id: "protobuf",
}
"""Encodings that MCAP has a name for, by which other tools know how to show them."""

ENCODINGS: Final = {
    "json": Encoding.APPLICATION_JSON.id,
    "cbor": Encoding.APPLICATION_CBOR.id,
    "cdr": Encoding.APPLICATION_CDR.id,
    "protobuf": Encoding.APPLICATION_PROTOBUF.id,
}
"""And back."""


class ChannelName(NamedTuple):
    """What all samples of a channel have in common."""

    key: str
    kind: int
    encoding: int
    schema: bytes | None

    @property
    def message_encoding(self) -> str:
        """What MCAP calls the encoding; a deletion has none."""
        return "" if self.kind else MESSAGE_ENCODINGS.get(self.encoding) or str(Encoding.of(self.encoding))

    def metadata(self, capture: str) -> dict[str, str]:
        """What other tools show of a channel, and our reader goes by."""
        found = {
            "zenoh.key": self.key,
            "zenoh.kind": "delete" if self.kind else "put",
            "zenoh.encoding": str(Encoding.of(self.encoding, self.schema)),
            "zenoh.encoding_id": str(self.encoding),
        }
        if self.schema is not None:
            found["zenoh.schema_hex"] = self.schema.hex()
        found[CAPTURE] = capture
        return found

    @classmethod
    def of(cls, topic: str, message_encoding: str, schema_name: str | None, metadata: Mapping[str, str]) -> ChannelName:
        """The same of a channel that was read; one of another recorder goes by its topic and encoding.

        Raises:
            ValueError: what it says of itself makes no sense.
        """
        if CAPTURE in metadata:
            kinds = {"put": 0, "delete": 1}
            schema = metadata.get("zenoh.schema_hex")
            try:
                return cls(
                    metadata["zenoh.key"],
                    kinds[metadata["zenoh.kind"]],
                    int(metadata["zenoh.encoding_id"]),
                    None if schema is None else bytes.fromhex(schema),
                )
            except KeyError as error:
                raise ValueError(f"a channel has no {error}") from error
        encoding = ENCODINGS.get(message_encoding)
        if encoding is None:
            known = Encoding(metadata.get("zenoh.encoding", message_encoding))
            return cls(topic.strip("/"), 0, known.id, known.schema)
        return cls(topic.strip("/"), 0, encoding, schema_name.encode() if schema_name else None)


def details_of(batch: pa.RecordBatch) -> bytes:
    """What MCAP has no field for, as an Arrow IPC stream; columns that are null throughout are left out."""
    wanted = [name for name in DETAILS_COLUMNS if batch.column(name).null_count < batch.num_rows]
    some = batch.select(wanted)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, some.schema) as writer:
        writer.write_batch(some)
    found: bytes = sink.getvalue().to_pybytes()
    return found
