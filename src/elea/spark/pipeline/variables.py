"""`${NAME}` in the texts of a pipeline file: parameters, which are shown, and the environment, which is not.

A value of the environment may be a password. So wherever something is printed, kept or reported, such a value stands as
`${NAME}` again (`Variables.hide`); only the options that a query is started with have it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from elea.spark.pipeline.problem import Wrong, nearest

__all__ = ["SECRET_CHARS", "Variables"]

SECRET_CHARS: Final = 4
"""Values of the environment that are shorter are no secrets, and hiding them would hide half of every message."""

_NAME: Final = re.compile(r"\$(?:\$\{|\{([^}:\n]*)(?::-([^}\n]*))?(\}?))")
_GOOD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class Variables:
    """Where values come from: what was given for a run, then the parameters of the file, then the environment."""

    given: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    _secrets: dict[str, str] = field(default_factory=dict, repr=False)

    def replaced(self, text: str) -> tuple[str, list[int]]:
        """A text with values for names, and for each of its characters where in the original it comes from.

        >>> Variables(parameters={"floor": "12"}).replaced("a/${floor}/$${x}/${none:-b}")[0]
        'a/12/${x}/b'

        Raises:
            Wrong: a name has no value.
        """
        found: list[str] = []
        places: list[int] = []
        at = 0
        for match in _NAME.finditer(text):
            found.append(text[at : match.start()])
            places += range(at, match.start())
            value = "${" if match[0] == "$${" else self._value(match)
            found.append(value)
            places += [match.start()] * len(value)
            at = match.end()
        found.append(text[at:])
        places += range(at, len(text) + 1)
        return "".join(found), places

    def _value(self, match: re.Match[str]) -> str:
        name, default, closed = match[1], match[2], match[3]
        if not closed:
            raise Wrong("a ${ is never closed", "write ${NAME}, or $${ for the characters themselves", match.start())
        if not _GOOD.fullmatch(name):
            fix = "write ${NAME} with letters, digits and _, or $${ for the characters themselves"
            raise Wrong(f"{name!r} is no name of a variable", fix, match.start())
        for known in (self.given, self.parameters):
            if name in known:
                return known[name]
        if name in self.environment:
            value = self.environment[name]
            if len(value) >= SECRET_CHARS:
                self._secrets[value] = name
            return value
        if default is not None:
            return default
        near = nearest(name, {*self.given, *self.parameters}, "parameters are")
        fix = f"export {name}=… before the run, add it to [parameters], or write ${{{name}:-default}}; {near}"
        raise Wrong(f"there is no parameter or environment variable {name}", fix, match.start())

    def adopt(self, other: Variables) -> None:
        """Hide what the other hides, too."""
        self._secrets |= other._secrets

    def hide(self, text: str) -> str:
        """A text with the names of variables in the place of what the environment says of them."""
        for value in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(value, f"${{{self._secrets[value]}}}")
        return text

    def hidden(self, form: Any) -> Any:
        """The same for all texts of a JSON form."""
        if isinstance(form, str):
            return self.hide(form)
        if isinstance(form, Mapping):
            return {self.hidden(name): self.hidden(value) for name, value in form.items()}
        return [self.hidden(one) for one in form] if isinstance(form, (list, tuple)) else form
