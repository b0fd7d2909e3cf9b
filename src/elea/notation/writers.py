"""Source of the encoders: one function a record, one a union.

A header octet depends on members that come after it, so its flags are gathered first: `_Terms` follows the record
from a header to the next one and lists what sets each bit.
"""

from __future__ import annotations

from typing import NamedTuple

from elea.notation import syntax as s
from elea.notation.emit import Lines
from elea.notation.plan import UNKNOWN, Plan, RecordPlan, UnionPlan, attribute, snake

__all__ = ["emit_writers"]


class _Term(NamedTuple):
    """Bits of a header: `test` for a single one, `number` (shifted by `low`) for several."""

    low: int
    width: int
    test: str
    number: str
    what: str


def emit_writers(plan: Plan, out: Lines, handwritten: frozenset[str]) -> None:
    """Append the writers of every record and union that is not written by hand."""
    for record in plan.records.values():
        if record.name in plan.kinds and record.name in handwritten:
            _emit_marker(plan, record.name, out)
        elif record.name not in handwritten:
            _Writer(plan, record, out).emit()
    for union in plan.unions.values():
        _emit_union(union, out)


def _emit_marker(plan: Plan, name: str, out: Lines) -> None:
    out()
    out()
    with out.block(f"def write_{snake(name)}(out: bytearray, m: {name}) -> None:"):
        out(f"write_marker(out, m, {plan.kinds[name]:#04x})")


def _emit_union(union: UnionPlan, out: Lines) -> None:
    name = snake(union.name)
    table = f"_WRITE_{name.upper()}"
    out()
    out()
    with out.block(f"{table}: Final[dict[type, Callable[[bytearray, Any], None]]] = {{"):
        for arm in union.arms.values():
            out(f"{arm}: write_{snake(arm)},")
    out("}")
    out()
    out()
    with out.block(f"def write_{name}(out: bytearray, m: {union.name}) -> None:"):
        out(f"write = {table}.get(type(m))")
        with out.block("if write is None:"):
            out(f'raise EncodeError("{name}", f"{{type(m).__name__}} is none")')
        out("write(out, m)")


