"""`UCode` and `UStatus`: how uProtocol says what came of something; and the errors that carry them."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from elea.model.errors import EleaError
from elea.uprotocol.protobuf import SIZED, VARINT, fields, number, sized, text_of

__all__ = ["InvalidUri", "InvalidUuid", "UCode", "UStatus", "UStatusError", "code_of"]


class UCode(IntEnum):
    """The outcome of a call."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


_LAST: Final = max(UCode)


def code_of(value: int) -> UCode:
    """The code with a number; UNKNOWN for one that is not defined."""
    return UCode(value) if 0 <= value <= _LAST else UCode.UNKNOWN


class UStatus(NamedTuple):
    """A code, and text and further messages (protobuf of `google.protobuf.Any`) that say more.

    >>> UStatus.from_bytes(bytes.fromhex("0805120d6e6f2073756368206c69676874"))
    UStatus(code=<UCode.NOT_FOUND: 5>, message='no such light', details=())
    """

    code: UCode = UCode.OK
    message: str | None = None
    details: tuple[bytes, ...] = ()

    def to_bytes(self) -> bytes:
        """The protobuf."""
        return b"".join(
            (
                number(1, self.code, "code") if self.code else b"",
                sized(2, self.message.encode()) if self.message is not None else b"",
                *(sized(3, detail) for detail in self.details),
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> UStatus:
        """The status of a protobuf.

        Raises:
            DecodeError: it is no protobuf.
        """
        code, message, details = UCode.OK, None, []
        for field, wire, value in fields(data):
            if field == 1 and wire == VARINT and isinstance(value, int):
                code = code_of(value & 0xFFFF_FFFF)
            elif field == 2 and wire == SIZED and isinstance(value, bytes):
                message = text_of(value, "message")
            elif field == 3 and wire == SIZED and isinstance(value, bytes):
                details.append(value)
        return cls(code, message, tuple(details))


class UStatusError(EleaError):
    """A uProtocol operation failed: `code` and `status` say how."""

    def __init__(self, code: UCode, message: str = "", details: tuple[bytes, ...] = ()) -> None:
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.status = UStatus(code, message or None, details)

    @property
    def code(self) -> UCode:
        """What kind of failure."""
        return self.status.code

    @classmethod
    def of(cls, status: UStatus) -> UStatusError:
        """The error that a status tells of."""
        return cls(status.code, status.message or "", status.details)

    def __reduce__(self) -> tuple[object, ...]:
        return UStatusError, (self.status.code, self.status.message or "", self.status.details)


class InvalidUri(UStatusError, ValueError):
    """Text or numbers that are no address."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(UCode.INVALID_ARGUMENT, f"invalid UUri {text!r}: {problem}")
        self.text = text
        self.problem = problem

    def __reduce__(self) -> tuple[object, ...]:
        return InvalidUri, (self.text, self.problem)


class InvalidUuid(UStatusError, ValueError):
    """Text or numbers that are no identifier of version 7."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(UCode.INVALID_ARGUMENT, f"invalid UUID {text!r}: {problem}")
        self.text = text
        self.problem = problem

    def __reduce__(self) -> tuple[object, ...]:
        return InvalidUuid, (self.text, self.problem)
