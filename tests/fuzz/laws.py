"""What it means that a law is broken, and the law of zenoh1's hot path: it reads what the generated codec reads."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from elea.model.errors import DecodeError, Truncated
from elea.wire.zenoh1.codec import read_network_message
from elea.wire.zenoh1.messages import NetworkMessage, Push
from elea.wire.zenoh1.samples import Pushed, details, read_pushes, wire_expr_of

__all__ = ["LawBroken", "Run", "broken", "check_pushes", "read_run", "require"]

SHOWN = 300


class LawBroken(AssertionError):
    """The first argument names the law; findings are told apart by it."""

    @property
    def law(self) -> str:
        return str(self.args[0])


def require(holds: bool, law: str, *evidence: object) -> None:
    """Raises LawBroken unless the law holds."""
    if not holds:
        broken(law, *evidence)


def broken(law: str, *evidence: object) -> NoReturn:
    raise LawBroken(law, *(repr(item)[:SHOWN] for item in evidence))


# -- runs of pushes ---------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """What the hot path made of some octets: entries, where it stopped, and the error if that is why."""

    entries: list[Pushed]
    end: int
    error: DecodeError | None


def read_run(data: bytes) -> Run:
    """The hot path over some octets."""
    entries: list[Pushed] = []
    try:
        return Run(entries, read_pushes(data, 0, entries), None)
    except DecodeError as error:
        return Run(entries, -1, error)


def check_pushes(data: bytes, run: Run) -> None:
    """Follow a run with the codec; they may part only where the hot path looks later, and then late looks agree."""
    at = 0
    for entry in run.entries:
        strict = _read(data, at)
        late = _looked_at(entry)
        if isinstance(strict, DecodeError):
            require(_is_late(data, at, strict), "the hot path takes what the codec takes", strict, entry)
            require(isinstance(late, DecodeError), "a late look finds what the codec finds", strict, entry)
            require(late.code == strict.code, "a late look finds what the codec finds", strict, late)  # type: ignore[union-attr]
            return
        message, at = strict
        require(late == message, "the hot path reads what the codec reads", late, message)
    if run.error is None:
        require(run.end == at, "a run ends behind its last entry", run.end, at)
        return
    strict = _read(data, at)
    if not isinstance(strict, DecodeError):
        broken("the hot path refuses what the codec refuses", run.error, strict)
    same = (run.error.code, run.error.at) == (strict.code, strict.at)
    require(same or _is_late(data, at, strict), "the hot path refuses as the codec does", run.error, strict)


def _read(data: bytes, at: int) -> tuple[NetworkMessage, int] | DecodeError:
    try:
        return read_network_message(data, at)
    except IndexError:
        return Truncated("zenoh1", len(data))
    except DecodeError as error:
        return error


def _looked_at(entry: Pushed) -> Push | DecodeError:
    header, scope, suffix, qos, meta, payload = entry
    try:
        wire_expr = wire_expr_of(header, scope, suffix)
        return Push(wire_expr, details(meta, payload), qos=qos if header & 0x80 else None)
    except DecodeError as error:
        return error


def _is_late(data: bytes, start: int, error: DecodeError) -> bool:
    """Whether the hot path leaves such a fault until somebody looks: text, long chains, the body of a source info."""
    source_info = any(octet & 0x7F == 0x41 for octet in data[start : error.at])
    return error.code in ("BAD_TEXT", "OVERSIZE") or source_info
