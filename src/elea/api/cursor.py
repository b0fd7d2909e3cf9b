"""Named cursors: positions in a log that the store remembers, and that retention does not pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elea.api.outgoingquery import seconds
from elea.api.storecall import TIMEOUT, Call, query
from elea.model.errors import StoreError
from elea.model.qos import QueryTarget

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Cursor"]


class Cursor:
    """A named position in the log of a key expression; see `Session.cursor`.

    ::

        cursor = session.cursor("home/**", "nightly-report")
        with session.read("home/**", start=cursor.position) as reading:
            for batch in reading:
                ...
            cursor.move(reading.next)
    """

    def __init__(
        self, session: Session, key_expr: str, name: str, timeout: float | None = None, *, log: str | None = None
    ) -> None:
        if not name or ";" in name:
            raise ValueError(f"the name of a cursor has at least one character and no ';', not {name!r}")
        self._session = session
        self._key_expr = key_expr
        self._name = name
        self._log = "" if log is None else f";log={log}"
        self._target = QueryTarget.BEST_MATCHING if log is None else QueryTarget.ALL
        self._timeout = TIMEOUT if timeout is None else seconds(timeout)

    @property
    def name(self) -> str:
        """Its name, by which any session finds it."""
        return self._name

    @property
    def position(self) -> int | None:
        """The position the store has for it now; None if there is no such cursor."""
        position: int | None = self.facts()["position"]
        return position

    def facts(self) -> dict[str, Any]:
        """`log`, `epoch`, `first` and `end` of the log, `position` of the cursor, and `damaged` stretches."""
        return self._said(self.prepare().wait())

    def move(self, position: int) -> None:
        """Put it there; it is made if there is none."""
        self.prepare(f";move={position}").wait()

    def drop(self) -> None:
        """Forget it."""
        self.prepare(";drop").wait()

    def prepare(self, what: str = "") -> Call:
        """A request about it."""
        body = query(f"name={self._name}{what}{self._log}")
        return Call(self._session, "cursor", self._key_expr, body, timeout=self._timeout, target=self._target)

    @staticmethod
    def _said(answer: dict[str, Any]) -> dict[str, Any]:
        if "position" not in answer:
            raise StoreError(f"the answer of a store has no 'position': {answer}")
        return answer

    def __repr__(self) -> str:
        return f"Cursor({self._key_expr!r}, {self._name!r})"
