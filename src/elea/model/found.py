"""A node that was found by scouting."""

from __future__ import annotations

from typing import Final

from elea.model.qos import Role
from elea.model.values import value_class

__all__ = ["ANY_ROLE", "Found"]

ANY_ROLE: Final = Role.ROUTER | Role.PEER | Role.CLIENT


@value_class
class Found:
    """A node that answered; without locators it is to be reached where the answer came from."""

    node_id: bytes
    role: Role
    locators: tuple[str, ...]
