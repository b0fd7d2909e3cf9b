"""What generated readers of CDR call: texts, optional members and parameter lists. Spec: dds.md section 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Final

from elea.model.limits import CONTENT_RECORDS

__all__ = ["HELPERS"]

Reader = Callable[[bytes, int, int, list[int]], tuple[object, int]]
Members = Mapping[int, tuple[str, Reader]]
"""Name and reader of each member of a mutable struct, by id."""

_U4: Final = {order: Struct(f"{order}I").unpack_from for order in "<>"}
_U2U2: Final = {order: Struct(f"{order}HH").unpack_from for order in "<>"}

# XCDR1: the ids with a meaning of their own, without their two flags.
_EXTENDED: Final = 0x3F01
_SENTINEL: Final = 0x3F02
_ID_BITS: Final = 0x3FFF
_MUST_UNDERSTAND: Final = 0x4000
_LONG_ID_BITS: Final = 0x0FFF_FFFF


def cut_off(what: str, size: int, left: int) -> ValueError:
    return ValueError(f"{what} of {size} where {left} bytes are left")


def too_many(count: int, bound: int) -> ValueError:
    return ValueError(f"{count} where the type allows {bound}")


def spend(budget: list[int], count: int) -> None:
    """Account for structs and texts that are made, and for members that may be absent."""
    budget[0] -= count
    if budget[0] < 0:
        raise ValueError(f"more than {CONTENT_RECORDS} structs, texts and absent members (CONTENT_RECORDS)")


def text(data: bytes, at: int, size: int) -> str:
    """A text with the zero that ends it, or, as some write an empty one, without."""
    if not size:
        return ""
    end = at + size - 1
    if data[end]:
        raise ValueError("a text does not end with zero")
    return data[at:end].decode()


def nested(flat: list[object], sizes: tuple[int, ...]) -> list[object]:
    """The elements of an array in its dimensions; the last one runs fastest."""
    for size in reversed(sizes[1:]):
        flat = [flat[at : at + size] for at in range(0, len(flat), size)]
    return flat


def optional(
    data: bytes, at: int, end: int, budget: list[int], wanted: int, order: str, read: Reader
) -> tuple[object, int]:
    """An optional member of XCDR1: a parameter of its own, empty if it is not there."""
    id, size, at, _ = _parameter(data, at, order)
    if id != wanted:
        raise ValueError(f"member {id} where {wanted} is expected")
    if size > end - at:
        raise cut_off("a member", size, end - at)
    if not size:
        return None, at
    return read(data[at : at + size], 0, size, budget)[0], at + size


def _parameter(data: bytes, at: int, order: str) -> tuple[int, int, int, bool]:
    """The head of a parameter of XCDR1: id (the sentinel is -1), size, where it begins, whether it must be known."""
    flagged, size = _U2U2[order](data, at)
    id, at = flagged & _ID_BITS, at + 4
    is_needed = flagged & _MUST_UNDERSTAND != 0
    if id == _SENTINEL:
        return -1, 0, at, False
    if id == _EXTENDED:
        (id,), (size,) = _U4[order](data, at), _U4[order](data, at + 4)
        # The flags stand before the long id; the must-understand flag of the short head belongs to the form itself.
        is_needed, id, at = id & 0x4000_0000 != 0, id & _LONG_ID_BITS, at + 8
    return id, size, at, is_needed


def mutable1(
    data: bytes, at: int, end: int, budget: list[int], order: str, members: Members, found: dict[str, object]
) -> int:
    """The members of a mutable struct of XCDR1, each counting its alignment from its own beginning."""
    while True:
        id, size, at, is_needed = _parameter(data, at + 3 & -4, order)
        if id < 0:
            return at
        if size > end - at:
            raise cut_off("a member", size, end - at)
        known = members.get(id)
        if known is not None:
            found[known[0]] = known[1](data[at : at + size], 0, size, budget)[0]
        elif is_needed:
            raise ValueError(f"member {id} is not known, and has to be")
        at += size


def mutable2(
    data: bytes, at: int, end: int, budget: list[int], order: str, members: Members, found: dict[str, object]
) -> int:
    """The members of a mutable struct of XCDR2, behind their length in bytes."""
    u4 = _U4[order]
    (size,) = u4(data, at)
    at += 4
    stop: int = at + size
    if stop > end:
        raise cut_off("a struct", size, end - at)
    while (at := at + 3 & -4) < stop:
        (head,) = u4(data, at)
        at += 4
        form = head >> 28 & 7
        size = 1 << form if form < 4 else u4(data, at)[0]
        if form == 4:
            at += 4
        elif form > 4:  # the length stands in the member itself
            size = 4 + (size << (0, 2, 3)[form - 5])
        if size > stop - at:
            raise cut_off("a member", size, stop - at)
        known = members.get(head & _LONG_ID_BITS)
        if known is not None:
            found[known[0]], reached = known[1](data, at, at + size, budget)
            if reached > at + size:
                raise cut_off("a member", reached - at, size)
        elif head >> 31:
            raise ValueError(f"member {head & _LONG_ID_BITS} is not known, and has to be")
        at += size
    return stop


HELPERS: Final[Mapping[str, object]] = {
    "cut_off": cut_off,
    "too_many": too_many,
    "spend": spend,
    "text": text,
    "nested": nested,
    "optional": optional,
    "mutable1": mutable1,
    "mutable2": mutable2,
}
