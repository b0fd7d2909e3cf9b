"""Source of the decoders: one function a record, one a union, flat and in field order.

A reader gets the exact bytes of its region, the offset, and the header octet if flags of the record sit in it. It
returns the value and the offset behind it. One-octet numbers are read in place; counts are checked against the
octets left before anything is sliced or allocated.
"""

from __future__ import annotations

from elea.notation import syntax as s
from elea.notation.emit import Lines
from elea.notation.plan import FieldPlan, Plan, RecordPlan, UnionPlan, snake

__all__ = ["emit_readers"]

RESERVED = frozenset({"at", "buf", "ext", "global", "hash", "header", "id", "more", "new", "octet"})
"""Locals of every reader, builtins, and keywords: a member of that name gets an underscore."""


def emit_readers(plan: Plan, out: Lines, handwritten: frozenset[str]) -> None:
    """Append the readers of every record and union that is not written by hand."""
    for record in plan.records.values():
        if record.name in plan.kinds and record.name in handwritten:
            _emit_marker(record.name, out)
        elif record.name not in handwritten:
            _Reader(plan, record, out).emit()
    for union in plan.unions.values():
        _emit_union(plan, union, out)


def _emit_marker(name: str, out: Lines) -> None:
    out()
    out()
    with out.block(f"def read_{snake(name)}(buf: bytes, at: int, header: int) -> tuple[{name}, int]:"):
        out(f"return read_marker({name}, buf, at, header, DIALECT)")


def _emit_union(plan: Plan, union: UnionPlan, out: Lines) -> None:
    name = snake(union.name)
    table = f"_READ_{name.upper()}"
    out()
    out()
    signature = f"Callable[[bytes, int, int], tuple[{union.name}, int]]"
    with out.block(f"{table}: Final[dict[int, {signature}]] = {{"):
        for number, arm in union.arms.items():
            out(f"{number}: read_{snake(arm)},")
    out("}")
    out()
    out()
    error = "UnknownDeclaration" if "Declaration" in union.name else "UnknownMessage"
    with out.block(f"def read_{name}(buf: bytes, at: int) -> tuple[{union.name}, int]:"):
        out("header = buf[at]")
        out(f"read = {table}.get(header & {(1 << union.bits) - 1:#04x})")
        with out.block("if read is None:"):
            if union.reserved and error == "UnknownMessage":
                numbers = ", ".join(map(str, sorted(union.reserved)))
                out(f"kind = header & {(1 << union.bits) - 1:#04x}")
                with out.block(f"if kind in ({numbers}{',' if len(union.reserved) == 1 else ''}):"):
                    out('raise ReservedMessage(DIALECT, at, f"message {kind} has no body yet")')
            out(f'raise {error}(DIALECT, at, f"no {_words(union.name)} has id {{header & 31}}")')
        out("return read(buf, at + 1, header)")


def _words(name: str) -> str:
    return snake(name).replace("_", " ")


