"""A predicate as the parameter `_where` of a selector, which stores understand and others pass over."""

from __future__ import annotations

import re
from typing import Final

from elea.model.predicate.predicate import Predicate

__all__ = ["WHERE", "parameter_of", "predicate_of_parameter"]

WHERE: Final = "_where"
_ESCAPED: Final = re.compile("[%;|]")
_ESCAPE: Final = re.compile("%(25|3B|7C)")


def parameter_of(predicate: Predicate) -> str:
    """The value of the parameter: what would end it is escaped, as in a URL.

    >>> parameter_of(Predicate("a LIKE 'x%;'"))
    "a LIKE 'x%25%3B'"
    """
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", str(predicate))


def predicate_of_parameter(value: str) -> Predicate:
    """The predicate of a parameter.

    Raises:
        InvalidPredicate: it is none.
    """
    return Predicate.of(_ESCAPE.sub(lambda found: chr(int(found[1], 16)), value))
