"""`Predicate`: a condition over samples, checked and with its parameters: what every door takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn

from elea.model.errors import InvalidPredicate
from elea.model.limits import PREDICATE_CHARS, PREDICATE_PATTERN
from elea.model.predicate import functions
from elea.model.predicate.constants import Constant
from elea.model.predicate.parser import Parser
from elea.model.predicate.patterns import TextPattern, glob_pattern, like_pattern
from elea.model.predicate.syntax import (
    Call,
    Condition,
    Field,
    Like,
    Literal,
    Match,
    Metadata,
    Node,
    Parameter,
    Property,
    canonical,
    walk,
)

__all__ = ["Predicate", "is_predicate"]

Given = bool | int | float | str


class Predicate:
    """A condition in the language of DDS and SQL, over the fields of a payload and what else a sample says.

    >>> predicate = Predicate("luminosity > %0 and mode = 'AUTO'", ["2"])
    >>> predicate.text, sorted(predicate.fields)
    ("luminosity>%0 AND mode='AUTO'", [('luminosity',), ('mode',)])

    Two predicates are equal if their canonical texts and parameters are.
    """

    __slots__ = ("_places", "_source", "condition", "fields", "metadata", "parameters", "properties", "text")

    def __init__(self, text: str, parameters: Sequence[Given] = ()) -> None:
        """Read a text.

        Args:
            parameters: what `%0`, `%1`, … stand for. A text becomes what it meets, as in DDS.

        Raises:
            InvalidPredicate: it is no predicate, it calls a function that nobody knows, or a parameter is missing.
        """
        parser = Parser(text)
        self.condition: Condition = parser.parse()
        self.parameters = tuple(parameters)
        self.text = canonical(self.condition)
        """Its canonical text."""
        if len(self.text) > PREDICATE_CHARS:  # a number may take more room than it was written in
            raise InvalidPredicate(text, 1, f"its canonical text is above {PREDICATE_CHARS} (PREDICATE_CHARS)")
        self._source = text
        self._places = parser.places
        nodes = list(walk(self.condition))
        self.fields = frozenset(node.path for node in nodes if isinstance(node, Field))
        """The fields of the content that it looks at."""
        self.metadata = frozenset(node.name for node in nodes if isinstance(node, Metadata))
        """What else of a sample it looks at."""
        self.properties = frozenset(node.name for node in nodes if isinstance(node, Property))
        """The properties of resources that it looks at."""
        for node in nodes:
            self._check(node)

    @classmethod
    def of(cls, given: str | Predicate) -> Predicate:
        """Of a predicate, its text, or what `str` gives of one with parameters.

        >>> str(Predicate.of(str(Predicate("a = %0", ["x"]))))
        '["a=%0","x"]'
        """
        if isinstance(given, Predicate):
            return given
        if given[:1] != "[":  # a point may stand in a function only, so no text begins so
            return cls(given)
        try:
            text, *parameters = json.loads(given)
            known = all(isinstance(each, bool | int | float | str) for each in parameters)
        except (ValueError, RecursionError):
            known = False
        if not known or not isinstance(text, str):
            raise InvalidPredicate(given[:200], 1, "neither a predicate nor one with its parameters")
        return cls(text, parameters)

    def constant(self, node: Literal | Parameter) -> Constant:
        """What a constant of the text stands for."""
        if isinstance(node, Literal):
            return Constant.literal(node.value)
        return Constant.parameter(self.parameters[node.number])

    def pattern(self, node: Like | Match) -> TextPattern:
        """What a LIKE or MATCH compares with."""
        text = self.constant(node.pattern).text
        if text is None:
            self.fail(node, "the pattern is a string")
        if len(text) > PREDICATE_PATTERN:
            self.fail(node, f"the pattern is above the limit of {PREDICATE_PATTERN} characters (PREDICATE_PATTERN)")
        if isinstance(node, Like):
            return like_pattern(text)
        try:
            return glob_pattern(text)
        except ValueError as error:
            self.fail(node, str(error))

    def fail(self, node: Node, problem: str) -> NoReturn:
        """Refuse it because of a node, which the error shows.

        Raises:
            InvalidPredicate: always.
        """
        raise InvalidPredicate(self._source, self._places.get(id(node), 1), problem)

    def _check(self, node: Node) -> None:
        match node:
            case Parameter(number) if number >= len(self.parameters):
                self.fail(node, f"parameter %{number} is not given")
            case Like() | Match():
                self.pattern(node)
            case Call(name, arguments):
                function = functions.find(name)
                if function is None:
                    self.fail(node, f"there is no function {name!r}")
                if len(arguments) != function.arity:
                    self.fail(node, f"{name} takes {function.arity} arguments, not {len(arguments)}")

    def __str__(self) -> str:
        """Its text; with parameters, all of it as a JSON array, which `of` takes."""
        if not self.parameters:
            return self.text
        return json.dumps([self.text, *self.parameters], separators=(",", ":"))

    def __repr__(self) -> str:
        return f"Predicate({self.text!r}{', ' + repr(list(self.parameters)) if self.parameters else ''})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[type[Predicate], tuple[str, tuple[Given, ...]]]:
        return Predicate, (self.text, self.parameters)


def is_predicate(text: str) -> bool:
    """Whether a text is one, whatever its parameters are."""
    try:
        Parser(text).parse()
    except InvalidPredicate:
        return False
    return True
