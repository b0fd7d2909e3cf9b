"""Definition file to Python: `messages.py` (the values) and `codec.py` (bytes to values and back).

    python -m elea.notation.generate        writes the modules of every dialect again

Both are committed; a test compares them with what this module writes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from elea.notation import syntax as s
from elea.notation.emit import Lines
from elea.notation.picture import page
from elea.notation.plan import Plan, RecordPlan, load, snake
from elea.notation.readers import emit_readers
from elea.notation.writers import emit_writers

__all__ = ["DIALECTS", "codec_module", "generate", "messages_module", "plan_of"]

DIALECTS = ("xrce2017", "zenoh2018", "zenoh1")

HANDWRITTEN: Mapping[str, frozenset[str]] = {
    # A compact marker holds its id in flags, counted from one; the value should hold the id itself.
    "xrce2017": frozenset({"Conduit", "ConduitId"}),
    "zenoh2018": frozenset({"Conduit", "ConduitId", "RSpace", "RSpaceId"}),
}
MARKERS = ("Conduit", "RSpace")

WIRE = Path(__file__).resolve().parent.parent / "wire"


def plan_of(dialect: str) -> Plan:
    """The plan of a dialect's committed definition file."""
    text = (WIRE / dialect / f"{dialect}.zn").read_text(encoding="utf-8")
    return load(text, dialect=dialect, extended=dialect == "zenoh1")


def generate(dialect: str) -> dict[str, str]:
    """File name to content, for one dialect."""
    plan = plan_of(dialect)
    handwritten = HANDWRITTEN.get(dialect, frozenset())
    return {
        "messages.py": messages_module(plan, handwritten),
        "codec.py": codec_module(plan, handwritten),
    }


# -- values -----------------------------------------------------------------------------------------------------------


def messages_module(plan: Plan, handwritten: frozenset[str] = frozenset()) -> str:
    """Source of the message values of a dialect."""
    out = Lines()
    has_chains = any("Unknown" in field.python for r in plan.records.values() for field in r.fields)
    out(f'"""Message values of {plan.dialect}. Generated from {plan.dialect}.zn: edit that, then `make generate`."""')
    out()
    out("from __future__ import annotations")
    out()
    if plan.enums:
        out("from enum import IntEnum")
        out()
    markers = [name for name in MARKERS if name in handwritten]
    if markers:
        out(f"from elea.wire.markers import {', '.join(markers)}")
    if has_chains:
        out("from elea.wire.primitives import Unknown")
    out("from elea.wire.values import MessageValue")
    out()
    records = [record for record in plan.records.values() if record.name not in handwritten]
    names = [*plan.enums, *(record.name for record in records), *plan.unions, *markers]
    out("__all__ = [")
    for name in sorted(names):
        out(f'    "{name}",')
    out("]")
    for name, enum in plan.enums.items():
        _enum(name, enum, out)
    for record in records:
        _record(record, out)
    for union in plan.unions.values():
        out()
        out()
        _union(union.name, list(union.arms.values()), out)
    return out.text()


def _union(name: str, arms: list[str], out: Lines) -> None:
    if len(arms) < 4:
        out(f"{name} = {' | '.join(arms)}")
        return
    out(f"{name} = (")
    for index, arm in enumerate(arms):
        out(f"    {'| ' if index else ''}{arm}")
    out(")")


def _enum(name: str, enum: s.Enum, out: Lines) -> None:
    out()
    out()
    with out.block(f"class {name}(IntEnum):"):
        for symbol, number in enum.symbols:
            out(f"{symbol} = {number}")


def _record(record: RecordPlan, out: Lines) -> None:
    out()
    out()
    with out.block(f"class {record.name}(MessageValue):"):
        for field in record.ordered:
            default = "" if field.default is None else f" = {field.default}"
            # `count` and `index` are methods of tuples; the papers' names win.
            hides = "  # type: ignore[assignment]" if field.name in ("count", "index") else ""
            out(f"{field.attribute}: {field.python}{default}{hides}")


# -- codecs -----------------------------------------------------------------------------------------------------------

ERRORS = (
    "BadEnum",
    "ConstraintViolated",
    "EncodeError",
    "ReservedMessage",
    "Truncated",
    "UnknownDeclaration",
    "UnknownMessage",
)
HELPERS = (
    "Unknown",
    "bits",
    "long_nat",
    "long_z",
    "read_extension",
    "read_text",
    "sized",
    "sized_bytes",
    "write_extensions",
    "write_nat",
    "write_sized",
    "write_z",
)


def codec_module(plan: Plan, handwritten: frozenset[str] = frozenset()) -> str:
    """Source of the readers and writers of a dialect."""
    body = Lines()
    emit_readers(plan, body, handwritten)
    emit_writers(plan, body, handwritten)
    code = body.text()
    out = Lines()
    out(f'"""Bytes of {plan.dialect} to values and back. Generated from {plan.dialect}.zn, see messages.py."""')
    out()
    out("from __future__ import annotations")
    out()
    out("from collections.abc import Callable")
    out(f"from typing import Any, Final{', cast' if 'cast(' in code else ''}")
    out()
    _imports("elea.model.errors", ERRORS, code, out)
    markers = [name for name in MARKERS if name in handwritten]
    if markers:
        out("from elea.wire.markers import read_marker, write_marker")
    _imports("elea.wire.primitives", HELPERS, code, out)
    used = [name for name in (*plan.enums, *plan.records, *plan.unions) if _uses(code, name)]
    _imports(f"elea.wire.{plan.dialect}.messages", tuple(sorted(used)), code, out)
    out()
    out(f'DIALECT: Final = "{plan.dialect}"')
    out("new: Final = tuple.__new__")
    for name in plan.enums:
        table = f"_{snake(name).upper()}"
        if f"{table}.get" in code:
            out(f"{table}: Final = {{member.value: member for member in {name}}}")
    return out.text() + code


def _uses(code: str, name: str) -> bool:
    return re.search(rf"(?<![\w\"]){name}(?!\w)", code) is not None


def _imports(module: str, names: tuple[str, ...], code: str, out: Lines) -> None:
    used = [name for name in names if _uses(code, name)]
    if not used:
        return
    line = f"from {module} import {', '.join(used)}"
    if len(line) <= 110:
        out(line)
        return
    out(f"from {module} import (")
    for name in used:
        out(f"    {name},")
    out(")")


def main() -> int:
    """Write the modules of every dialect, and the pages of docs/ if this is a checkout; print what changed."""
    pages = WIRE.parents[2] / "docs" / "messages"
    for dialect in DIALECTS:
        for name, text in generate(dialect).items():
            _write(WIRE / dialect / name, text)
        if pages.parent.is_dir():
            pages.mkdir(exist_ok=True)
            _write(pages / f"{dialect}.md", page(plan_of(dialect)))
    return 0


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {path.parent.name}/{path.name}\n")


if __name__ == "__main__":
    raise SystemExit(main())