class _Writer:
    """Writes the writer of one record."""

    def __init__(self, plan: Plan, record: RecordPlan, out: Lines) -> None:
        self.plan = plan
        self.record = record
        self.out = out

    def emit(self) -> None:
        out, record = self.out, self.record
        out()
        out()
        with out.block(f"def write_{snake(record.name)}(out: bytearray, m: {record.name}) -> None:"):
            start = len(out.lines)
            members = record.record.members
            if record.name in self.plan.kinds:
                self.put_header(f"{self.plan.kinds[record.name]:#04x}", self.terms_of(members))
            for index, member in enumerate(members):
                rest = members[index + 1 :]
                match member.type:
                    case s.Octet():
                        self.put_header("0", self.terms_of(rest))
                    case s.Header(bits=bits):
                        value = f"bits(m.{attribute(member.name)}, {bits}, {_quoted(member.name)})"
                        self.put_header(value, self.terms_of(rest))
                    case s.Stem(bits=bits, base=base):
                        self.put_stem(f"m.{attribute(member.name)} << {bits}", self.terms_of(rest), base, member.name)
                    case s.Chain() as chain:
                        self.chain(chain)
                    case type if member.name not in self.plan.presence_flags(record.record):
                        self.write(type, f"m.{attribute(member.name)}", member.name)
            if len(out.lines) == start:
                out("pass")

    # -- headers --------------------------------------------------------------------------------------------------

    def gather(self, terms: list[_Term], base: str) -> str:
        """Write the lines that compute a header; return it as an expression."""
        if not terms and not base.startswith("bits"):
            return base
        self.out(f"header = {base}")
        for term in terms:
            if term.width == 1:
                with self.out.block(f"if {term.test}:"):
                    self.out(f"header |= {1 << term.low:#04x}")
            else:
                guard = f" if {term.test} else 0" if term.test else ""
                shift = f" << {term.low}" if term.low else ""
                self.out(f"header |= bits({term.number}{guard}, {term.width}, {_quoted(term.what)}){shift}")
        return "header"

    def put_header(self, base: str, terms: list[_Term]) -> None:
        self.out(f"out.append({self.gather(terms, base)})")

    def put_stem(self, base: str, terms: list[_Term], type: s.Bounded, what: str) -> None:
        self.out(f"write_z(out, {self.gather(terms, base)}, {type.bits}, {_quoted(what)})")

    def terms_of(self, members: tuple[s.Member, ...]) -> list[_Term]:
        """What sets the flags of the header in front of `members`."""
        terms, _ = self.record_terms(members, "m", "")
        return terms

    def record_terms(self, members: tuple[s.Member, ...], value: str, guard: str) -> tuple[list[_Term], bool]:
        terms: list[_Term] = []
        by_name = {member.name: member for member in self.record.record.members}
        by_name.update((member.name, member) for member in members)
        presence = self.plan.presence_flags(s.Record(members, at=s.Position(0, 0)))
        for member in members:
            if member.name in presence:
                flag = self.plan.resolve(member.type)
                assert isinstance(flag, s.Flag)
                test = self.presence(member.name, members, value)
                terms.append(_Term(flag.low, 1, _both(guard, test), "", member.name))
                continue
            type = member.type
            if isinstance(type, s.Option) and isinstance(type.condition, s.Ref) and type.condition.name in by_name:
                type = s.Option(s.Unit(at=type.at), type.base, at=type.at)
            found, closed = self.type_terms(type, f"{value}.{attribute(member.name)}", guard, member.name)
            terms += found
            if closed:
                return terms, True
        return terms, False

    def presence(self, flag: str, members: tuple[s.Member, ...], value: str) -> str:
        """The condition under which the member that `flag` announces is there."""
        tests: list[str] = []
        for member in members:
            type = member.type
            if isinstance(type, s.Chain) and type.flag == flag:
                for extension in type.extensions:
                    unit = isinstance(extension.type, s.Unit)
                    tests.append(f"{value}.{attribute(extension.name)}" + ("" if unit else " is not None"))
                tests.append(f"{value}.{UNKNOWN}")
            elif isinstance(type, s.Option) and type.condition == s.Ref(flag, at=type.at):
                tests.append(f"{value}.{attribute(member.name)} is not None")
        return " or ".join(tests)

    def type_terms(self, type: s.Type, value: str, guard: str, what: str) -> tuple[list[_Term], bool]:
        """Terms that a member contributes to the header in front of it, and whether it begins a new one."""
        match self.plan.resolve(type):
            case s.Flag(low=low, high=high):
                width = high - low + 1
                return [_Term(low, width, _both(guard, value) if width == 1 else guard, value, what)], False
            case s.Header() | s.Octet() | s.Stem():
                return [], True
            case s.Record(members=members):
                return self.record_terms(members, value, guard)[0], False
            case s.Option(condition=condition, base=base):
                present = f"{value} is not None"
                terms: list[_Term] = []
                flag = self.plan.resolve(condition)
                if isinstance(flag, s.Flag):
                    terms.append(_Term(flag.low, 1, _both(guard, present), "", what))
                return terms + self.type_terms(base, value, _both(guard, present), what)[0], False
            case s.Case(arms=arms):
                found = [
                    term
                    for arm in arms
                    for term in self.type_terms(arm.type, value, _both(guard, f"{value} is not None"), what)[0]
                ]
                return found, False
            case s.Sequence(count=s.Count(flag=flag, plus=plus)) if flag is not None:
                number = f"len({value}) - {plus}" if plus else f"len({value})"
                return [_Term(flag.low, flag.high - flag.low + 1, guard, number, what)], False
            case s.Range(base=base) | s.Text(base=base):
                return self.type_terms(base, value, guard, what)
            case _:
                return [], False

    # -- types ----------------------------------------------------------------------------------------------------

    def write(self, type: s.Type, value: str, what: str, bounds: tuple[int, int | None] | None = None) -> None:
        """Write the lines that append `value`, a Python expression of `type`."""
        out = self.out
        record = self.plan.name_of(type)
        if record is not None:
            out(f"write_{snake(record)}(out, {value})")
            return
        match self.plan.resolve(type):
            case s.Flag():
                pass
            case s.Nat() | s.Enum() | s.Byte() | s.Bounded() | s.Fixed() as natural:
                self.check(value, bounds, what)
                self.natural(natural, value, what)
            case s.Range(base=base, low=low, high=high):
                self.write(base, value, what, (low, high))
            case s.Text(base=base):
                local = _local(what)
                out(f'{local}_utf8 = {value}.encode("utf-8")')
                self.sequence(base, f"{local}_utf8", what, bounds)
            case s.Sequence() as sequence:
                self.sequence(sequence, value, what, bounds)
            case s.Sized(base=base):
                self.sized(base, value, what)
            case s.Run(base=base):
                with out.block(f"for item in {value}:"):
                    out(f"write_{snake(base.name)}(out, item)")
            case s.Option(base=base):
                with out.block(f"if {value} is not None:"):
                    self.write(base, value, what)
            case s.Case() as case:
                self.case(case, value, what)
            case other:
                raise TypeError(f"no writer for {other}")

    def natural(self, type: s.Type, value: str, what: str) -> None:
        out = self.out
        match type:
            case s.Byte():
                out(f"out.append(bits({value}, 8, {_quoted(what)}))")
            case s.Fixed():
                out(f'out += bits({value}, 16, {_quoted(what)}).to_bytes(2, "little")')
            case s.Bounded(bits=bits):
                self.short(value, f"write_z(out, {value}, {bits}, {_quoted(what)})")
            case _:
                self.short(value, f"write_nat(out, {value}, {_quoted(what)})")

    def short(self, value: str, long: str) -> None:
        """One-octet numbers in place, the others through `long`."""
        with self.out.block(f"if 0 <= {value} < 128:"):
            self.out(f"out.append({value})")
        with self.out.block("else:"):
            self.out(long)

    def check(self, value: str, bounds: tuple[int, int | None] | None, what: str) -> None:
        if bounds is None:
            return
        low, high = bounds
        test = f"{value} < {low}" if high is None else f"not {low} <= {value} <= {high}"
        limit = f"at least {low}" if high is None else f"{low} to {high}"
        with self.out.block(f"if {test}:"):
            self.out(f'raise EncodeError("{what}", f"{{{value}}} is not {limit}")')

    def sequence(self, type: s.Type, value: str, what: str, bounds: tuple[int, int | None] | None) -> None:
        out = self.out
        sequence = self.plan.resolve(type)
        if isinstance(sequence, s.Range):
            self.sequence(sequence.base, value, what, (sequence.low, sequence.high))
            return
        assert isinstance(sequence, s.Sequence)
        count = sequence.count
        self.check(f"len({value})", bounds, what)
        if count.type is not None:
            out(f"size = len({value})")
            self.natural(count.type, "size", what)
        elif count.constant is not None:
            self.check(f"len({value})", (count.constant, count.constant), what)
        elif count.member is not None:
            with out.block(f"if len({value}) != len(m.{attribute(count.member)}):"):
                out(f'raise EncodeError("{what}", "as many as {count.member} are needed")')
        if isinstance(self.plan.resolve(sequence.element), s.Byte):
            out(f"out += {value}")
            return
        item = f"{snake(value.removeprefix('m.'))}_item"
        with out.block(f"for {item} in {value}:"):
            self.write(sequence.element, item, what)

    def sized(self, base: s.Type, value: str, what: str) -> None:
        out = self.out
        record = self.plan.name_of(base)
        if record is None:
            out(f"write_sized(out, {value}, {_quoted(what)})")
            return
        out("body = bytearray()")
        out(f"write_{snake(record)}(body, {value})")
        out(f"write_sized(out, body, {_quoted(what)})")

    def case(self, case: s.Case, value: str, what: str) -> None:
        out = self.out
        exhaustive = not self.plan.python(case).endswith("None")
        several = len({self.plan.python(arm.type) for arm in case.arms}) > 1
        for number, arm in enumerate(case.arms):
            test = " or ".join(self.label(case.discriminator, label) for label in arm.labels)
            last = exhaustive and number == len(case.arms) - 1
            with out.block("else:" if last else f"{'elif' if number else 'if'} {test}:"):
                if not exhaustive:
                    with out.block(f"if {value} is None:"):
                        out(f'raise EncodeError("{what}", "missing, {case.discriminator} asks for it")')
                inner = value
                if several:
                    inner = f"{_local(what)}_{number}"
                    out(f'{inner} = cast("{self.plan.python(arm.type)}", {value})')
                self.write(arm.type, inner, what)
        if not exhaustive:
            with out.block(f"elif {value} is not None:"):
                out(f'raise EncodeError("{what}", "not allowed with this {case.discriminator}")')

    def label(self, discriminator: str, label: s.Label) -> str:
        value = f"m.{attribute(discriminator)}"
        if label.symbol in ("true", "false"):
            return value if label.symbol == "true" else f"not {value}"
        if label.symbol is not None:
            member = next(m for m in self.record.record.members if m.name == discriminator)
            return f"{value} == {self.plan.enum_name(member.type)}.{label.symbol}"
        return f"{value} == {label.low}" if label.low == label.high else f"{label.low} <= {value} <= {label.high}"

    # -- extensions -----------------------------------------------------------------------------------------------

    def chain(self, chain: s.Chain) -> None:
        out = self.out
        out("last = -1")
        for extension in chain.extensions:
            value = f"m.{attribute(extension.name)}"
            unit = isinstance(extension.type, s.Unit)
            with out.block(f"if {value}:" if unit else f"if {value} is not None:"):
                out("last = len(out)")
                out(f"out.append({extension.header | 0x80:#04x})")
                if not unit:
                    self.write(extension.type, value, extension.name)
        with out.block(f"if m.{UNKNOWN}:"):
            out(f"last = write_extensions(out, m.{UNKNOWN}, last)")
        with out.block("if last >= 0:"):
            out("out[last] &= 0x7f")


def _both(guard: str, test: str) -> str:
    if not guard:
        return test
    return f"{guard} and ({test})" if " or " in test else f"{guard} and {test}"


def _quoted(text: str) -> str:
    return f'"{text}"'


def _local(name: str) -> str:
    return snake(name)
