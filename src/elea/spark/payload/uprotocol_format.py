"""uProtocol messages as rows: columns of what their attributes say, and the payload decoded by a descriptor.

Every sample that is a put under `up/**` gives a row. One that is no message, or that breaks a rule, says so in
`problem` and has its payload in `_corrupt`, as has one whose payload cannot be decoded. Old messages are no problem: a
log is there to keep what has expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elea.columnar.permissive import permissive
from elea.model.errors import ConfigError
from elea.spark.options import ReadOptions
from elea.spark.payload.attributecolumns import Distinct, read_attachments, uuid_texts
from elea.spark.payload.protobuf_rows import ProtobufRows, descriptor_of
from elea.spark.payload.registry import decoder
from elea.spark.payload.types import struct_of
from elea.spark.rows import Made, payload_of
from elea.spark.schema import CORRUPT, MESSAGE, VALUE
from elea.uprotocol import UMessageType, UPayload, UPayloadFormat, UPriority, UUri
from elea.uprotocol.status import InvalidUri, code_of
from elea.uprotocol.zenohkey import key_problem, resolved

__all__ = ["message_columns"]

_LAST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, where Spark's times end."""

_PROTOBUF: Final = UPayloadFormat.PROTOBUF
_ANY: Final = UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY
_JSON: Final = UPayloadFormat.JSON

Decode = Callable[[pa.Array], pa.Array]
"""Payloads to structs; null where one cannot be decoded."""


def message_columns(types: Mapping[str, Any], options: ReadOptions) -> Made | None:
    """What makes the columns of messages that a schema wants; None if it wants none.

    Raises:
        ConfigError: the message of `payloadMessage` is not known, or has not the fields of `value`.
    """
    if not types.keys() & {*MESSAGE, VALUE, CORRUPT}:
        return None
    return _Messages(frozenset(types), _Payloads(struct_of(types[VALUE]), options) if VALUE in types else None)


class _Facts(NamedTuple):
    """What the columns say of messages that came by one key and differ in their identifiers only."""

    type: str | None = None
    source: str | None = None
    sink: str | None = None
    priority: str | None = None
    ttl: int | None = None
    commstatus: str | None = None
    permission_level: int | None = None
    traceparent: str | None = None
    payload_format: str | None = None
    problem: str | None = None
    form: int = -1
    """The format to decode the payload from, 0 if it has none; -1 if it is not to be decoded."""


