"""Message values for property tests, made from the plans the codecs are made from.

`messages` gives values of any definition, `packets` and `batches` what a link carries, `streams` a whole
direction, `corrupted` octets that nearly are a message. Numbers and lengths lean to the borders of their octets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from elea.model.limits import MAX_BATCH, MAX_PACKET
from elea.notation import syntax as s
from elea.notation.check import integral_bounds
from elea.notation.generate import plan_of
from elea.notation.plan import UNKNOWN, Plan, attribute
from elea.wire import dialect_named, early
from elea.wire.markers import Conduit, RSpace
from elea.wire.primitives import Unknown
from elea.wire.zenoh1.batch import encode_batch

__all__ = [
    "Values",
    "batches",
    "corrupted",
    "cuts",
    "low_latency",
    "messages",
    "numbers",
    "octets",
    "packets",
    "roots",
    "streams",
    "values_of",
]

NUMBERS = (0, 1, 127, 128, 16_383, 16_384, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
SIZES = (0, 1, 127, 128, 300)
FEW = 3
MANY = (127, 128)
MANDATORY, RESERVED_FORM = 0x10, 0x60

FRAGMENTABLE = frozenset({"StreamData", "WriteData"})
SPACED = frozenset({"Declare", "StreamData", "BatchedData", "WriteData", "Pull", "Migrate"})
MARKERS = ("Conduit", "Frag", "RSpace")
MARKER_CLASSES: dict[str, type[Conduit | RSpace]] = {"Conduit": Conduit, "RSpace": RSpace}


# -- numbers, octets, text --------------------------------------------------------------------------------------------


@cache
def numbers(low: int = 0, high: int = (1 << 64) - 1) -> SearchStrategy[int]:
    """Numbers from low to high; every second one is a border of a variable-length number."""
    borders = [number for number in (*NUMBERS, low, high) if low <= number <= high]
    return st.sampled_from(borders) | st.integers(low, high)


@cache
def sizes(low: int = 0, high: int = 1 << 16) -> SearchStrategy[int]:
    """Lengths from low to high, seldom above the largest border."""
    borders = [size for size in (*SIZES, low, high) if low <= size <= min(high, SIZES[-1])]
    small = st.integers(low, min(high, low + 8))
    return small | small | st.sampled_from(borders)


@cache
def octets(low: int = 0, high: int = 1 << 16) -> SearchStrategy[bytes]:
    """Octets of such lengths; long ones repeat a pattern, which is as good for a codec and cheaper to draw."""
    short = st.binary(min_size=low, max_size=min(high, low + 6))
    return short | st.builds(_pattern, sizes(low, high), st.integers(0, 255))


def _pattern(size: int, start: int) -> bytes:
    return bytes((start + 7 * index) & 0xFF for index in range(size))


@cache
def texts(low: int, high: int) -> SearchStrategy[str]:
    """Text whose UTF-8 form has low to high octets."""
    short = st.text(min_size=low, max_size=6).filter(lambda text: len(text.encode()) <= high)
    long = st.builds(_text_of, sizes(low, high), st.sampled_from("aé€/*"))
    return short | long


def _text_of(size: int, character: str) -> str:
    width = len(character.encode())
    return character * (size // width) + "x" * (size % width)


# -- values of a dialect ----------------------------------------------------------------------------------------------


class Values:
    """Strategies for the values of one dialect.

    With `for_json`, only values whose JSON form is complete: what that form cannot tell apart (an empty suffix and
    none, the high zero octets of an identifier, bits without a name) is drawn in one way.
    """

    def __init__(self, dialect: str, *, for_json: bool = False) -> None:
        self.plan: Plan = plan_of(dialect)
        self.dialect = dialect
        self.for_json = for_json
        self.classes: Mapping[str, type] = vars(import_module(f"elea.wire.{dialect}.messages"))
        self._records: dict[str, SearchStrategy[object]] = {}

    def named(self, name: str) -> SearchStrategy[object]:
        """Values of a record or a union."""
        if name in self.plan.unions:
            return st.one_of([self.record(arm) for arm in self.plan.unions[name].arms.values()])
        return self.record(name)

    def record(self, name: str) -> SearchStrategy[object]:
        if name not in self._records:
            self._records[name] = _marker(MARKER_CLASSES[name]) if name in MARKER_CLASSES else _record(self, name)
        return self._records[name]

    # -- types ----------------------------------------------------------------------------------------------------

    def of(self, type: s.Type, before: Mapping[str, object]) -> SearchStrategy[object]:
        """Values of a type; `before` are the members in front of it, which may decide what it is."""
        name = self.plan.name_of(type)
        if name is not None:
            return self.named(name)
        enum = self.plan.enum_name(type)
        resolved = self.plan.resolve(type)
        if enum is not None:
            top = (1 << resolved.high - resolved.low + 1) - 1 if isinstance(resolved, s.Flag) else None
            return st.sampled_from([m for m in self.classes[enum] if top is None or m.value <= top])  # type: ignore[attr-defined]
        match resolved:
            case s.Flag(low=low, high=high) if low == high:
                return st.booleans()
            case s.Option(base=base):
                return st.none() | self.of(base, before)
            case s.Case():
                return self._case(resolved, before)
            case s.Sized(base=base):
                return self.of(base, before)
            case s.Run(base=base):
                return self._tuples(self.named(base.name), 0, None)
            case s.Stem(bits=bits, base=base):
                return numbers(0, (1 << base.bits - bits) - 1)
            case s.Sequence() | s.Text() | s.Range() if self._sequence(resolved) is not None:
                return self._elements(resolved, before)
        bounds = integral_bounds(self.plan.definitions, type)
        assert bounds is not None, f"no strategy for {resolved}"
        return numbers(*bounds)

    def _case(self, case: s.Case, before: Mapping[str, object]) -> SearchStrategy[object]:
        value = before[case.discriminator]
        for arm in case.arms:
            for label in arm.labels:
                if label.symbol is None:
                    fits = isinstance(value, int) and label.low <= value <= label.high
                elif label.symbol in ("true", "false"):
                    fits = value is (label.symbol == "true")
                else:
                    fits = getattr(value, "name", None) == label.symbol
                if fits:
                    return self.of(arm.type, before)
        return st.none()

    # -- sequences ------------------------------------------------------------------------------------------------

    def _sequence(self, type: s.Type) -> s.Sequence | None:
        """The sequence behind a range or a text."""
        resolved = self.plan.resolve(type)
        while isinstance(resolved, s.Range | s.Text):
            resolved = self.plan.resolve(resolved.base)
        return resolved if isinstance(resolved, s.Sequence) else None

    def _elements(self, type: s.Type, before: Mapping[str, object]) -> SearchStrategy[object]:
        sequence = self._sequence(type)
        assert sequence is not None
        low, high = self._lengths(sequence.count, before)
        if isinstance(type, s.Range):
            low, high = max(low, type.low), high if type.high is None else min(high, type.high)
        if isinstance(type, s.Text):
            return texts(low, high)
        if isinstance(self.plan.resolve(sequence.element), s.Byte):
            return octets(low, high)
        return self._tuples(self.of(sequence.element, before), low, high)

    def _lengths(self, count: s.Count, before: Mapping[str, object]) -> tuple[int, int]:
        if count.constant is not None:
            return count.constant, count.constant
        if count.flag is not None:
            return count.plus, count.plus + (1 << count.flag.high - count.flag.low + 1) - 1
        if count.member is not None:
            counted = before[count.member]
            assert isinstance(counted, tuple)
            return len(counted), len(counted)
        bounds = count.type and integral_bounds(self.plan.definitions, count.type)
        return 0, min(1 << 16, bounds[1]) if bounds else 1 << 16

    def _tuples(self, element: SearchStrategy[object], low: int, high: int | None) -> SearchStrategy[object]:
        if high is not None and low == high > FEW:
            return st.builds(lambda item: (item,) * low, element)
        top = max(low, FEW) if high is None else min(high, max(low, FEW))
        few = st.lists(element, min_size=low, max_size=top).map(tuple)
        if low > 0 or (high is not None and high < MANY[-1]):
            return few
        many = st.builds(lambda item, count: (item,) * count, element, st.sampled_from(MANY))
        return st.one_of([few] * 15 + [many])

    # -- extensions -----------------------------------------------------------------------------------------------

    def unknown(self, chain: s.Chain) -> SearchStrategy[tuple[Unknown, ...]]:
        """Extensions the record does not know and need not: no header of its own, none mandatory."""
        known = {extension.header for extension in chain.extensions}
        headers = [
            header
            for header in range(128)
            if header not in known and not header & MANDATORY and header & RESERVED_FORM != RESERVED_FORM
        ]
        one = st.sampled_from(headers).flatmap(_unknown)
        unique: Callable[[Unknown], object] | None = (lambda item: item.header) if self.for_json else None
        some = st.lists(one, min_size=1, max_size=FEW, unique_by=unique).map(tuple)
        return st.one_of([st.just(())] * 3 + [some])

    # -- what JSON cannot tell ------------------------------------------------------------------------------------

    def member(self, record: str, name: str, type: s.Type, before: Mapping[str, object]) -> SearchStrategy[object]:
        """Values of one member of a record."""
        plain = self.of(type, before)
        if not self.for_json or self.dialect != "zenoh1":
            return plain
        match record, name:
            case (_, "zid") | ("Timestamp", "id"):
                return plain.map(_identifier)
            case (("Frame" | "Fragment" | "TransportOam"), "qos"):
                return st.integers(0, 7)
            case "DeclareQueryable", "info":
                return st.builds(lambda complete, distance: complete | distance << 8, st.booleans(), numbers(0, 65_535))
            case "UserProof", "left":
                return sizes().map(bytes)
            case _, "suffix":
                return plain.filter(lambda suffix: suffix != "")
            case "Auth", "pubkey" if before["pubkey_done"]:
                return st.none()
            case "Auth", "usrpwd_nonce" if before["usrpwd"]:
                return st.none()
            case "Auth", "usrpwd_proof" if before["usrpwd"] or before["usrpwd_nonce"] is not None:
                return st.none()
        return plain


def _marker(cls: type[Conduit | RSpace]) -> SearchStrategy[object]:
    return st.builds(cls, numbers(), st.just(False)) | st.builds(cls, st.integers(1, 4), st.just(True))


def _identifier(octets: object) -> object:
    """The same octets with a last one that its number cannot do without."""
    if not isinstance(octets, bytes) or octets == b"\0" or octets[-1]:
        return octets
    return octets[:-1] + b"\x01"


def _unknown(header: int) -> SearchStrategy[Unknown]:
    bodies: dict[int, SearchStrategy[int | bytes | None]] = {0: st.none(), 0x20: numbers(), 0x40: octets()}
    return st.builds(Unknown, st.just(header), bodies[header & RESERVED_FORM])


@st.composite
def _record(draw: DrawFn, values: Values, name: str) -> object:
    record = values.plan.records[name].record
    hidden = values.plan.presence_flags(record)
    fields: dict[str, object] = {}
    for member in record.members:
        if isinstance(member.type, s.Chain):
            # Half of the chains are empty: a message with every extension is as rare as it is long.
            chosen = member.type.extensions if draw(st.booleans()) else ()
            for extension in member.type.extensions:
                unit = isinstance(extension.type, s.Unit)
                absent: object = False if unit else None
                fields[extension.name] = absent
                if extension in chosen and draw(st.booleans()):
                    strategy = (
                        values.member(name, extension.name, extension.type, fields) if not unit else st.just(True)
                    )
                    fields[extension.name] = draw(strategy)
            fields[UNKNOWN] = draw(values.unknown(member.type))
        elif member.name and member.name not in hidden:
            fields[member.name] = draw(values.member(name, member.name, member.type, fields))
    return values.classes[name](**{attribute(field): value for field, value in fields.items()})


@cache
def values_of(dialect: str, *, for_json: bool = False) -> Values:
    """The strategies of a dialect, made once."""
    return Values(dialect, for_json=for_json)


def roots(dialect: str) -> list[str]:
    """Definitions that stand on their own: unions, and records without a flag in a header outside."""
    plan = values_of(dialect).plan
    alone = [record.name for record in plan.records.values() if not record.outer_flags]
    return [*plan.unions, *alone]


@cache
def messages(dialect: str, name: str, *, for_json: bool = False) -> SearchStrategy[object]:
    """Values of one record, or of any arm of one union."""
    return values_of(dialect, for_json=for_json).named(name)


# -- packets, batches, streams ----------------------------------------------------------------------------------------


@st.composite
def _decorated(draw: DrawFn, values: Values) -> early.Decorated:
    arms = [arm for arm in values.plan.unions["Message"].arms.values() if arm not in MARKERS]
    name = draw(st.sampled_from(arms))
    allowed = {"Conduit": True, "Frag": name in FRAGMENTABLE, "RSpace": name in SPACED}
    markers = [
        draw(values.record(marker))
        for marker in MARKERS
        if marker in values.plan.kinds and allowed[marker] and draw(st.booleans())
    ]
    return early.Decorated(draw(values.record(name)), tuple(markers))


@cache
def packets(dialect: str, *, least: int = 0) -> SearchStrategy[early.Packet]:
    """Packets of an early dialect: messages behind markers in their order, on targets that may have them."""
    decorated = _decorated(values_of(dialect))
    return st.lists(decorated, min_size=least, max_size=FEW).map(lambda found: early.Packet(tuple(found)))


@cache
def batches(*, for_json: bool = False, least: int = 0) -> SearchStrategy[tuple[Any, ...]]:
    """Batches of zenoh1; a fragment takes the rest of its batch, so it can only be the last message."""
    values = values_of("zenoh1", for_json=for_json)
    arms = values.plan.unions["TransportMessage"].arms.values()
    before = st.one_of([values.record(arm) for arm in arms if arm != "Fragment"])
    front = st.lists(before, min_size=max(0, least - 1), max_size=2)
    last = st.lists(values.named("TransportMessage"), min_size=min(1, least), max_size=1)
    both = st.builds(lambda some, one: (*some, *one), front, last)
    return both.filter(lambda batch: len(encode_batch(batch)) <= MAX_BATCH)


@cache
def low_latency() -> SearchStrategy[tuple[object, ...]]:
    """Batches of a low-latency session: bare network messages, or transport messages that do not hold any."""
    values = values_of("zenoh1")
    bare = st.one_of([values.record(name) for name in ("KeepAlive", "Close")])
    return st.lists(values.named("NetworkMessage") | bare, max_size=FEW).map(tuple)


@cache
def streams(dialect: str) -> SearchStrategy[object]:
    """Whole streams: of an early dialect with or without an unbounded end, of zenoh1 a tuple of batches."""
    if dialect == "zenoh1":
        return st.lists(batches(), max_size=FEW).map(tuple)
    encode = dialect_named(dialect).encode

    def fits(packet: early.Packet) -> bool:
        return len(encode("packet", packet)) <= MAX_PACKET

    sized = st.lists(packets(dialect, least=1).filter(fits), max_size=FEW).map(tuple)
    return st.builds(early.Stream, sized, st.none() | packets(dialect).filter(fits))


# -- octets that are nearly right -------------------------------------------------------------------------------------


@st.composite
def corrupted(draw: DrawFn, whole: SearchStrategy[bytes]) -> bytes:
    """Octets with a few of them changed, lost, doubled or added, or cut short."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 5)):
            case 0 if data:
                data[at % len(data)] ^= 1 << draw(st.integers(0, 7))
            case 1 if data:
                data[at % len(data)] = draw(st.sampled_from((0x00, 0x01, 0x7F, 0x80, 0x81, 0xFF)))
            case 2:
                del data[at:]
            case 3:
                del data[at : at + draw(st.integers(1, 4))]
            case 4:
                data[at:at] = data[at : at + draw(st.integers(1, 8))]
            case _:
                data[at:at] = draw(st.binary(min_size=1, max_size=10))
    return bytes(data)


@st.composite
def cuts(draw: DrawFn, size: int) -> list[int]:
    """Places at which octets of that size are cut, in order; one octet at a time is one of them."""
    if size <= 600 and draw(st.integers(0, 3)) == 0:
        return list(range(1, size))
    return sorted(draw(st.sets(st.integers(0, size), max_size=8)))
