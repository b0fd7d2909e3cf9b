"""`z_serialize` and `z_deserialize`: the serialization format of Zenoh, and the number types it knows.

Numbers have a fixed width, little-endian; text, bytes, lists, sets and dictionaries begin with the number of their
elements in LEB128; tuples are their elements one after the other. Nothing in the bytes says what they are: both sides
must agree. Spec: zenoh-1.md section 21; names and errors are those of `zenoh.ext` 1.10.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import GenericAlias
from typing import ClassVar, Final, NoReturn, TypeVar, cast, get_args, get_origin

from elea.api.zbytes import ZBytes
from elea.model.errors import EleaError
from elea.model.limits import EMPTY_ELEMENTS

__all__ = [
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "ZDeserializeError",
    "z_deserialize",
    "z_serialize",
]

T = TypeVar("T")

_NOT_BUILT: Final = frozenset(
    """AdvancedPublisher AdvancedSubscriber CacheConfig HistoryConfig Miss MissDetectionConfig RecoveryConfig
    RepliesConfig SampleMissListener declare_advanced_publisher declare_advanced_subscriber""".split()
)


def __getattr__(name: str) -> NoReturn:
    if name in _NOT_BUILT:
        raise AttributeError(
            f"elea.ext.{name} is not built: have a broker keep the samples, and use "
            "declare_subscriber(history=, since=, cursor=)"
        )
    raise AttributeError(f"module 'elea.ext' has no attribute {name!r}")


class ZDeserializeError(EleaError):
    """Bytes that are not a value of the type asked for."""


# -- numbers ---------------------------------------------------------------------------------------------------------


class _Sized(int):
    """A whole number that fits a number of bits; arithmetic gives plain numbers."""

    bits: ClassVar[int]
    signed: ClassVar[bool]

    def __new__(cls, i: int) -> _Sized:
        low = -(1 << (cls.bits - 1)) if cls.signed else 0
        if not low <= i < low + (1 << cls.bits):
            # The error of eclipse-zenoh, which programs may catch.
            raise AssertionError(f"{i} too big for {cls.__name__}")
        return super().__new__(cls, i)


class Int8(_Sized):
    """A signed number of 8 bits."""

    bits, signed = 8, True


class Int16(_Sized):
    """A signed number of 16 bits."""

    bits, signed = 16, True


class Int32(_Sized):
    """A signed number of 32 bits; so is a plain `int`."""

    bits, signed = 32, True


class Int64(_Sized):
    """A signed number of 64 bits."""

    bits, signed = 64, True


class Int128(_Sized):
    """A signed number of 128 bits."""

    bits, signed = 128, True


class UInt8(_Sized):
    """An unsigned number of 8 bits."""

    bits, signed = 8, False


class UInt16(_Sized):
    """An unsigned number of 16 bits."""

    bits, signed = 16, False


class UInt32(_Sized):
    """An unsigned number of 32 bits."""

    bits, signed = 32, False


class UInt64(_Sized):
    """An unsigned number of 64 bits."""

    bits, signed = 64, False


class UInt128(_Sized):
    """An unsigned number of 128 bits."""

    bits, signed = 128, False


class Float32(float):
    """A float of 32 bits; one too large becomes infinite on the way."""


class Float64(float):
    """A float of 64 bits; so is a plain `float`."""


_SIZED: Final[tuple[type[_Sized], ...]] = (
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
)


# -- writing ---------------------------------------------------------------------------------------------------------


def z_serialize(obj: object) -> ZBytes:
    """The bytes of a value.

    >>> z_serialize([UInt8(1), UInt8(2)]).to_bytes().hex(), z_serialize({"k": 1.5}).to_bytes().hex()
    ('020102', '01016b000000000000f83f')

    Raises:
        TypeError: a type that has no form; subclasses of those that have one count as such.
        ValueError: a collection of elements of different types.
        OverflowError: a plain `int` of more than 32 bits.
    """
    out = bytearray()
    _write(out, obj)
    return ZBytes(bytes(out))


def _write(out: bytearray, value: object) -> None:
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise TypeError(f"type {type(value).__name__} is not supported")
    writer(out, value)


def _write_int(out: bytearray, value: int) -> None:
    # int.to_bytes raises OverflowError.
    out += value.to_bytes(4, "little", signed=True)


def _write_sized(out: bytearray, value: _Sized) -> None:
    out += value.to_bytes(value.bits // 8, "little", signed=value.signed)


def _write_float(out: bytearray, value: float) -> None:
    out += struct.pack("<d", value)


def _write_float32(out: bytearray, value: float) -> None:
    try:
        out += struct.pack("<f", value)
    except OverflowError:
        out += struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _write_bool(out: bytearray, value: bool) -> None:
    out.append(value)


def _write_bytes(out: bytearray, value: bytes | bytearray) -> None:
    _write_size(out, len(value))
    out += value


def _write_text(out: bytearray, value: str) -> None:
    _write_bytes(out, value.encode())


def _write_zbytes(out: bytearray, value: ZBytes) -> None:
    _write_bytes(out, value.to_bytes())


def _write_tuple(out: bytearray, value: tuple[object, ...]) -> None:
    for item in value:
        _write(out, item)


def _write_items(out: bytearray, value: list[object] | set[object] | frozenset[object]) -> None:
    _same_type(value)
    _write_size(out, len(value))
    for item in value:
        _write(out, item)


def _write_dict(out: bytearray, value: dict[object, object]) -> None:
    _same_type(value.keys())
    _same_type(value.values())
    _write_size(out, len(value))
    for key, item in value.items():
        _write(out, key)
        _write(out, item)


def _same_type(items: object) -> None:
    if len({type(item) for item in cast("list[object]", items)}) > 1:
        raise ValueError("all items of serialized collections must have the same type")


def _write_size(out: bytearray, size: int) -> None:
    while size > 127:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)


_Writer = Callable[[bytearray, object], None]

_WRITERS: Final[dict[type, _Writer]] = {
    int: cast(_Writer, _write_int),
    float: cast(_Writer, _write_float),
    Float32: cast(_Writer, _write_float32),
    Float64: cast(_Writer, _write_float),
    bool: cast(_Writer, _write_bool),
    str: cast(_Writer, _write_text),
    bytes: cast(_Writer, _write_bytes),
    bytearray: cast(_Writer, _write_bytes),
    ZBytes: cast(_Writer, _write_zbytes),
    tuple: cast(_Writer, _write_tuple),
    list: cast(_Writer, _write_items),
    set: cast(_Writer, _write_items),
    frozenset: cast(_Writer, _write_items),
    dict: cast(_Writer, _write_dict),
    **dict.fromkeys(_SIZED, cast(_Writer, _write_sized)),
}


# -- reading ---------------------------------------------------------------------------------------------------------


def z_deserialize(tp: type[T], zbytes: ZBytes) -> T:
    """The value of type `tp` that the bytes begin with; what follows it is ignored, as in eclipse-zenoh.

    >>> z_deserialize(dict[str, list[int]], z_serialize({"a": [1, 2]}))
    {'a': [1, 2]}

    Raises:
        ZDeserializeError: the bytes are no such value.
        TypeError: a type that has no form.
        ValueError: a collection without the types of its elements, such as plain `list`.
    """
    if not isinstance(zbytes, ZBytes):
        raise TypeError(f"argument 'zbytes': {type(zbytes).__name__!r} object is no ZBytes")
    return cast(T, _Reader(zbytes.to_bytes()).read(tp))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise ZDeserializeError(f"{count} bytes needed at {self.at}, {len(self.data) - self.at} left")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def size(self) -> int:
        size = shift = 0
        while True:
            octet = self.take(1)[0]
            size |= (octet & 0x7F) << shift
            if octet < 128:
                break
            shift += 7
            if shift > 63:
                raise ZDeserializeError(f"size of more than 64 bits at {self.at}")
        return size

    def read(self, tp: object) -> object:
        if isinstance(tp, GenericAlias):
            return self.read_collection(get_origin(tp), get_args(tp))
        if not isinstance(tp, type):
            raise TypeError(f"{type(tp).__name__!r} object cannot be converted to a type")
        if tp is int:
            return int.from_bytes(self.take(4), "little", signed=True)
        if tp in _SIZED:
            return tp(int.from_bytes(self.take(tp.bits // 8), "little", signed=tp.signed))
        if tp is float or tp is Float64:
            return tp(struct.unpack("<d", self.take(8))[0])
        if tp is Float32:
            return Float32(struct.unpack("<f", self.take(4))[0])
        if tp is bool:
            return self.read_bool()
        if tp is str:
            return self.read_text()
        if tp in (bytes, bytearray, ZBytes):
            return cast("Callable[[bytes], object]", tp)(self.take(self.size()))
        return _no_form(tp)

    def read_bool(self) -> bool:
        octet = self.take(1)[0]
        if octet > 1:
            raise ZDeserializeError(f"{octet} is no truth value")
        return bool(octet)

    def read_text(self) -> str:
        try:
            return self.take(self.size()).decode()
        except UnicodeDecodeError as error:
            raise ZDeserializeError(f"text is no UTF-8: {error}") from error

    def read_collection(self, origin: object, types: tuple[object, ...]) -> object:
        if origin is tuple:
            if Ellipsis in types:
                raise TypeError("any size tuples are not supported")
            return tuple(self.read(tp) for tp in types)
        if origin is dict:
            return {key: value for key, value in self.items(types)}  # noqa: C416 - rows have the length of `types`
        if origin in (list, set, frozenset):
            made = cast("Callable[[list[object]], object]", origin)
            return made([item for (item,) in self.items(types)])
        return _no_form(origin)

    def items(self, types: tuple[object, ...]) -> list[tuple[object, ...]]:
        """As many rows of these types as the size says, made one by one: a lie about the size costs nothing."""
        count = self.size()
        found = []
        for _ in range(count):
            before = self.at
            found.append(tuple(self.read(tp) for tp in types))
            if self.at == before and count > EMPTY_ELEMENTS:
                raise ZDeserializeError(f"{count} elements of no bytes each are above the limit of {EMPTY_ELEMENTS}")
        return found


def _no_form(tp: object) -> NoReturn:
    if tp in (list, set, frozenset, dict, tuple):
        raise ValueError("collection types must be specialized with their generic parameter(s)")
    raise TypeError(f"type {tp!r} is not supported")