class _Reader:
    """Writes the reader of one record."""

    def __init__(self, plan: Plan, record: RecordPlan, out: Lines) -> None:
        self.plan = plan
        self.record = record
        self.out = out
        self.header = "header"  # the local that holds the nearest header
        self.members: dict[str, str] = {}  # flag members that are no fields: name to Python condition
        self.codes: dict[str, str] = {}  # discriminators: name to a local with the plain number
        self.discriminators = {
            inner.discriminator
            for member in record.record.members
            for inner in [member.type.base if isinstance(member.type, s.Option) else member.type]
            if isinstance(inner, s.Case)
        }

    def emit(self) -> None:
        out, record = self.out, self.record
        header = ", header: int" if record.outer_flags else ""
        out()
        out()
        with out.block(f"def read_{snake(record.name)}(buf: bytes, at: int{header}) -> tuple[{record.name}, int]:"):
            hidden = self.plan.presence_flags(record.record)
            for member in record.record.members:
                if member.name in hidden:
                    flag = self.plan.resolve(member.type)
                    assert isinstance(flag, s.Flag)
                    self.members[member.name] = self.bit(flag)
                elif isinstance(member.type, s.Octet):
                    self.octet("octet")
                elif isinstance(member.type, s.Chain):
                    self.chain(member.type)
                else:
                    self.read(member.type, member.name)
            fields = [_local(field.name) for field in record.ordered]
            out.wrapped(f"return new({record.name}, (", fields if len(fields) > 1 else [f"{fields[0]},"], ")), at")

    def bit(self, flag: s.Flag) -> str:
        return f"{self.header} & {1 << flag.low:#04x}"

    def octet(self, name: str) -> None:
        self.out(f"{name} = buf[at]")
        self.out("at += 1")
        self.header = name

    # -- types ----------------------------------------------------------------------------------------------------

    def read(self, type: s.Type, name: str, bounds: tuple[int, int | None] | None = None) -> None:
        """Write the lines that leave a value of `type` in the local called after `name`."""
        out, var = self.out, _local(name)
        record = self.plan.name_of(type)
        if record is not None:
            self.read_named(record, var)
            return
        enum = self.plan.enum_name(type)
        match self.plan.resolve(type):
            case s.Flag() as flag:
                self.read_flag(flag, name, enum)
            case s.Header() as header:
                self.octet(f"{snake(name)}_octet")
                out(f"{var} = {snake(name)}_octet & {(1 << header.bits) - 1:#04x}")
            case s.Stem() as stem:
                self.natural(stem.base, f"{snake(name)}_stem", None)
                self.header = f"{snake(name)}_stem"
                out(f"{var} = {snake(name)}_stem >> {stem.bits}")
            case s.Enum():
                self.natural(s.Nat(at=type.at), f"{snake(name)}_code", None)
                self.lookup(enum, name, f"{snake(name)}_code")
            case s.Bounded() as natural if enum is not None:
                self.natural(natural, f"{snake(name)}_code", None)
                self.lookup(enum, name, f"{snake(name)}_code")
            case s.Nat() | s.Bounded() | s.Byte() | s.Fixed() as natural:
                self.natural(natural, var, bounds)
            case s.Range(base=base, low=low, high=high):
                self.read(base, name, (low, high))
            case s.Text(base=base):
                self.sequence(base, name, None, text=True)
            case s.Sequence() as sequence:
                self.sequence(sequence, name, bounds)
            case s.Sized(base=base):
                self.read_sized(base, var)
            case s.Run(base=base):
                self.run(base, var)
            case s.Option() as option:
                self.option(option, name)
            case s.Case() as case:
                self.case(case, name)
            case other:
                raise TypeError(f"no reader for {other}")

    def read_named(self, record: str, var: str) -> None:
        planned = self.plan.records.get(record)
        header = f", {self.header}" if planned is not None and planned.outer_flags else ""
        self.out(f"{var}, at = read_{snake(record)}(buf, at{header})")

    def read_flag(self, flag: s.Flag, name: str, enum: str | None) -> None:
        var = _local(name)
        if flag.low == flag.high:
            self.out(f"{var} = {self.bit(flag)} != 0")
            self.codes[name] = var
            return
        shift = f" >> {flag.low}" if flag.low else ""
        number = f"{self.header}{shift} & {(1 << flag.high - flag.low + 1) - 1}"
        if enum is None:
            self.out(f"{var} = {number}")
            self.codes[name] = var
        else:
            self.out(f"{snake(name)}_code = {number}")
            self.lookup(enum, name, f"{snake(name)}_code")

    def lookup(self, enum: str | None, name: str, code: str) -> None:
        var = _local(name)
        self.out(f"{var} = {_table(enum)}.get({code})")
        with self.out.block(f"if {var} is None:"):
            self.out(f'raise BadEnum(DIALECT, at - 1, f"{{{code}}} is no {enum}")')
        self.codes[name] = code

    def natural(self, type: s.Type, var: str, bounds: tuple[int, int | None] | None) -> None:
        out = self.out
        if isinstance(type, s.Fixed):
            out(f"{var} = buf[at] | buf[at + 1] << 8")
            out("at += 2")
        else:
            out(f"{var} = buf[at]")
            out("at += 1")
        if isinstance(type, s.Nat):
            with out.block(f"if {var} > 127:"):
                out(f"{var}, at = long_nat(buf, at, {var}, DIALECT)")
        elif isinstance(type, s.Bounded):
            with out.block(f"if {var} > 127:"):
                out(f"{var}, at = long_z(buf, at, {var}, {type.bits}, DIALECT)")
        self.codes[var] = var
        self.check(var, bounds, var)

    def check(self, value: str, bounds: tuple[int, int | None] | None, what: str) -> None:
        if bounds is None:
            return
        low, high = bounds
        test = f"{value} < {low}" if high is None else f"not {low} <= {value} <= {high}"
        with self.out.block(f"if {test}:"):
            limit = f"at least {low}" if high is None else f"{low} to {high}"
            self.out(f'raise ConstraintViolated(DIALECT, at - 1, f"{what} is {{{value}}}, not {limit}")')

    # -- sequences ------------------------------------------------------------------------------------------------

    def sequence(self, type: s.Type, name: str, bounds: tuple[int, int | None] | None, *, text: bool = False) -> None:
        out, var = self.out, _local(name)
        resolved = self.plan.resolve(type)
        if isinstance(resolved, s.Range):
            self.sequence(resolved.base, name, (resolved.low, resolved.high), text=text)
            return
        assert isinstance(resolved, s.Sequence)
        is_bytes = isinstance(self.plan.resolve(resolved.element), s.Byte)
        size = self.count(resolved.count, name)
        self.check(size, bounds, f"length of {name}")
        if is_bytes and text:
            out(f"{var}, at = read_text(buf, at, {size}, DIALECT)")
        elif is_bytes and resolved.count == s.Count():
            out(f"{var} = buf[at:]")
            out("at = len(buf)")
        elif is_bytes:
            end = f"{snake(name)}_end"
            out(f"{end} = at + {size}")
            self.truncated(f"{end} > len(buf)", size)
            out(f"{var} = buf[at:{end}]")
            out(f"at = {end}")
        else:
            self.elements(resolved, name, size)

    def count(self, count: s.Count, name: str) -> str:
        """Write the lines that find the number of elements; return it as an expression."""
        if count.type is not None:
            self.natural(count.type, f"{snake(name)}_size", None)
            return f"{snake(name)}_size"
        if count.constant is not None:
            return str(count.constant)
        if count.member is not None:
            return f"len({_local(count.member)})"
        if count.flag is not None:
            flag = count.flag
            shift = f" >> {flag.low}" if flag.low else ""
            size = f"{self.header}{shift} & {(1 << flag.high - flag.low + 1) - 1}"
            self.out(f"{snake(name)}_size = ({size}) + {count.plus}")
            return f"{snake(name)}_size"
        return "len(buf) - at"

    def truncated(self, test: str, size: str) -> None:
        with self.out.block(f"if {test}:"):
            self.out(f"raise Truncated(DIALECT, len(buf), {size}, len(buf) - at)")

    def elements(self, sequence: s.Sequence, name: str, size: str) -> None:
        out, items = self.out, f"{snake(name)}_list"
        self.truncated(f"{size} > len(buf) - at", size)
        python = self.plan.python(sequence.element)
        out(f"{items}: list[{python}] = []")
        with out.block(f"for _ in range({size}):"):
            self.read(sequence.element, f"{name}_item")
            out(f"{items}.append({_local(name + '_item')})")
        out(f"{_local(name)} = tuple({items})")

    def read_sized(self, base: s.Type, var: str) -> None:
        record = self.plan.name_of(base)
        if record is None:
            self.out(f"{var}, at = sized_bytes(buf, at, DIALECT)")
        else:
            self.out(f"{var}, at = sized(buf, at, read_{snake(record)}, DIALECT)")

    def run(self, base: s.Ref, var: str) -> None:
        out = self.out
        out(f"{var}_list: list[{base.name}] = []")
        mask = (1 << self.plan.unions[base.name].bits) - 1
        with out.block(f"while at < len(buf) and buf[at] & {mask:#04x} in _READ_{snake(base.name).upper()}:"):
            out(f"{var}_item, at = read_{snake(base.name)}(buf, at)")
            out(f"{var}_list.append({var}_item)")
        out(f"{var} = tuple({var}_list)")

    # -- choices --------------------------------------------------------------------------------------------------

    def option(self, option: s.Option, name: str) -> None:
        condition = option.condition
        if isinstance(condition, s.Ref) and condition.name in self.members:
            test = self.members[condition.name]
        else:
            flag = self.plan.resolve(condition)
            assert isinstance(flag, s.Flag)
            test = self.bit(flag)
        self.out(f"{_local(name)}: {self.plan.python(option)} = None")
        outer = self.header
        with self.out.block(f"if {test}:"):
            self.read(option.base, name)
        self.header = outer

    def case(self, case: s.Case, name: str) -> None:
        out, var = self.out, _local(name)
        python = self.plan.python(case)
        exhaustive = not python.endswith("None")
        out(f"{var}: {python}" + ("" if exhaustive else " = None"))
        discriminator = self.codes[case.discriminator]
        outer = self.header
        for number, arm in enumerate(case.arms):
            test = " or ".join(self.label(case.discriminator, discriminator, label) for label in arm.labels)
            keyword = "if" if number == 0 else "elif"
            line = "else:" if exhaustive and number == len(case.arms) - 1 else f"{keyword} {test}:"
            with out.block(line):
                self.read(arm.type, name if number == 0 or not exhaustive else name + "_other")
                if number and exhaustive:
                    out(f"{var} = {_local(name + '_other')}")
            self.header = outer

    def label(self, discriminator: str, value: str, label: s.Label) -> str:
        if label.symbol in ("true", "false"):
            return value if label.symbol == "true" else f"not {value}"
        if label.symbol is not None:
            return f"{value} == {self.symbol(discriminator, label.symbol)}"
        return f"{value} == {label.low}" if label.low == label.high else f"{label.low} <= {value} <= {label.high}"

    def symbol(self, discriminator: str, symbol: str) -> int:
        member = next(m for m in self.record.record.members if m.name == discriminator)
        enum = self.plan.enum_name(member.type)
        assert enum is not None
        return dict(self.plan.enums[enum].symbols)[symbol]

    # -- extensions -----------------------------------------------------------------------------------------------

    def chain(self, chain: s.Chain) -> None:
        out = self.out
        fields = {field.name: field for field in self.record.fields}
        for extension in chain.extensions:
            field = fields[extension.name]
            out(f"{_local(field.name)}: {field.python} = {field.default}")
        out("unknown: tuple[Unknown, ...] = ()")
        more = "at < len(buf)" if chain.flag is None else f"{self.members[chain.flag]} != 0"
        out(f"more = {more}")
        with out.block("while more:"):
            out("ext = buf[at]")
            out("at += 1")
            out("more = ext > 127")
            out("ext &= 0x7f")
            keyword = "if"
            for extension in chain.extensions:
                with out.block(f"{keyword} ext == {extension.header:#04x}:"):
                    self.extension(fields[extension.name])
                keyword = "elif"
            if chain.extensions:
                with out.block("else:"):
                    self.unknown()
            else:
                self.unknown()

    def extension(self, field: FieldPlan) -> None:
        if isinstance(field.type, s.Unit):
            self.out(f"{_local(field.name)} = True")
        else:
            self.read(field.type, field.name)

    def unknown(self) -> None:
        self.out("unknown, at = read_extension(buf, at, ext, unknown, DIALECT)")


def _local(name: str) -> str:
    """A local variable for a member: the papers' camel case in snake case, and no builtin hidden."""
    plain = snake(name)
    return plain + "_" if plain in RESERVED else plain


def _table(enum: str | None) -> str:
    return f"_{snake(enum or '').upper()}"
