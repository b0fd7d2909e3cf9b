"""Protobuf payloads, sample by sample, by the descriptors of a `FileDescriptorSet`. The protobuf library reads them.

| field | value |
|---|---|
| numbers, bool, string, bytes | as the library has them |
| enumeration | `Label`, or the number if it has no label |
| message; `google.protobuf.Timestamp` | `dict`; `datetime` |
| repeated, map | `list`, `dict` |

A field with implicit presence that a message leaves out has its default; any other is None then.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from elea.model.errors import InvalidSchema
from elea.model.limits import CONTENT_RECORDS
from elea.model.predicate.types import Enumeration, Label

__all__ = ["TIMESTAMP", "descriptor_in", "message_decoder", "pool_of"]

TIMESTAMP: Final = "google.protobuf.Timestamp"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Value = Callable[[Any, list[int]], object]


def pool_of(descriptors: bytes) -> tuple[Any, list[str]]:
    """All that a descriptor set has, and the full names of its messages.

    Raises:
        InvalidSchema: it is none, or not whole.
        ImportError: there is no protobuf library here.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    except DecodeError as error:
        raise InvalidSchema("protobuf", f"it is no descriptor set: {error}") from error
    pool = descriptor_pool.DescriptorPool()
    try:
        for one in found.file:
            pool.Add(one)
    except TypeError as error:
        told = next(iter(str(error).strip().splitlines()), "")
        raise InvalidSchema("protobuf", f"the descriptor set is not whole: {told}") from error
    names = [".".join(filter(None, (one.package, kind.name))) for one in found.file for kind in one.message_type]
    return pool, names


def descriptor_in(descriptors: bytes, name: str) -> Any:
    """The descriptor of a message.

    Raises:
        InvalidSchema: there is none of this name.
    """
    pool, names = pool_of(descriptors)
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        told = ", ".join(names[:10]) or "none"
        raise InvalidSchema("protobuf", f"there is no message {name}; messages are {told}") from None


def message_decoder(descriptors: bytes, name: str) -> Callable[[bytes], object]:
    """What reads messages of one type.

    Raises:
        InvalidSchema: there is none of this name.
        ImportError: there is no protobuf library here.
    """
    from google.protobuf import message_factory
    from google.protobuf.message import DecodeError

    descriptor = descriptor_in(descriptors, name)
    try:
        parse = message_factory.GetMessageClass(descriptor).FromString
        read = _Messages().of(descriptor)
    except (KeyError, RecursionError) as error:  # a map that is none, or messages within each other without end
        raise InvalidSchema("protobuf", f"{name} makes no sense: {error!r}") from error

    def decode(payload: bytes) -> object:
        try:
            return read(parse(payload), [CONTENT_RECORDS])
        except (DecodeError, RecursionError, OverflowError, AttributeError, TypeError) as error:
            # The last two: a map or a time whose descriptor is none.
            raise ValueError(f"no {name}: {error}") from error

    return decode


class _Messages:
    """Readers of messages by their descriptors; a message may contain itself, which the library bounds when parsing."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[str, Value]]] = {}

    def of(self, descriptor: Any) -> Value:
        fields = self._known.get(descriptor.full_name)
        if fields is None:
            fields = self._known[descriptor.full_name] = []
            fields += [(field.name, self._field(field)) for field in descriptor.fields]

        def read(message: Any, budget: list[int]) -> object:
            # A message of two bytes has all its fields.
            budget[0] -= len(fields)
            if budget[0] < 0:
                raise OverflowError(f"more than {CONTENT_RECORDS} fields (CONTENT_RECORDS)")
            return {name: get(message, budget) for name, get in fields}

        return read

    def _field(self, field: Any) -> Value:
        name = field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = self._value(field.message_type.fields_by_name["value"])
            return lambda message, budget: {
                key: value(each, budget) for key, each in sorted(getattr(message, name).items())
            }
        value = self._value(field)
        if field.is_repeated:
            return lambda message, budget: [value(each, budget) for each in getattr(message, name)]
        if not field.has_presence:
            return lambda message, budget: value(getattr(message, name), budget)
        return lambda message, budget: value(getattr(message, name), budget) if message.HasField(name) else None

    def _value(self, field: Any) -> Value:
        kind = field.message_type
        if kind is not None:
            return _time if kind.full_name == TIMESTAMP else self.of(kind)
        if field.enum_type is not None:
            numbers = field.enum_type.values_by_number
            labels = Label.all_of(Enumeration(tuple((each.name, number) for number, each in numbers.items())))
            return lambda number, budget: labels.get(number, number)
        return _same


def _same(value: object, budget: list[int]) -> object:
    return value


def _time(stamp: Any, budget: list[int]) -> object:
    """The instant of a `google.protobuf.Timestamp`."""
    if not 0 <= stamp.nanos < 1_000_000_000:
        raise OverflowError(f"{stamp.nanos} nanoseconds")
    return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
