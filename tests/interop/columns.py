"""Who plays what: a column of the matrix says which library is the router and which is either side.

Side `a` acts (puts, asks, looks), side `b` receives, answers, is looked at. With a router both are its clients; as
peers one of them connects to the other by a configured endpoint. The columns of eclipse-zenoh alone are the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COLUMNS", "PEERS", "ROUTED", "Column"]


@dataclass(frozen=True, slots=True)
class Column:
    """One combination of libraries: "E" for elea, "Z" for eclipse-zenoh."""

    a: str
    b: str
    router: str | None = None
    a_connects: bool = True

    @property
    def name(self) -> str:
        """`router:a→b`; for peers the arrow's tail is the one that connects, and `a` comes first."""
        if self.router is not None:
            return f"{self.router}:{self.a}{self.b}"
        return f"{self.a}{'>' if self.a_connects else '<'}{self.b}"

    @property
    def reference(self) -> Column:
        """The same with eclipse-zenoh in all roles."""
        return Column("Z", "Z", None if self.router is None else "Z", self.a_connects)

    @property
    def is_reference(self) -> bool:
        """Whether Elea takes no part."""
        return self == self.reference


ROUTED = [
    Column("Z", "Z", "Z"),
    Column("E", "Z", "Z"),
    Column("Z", "E", "Z"),
    Column("E", "E", "Z"),
    Column("Z", "Z", "E"),
    Column("E", "Z", "E"),
    Column("Z", "E", "E"),
    Column("E", "E", "E"),
]
PEERS = [
    Column(a, b, None, a_connects)
    for a_connects in (True, False)
    for a, b in (("Z", "Z"), ("E", "Z"), ("Z", "E"), ("E", "E"))
]
COLUMNS = [*ROUTED, *PEERS]
