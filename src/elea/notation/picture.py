"""Definitions as pictures for people: every message with its header bits and its fields in wire order."""

from __future__ import annotations

from elea.notation import syntax as s
from elea.notation.plan import Plan, RecordPlan

__all__ = ["page"]

CELL = 9


def page(plan: Plan) -> str:
    """A Markdown page with a picture of every union's messages."""
    lines = [f"# Messages of `{plan.dialect}`", ""]
    lines += ["Generated from the definition file by `make generate`. Bit 7 is left; `Z`-like names are flags.", ""]
    for union in plan.unions.values():
        lines += [f"## {union.name}", ""]
        for number, arm in union.arms.items():
            lines += _message(plan, plan.records[arm], number, union.bits)
    parts = [record for record in plan.records.values() if record.name not in plan.kinds]
    if parts:
        lines += ["## Parts", ""]
        for record in parts:
            fields = [text for member in record.record.members for text in _fields(plan, member)]
            lines += [f"**{record.name}**: {' · '.join(fields) or '–'}", ""]
    return "\n".join(lines).rstrip() + "\n"


def _message(plan: Plan, record: RecordPlan, number: int, bits: int) -> list[str]:
    cells = ["–"] * (8 - bits)
    for name, flag in _flags(plan, record.record):
        for bit in range(flag.low, flag.high + 1):
            cells[7 - bit] = name
    head = "|".join(cell[:CELL].center(CELL) for cell in cells)
    identity = f"{record.name} {number:#04x}".center(28)
    rule = "+".join(["-" * CELL] * len(cells)) + "+" + "-" * 28
    fields = [text for member in record.record.members for text in _fields(plan, member)]
    body = [f"  {text}" for text in fields]
    return [f"### {record.name}", "", "```", f"+{rule}+", f"|{head}|{identity}|", f"+{rule}+", *body, "```", ""]


def _flags(plan: Plan, record: s.Record) -> list[tuple[str, s.Flag]]:
    """Names and places of the flags that sit in the message's header."""
    found: list[tuple[str, s.Flag]] = []
    names = {member.name for member in record.members}
    for member in record.members:
        type = member.type
        if isinstance(type, s.Header | s.Octet | s.Stem):
            break
        if isinstance(type, s.Option) and isinstance(type.condition, s.Ref) and type.condition.name in names:
            type = type.base
        for flag in plan.outer_flags(type):
            inner = plan.resolve(type)
            nested = _flags(plan, inner) if isinstance(inner, s.Record) else []
            found.append((next((name for name, seen in nested if seen == flag), member.name), flag))
    return found


def _fields(plan: Plan, member: s.Member) -> list[str]:
    type = member.type
    if isinstance(type, s.Chain):
        return [f"[{e.header:#04x} {e.name}: {_type(plan, e.type)}]" for e in type.extensions]
    if isinstance(type, s.Octet):
        return ["octet of flags"]
    if isinstance(plan.resolve(type), s.Flag):
        return []
    return [f"{member.name}: {_type(plan, type)}"]


def _type(plan: Plan, type: s.Type) -> str:
    match type:
        case s.Ref(name=name):
            resolved = plan.resolve(type)
            return _type(plan, resolved) if isinstance(resolved, s.Option) else name
        case s.Nat():
            return "nat"
        case s.Byte():
            return "byte"
        case s.Fixed():
            return "u16 little endian"
        case s.Bounded(bits=bits, enum=enum):
            return f"z{bits}" + (f" of {enum.name}" if enum else "")
        case s.Sequence(count=count, element=element):
            return f"[{_count(count)}{_type(plan, element)}]"
        case s.Range(base=base, low=low, high=high):
            return f"{_type(plan, base)} ({low} … {'' if high is None else high})"
        case s.Option(base=base):
            return f"{_type(plan, base)}, optional"
        case s.Case(discriminator=discriminator, arms=arms):
            return f"by {discriminator}: " + " / ".join(_type(plan, arm.type) for arm in arms)
        case s.Text():
            return "text"
        case s.Sized(base=base):
            return f"sized {_type(plan, base)}"
        case s.Run(base=base):
            return f"{base.name} …"
        case s.Unit():
            return "no body"
        case s.Header(bits=bits):
            return f"{bits} bits, flags above"
        case s.Stem(bits=bits, base=base):
            return f"z{base.bits}, low {bits} bits flags"
        case s.Flag(low=low, high=high):
            return f"bits {low}-{high}"
        case s.Record():
            return "{ " + ", ".join(text for member in type.members for text in _fields(plan, member)) + " }"
        case _:
            return "–"


def _count(count: s.Count) -> str:
    if count.type is not None:
        return "" if isinstance(count.type, s.Nat) else "z…: "
    if count.constant is not None:
        return f"{count.constant} × "
    if count.member is not None:
        return f"as many as {count.member}: "
    if count.flag is not None:
        return f"bits {count.flag.low}-{count.flag.high} + {count.plus}: "
    return "to the end: "
