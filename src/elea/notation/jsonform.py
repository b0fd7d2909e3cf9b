"""Message values as JSON and back, by their definitions.

The rules are those of the early dialects: members under their own names, `kind` for messages, null for what is
absent, octets in hexadecimal, the papers' `string` as text. A dialect with other customs overrides the hooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NoReturn

from elea.model.errors import EncodeError
from elea.notation import syntax as s
from elea.notation.plan import FieldPlan, Plan

__all__ = ["Json", "JsonForm"]

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class JsonForm:
    """The JSON form of one dialect; `classes` are its message values by name."""

    def __init__(self, plan: Plan, classes: Mapping[str, type]) -> None:
        self.plan = plan
        self.classes = classes

    # -- values to JSON -----------------------------------------------------------------------------------------------

    def record(self, value: tuple[object, ...]) -> dict[str, Json]:
        """A message value as an object."""
        name = type(value).__name__
        form: dict[str, Json] = {"kind": name} if name in self.plan.kinds else {}
        for field in self.plan.records[name].fields:
            form[field.name] = self.value(field.type, getattr(value, field.attribute))
        return form

    def value(self, type: s.Type, value: object) -> Json:
        """Any value as JSON."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, bytes):
            return self.octets(type, value)
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, int):
            return value
        assert isinstance(value, tuple)
        if hasattr(value, "_fields"):
            return self.record(value)
        return [self.value(self.element(type, item), item) for item in value]

    def octets(self, type: s.Type, value: bytes) -> Json:
        return _text(value) if self.is_text(type) else value.hex()

    def is_text(self, type: s.Type) -> bool:
        """Whether octets are shown as text: the definition called `string`, and names for it."""
        while isinstance(type, s.Ref):
            if type.name == "string":
                return True
            type = self.plan.definitions.types[type.name]
        if isinstance(type, s.Option | s.Range):
            return self.is_text(type.base)
        return False

    def element(self, type: s.Type, item: object) -> s.Type:
        """The type of an item of a sequence, looking through options and cases."""
        resolved = self.plan.resolve(type)
        match resolved:
            case s.Option(base=base) | s.Range(base=base):
                return self.element(base, item)
            case s.Case(arms=arms):
                records = isinstance(item, tuple)
                fit = [arm for arm in arms if (self.plan.name_of(self.element(arm.type, item)) is not None) == records]
                return self.element((fit or list(arms))[0].type, item)
            case s.Sequence(element=element):
                return element
            case _:
                return resolved

    # -- JSON to values -----------------------------------------------------------------------------------------------

    def parse_record(self, name: str, form: Json) -> object:
        """The message value of an object; `name` is a record or a union."""
        if not isinstance(form, dict):
            self.fail(name, "an object is needed")
        if name in self.plan.unions:
            name = self.arm(name, form)
        if name not in self.plan.records:
            self.fail("kind", f"{name!r} is no message of {self.plan.dialect}")
        fields = self.plan.records[name].fields
        known = {field.name for field in fields} | {"kind"}
        strange = next((member for member in form if member not in known), None)
        if strange is not None:
            self.fail(f"{name}.{strange}", f"no such member; {name} has {', '.join(sorted(known - {'kind'}))}")
        return self.build(name, {field.attribute: self.member(name, field, form) for field in fields})

    def build(self, name: str, fields: dict[str, object]) -> object:
        if name not in self.classes:
            self.fail(name, "a number is needed")  # the flags of a compact marker: its value holds the id
        return self.classes[name](**fields)

    def arm(self, union: str, form: dict[str, Json]) -> str:
        kind = form.get("kind")
        if not isinstance(kind, str) or kind not in self.plan.unions[union].arms.values():
            self.fail("kind", f"{kind!r} is none of {', '.join(self.plan.unions[union].arms.values())}")
        return kind

    def member(self, record: str, field: FieldPlan, form: dict[str, Json]) -> object:
        if field.name not in form and field.default is None:
            self.fail(f"{record}.{field.name}", "missing")
        if field.name not in form:
            return self.default(field)
        return self.parse(field.type, form[field.name], f"{record}.{field.name}")

    def default(self, field: FieldPlan) -> object:
        return {"False": False, "None": None, "()": ()}[field.default or "None"]

    def parse(self, type: s.Type, form: Json, what: str) -> object:
        """A value of `type` from JSON."""
        record = self.plan.name_of(type)
        if record is not None:
            return self.parse_record(record, form)
        enum = self.plan.enum_name(type)
        if enum is not None:
            return self.parse_enum(enum, form, what)
        match self.plan.resolve(type):
            case s.Flag(low=low, high=high) if low == high:
                if not isinstance(form, bool):
                    self.fail(what, "true or false is needed")
                return form
            case s.Option(base=base):
                return None if form is None else self.parse(base, form, what)
            case s.Case(arms=arms):
                return None if form is None else self.parse_case(arms, form, what)
            case s.Text():
                if not isinstance(form, str):
                    self.fail(what, "text is needed")
                return form
            case s.Range(base=base) | s.Sized(base=base):
                return self.parse(base, form, what)
            case s.Sequence(element=element):
                return self.parse_sequence(type, element, form, what)
            case s.Run(base=base):
                return self.parse_sequence(type, base, form, what)
            case _:
                if not isinstance(form, int) or isinstance(form, bool):
                    self.fail(what, "a number is needed")
                return form

    def parse_enum(self, enum: str, form: Json, what: str) -> object:
        numbers = dict(self.plan.enums[enum].symbols)
        if not isinstance(form, str) or form not in numbers:
            self.fail(what, f"{form!r} is none of {', '.join(numbers)}")
        return self.classes[enum](numbers[form])

    def parse_case(self, arms: tuple[s.Arm, ...], form: Json, what: str) -> object:
        problem: EncodeError | None = None
        for arm in arms:
            try:
                return self.parse(arm.type, form, what)
            except EncodeError as error:
                problem = error
        assert problem is not None
        raise problem

    def parse_sequence(self, type: s.Type, element: s.Type, form: Json, what: str) -> object:
        if isinstance(self.plan.resolve(element), s.Byte):
            return self.parse_octets(type, form, what)
        if not isinstance(form, list):
            self.fail(what, "a list is needed")
        return tuple(self.parse(element, item, f"{what}[{number}]") for number, item in enumerate(form))

    def parse_octets(self, type: s.Type, form: Json, what: str) -> bytes:
        if not isinstance(form, str):
            self.fail(what, "text is needed" if self.is_text(type) else "octets in hexadecimal are needed")
        is_text = self.is_text(type)
        try:
            return form.encode("utf-8", "surrogateescape") if is_text else bytes.fromhex(form)
        except ValueError:
            self.fail(what, f"{form[:40]!r} is not {'text' if is_text else 'hexadecimal'}")

    def fail(self, what: str, problem: str) -> NoReturn:
        raise EncodeError(what, problem)


def _text(octets: bytes) -> str:
    """Octets as text; those that are not UTF-8 survive as lone surrogates, so the way back is exact."""
    return octets.decode("utf-8", "surrogateescape")
