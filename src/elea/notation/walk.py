"""Read bytes by walking the definitions: slow, and able to say where every field is.

The walker is a second, independent reading of a definition file. It makes the dissection, accepts padded numbers
where a historical peer needs it, and is the oracle the generated decoders are tested against.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn

from elea.model.errors import (
    BadEnum,
    BadText,
    ConstraintViolated,
    Malformed,
    NaturalOverflow,
    Oversize,
    PaddedNatural,
    ReservedMessage,
    TrailingBytes,
    Truncated,
    UnknownDeclaration,
    UnknownMandatoryExtension,
    UnknownMessage,
)
from elea.model.limits import MAX_EXTENSIONS
from elea.notation import syntax as s
from elea.notation.plan import UNKNOWN, Plan

__all__ = ["Build", "Piece", "Walker"]

Build = Callable[[str, dict[str, object]], object]
"""Makes the value of a record from its name and fields; extensions unknown to it come as (header, body) pairs."""


class Piece(NamedTuple):
    """Octets `start` to `end` are the field `name`; `depth` says what it is inside of."""

    depth: int
    name: str
    start: int
    end: int
    value: object


class Walker:
    """One walk over one buffer. `pieces` holds the fields met, in order, also after an error."""

    def __init__(self, plan: Plan, buf: bytes, build: Build, *, lenient: bool = False) -> None:
        self.plan = plan
        self.buf = buf
        self.build = build
        self.lenient = lenient
        self.pieces: list[Piece] = []
        self.at = 0
        self.end = len(buf)
        self.depth = 0
        self.header = (0, 0)  # offset and value of the nearest header
        self.scope: dict[str, s.Type] = {}  # members of the record being read

    def whole(self, name: str) -> object:
        """The one value of definition `name` that the buffer is."""
        value = self.named(name, name)
        self.finish()
        return value

    def finish(self) -> None:
        if self.at != self.end:
            self.fail(TrailingBytes, f"{self.end - self.at} octets left over", self.at)

    # -- octets -----------------------------------------------------------------------------------------------------

    def fail(self, error: type[Malformed], problem: str, at: int) -> NoReturn:
        raise error(self.plan.dialect, at, problem)

    def octet(self) -> int:
        if self.at >= self.end:
            raise Truncated(self.plan.dialect, self.end)
        self.at += 1
        return self.buf[self.at - 1]

    def take(self, size: int) -> bytes:
        if size > self.end - self.at:
            raise Truncated(self.plan.dialect, self.end, size, self.end - self.at)
        self.at += size
        return self.buf[self.at - size : self.at]

    def nat(self) -> int:
        value, shift = 0, 0
        while True:
            octet = self.octet()
            if shift == 63 and octet > 1:
                self.fail(NaturalOverflow, "number above 64 bits", self.at - 1)
            value |= (octet & 0x7F) << shift
            if octet < 128:
                if octet == 0 and shift and not self.lenient:
                    self.fail(PaddedNatural, "number with needless octets", self.at - 1)
                return value
            shift += 7

    def bounded(self, bits: int) -> int:
        value = 0
        for shift in range(0, 64, 7):
            octet = self.octet()
            if shift == 56:
                value |= octet << 56
                break
            value |= (octet & 0x7F) << shift
            if octet < 128:
                break
        if value >> bits:
            self.fail(NaturalOverflow, f"{value} is above {bits} bits", self.at - 1)
        return value

    def note(self, name: str, start: int, value: object) -> None:
        self.pieces.append(Piece(self.depth, name, start, self.at, value))

    # -- named types ------------------------------------------------------------------------------------------------

    def named(self, type_name: str, shown: str) -> object:
        """A record or union; `shown` is what the dissection calls it."""
        union = self.plan.unions.get(type_name)
        if union is None:
            return self.record(type_name, shown)
        start = self.at
        octet = self.octet()
        kind = octet & (1 << union.bits) - 1
        if kind not in union.arms:
            if "Declaration" in union.name:
                self.fail(UnknownDeclaration, f"no declaration has id {kind}", start)
            if kind in union.reserved:
                self.fail(ReservedMessage, f"message {kind} has no body yet", start)
            self.fail(UnknownMessage, f"no message has id {kind}", start)
        outer, self.header = self.header, (start, octet)
        arm = union.arms[kind]
        value = self.record(arm, arm if shown == type_name else f"{shown}: {arm}", start)
        self.header = outer
        return value

    def record(self, name: str, shown: str, start: int | None = None) -> object:
        line = len(self.pieces)
        begin = self.at if start is None else start
        self.note(shown, begin, None)
        self.depth += 1
        if start is not None:
            self.pieces.append(Piece(self.depth, "header", start, start + 1, _hex(self.header[1])))
        outer = self.header
        try:
            fields = self.members(self.plan.records[name].record)
        finally:
            self.header = outer
            self.depth -= 1
            self.pieces[line] = self.pieces[line]._replace(end=self.at)
        return self.build(name, fields)

    def members(self, record: s.Record) -> dict[str, object]:
        hidden = self.plan.presence_flags(record)
        seen: dict[str, object] = {}
        outer, self.scope = self.scope, {member.name: member.type for member in record.members}
        for member in record.members:
            if isinstance(member.type, s.Chain):
                self.chain(member.type, seen)
            elif isinstance(member.type, s.Octet):
                start = self.at
                self.header = (start, self.octet())
                self.note("octet", start, _hex(self.header[1]))
            else:
                seen[member.name] = self.read(member.type, member.name, seen)
        self.scope = outer
        return {name: value for name, value in seen.items() if name not in hidden}

    # -- types ------------------------------------------------------------------------------------------------------

    def read(
        self,
        type: s.Type,
        name: str,
        seen: Mapping[str, object],
        bounds: tuple[int, int | None] | None = None,
    ) -> object:
        """A value of `type`, noted under `name`; `seen` are the members before it."""
        record = self.plan.name_of(type)
        if record is not None:
            return self.named(record, name)
        start = self.at
        resolved = self.plan.resolve(type)
        match resolved:
            case s.Flag():
                return self.flag(resolved, name)
            case s.Range(base=base, low=low, high=high):
                return self.read(base, name, seen, (low, high))
            case s.Option(condition=condition, base=base):
                if isinstance(condition, s.Ref) and condition.name in seen:
                    present = bool(seen[condition.name])
                else:
                    flag = self.plan.resolve(condition)
                    assert isinstance(flag, s.Flag)
                    present = bool(self.header[1] >> flag.low & 1)
                return self.read(base, name, seen) if present else None
            case s.Case():
                return self.case(resolved, name, seen)
            case s.Sequence() | s.Text() if not self.is_bytes(resolved):
                assert isinstance(resolved, s.Sequence)
                return self.elements(resolved, name, seen, bounds)
            case s.Sequence() | s.Text():
                value: object = self.octets(resolved, name, seen, bounds)
            case s.Sized(base=base):
                return self.sized(base, name, seen)
            case s.Run(base=base):
                return self.run(base, name)
            case s.Header(bits=bits):
                self.header = (start, self.octet())
                value = self.header[1] & (1 << bits) - 1
            case s.Stem(bits=bits, base=base):
                self.header = (start, self.bounded(base.bits))
                value = self.header[1] >> bits
            case _:
                value = self.number(resolved)
                enum = self.plan.enum_name(type)
                if enum is not None:
                    value = self.symbol(enum, value)
                self.check(value, bounds, name)
        self.note(name, start, value)
        return value

    def number(self, type: s.Type) -> int:
        match type:
            case s.Byte():
                return self.octet()
            case s.Fixed():
                return int.from_bytes(self.take_fixed(2), "little")
            case s.Bounded(bits=bits):
                return self.bounded(bits)
            case _:
                return self.nat()

    def take_fixed(self, size: int) -> bytes:
        if size > self.end - self.at:
            raise Truncated(self.plan.dialect, self.end)
        return self.take(size)

    def symbol(self, enum: str, number: int) -> int:
        if number not in {value for _, value in self.plan.enums[enum].symbols}:
            self.fail(BadEnum, f"{number} is no {enum}", self.at - 1)
        return number

    def flag(self, flag: s.Flag, name: str) -> bool | int:
        at, header = self.header
        value: bool | int = header >> flag.low & (1 << flag.high - flag.low + 1) - 1
        if flag.low == flag.high:
            value = bool(value)
        self.pieces.append(Piece(self.depth, name, at, at + 1, value))
        enum = self.plan.enum_name(flag)
        if enum is not None:
            self.symbol(enum, value)
        return value

    def check(self, value: object, bounds: tuple[int, int | None] | None, what: str) -> None:
        if bounds is None or not isinstance(value, int):
            return
        low, high = bounds
        if value < low or (high is not None and value > high):
            limit = f"at least {low}" if high is None else f"{low} to {high}"
            self.fail(ConstraintViolated, f"{what} is {value}, not {limit}", self.at - 1)

    # -- sequences --------------------------------------------------------------------------------------------------

    def is_bytes(self, type: s.Type) -> bool:
        if isinstance(type, s.Text):
            return True
        return isinstance(type, s.Sequence) and isinstance(self.plan.resolve(type.element), s.Byte)

    def count(self, count: s.Count, seen: Mapping[str, object]) -> int:
        if count.type is not None:
            return self.number(self.plan.resolve(count.type))
        if count.constant is not None:
            return count.constant
        if count.member is not None:
            counted = seen[count.member]
            assert isinstance(counted, tuple)
            return len(counted)
        if count.flag is not None:
            low, high = count.flag.low, count.flag.high
            return (self.header[1] >> low & (1 << high - low + 1) - 1) + count.plus
        return self.end - self.at

    def octets(
        self, type: s.Type, name: str, seen: Mapping[str, object], bounds: tuple[int, int | None] | None
    ) -> bytes | str:
        if isinstance(type, s.Text):
            octets = self.octets(self.plan.resolve(type.base), name, seen, bounds)
            assert isinstance(octets, bytes)
            try:
                return str(octets, "utf-8")
            except UnicodeDecodeError as error:
                where = self.at - len(octets) + error.start
                self.fail(BadText, f"text is not UTF-8: {error.reason}", where)
        assert isinstance(type, s.Sequence)
        size = self.count(type.count, seen)
        self.check(size, bounds, f"length of {name}")
        return self.take(size)

    def elements(
        self,
        sequence: s.Sequence,
        name: str,
        seen: Mapping[str, object],
        bounds: tuple[int, int | None] | None,
    ) -> tuple[object, ...]:
        start = self.at
        line = len(self.pieces)
        self.note(name, start, None)
        count = self.count(sequence.count, seen)
        self.check(count, bounds, f"length of {name}")
        if count > self.end - self.at:
            raise Truncated(self.plan.dialect, self.end, count, self.end - self.at)
        self.depth += 1
        outer = self.header
        items = tuple(self.read(sequence.element, f"{name}[{number}]", seen) for number in range(count))
        self.header = outer
        self.depth -= 1
        self.pieces[line] = Piece(self.depth, name, start, self.at, f"{count} elements")
        return items

    def sized(self, base: s.Type, name: str, seen: Mapping[str, object]) -> object:
        size = self.bounded(32)
        if size > self.end - self.at:
            raise Truncated(self.plan.dialect, self.end, size, self.end - self.at)
        outer_end, outer_header, self.end = self.end, self.header, self.at + size
        value = self.read(base, name, seen)
        self.finish()
        self.end, self.header = outer_end, outer_header
        return value

    def run(self, base: s.Ref, name: str) -> tuple[object, ...]:
        union = self.plan.unions[base.name]
        items: list[object] = []
        while self.at < self.end and self.buf[self.at] & (1 << union.bits) - 1 in union.arms:
            items.append(self.named(base.name, base.name))
        return tuple(items)

    # -- choices ----------------------------------------------------------------------------------------------------

    def case(self, case: s.Case, name: str, seen: Mapping[str, object]) -> object:
        value = seen[case.discriminator]
        assert isinstance(value, int)
        enum = self.plan.enum_name(self.scope[case.discriminator])
        symbols = {"false": 0, "true": 1} if enum is None else dict(self.plan.enums[enum].symbols)
        for arm in case.arms:
            for label in arm.labels:
                low = label.low if label.symbol is None else symbols[label.symbol]
                high = label.high if label.symbol is None else low
                if low <= value <= high:
                    return self.read(arm.type, name, seen)
        return None

    # -- extensions -------------------------------------------------------------------------------------------------

    def chain(self, chain: s.Chain, seen: dict[str, object]) -> None:
        known = {extension.header: extension for extension in chain.extensions}
        for extension in chain.extensions:
            seen[extension.name] = False if isinstance(extension.type, s.Unit) else None
        unknown: list[tuple[int, object]] = []
        more = self.at < self.end if chain.flag is None else bool(seen[chain.flag])
        while more:
            start = self.at
            octet = self.octet()
            more, header = octet > 127, octet & 0x7F
            found = known.get(header)
            if found is None:
                if len(unknown) >= MAX_EXTENSIONS and not header & 0x10:
                    what = "chain of unknown extensions"
                    raise Oversize(self.plan.dialect, start, what, len(unknown) + 1, MAX_EXTENSIONS)
                unknown.append((header, self.unknown(header, start)))
                continue
            self.note(f"extension {found.name}", start, _hex(octet))
            self.depth += 1
            unit = isinstance(found.type, s.Unit)
            seen[found.name] = True if unit else self.read(found.type, found.name, seen)
            self.depth -= 1
        seen[UNKNOWN] = tuple(unknown)

    def unknown(self, header: int, start: int) -> object:
        if header & 0x10:
            raise UnknownMandatoryExtension(self.plan.dialect, start, header)
        form = header >> 5 & 3
        if form == 3:
            self.fail(Malformed, f"extension {header:#04x} has the reserved body form", start)
        body: object = None
        if form == 1:
            body = self.bounded(64)
        elif form == 2:
            body = self.take(self.bounded(32))
        self.note(f"extension {header:#04x} (unknown)", start, body)
        return body


def _hex(octet: int) -> str:
    return f"{octet:#04x}"
