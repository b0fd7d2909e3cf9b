"""`Sample`: what a subscriber gets, decoded when it is looked at.

A session receives samples as flat tuples of bytes (`elea.wire.details`). Making a `Sample` of one is three
assignments; timestamp, encoding, attachment and source are decoded together, the first time one of them is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from elea.api.apitimestamp import Timestamp
from elea.api.identity import EntityGlobalId, SourceInfo, ZenohId
from elea.api.zbytes import ZBytes
from elea.model.details import Details, Source
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import CongestionControl, Priority, Qos, SampleKind
from elea.model.values import mypyc_attr
from elea.wire.details import DEFAULT_QOS, pack, unpack
from elea.wire.timestampstack import StackedDetails

if TYPE_CHECKING:
    from elea.api.instrumentation import TimestampStack

__all__ = ["Sample", "into_source", "source_info_of"]

_QOS: Final = tuple(Qos.from_raw(raw) for raw in range(64))
"""What every packed value means; bits above the sixth are not defined."""


# The garbage collector need not look at thousands of them at a time: none can be part of a cycle.
@mypyc_attr(acyclic=True)
class Sample:
    """One value put to a key, or its deletion.

    >>> sample = Sample.of("home/1/temp", b"21.5", encoding=Encoding.TEXT_PLAIN)
    >>> str(sample.key_expr), sample.payload.to_string(), sample.kind, str(sample.encoding)
    ('home/1/temp', '21.5', SampleKind.PUT, 'text/plain')
    """

    __slots__ = ("_key", "_more", "_raw")
    _more: Details | None

    # 0.19 µs, against 0.33 µs for reading the tuple off the wire. As `RawSample`, mypyc would take it apart here.
    def __init__(self, key: KeyExpr | str, raw: tuple[Any, ...]) -> None:
        """For sessions: `raw` (`RawSample`) as it came, `key` as its scope and suffix resolve."""
        self._key = key
        self._raw = raw
        self._more = None

    @classmethod
    def of(
        cls,
        key_expr: KeyExpr | str,
        payload: bytes,
        *,
        kind: SampleKind = SampleKind.PUT,
        encoding: Encoding = Encoding.ZENOH_BYTES,
        timestamp: Timestamp | None = None,
        qos: int = DEFAULT_QOS,
        attachment: bytes | None = None,
        source_info: SourceInfo | None = None,
    ) -> Sample:
        """A sample of given values."""
        stamp = None if timestamp is None else timestamp.value
        meta = pack(Details(kind, encoding, stamp, attachment, into_source(source_info)))
        return cls(key_expr, (0, 0, b"", qos, meta, payload))

    @property
    def key_expr(self) -> KeyExpr:
        """The key it was put to."""
        key = self._key
        if isinstance(key, str):
            key = self._key = KeyExpr(key)
        return key

    @property
    def payload(self) -> ZBytes:
        """The value; empty for a deletion."""
        return ZBytes(self._raw[5])

    @property
    def kind(self) -> SampleKind:
        """Whether it was put or deleted."""
        return (self._more or self._details()).kind

    @property
    def encoding(self) -> Encoding:
        """What the payload is."""
        return (self._more or self._details()).encoding

    @property
    def timestamp(self) -> Timestamp | None:
        """When it was put, if anybody said so."""
        stamp = (self._more or self._details()).timestamp
        return None if stamp is None else Timestamp.of(stamp)

    @property
    def congestion_control(self) -> CongestionControl:
        """What nodes on the way do with it when a queue is full."""
        return self._qos().congestion_control

    @property
    def priority(self) -> Priority:
        """The lane it took."""
        return self._qos().priority

    @property
    def express(self) -> bool:
        """Whether it was sent without waiting for others to share a batch."""
        return self._qos().express

    @property
    def attachment(self) -> ZBytes | None:
        """What was put along with the value."""
        attachment = (self._more or self._details()).attachment
        return None if attachment is None else ZBytes(attachment)

    @property
    def source_info(self) -> SourceInfo | None:
        """Who put it, if they said so."""
        return source_info_of((self._more or self._details()).source)

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """The timestamps it has collected on its way, if that was asked for."""
        meta = self._raw[4]
        if type(meta) is not StackedDetails:
            return None
        from elea.api.instrumentation import TimestampStack  # few ask for it

        return TimestampStack.of(meta.stack)

    def __repr__(self) -> str:
        more = self._more or self._details()
        shown = {
            "key_expr": str(self._key),
            "payload": self._raw[5] if len(self._raw[5]) <= 64 else f"<{len(self._raw[5])} bytes>",
            "kind": more.kind,
            "encoding": str(more.encoding),
            "timestamp": self.timestamp,
            "priority": self.priority,
            "congestion_control": self.congestion_control,
            "express": self.express,
            "attachment": more.attachment,
            "source_info": self.source_info,
        }
        return f"Sample({', '.join(f'{name}={value!r}' for name, value in shown.items() if value is not None)})"

    def _qos(self) -> Qos:
        packed: int = self._raw[3]
        return _QOS[packed & 63]

    def _details(self) -> Details:
        self._more = more = unpack(self._raw[4])
        return more


def source_info_of(source: Source | None) -> SourceInfo | None:
    """Who made a sample, as the API shows it."""
    if source is None:
        return None
    node_id, entity, number = source
    return SourceInfo(EntityGlobalId(ZenohId(node_id), entity), number)


def into_source(source: SourceInfo | None) -> Source | None:
    """The same as it travels."""
    return None if source is None else (bytes(source.source_id.zid), source.source_id.eid, source.source_sn)
