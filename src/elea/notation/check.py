"""Does a definition file make sense? The static checks of the notation, each with the place of the fault.

Flags are checked along every path from a *root*, a definition no other refers to: a flag needs a header before
it, a free position in that header, and no other header in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from elea.model.errors import NotationError
from elea.notation import syntax as s

__all__ = ["NATURAL_MAX", "check", "integral_bounds", "union_arms"]

NATURAL_MAX = (1 << 64) - 1


def check(definitions: s.Definitions, source: str | None = None) -> s.Definitions:
    """Return `definitions` if they pass every static check, else raise NotationError."""
    checker = _Checker(definitions, source or f"{definitions.dialect}.zn")
    try:
        checker.names()
        for type in definitions.types.values():
            checker.type(type)
        checker.flags()
    except RecursionError:
        raise NotationError(checker.source, 1, 1, "types are nested too deeply") from None
    return definitions


def union_arms(definitions: s.Definitions, type: s.Type) -> tuple[s.Header, dict[int, str]] | None:
    """A record that is only a header and a case of named records on it: its header, and names by number."""
    record = definitions.resolve(type)
    if not isinstance(record, s.Record) or len(record.members) != 2:
        return None
    head, body = record.members
    if not isinstance(head.type, s.Header) or not isinstance(body.type, s.Case):
        return None
    enum = definitions.resolve(head.type.base)
    if not isinstance(enum, s.Enum) or body.type.discriminator != head.name:
        return None
    numbers = dict(enum.symbols)
    arms: dict[int, str] = {}
    for arm in body.type.arms:
        if not isinstance(arm.type, s.Ref) or any(label.symbol not in numbers for label in arm.labels):
            return None
        arms.update((numbers[label.symbol or ""], arm.type.name) for label in arm.labels)
    return head.type, arms


def integral_bounds(definitions: s.Definitions, type: s.Type) -> tuple[int, int] | None:
    """The smallest and largest value of an integral type, None for any other."""
    match definitions.resolve(type):
        case s.Nat():
            return 0, NATURAL_MAX
        case s.Byte():
            return 0, 255
        case s.Fixed():
            return 0, 65_535
        case s.Bounded(bits=bits, enum=None):
            return 0, (1 << bits) - 1
        case s.Flag(low=low, high=high, enum=None) if low < high < 64:  # no header has more bits
            return 0, (1 << high - low + 1) - 1
        case s.Header(bits=bits, base=base) if integral_bounds(definitions, base) is not None:
            return 0, (1 << bits) - 1
        case s.Range(base=base, low=low, high=high):
            inner = integral_bounds(definitions, base)
            return inner and (low, inner[1] if high is None else high)
        case _:
            return None


def _parts(type: s.Type) -> Iterator[s.Type]:
    """The types written directly inside a type."""
    match type:
        case s.Record(members=members):
            yield from (member.type for member in members)
        case s.Case(arms=arms):
            yield from (arm.type for arm in arms)
        case s.Chain(extensions=extensions):
            yield from (extension.type for extension in extensions)
        case s.Option(condition=condition, base=base):
            yield condition
            yield base
        case s.Sequence(count=count, element=element):
            if count.type is not None:
                yield count.type
            yield element
        case s.Header() | s.Range() | s.Text() | s.Sized() | s.Run() | s.Stem():
            yield type.base
        case s.Flag(enum=enum) | s.Bounded(enum=enum) if enum is not None:
            yield enum


class _Path:
    """What is known of the nearest header at one place of one path."""

    def __init__(self) -> None:
        self.headers = 0  # how many headers this path has met
        self.first, self.last = 8, 7  # the flag positions of the nearest one
        self.used: set[int] = set()
        self.hidden = False  # a header inside an earlier member is nearer

    def copy(self) -> _Path:
        twin = _Path()
        twin.headers, twin.first, twin.last = self.headers, self.first, self.last
        twin.used, twin.hidden = set(self.used), self.hidden
        return twin

    def start(self, first: int, last: int = 7) -> None:
        self.headers += 1
        self.first, self.last, self.used, self.hidden = first, last, set(), False


class _Checker:
    def __init__(self, definitions: s.Definitions, source: str) -> None:
        self.definitions = definitions
        self.source = source

    def fail(self, at: s.Position, problem: str) -> NoReturn:
        raise NotationError(self.source, at.line, at.column, problem)

    # -- names ----------------------------------------------------------------------------------------------------

    def names(self) -> None:
        """Every reference leads somewhere, and none leads back to itself."""
        types = self.definitions.types
        done: set[str] = set()
        for root in types:
            # An explicit stack: depth is bounded by the file, but a file is input too.
            stack: list[tuple[str, Iterator[s.Ref]]] = [(root, self._refs(types[root]))]
            active = [root]
            while stack:
                name, refs = stack[-1]
                ref = next(refs, None)
                if ref is None:
                    stack.pop()
                    active.pop()
                    done.add(name)
                elif ref.name not in types:
                    self.fail(ref.at, f"{ref.name!r} is not defined")
                elif ref.name in active:
                    self.fail(ref.at, f"{ref.name!r} contains itself")
                elif ref.name not in done:
                    stack.append((ref.name, self._refs(types[ref.name])))
                    active.append(ref.name)

    def _refs(self, type: s.Type) -> Iterator[s.Ref]:
        members = {member.name for member in type.members} if isinstance(type, s.Record) else set()
        for part in _parts(type):
            if isinstance(part, s.Option) and isinstance(part.condition, s.Ref) and part.condition.name in members:
                yield from self._direct(part.base)
            else:
                yield from self._direct(part)
        if isinstance(type, s.Ref):
            yield type

    def _direct(self, type: s.Type) -> Iterator[s.Ref]:
        if isinstance(type, s.Ref):
            yield type
        else:
            yield from self._refs(type)

    # -- one type at a time ---------------------------------------------------------------------------------------

    def type(self, type: s.Type) -> None:
        match type:
            case s.Enum():
                self.enum(type)
            case s.Header():
                self.header(type)
            case s.Flag():
                if not 0 <= type.low <= type.high:
                    self.fail(type.at, "flag positions run from low to high")
                if type.enum is not None:
                    self.enum_of(type.enum)
            case s.Stem(bits=bits, base=base):
                if not 1 <= bits < base.bits:
                    self.fail(type.at, f"a stem of a z{base.bits} has 1 to {base.bits - 1} flag bits")
            case s.Bounded(enum=enum) if enum is not None:
                self.enum_of(enum)
            case s.Range():
                self.range(type)
            case s.Sequence():
                self.sequence(type)
            case s.Text(base=base):
                if not self.is_bytes(base):
                    self.fail(type.at, "utf8 is for a sequence of bytes")
            case s.Run(base=base):
                if union_arms(self.definitions, base) is None:
                    self.fail(type.at, f"{base.name!r} is not a message: a run needs headers to know its end")
            case s.Record():
                self.record(type)
                return
            case s.Chain():
                self.chain(type)
        for part in _parts(type):
            self.type(part)

    def enum(self, enum: s.Enum) -> None:
        names = [name for name, _ in enum.symbols]
        numbers = [number for _, number in enum.symbols]
        if {"true", "false"} & set(names):
            self.fail(enum.at, "'true' and 'false' belong to the predefined enum boolean")
        if len(set(names)) < len(names) or len(set(numbers)) < len(numbers):
            self.fail(enum.at, "an enum has each symbol and each number once")

    def enum_of(self, ref: s.Ref) -> s.Enum:
        enum = self.definitions.resolve(ref)
        if not isinstance(enum, s.Enum):
            self.fail(ref.at, f"{ref.name!r} is not an enum")
        return enum

    def header(self, header: s.Header) -> None:
        if not 1 <= header.bits <= 8:
            self.fail(header.at, f"a header has 1 to 8 value bits, not {header.bits}")
        base = self.definitions.resolve(header.base)
        inner = base.base if isinstance(base, s.Range) else base
        if isinstance(inner, s.Enum):
            top = max(number for _, number in inner.symbols)
        elif isinstance(self.definitions.resolve(inner), s.Byte):
            top = 0
        else:
            self.fail(header.at, "a header is a byte or an enum")
        if top >= 1 << header.bits:
            self.fail(header.at, f"{top} does not fit in a header of {header.bits} bits")

    def range(self, range: s.Range) -> None:
        high = range.high
        if high is not None and high < range.low:
            self.fail(range.at, f"range {range.low} ... {high} is empty")
        bounds = integral_bounds(self.definitions, range.base)
        inner = self.definitions.resolve(range.base)
        while isinstance(inner, s.Range):
            if range.low < inner.low or (inner.high is not None and (high is None or high > inner.high)):
                self.fail(range.at, "a range inside a range must narrow it")
            inner = self.definitions.resolve(inner.base)
        if bounds is None and not isinstance(inner, s.Sequence):
            self.fail(range.at, "a range is for a number or a sequence")
        if bounds is not None and (range.low > bounds[1] or (high or 0) > bounds[1]):
            self.fail(range.at, f"a range within {bounds[0]} ... {bounds[1]} is needed")

    def is_bytes(self, type: s.Type) -> bool:
        sequence = self.definitions.resolve(type)
        return isinstance(sequence, s.Sequence) and isinstance(self.definitions.resolve(sequence.element), s.Byte)

    def sequence(self, sequence: s.Sequence) -> None:
        element = self.definitions.resolve(sequence.element)
        if isinstance(element, s.Flag):
            self.fail(sequence.at, "a flag cannot be an element of a sequence")
        if self.smallest(element) == 0:
            # Otherwise a count of 2^64 in ten octets would be a valid list.
            self.fail(sequence.at, "an element of a sequence takes at least one octet")
        if sequence.count == s.Count() and not isinstance(element, s.Byte):
            self.fail(sequence.at, "only bytes can fill a region")

    def smallest(self, type: s.Type) -> int:
        """The least number of octets a type can take."""
        match self.definitions.resolve(type):
            case s.Flag() | s.Case() | s.Option() | s.Chain() | s.Run() | s.Unit():
                return 0
            case s.Record(members=members):
                return sum(self.smallest(member.type) for member in members)
            case s.Range(base=base) | s.Text(base=base):
                return self.smallest(base)
            case s.Sequence(count=count, element=element):
                if count.type is not None:
                    return 1
                return (count.constant or count.plus) * self.smallest(element)
            case s.Fixed():
                return 2
            case _:
                return 1

    def chain(self, chain: s.Chain) -> None:
        seen: set[int] = set()
        for extension in chain.extensions:
            if extension.id > 15:
                self.fail(extension.at, "an extension id is below 16")
            if not isinstance(extension.type, s.Unit | s.Bounded | s.Sized):
                self.fail(extension.at, "an extension is unit, a bounded natural, or sized")
            if extension.header in seen:
                self.fail(extension.at, f"extension header {extension.header:#04x} is used twice")
            seen.add(extension.header)

    # -- records --------------------------------------------------------------------------------------------------

    def record(self, record: s.Record) -> None:
        seen: dict[str, s.Type] = {}
        for member in record.members:
            type = member.type
            if isinstance(type, s.Chain):
                for extension in type.extensions:
                    self._once(extension.name, extension.at, seen)
                    seen[extension.name] = extension.type
                if type.flag is not None:
                    self._flag_member(type.flag, type.at, seen)
                self.type(type)
                continue
            if member.name:
                self._once(member.name, type.at, seen)
            inner = type.base if isinstance(type, s.Option) else type
            if isinstance(type, s.Option):
                self.option(type, seen)
            if isinstance(inner, s.Case):
                self.case(inner, seen)
            if isinstance(inner, s.Sequence) and inner.count.member is not None:
                counted = seen.get(inner.count.member)
                if counted is None or not isinstance(self.definitions.resolve(counted), s.Sequence):
                    self.fail(inner.at, f"{inner.count.member!r} is no earlier sequence of this record")
            self.type(inner)
            seen[member.name] = type

    def _once(self, name: str, at: s.Position, seen: dict[str, s.Type]) -> None:
        if name in seen:
            self.fail(at, f"member {name!r} stands twice in this record")

    def _flag_member(self, name: str, at: s.Position, seen: dict[str, s.Type]) -> None:
        type = seen.get(name)
        flag = None if type is None else self.definitions.resolve(type)
        if not isinstance(flag, s.Flag) or flag.low != flag.high:
            self.fail(at, f"{name!r} is no earlier flag of this record")

    def option(self, option: s.Option, seen: dict[str, s.Type]) -> None:
        condition = option.condition
        if isinstance(condition, s.Ref) and (condition.name in seen or condition.name not in self.definitions.types):
            self._flag_member(condition.name, condition.at, seen)
            return
        flag = self.definitions.resolve(condition)
        if not isinstance(flag, s.Flag) or flag.low != flag.high:
            self.fail(condition.at, "the condition of an option is a flag")

    def case(self, case: s.Case, seen: dict[str, s.Type]) -> None:
        if case.discriminator not in seen:
            self.fail(case.at, f"discriminator {case.discriminator!r} is no earlier member of this record")
        type = self.definitions.resolve(seen[case.discriminator])
        taken: list[tuple[int, int]] = []
        for arm in case.arms:
            for label in arm.labels:
                low, high = self.label(label, type)
                if any(low <= other[1] and other[0] <= high for other in taken):
                    self.fail(label.at, "this label is covered by an earlier one")
                taken.append((low, high))

    def label(self, label: s.Label, type: s.Type) -> tuple[int, int]:
        """The numbers a label stands for, given the type of its discriminator."""
        symbols = self.symbols(type)
        if label.symbol is not None:
            if symbols is None or label.symbol not in symbols:
                self.fail(label.at, f"{label.symbol!r} is no value of the discriminator")
            return symbols[label.symbol], symbols[label.symbol]
        bounds = integral_bounds(self.definitions, type)
        if symbols is not None or bounds is None:
            self.fail(label.at, "the discriminator has symbols, not numbers")
        if not bounds[0] <= label.low <= label.high <= bounds[1]:
            self.fail(label.at, f"labels within {bounds[0]} ... {bounds[1]} are needed")
        return label.low, label.high

    def symbols(self, type: s.Type) -> dict[str, int] | None:
        resolved = self.definitions.resolve(type)
        match resolved:
            case s.Flag(low=low, high=high) if low == high:
                return {"false": 0, "true": 1}
            case s.Flag(enum=enum) | s.Bounded(enum=enum) if enum is not None:
                return dict(self.enum_of(enum).symbols)
            case s.Enum(symbols=symbols):
                return dict(symbols)
            case s.Header(base=base):
                return self.symbols(base)
            case _:
                return None

    # -- flags along paths ----------------------------------------------------------------------------------------

    def flags(self) -> None:
        types = self.definitions.types
        used = {ref.name for type in types.values() for ref in self._every_ref(type)}
        for name, type in types.items():
            if name not in used and not isinstance(self.definitions.resolve(type), s.Flag):
                self.walk(type, _Path())

    def _every_ref(self, type: s.Type) -> Iterator[s.Ref]:
        if isinstance(type, s.Ref):
            yield type
        for part in _parts(type):
            yield from self._every_ref(part)

    def walk(self, type: s.Type, path: _Path, seen: dict[str, s.Type] | None = None) -> None:
        """Follow the octets of `type`, checking each flag against the header it lands in."""
        match type:
            case s.Ref():
                resolved = self.definitions.resolve(type)
                if isinstance(resolved, s.Record):
                    self.branches([resolved], path)
                else:
                    self.walk(resolved, path)
            case s.Header(bits=bits):
                path.start(bits)
            case s.Octet():
                path.start(0)
            case s.Stem(bits=bits):
                path.start(0, bits - 1)
            case s.Flag():
                self.use(type, path)
            case s.Option(condition=condition, base=base):
                if not (isinstance(condition, s.Ref) and seen is not None and condition.name in seen):
                    self.walk(condition, path)
                self.branches([base], path)
            case s.Case(arms=arms):
                self.branches([arm.type for arm in arms], path)
            case s.Record(members=members):
                here: dict[str, s.Type] = {}
                for member in members:
                    if isinstance(member.type, s.Record):
                        self.branches([member.type], path)
                    else:
                        self.walk(member.type, path, here)
                    here[member.name] = member.type
            case s.Sequence(count=count, element=element):
                if count.flag is not None:
                    self.use(count.flag, path)
                self.branches([element], path)
            case s.Chain(extensions=extensions):
                self.branches([extension.type for extension in extensions], path)
            case s.Range(base=base) | s.Text(base=base):
                self.walk(base, path)
            case s.Sized(base=base) | s.Run(base=base):
                self.walk(base, _Path())

    def branches(self, types: list[s.Type], path: _Path) -> None:
        """Parts of which one or none is there: each sees the flags used before it, what follows sees all."""
        ends = []
        for type in types:
            branch = path.copy()
            self.walk(type, branch)
            ends.append(branch)
        for branch in ends:
            if branch.headers != path.headers or branch.hidden:
                path.hidden = True
            else:
                path.used |= branch.used

    def use(self, flag: s.Flag, path: _Path) -> None:
        if path.headers == 0:
            self.fail(flag.at, "a flag needs a header before it")
        if path.hidden:
            self.fail(flag.at, "a flag may not follow a member that has a header of its own")
        for position in range(flag.low, flag.high + 1):
            if not path.first <= position <= path.last:
                self.fail(flag.at, f"flag {position} is outside positions {path.first} to {path.last} of its header")
            if position in path.used:
                self.fail(flag.at, f"position {position} of the header is taken")
            path.used.add(position)
