"""What the rules need of a decoded message: structural types that both early dialects satisfy.

The generated codecs give each dialect classes of its own; a rule that holds in both is written against these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = [
    "AcceptShape",
    "BindingShape",
    "DeclareShape",
    "DecoratedShape",
    "FragShape",
    "IdShape",
    "MigrateShape",
    "NumberedShape",
    "OpenShape",
    "PeriodShape",
    "PullShape",
    "ResourceShape",
    "SelectionShape",
    "SubscriberShape",
    "SynchShape",
]


class IdShape(Protocol):
    """Whatever has an id. Of Conduit and RSpace it is the effective one, whatever the form on the wire."""

    @property
    def id(self) -> int: ...


class FragShape(Protocol):
    @property
    def snBase(self) -> int: ...  # noqa: N802 - the papers' name of the field


class DecoratedShape(Protocol):
    """A message with the markers in front of it."""

    @property
    def markers(self) -> Sequence[object]: ...

    @property
    def message(self) -> object: ...


class NumberedShape(Protocol):
    """Every message of a channel."""

    @property
    def sn(self) -> int: ...


class OpenShape(Protocol):
    @property
    def pid(self) -> bytes: ...


class AcceptShape(Protocol):
    @property
    def acceptPid(self) -> bytes: ...  # noqa: N802 - the papers' name of the field


class SynchShape(NumberedShape, Protocol):
    @property
    def reliable(self) -> bool: ...

    @property
    def count(self) -> int | None: ...


class PullShape(NumberedShape, Protocol):
    @property
    def maxSamples(self) -> int | None: ...  # noqa: N802 - the papers' name of the field


class MigrateShape(Protocol):
    @property
    def rchLastSN(self) -> int: ...  # noqa: N802 - the papers' name of the field

    @property
    def bechLastSN(self) -> int: ...  # noqa: N802 - the papers' name of the field


class DeclareShape(NumberedShape, Protocol):
    @property
    def committed(self) -> bool: ...

    @property
    def declarations(self) -> Sequence[object]: ...


class ResourceShape(Protocol):
    @property
    def rid(self) -> int: ...

    @property
    def resource(self) -> bytes: ...


class SelectionShape(Protocol):
    @property
    def sid(self) -> int: ...


class BindingShape(Protocol):
    @property
    def oldId(self) -> int: ...  # noqa: N802 - the papers' name of the field

    @property
    def newId(self) -> int: ...  # noqa: N802 - the papers' name of the field


class PeriodShape(Protocol):
    @property
    def temporalOrigin(self) -> int: ...  # noqa: N802 - the papers' name of the field

    @property
    def period(self) -> int: ...

    @property
    def duration(self) -> int: ...


class SubscriberShape(Protocol):
    @property
    def id(self) -> int: ...

    @property
    def params(self) -> PeriodShape | None: ...
