"""Readers of CDR payloads as Python source, made of declared types: one line for a run of numbers, no call for a
struct within.

A reader takes the bytes behind the encapsulation header, where to begin and where to end, and gives the value and where
it ends. What it does not check, because Python does (IndexError, `struct.error`), `elea.content.cdr` turns into an
error. Names of a schema are quoted where they come into the source, and stand nowhere but in string literals.

Spec: dds.md section 2 (CDR facts), checked against cyclonedds 11 in tests/unit/content.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from elea.content.cdrhelpers import HELPERS
from elea.content.schema.declared import (
    BOOLEAN,
    CHAR,
    Array,
    Declared,
    EnumType,
    Extensibility,
    Primitive,
    Sequence,
    Struct,
    Text,
    is_bytes,
    is_plain,
)
from elea.model.predicate.types import Label

__all__ = ["Reader", "compile_reader"]

Reader = Callable[[bytes, int, int, list[int]], tuple[object, int]]
"""Bytes, where to begin, where to end, how many more records may be made: the value, and where it ends."""


def compile_reader(its: Struct, *, version: int, little: bool, extensibility: Extensibility) -> Reader:
    """The reader of one type as it stands at the top of a payload.

    Args:
        version: of the encoding, 1 or 2.
        extensibility: of structs that do not say it themselves.
    """
    source = _Source(version, "<" if little else ">", extensibility)
    name = source.reader(its, is_top=True)
    exec(compile(source.text(), f"<cdr reader of {its.name}>", "exec"), source.names)
    found: Reader = source.names[name]  # type: ignore[assignment]
    return found


class _Body:
    """The lines of one function, and what is known of alignment: `at` is `rest` modulo `known`."""

    def __init__(self, known: int) -> None:
        self.lines: list[str] = []
        self.indent = 1
        self.known = known
        self.rest = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def forget(self) -> None:
        self.known, self.rest = 1, 0

    def moved(self, size: int) -> None:
        self.rest = (self.rest + size) % self.known

    @contextmanager
    def deeper(self, line: str) -> Iterator[None]:
        self.add(line)
        self.indent += 1
        yield
        self.indent -= 1


class _Source:
    """The source of all functions that a type needs."""

    def __init__(self, version: int, order: str, default: Extensibility) -> None:
        self._version = version
        self._order = order
        self._default = default
        self._greatest = 8 if version == 1 else 4
        self._functions: list[str] = []
        self._made: dict[tuple[int, str], str] = {}
        self._kept: list[Declared] = []
        """Types whose identity is remembered, so that they stay."""
        self._numbers = 0
        self._run: list[tuple[str, str]] = []
        self._labels: dict[int, str] = {}
        self.names: dict[str, object] = {**HELPERS, "unpack_from": struct.unpack_from}
        self.names["u4"] = struct.Struct(f"{order}I").unpack_from

    def text(self) -> str:
        return "\n".join(self._functions)

    def _name(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}{self._numbers}"

    # -- functions

    def reader(self, its: Declared, *, is_top: bool = False) -> str:
        """The name of the function that reads a type; each is made once."""
        key = (id(its), "top" if is_top else "value")
        if key not in self._made:
            self._made[key] = name = self._name("read_")
            self._kept.append(its)
            waiting, self._run = self._run, []
            body = _Body(self._greatest if is_top else 1)
            value = self._value(its, body)
            self._flush(body)
            body.add(f"return {value}, at")
            self._functions.append("\n".join([f"def {name}(data, at, end, budget):", *body.lines]))
            self._run = waiting
        return self._made[key]

    # -- values: each gives an expression, which stands for the value once pending numbers are read

    def _value(self, its: Declared, body: _Body) -> str:
        if isinstance(its, Primitive):
            return self._number(its.code, its.size, body, its)
        if isinstance(its, EnumType):
            number = self._number({1: "b", 2: "h", 4: "i"}[its.size], its.size, body, its)
            return f"{self._label_table(its)}[{number}]"
        if isinstance(its, Text):
            return self._text(its, body)
        if isinstance(its, Struct):
            return self._struct(its, body, its.extensibility or self._default)
        return self._many(its, body)

    def _number(self, code: str, size: int, body: _Body, its: Declared) -> str:
        """One number; runs of them are read at once, with the padding between them."""
        size_aligned = min(size, self._greatest)
        if size_aligned > body.known:
            self._align(size_aligned, body)
        padding = -body.rest % size_aligned
        name = self._name("v")
        self._run.append(("x" * padding + code, name))
        body.moved(padding + size)
        return f"{name}.decode('latin-1')" if its == CHAR else name

    def _flush(self, body: _Body) -> None:
        """Read the numbers that wait."""
        if not self._run:
            return
        codes, names = zip(*self._run, strict=True)
        self._run.clear()
        form = struct.Struct(self._order + "".join(codes))
        reader = self._name("unpack_")
        self.names[reader] = form.unpack_from
        body.add(f"({', '.join(names)},) = {reader}(data, at)")
        body.add(f"at += {form.size}")

    def _align(self, size: int, body: _Body) -> None:
        """Stand at a multiple of `size`."""
        self._flush(body)
        if size > body.known:
            body.add(f"at = at + {size - 1} & -{size}")
            body.known, body.rest = size, 0
        elif body.rest % size:
            step = -body.rest % size
            body.add(f"at += {step}")
            body.moved(step)

    def _length(self, body: _Body) -> str:
        """A length of 32 bits."""
        self._align(4, body)
        name = self._name("n")
        body.add(f"({name},) = u4(data, at)")
        body.add("at += 4")
        body.moved(4)
        return name

    def _text(self, its: Text, body: _Body) -> str:
        size, name = self._length(body), self._name("v")
        with body.deeper(f"if {size} > end - at:"):
            body.add(f"raise cut_off('a text', {size}, end - at)")
        if its.bound is not None:
            with body.deeper(f"if {size} > {its.bound + 1}:"):
                body.add(f"raise too_many({size} - 1, {its.bound})")
        body.add(f"{name} = text(data, at, {size})")
        body.add(f"at += {size}")
        body.forget()
        return name

    # -- structs

    def _struct(self, its: Struct, body: _Body, how: Extensibility) -> str:
        if how is Extensibility.MUTABLE:
            return self._mutable(its, body)
        if how is Extensibility.APPENDABLE and self._version == 2:
            return self._delimited_struct(its, body)
        parts = [f"{member.name!r}: {self._member(its, at, body)}" for at, member in enumerate(its.members)]
        return f"{{{', '.join(parts)}}}"

    def _member(self, its: Struct, at: int, body: _Body) -> str:
        member = its.members[at]
        if not member.is_optional:
            return self._value(member.type, body)
        if self._version == 1:
            self._align(4, body)
            name = self._name("v")
            read = self.reader(member.type)
            body.add(f"{name}, at = optional(data, at, end, budget, {member.id}, {self._order!r}, {read})")
            body.forget()
            return name
        self._flush(body)
        name = self._name("v")
        body.add(f"{name} = None")
        body.add("at += 1")
        body.forget()
        read = self.reader(member.type)
        with body.deeper("if data[at - 1]:"):
            body.add(f"{name}, at = {read}(data, at, end, budget)")
        return name

    def _delimited_struct(self, its: Struct, body: _Body) -> str:
        """An appendable struct of XCDR2; members that an older writer did not have are null."""
        size, stop, name = self._length(body), self._name("stop"), self._name("v")
        body.add(f"{stop} = at + {size}")
        with body.deeper(f"if {stop} > end:"):
            body.add(f"raise cut_off('a struct', {size}, end - at)")
        self._all_absent(its, name, body)
        read = self._members_reader(its)
        body.add(f"{read}(data, at, {stop}, budget, {name})")
        body.add(f"at = {stop}")
        body.forget()
        return name

    def _members_reader(self, its: Struct) -> str:
        """The function that reads as many members as there are; a struct of its own may stop between any two."""
        key = (id(its), "members")
        name = self._made.get(key)
        if name is None:
            self._made[key] = name = self._name("read_")
            self._kept.append(its)
            waiting, self._run = self._run, []
            body = _Body(4)  # it stands behind a length
            for at, member in enumerate(its.members):
                with body.deeper("if at >= end:"):
                    body.add("return")
                value = self._member(its, at, body)
                self._flush(body)
                body.add(f"found[{member.name!r}] = {value}")
            with body.deeper("if at > end:"):
                body.add("raise cut_off('a struct', at - end, 0)")
            self._functions.append("\n".join([f"def {name}(data, at, end, budget, found):", *body.lines]))
            self._run = waiting
        return name

    def _mutable(self, its: Struct, body: _Body) -> str:
        self._align(4, body)
        table, name = self._name("members_"), self._name("v")
        readers = {member.id: (member.name, self.reader(member.type)) for member in its.members}
        entries = ", ".join(f"{id}: ({member!r}, {read})" for id, (member, read) in readers.items())
        helper = "mutable1" if self._version == 1 else "mutable2"
        self._all_absent(its, name, body)
        # A table of functions, so it is made when all of them are there.
        self._functions.append(f"def {table}():\n    return {{{entries}}}")
        body.add(f"at = {helper}(data, at, end, budget, {self._order!r}, {table}(), {name})")
        body.forget()
        return name

    def _all_absent(self, its: Struct, name: str, body: _Body) -> None:
        """A struct of which nothing was read yet: the members that it lacks cost no bytes, so they are counted."""
        body.add(f"spend(budget, {len(its.members)})")
        body.add(f"{name} = dict.fromkeys({tuple(member.name for member in its.members)!r})")

    # -- arrays and sequences

    def _many(self, its: Sequence | Array, body: _Body) -> str:
        """Elements one behind the other; in XCDR2 those that are no primitives stand behind their length in bytes."""
        if self._version == 1 or is_plain(its.element):
            return self._elements(its, body, "end")
        size, stop = self._length(body), self._name("stop")
        body.add(f"{stop} = at + {size}")
        with body.deeper(f"if {stop} > end:"):
            body.add(f"raise cut_off('elements', {size}, end - at)")
        value = self._elements(its, body, stop)
        with body.deeper(f"if at > {stop}:"):
            body.add(f"raise cut_off('elements', at - {stop}, 0)")
        body.add(f"at = {stop}")
        body.forget()
        return value

    def _elements(self, its: Sequence | Array, body: _Body, stop: str) -> str:
        if isinstance(its, Sequence):
            count = self._length(body)
            if its.bound is not None:
                with body.deeper(f"if {count} > {its.bound}:"):
                    body.add(f"raise too_many({count}, {its.bound})")
        else:
            self._flush(body)
            count = str(its.count)
        name = self._name("v")
        if isinstance(its.element, Primitive):
            self._primitives(its.element, count, name, body, stop, is_bytes(its))
        else:
            # Each takes a byte at least, so nothing is made that the payload does not pay for.
            with body.deeper(f"if {count} > {stop} - at:"):
                body.add(f"raise cut_off('elements', {count}, {stop} - at)")
            self._records(its.element, count, name, body, stop)
        if isinstance(its, Array) and len(its.sizes) > 1:
            body.add(f"{name} = nested({name}, {its.sizes!r})")
        return name

    def _primitives(self, its: Primitive, count: str, name: str, body: _Body, stop: str, as_bytes: bool) -> None:
        size = min(its.size, self._greatest)
        if count.isdigit():
            self._align(size, body)
        elif size > body.known or body.rest % size:
            # A sequence without elements is not padded for them.
            with body.deeper(f"if {count}:"):
                body.add(f"at = at + {size - 1} & -{size}")
        with body.deeper(f"if {count} * {its.size} > {stop} - at:"):
            body.add(f"raise cut_off('elements', {count} * {its.size}, {stop} - at)")
        if as_bytes:
            body.add(f"{name} = data[at:at + {count}]")
        elif its == BOOLEAN:
            body.add(f"{name} = list(map(bool, data[at:at + {count}]))")
        elif its == CHAR:
            body.add(f"{name} = list(data[at:at + {count}].decode('latin-1'))")
        else:
            body.add(f"{name} = list(unpack_from('{self._order}%d{its.code}' % {count}, data, at))")
        body.add(f"at += {count} * {its.size}")
        body.forget()

    def _records(self, its: Declared, count: str, name: str, body: _Body, stop: str) -> None:
        read, element = self.reader(its), self._name("e")
        body.add(f"spend(budget, {count})")
        body.add(f"{name} = []")
        with body.deeper(f"for _ in range({count}):"):
            body.add(f"{element}, at = {read}(data, at, {stop}, budget)")
            body.add(f"{name}.append({element})")
        body.forget()

    def _label_table(self, its: EnumType) -> str:
        """The name of the table of an enumeration; what is not in it is no value of it (KeyError)."""
        if id(its) not in self._labels:
            self._kept.append(its)
            self._labels[id(its)] = name = self._name("labels_")
            self.names[name] = Label.all_of(its.labels)
        return self._labels[id(its)]