class _Messages:
    """Makes the columns of messages."""

    def __init__(self, names: frozenset[str], payloads: _Payloads | None) -> None:
        self._names = names
        self._payloads = payloads

    def __call__(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Columns of a log (`elea.store.columns.SCHEMA`) to those of messages."""
        is_put = pc.equal(batch.column("kind"), 0).to_numpy(zero_copy_only=False)
        found = read_attachments(batch.column("attachment"))
        facts, places = _facts(found.distinct, found.places, batch.column("key"), is_put)
        payload = payload_of(batch)
        index = pa.array(places)
        made = {name: _column(facts, name, MESSAGE[name]).take(index) for name in _BY_FACTS & self._names}
        if "id" in self._names:
            made["id"] = uuid_texts(found.ids * is_put[:, None])
        if "reqid" in self._names:
            made["reqid"] = uuid_texts(found.reqids * is_put[:, None])
        if "created" in self._names:
            made["created"] = _created(found.ids * is_put[:, None])
        problems = _column(facts, "problem", "string").take(index)
        if self._payloads is not None:
            forms = np.array([one.form for one in facts], np.int64)[places]
            made[VALUE], problems = self._payloads.decode(payload, forms, problems)
        made["problem"] = problems
        made[CORRUPT] = pc.if_else(problems.is_valid(), payload, pa.scalar(None, payload.type))
        return made


_BY_FACTS: Final = frozenset(_Facts._fields) & MESSAGE.keys() - {"problem"}


def _column(facts: list[_Facts], name: str, kind: str) -> pa.Array:
    return pa.array([getattr(one, name) for one in facts], pa.int64() if kind == "bigint" else pa.string())


def _facts(distinct: list[Distinct], places: Any, keys: pa.Array, is_put: Any) -> tuple[list[_Facts], Any]:
    """The facts there are, and for each row which of them it has; a key and an attachment decide."""
    named = pc.dictionary_encode(keys)
    pairs = named.indices.to_numpy(zero_copy_only=False).astype(np.int64) * (len(distinct) + 1) + places
    pairs[~is_put] = len(distinct)  # a deletion is no message, whatever its key
    found, index = np.unique(pairs, return_inverse=True)
    facts = []
    for pair in found.tolist():
        key, place = divmod(pair, len(distinct) + 1)
        facts.append(_Facts() if place == len(distinct) else _fact(named.dictionary[key].as_py(), distinct[place]))
    return facts, index


def _fact(key: str, told: Distinct) -> _Facts:
    """What a message says of itself."""
    attributes = told.attributes
    if attributes is None:
        return _Facts(problem=told.problem)
    problem = told.problem or key_problem(key, attributes.type, attributes.source, attributes.sink)
    status = attributes.commstatus
    return _Facts(
        _name(UMessageType, attributes.type),
        _address(attributes.source, key, sink=False),
        _address(attributes.sink, key, sink=True),
        UPriority.CS1.name if not attributes.priority else _name(UPriority, attributes.priority),
        attributes.ttl,
        None if status is None else code_of(status).name,
        attributes.permission_level,
        attributes.traceparent,
        _name(UPayloadFormat, attributes.payload_format),
        problem or None,
        # The payload of a call that failed is a UStatus, whatever those of others are.
        -1 if problem or status else attributes.payload_format,
    )


def _name(kind: Any, value: int) -> str | None:
    """The name of a number; the number itself if it has none, and nothing for 0, which is none."""
    if not value:
        return None
    return str(kind(value).name) if value in kind.__members__.values() else str(value)


def _address(uri: UUri | None, key: str, *, sink: bool) -> str | None:
    """As people write it, with the authority that the key has if the sender left it out."""
    if uri is None:
        return None
    try:
        return str(resolved(uri, key, sink=sink))
    except InvalidUri:
        return str(uri)


def _created(ids: Any) -> pa.Array:
    """When messages were made, which their identifiers say; null where there is none, or it is after Spark's times."""
    millis = ids[:, 0] >> np.uint64(16)
    valid = (ids != 0).any(axis=1) & (millis <= _LAST_MS)
    micros = (millis * np.uint64(1000)).astype(np.int64)
    return pa.array(micros, pa.int64(), mask=~valid).cast(pa.timestamp("us", "UTC"))


class _Payloads:
    """Decodes payloads of messages into structs of one type."""

    def __init__(self, wanted: pa.StructType, options: ReadOptions) -> None:
        self._type = wanted
        self._name = options.payload_message
        self._decoders: dict[int, Decode] = dict(self._made(options))

    def _made(self, options: ReadOptions) -> Iterator[tuple[int, Decode]]:
        if options.payload_message is not None:
            messages = ProtobufRows(descriptor_of(options.payload_message, options.payload_descriptor), self._type)

            def read(payloads: pa.Array) -> pa.Array:
                return permissive(payloads, self._type, messages.together, messages.one_by_one)[0]

            yield _PROTOBUF, read
            yield _ANY, lambda payloads: read(self._unwrapped(payloads))
        try:
            documents = decoder("json", self._type)
        except ConfigError:
            if options.payload_message is None:
                raise
        else:  # else it has a type that JSON has not, and no such payload can be of it
            yield _JSON, lambda payloads: documents(payloads)[0]

    def _unwrapped(self, payloads: pa.Array) -> pa.Array:
        """Messages out of their wrapping; null for those that are no such message."""
        found = (UPayload(payload, _ANY).message_bytes(self._name or "") for payload in payloads.to_pylist())
        return pa.array(found, pa.binary())

    def decode(self, payloads: pa.Array, forms: Any, problems: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The values of payloads, each in its format; and what was wrong, with those that could not be decoded."""
        parts = [pa.nulls(1, self._type)]
        places = np.zeros(len(payloads), np.int64)
        told: list[str | None] = [None]
        told_of = np.zeros(len(payloads), np.int64)
        sizes = pc.fill_null(pc.binary_length(payloads), 0).to_numpy()
        forms = np.where((forms == 0) & (sizes == 0), -1, forms)  # no payload
        for form in np.unique(forms[forms >= 0]).tolist():
            rows = np.flatnonzero(forms == form)
            decode = self._decoders.get(form)
            if decode is None:
                told_of[rows] = len(told)
            else:
                values = decode(payloads if len(rows) == len(payloads) else payloads.take(pa.array(rows)))
                places[rows] = sum(map(len, parts)) + np.arange(len(rows))
                told_of[rows[values.is_null().to_numpy(zero_copy_only=False)]] = len(told)
                parts.append(values)
            told.append(self._problem(form, is_known=decode is not None))
        found = pa.concat_arrays(parts)
        # One format and nothing wrong is the rule, and then there is nothing to be put together.
        values = found.slice(1) if len(parts) == 2 and len(parts[1]) == len(payloads) else found.take(pa.array(places))
        return values, pc.coalesce(problems, pa.array(told, pa.string()).take(pa.array(told_of)))

    def _problem(self, form: int, *, is_known: bool) -> str:
        name = UPayloadFormat(form).name
        what = self._name or "value of the schema"
        return f"the {name} payload is no {what}" if is_known else f"no {what} can be read from a payload of {name}"
